//! Which new files are not committed automatically: secrets by name, large files, what a person's rules ignore, nested
//! repositories, and what some file system takes for the runner's folder. Only decides which; `stage` leaves them out
//! and `exclude` hides them from git.

use std::fs::{self, File};

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::glob::wildmatch;
use gix::index::entry::Mode;
use runner_core::fsck::is_like_runner_path;

use super::ignore_files::{IgnoreFiles, IgnoreMatcher};
use crate::path::has_safe_name;
use crate::{GitError, Repository};

/// The rule that holds back untracked files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldBackRule {
    /// Globs for the file name without its folder. A leading `!` makes an exception to an earlier glob.
    pub names: Vec<String>,
    /// Files in the work tree, by their whole paths.
    pub paths: Vec<String>,
    /// The size in bytes above which a file is held back.
    pub max_file_bytes: u64,
    /// The ignore rules that hold whatever the work tree's say; `None` if those of the work tree are enough.
    pub ignore_files: Option<IgnoreFiles>,
}

/// Applies a rule to untracked paths.
pub(crate) struct HoldBackJudge<'a> {
    rule: &'a HoldBackRule,
    repository: &'a Repository,
    ignored: Option<IgnoreMatcher<'a>>,
    /// The rules of HEAD, once they were needed.
    ignored_at_head: Option<IgnoreMatcher<'a>>,
}

/// What happens to an untracked file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HoldBackVerdict {
    /// It goes into the commit.
    Included,
    /// The rule keeps it out, under this name: the path, or a folder with nothing but what is kept out.
    HeldBack(BString),
    /// git cannot store it.
    Unstorable,
    /// Nothing is there.
    Missing,
}

impl HoldBackRule {
    /// Returns the rule that holds back only nested repositories.
    pub fn nested_only() -> Self {
        Self { names: Vec::new(), paths: Vec::new(), max_file_bytes: u64::MAX, ignore_files: None }
    }

    /// Returns the judge of untracked paths by this rule.
    pub(crate) fn judge<'a>(
        &'a self,
        repo: &'a gix::Repository,
        repository: &'a Repository,
    ) -> Result<HoldBackJudge<'a>, GitError> {
        let ignored = self.ignore_files.as_ref().map(|files| IgnoreMatcher::new(repo, repository, files));
        Ok(HoldBackJudge { rule: self, repository, ignored: ignored.transpose()?, ignored_at_head: None })
    }

    /// Whether to hold back a file at `path` with a size of `bytes`.
    fn matches_file(&self, path: &[u8], bytes: u64) -> bool {
        let is_named = || self.names_match(path) || self.paths.iter().any(|named| named.as_bytes() == path);
        !is_in_runner_dir(path) && (bytes > self.max_file_bytes || is_named())
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

impl HoldBackJudge<'_> {
    /// Judges an untracked file or, if `path` ends in a slash, a folder or nested repository.
    pub(crate) fn judge_path(&mut self, path: &BStr) -> Result<HoldBackVerdict, GitError> {
        let file = self.repository.absolute_path(path);
        let Ok(found) = fs::symlink_metadata(&file) else {
            return Ok(HoldBackVerdict::Missing);
        };
        let is_folder = path.ends_with(b"/");
        if found.is_dir() != is_folder {
            return Ok(HoldBackVerdict::Missing);
        }
        if let Some(name) = self.find_ignored(path)? {
            return Ok(HoldBackVerdict::HeldBack(name));
        }
        if is_folder {
            let is_nested = file.join(".git").symlink_metadata().is_ok();
            return Ok(if is_nested { HoldBackVerdict::HeldBack(path.to_owned()) } else { HoldBackVerdict::Included });
        }
        let is_file = found.is_file();
        let is_link = found.is_symlink();
        let mode = if is_link { Mode::SYMLINK } else { Mode::FILE };
        let is_like_runner = is_like_runner_path(path);
        let is_safe = is_like_runner || has_safe_name(path, mode);
        if !is_file && !is_link || !is_safe || is_file && File::open(&file).is_err() {
            return Ok(HoldBackVerdict::Unstorable);
        }
        let is_held = is_like_runner || self.rule.matches_file(path, if is_file { found.len() } else { 0 });
        Ok(if is_held { HoldBackVerdict::HeldBack(path.to_owned()) } else { HoldBackVerdict::Included })
    }

    /// Whether the `.gitignore` files of HEAD ignore an untracked path too.
    pub(crate) fn is_ignored_at_head(&mut self, path: &BStr) -> Result<bool, GitError> {
        let Some(ignored) = self.ignored.as_ref().filter(|_| !is_in_runner_dir(path)) else { return Ok(false) };
        let at_head = match &mut self.ignored_at_head {
            Some(known) => known,
            None => self.ignored_at_head.insert(ignored.at_head()),
        };
        Ok(at_head.find_ignored(path)?.is_some())
    }

    fn find_ignored(&mut self, path: &BStr) -> Result<Option<BString>, GitError> {
        match &mut self.ignored {
            Some(ignored) if !is_in_runner_dir(path) => ignored.find_ignored(path),
            _ => Ok(None),
        }
    }
}

/// What the runner and its sessions store there belongs to the run, whatever its name.
fn is_in_runner_dir(path: &[u8]) -> bool {
    path.starts_with(b".runner/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> HoldBackRule {
        let names = [".env", ".env.*", "!*.example", "*.pem"].map(str::to_owned).to_vec();
        HoldBackRule { names, paths: vec!["goals/port.md".to_owned()], max_file_bytes: 10, ignore_files: None }
    }

    #[test]
    fn a_path_is_one_file() {
        assert!(secrets().matches_file(b"goals/port.md", 0));
        assert!(!secrets().matches_file(b"port.md", 0) && !secrets().matches_file(b"old/goals/port.md", 0));
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
