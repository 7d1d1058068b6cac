//! Which new files are not committed automatically: secrets by name, large files, nested repositories, and what some
//! file system takes for the runner's folder. Only decides
//! which; `stage` leaves them out and `exclude` hides them from git.

use std::fs::{self, File};

use gix::bstr::{BStr, ByteSlice as _};
use gix::glob::wildmatch;
use gix::index::entry::Mode;
use runner_core::fsck::is_like_runner_path;

use crate::git::Repository;
use crate::git::path::has_safe_name;

/// The rule that holds back untracked files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldBackRule {
    /// Globs for the file name without its folder. A leading `!` makes an exception to an earlier glob.
    pub names: Vec<String>,
    /// The size in bytes above which a file is held back.
    pub max_file_bytes: u64,
}

/// What happens to an untracked file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum HoldBackVerdict {
    /// It goes into the commit.
    Included,
    /// The rule keeps it out.
    HeldBack,
    /// git cannot store it.
    Unstorable,
    /// Nothing is there.
    Missing,
}

impl HoldBackRule {
    /// Returns the rule that holds back only nested repositories.
    pub fn nested_only() -> Self {
        Self { names: Vec::new(), max_file_bytes: u64::MAX }
    }

    /// Judges an untracked file or, if `path` ends in a slash, a nested repository.
    pub(in crate::git) fn judge_path(&self, repository: &Repository, path: &BStr) -> HoldBackVerdict {
        let file = repository.absolute_path(path);
        let Ok(found) = fs::symlink_metadata(&file) else {
            return HoldBackVerdict::Missing;
        };
        if path.ends_with(b"/") {
            let nested = file.join(".git").symlink_metadata().is_ok();
            return if nested { HoldBackVerdict::HeldBack } else { HoldBackVerdict::Included };
        }
        let (is_file, is_link) = (found.is_file(), found.is_symlink());
        if found.is_dir() {
            return HoldBackVerdict::Missing;
        }
        let mode = if is_link { Mode::SYMLINK } else { Mode::FILE };
        let is_safe = is_like_runner_path(path) || has_safe_name(path, mode);
        if !is_file && !is_link || !is_safe || is_file && File::open(&file).is_err() {
            return HoldBackVerdict::Unstorable;
        }
        if is_like_runner_path(path) || self.matches_file(path, if is_file { found.len() } else { 0 }) {
            HoldBackVerdict::HeldBack
        } else {
            HoldBackVerdict::Included
        }
    }

    /// Whether to hold back a file at `path` with a size of `bytes`.
    fn matches_file(&self, path: &[u8], bytes: u64) -> bool {
        // What the runner and its sessions store there belongs to the run, whatever its name.
        !path.starts_with(b".runner/") && (bytes > self.max_file_bytes || self.names_match(path))
    }

    fn names_match(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path).as_bstr();
        let mut is_held = false;
        for pattern in &self.names {
            let (verdict, glob) = pattern.strip_prefix('!').map_or((true, pattern.as_str()), |rest| (false, rest));
            if gix::glob::wildmatch(glob.as_bytes().as_bstr(), name, wildmatch::Mode::empty()) {
                is_held = verdict;
            }
        }
        is_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> HoldBackRule {
        let names = [".env", ".env.*", "!*.example", "*.pem"].map(str::to_owned).to_vec();
        HoldBackRule { names, max_file_bytes: 10 }
    }

    #[test]
    fn names_count_in_every_folder() {
        assert!(secrets().matches_file(b".env", 0));
        assert!(secrets().matches_file(b"deep/er/.env.local", 0));
        assert!(secrets().matches_file(b"key.pem", 0));
        assert!(!secrets().matches_file(b"key.pem/readme", 0));
        assert!(!secrets().matches_file(b"src/main.rs", 0));
    }

    #[test]
    fn nothing_of_the_runners_folder_is_held_back() {
        assert!(!secrets().matches_file(b".runner/state/artifacts/key.pem", 11));
        assert!(secrets().matches_file(b"sub/.runner/key.pem", 0));
    }

    #[test]
    fn later_pattern_excepts() {
        assert!(!secrets().matches_file(b".env.example", 0));
    }

    #[test]
    fn size_counts_above_the_limit_only() {
        assert!(!secrets().matches_file(b"a", 10));
        assert!(secrets().matches_file(b"a", 11));
    }
}
