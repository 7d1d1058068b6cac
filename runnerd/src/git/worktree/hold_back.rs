//! Which new files do not go into a commit by themselves: secrets by their name, what is too large, and repositories
//! inside the repository. Only says which; `stage` leaves them out and `exclude` hides them from git.

use std::fs::{self, File};

use gix::bstr::{BStr, ByteSlice as _};
use gix::glob::wildmatch;
use gix::index::entry::Mode;

use crate::git::Repository;
use crate::git::path::has_safe_name;

/// The rule by which untracked files are held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldBackRule {
    /// Globs on the file name without its folder. One that starts with `!` excepts what an earlier one named.
    pub names: Vec<String>,
    /// The size in bytes above which a file is held back.
    pub max_file_bytes: u64,
}

/// What becomes of a file that git does not track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum HoldBackVerdict {
    /// It goes into the commit.
    Included,
    /// It stays out by the rule.
    HeldBack,
    /// It stays out because git cannot take it.
    Unstorable,
    /// There is nothing.
    Missing,
}

impl HoldBackRule {
    /// Returns the rule that holds back nothing but nested repositories.
    pub fn nested_only() -> Self {
        Self { names: Vec::new(), max_file_bytes: u64::MAX }
    }

    /// Looks at the untracked file, or, if `path` ends in a slash, repository.
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
        if !is_file && !is_link || !has_safe_name(path, mode) || is_file && File::open(&file).is_err() {
            return HoldBackVerdict::Unstorable;
        }
        if self.matches_file(path, if is_file { found.len() } else { 0 }) { HoldBackVerdict::HeldBack } else { HoldBackVerdict::Included }
    }

    /// Tells whether a file at `path` of `bytes` length is to be held back.
    fn matches_file(&self, path: &[u8], bytes: u64) -> bool {
        // What the runner and its sessions keep there belongs to the run, whatever it is called.
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
