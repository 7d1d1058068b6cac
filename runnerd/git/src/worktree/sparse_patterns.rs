//! Which paths a sparse checkout leaves out of the work tree, by the patterns captured with the settings. Their content
//! is in the index alone: a merge puts it there.

use gix::bstr::{BStr, ByteSlice as _};
use gix::glob::pattern::Case;
use gix::ignore::Search;
use gix::index::entry::Flags;
use gix::index::{Entry, State};
use gix::worktree::stack::state::ignore::ParseIgnore;

use runner_core::fsck::is_like_runner_path;

use crate::index::index_flags::HIDING_FLAGS;
use crate::repository::pinned_config::{SPARSE_FILE, read_rules_file};
use crate::{GitError, Repository};

/// The patterns of a sparse checkout; those of a full checkout leave nothing out.
pub(crate) struct SparsePatterns<'a> {
    repository: &'a Repository,
    rules: Option<(Search, Case)>,
}

impl<'a> SparsePatterns<'a> {
    pub(crate) fn read(repo: &gix::Repository, repository: &'a Repository) -> Result<Self, GitError> {
        if !repo.config_snapshot().boolean("core.sparseCheckout").unwrap_or(false) {
            return Ok(Self { repository, rules: None });
        }
        repository.write_pinned_files()?;
        let file = repository.pinned_dir().unwrap_or(repository.git_dir()).join(SPARSE_FILE);
        let text = read_rules_file(&file)?;
        let mut rules = Search::default();
        let added = rules.add_patterns_buffer(&text, &file, None, ParseIgnore::default());
        added.map_err(GitError::io("reading", &file))?;
        let names = repo.filesystem_options().map_err(GitError::gix("reading settings of", repository.git_dir()))?;
        let case = if names.ignore_case { Case::Fold } else { Case::Sensitive };
        // Without a file of patterns, git leaves nothing out.
        Ok(Self { repository, rules: (!text.is_empty()).then_some((rules, case)) })
    }

    /// Whether an entry stands for a file that is not there because the checkout is sparse: its content counts.
    ///
    /// In the runner's folder, files alone count.
    pub(crate) fn leave_out(&self, entry: &Entry, path: &BStr) -> bool {
        entry.flags & (HIDING_FLAGS | Flags::INTENT_TO_ADD) == Flags::SKIP_WORKTREE
            && entry.stage_raw() == 0
            && !is_like_runner_path(path)
            && self.exclude(path)
            && self.is_absent(path)
    }

    /// Marks the entries of a new index that stand for files which are not there because the checkout is sparse.
    pub(crate) fn mark_left_out(&self, state: &mut State) {
        if self.rules.is_none() {
            return;
        }
        let is_left_out = |path: &BStr| !is_like_runner_path(path) && self.exclude(path) && self.is_absent(path);
        let left_out: Vec<bool> = state.entries().iter().map(|entry| is_left_out(entry.path(state))).collect();
        for (entry, _) in state.entries_mut().iter_mut().zip(left_out).filter(|(_, is_left_out)| *is_left_out) {
            entry.flags.insert(Flags::SKIP_WORKTREE | Flags::EXTENDED);
        }
    }

    fn is_absent(&self, path: &BStr) -> bool {
        self.repository.absolute_path(path).symlink_metadata().is_err()
    }

    /// The last pattern that matches a path decides, or else that of the closest folder for which there is one. A folder
    /// that is one entry of a sparse index ends in a slash.
    fn exclude(&self, path: &BStr) -> bool {
        let Some((rules, case)) = &self.rules else { return false };
        let (mut part, mut is_dir) = path.strip_suffix(b"/").map_or((path, false), |folder| (folder.as_bstr(), true));
        loop {
            if let Some(matched) = rules.pattern_matching_relative_path(part, Some(is_dir), *case) {
                return matched.pattern.is_negative();
            }
            let Some(slash) = part.rfind_byte(b'/') else { return true };
            (part, is_dir) = (part[..slash].as_bstr(), true);
        }
    }
}
