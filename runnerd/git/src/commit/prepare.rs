//! The part of a commit before the commit object: stages everything that goes in and writes it as a tree, with
//! whichever engine handles the repository. HEAD does not move.

use std::collections::BTreeSet;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};
use runner_core::fsck::is_like_runner_path;

use crate::index::cachetree;
use crate::index::{IndexLock, PendingIndex};
use crate::objects::diff::compare_trees;
use crate::objects::object_reader;
use crate::path::display_path;
use crate::repository::identity::Identity;
use crate::worktree::change::{ChangeKind, WorktreeChange};
use crate::worktree::exclude;
use crate::worktree::hold_back::{HoldBackRule, HoldBackVerdict};
use crate::worktree::porcelain;
use crate::worktree::private_index::PrivateIndex;
use crate::worktree::scan::WorktreeScan;
use crate::worktree::stage::{CollectedTree, StagedIndex, WorktreeStager, declared_submodules};
use crate::worktree::stat_cache::TrackedFiles;
use crate::worktree::unstorable::UnstorableFile;
use crate::{GitError, Id, Repository};

/// What to commit and how.
#[derive(Debug, Clone)]
pub struct CommitRequest<'a> {
    /// Commit message, verbatim; a line end is added if it has none.
    pub message: &'a str,
    /// Author and committer.
    pub author: Identity,
    /// Commit HEAD is expected to be at; `None` before the first commit.
    pub parent: Option<Id>,
    /// Rule for which new files stay out.
    pub hold_back: &'a HoldBackRule,
    /// Whether the git program signs the commit as configured.
    pub sign: bool,
    /// Whether to commit even if nothing changed.
    pub allow_empty: bool,
    /// The only paths that may differ from HEAD, for a caller that knows what was written since it checked; `None`
    /// means all.
    pub paths: Option<&'a [Vec<u8>]>,
    /// Files the caller wrote, with their content: the commit fails if it would hold anything else at these paths.
    pub expected_files: &'a [(&'a str, &'a [u8])],
    /// Whether files of HEAD whose change cannot be stored are left as HEAD has them; if not, nothing is committed.
    pub keeps_unstorable: bool,
}

/// Files that stay out of the next commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBackFiles {
    /// New files, sorted; nested repositories end in a slash.
    pub paths: Vec<String>,
    /// Files of HEAD changed into something git cannot store.
    pub unstorable: Vec<UnstorableFile>,
}

/// The tree to commit, and the index to publish after HEAD has moved.
pub(crate) struct PreparedCommit {
    pub(crate) collected: CollectedTree,
    pub(crate) index: PendingIndex,
}

/// Paths that earlier commits left out and the next one leaves out as well.
struct HiddenPaths {
    held_back: BTreeSet<BString>,
    unstorable: BTreeSet<BString>,
    /// Whether a hidden path has become visible again.
    has_unhidden: bool,
}

impl Repository {
    /// Hides from git the new files that a commit would leave out now, and returns them.
    ///
    /// `changes` is the last status; if a hidden file becomes visible again, the status is read again and replaces it.
    pub fn apply_hold_back(
        &self,
        rule: &HoldBackRule,
        changes: &mut Vec<WorktreeChange>,
    ) -> Result<HeldBackFiles, GitError> {
        let repo = self.open()?;
        let head = self.commit_tree(&repo, self.head()?.commit())?;
        let reconsidered = self.review_hidden(&repo, &head, rule)?;
        if reconsidered.has_unhidden {
            *changes = self.list_changes()?;
        }
        let mut hidden = reconsidered.held_back;
        hidden.extend(reconsidered.unstorable);
        let submodules = declared_submodules(&repo);
        let mut judge = rule.judge(&repo, self)?;
        let mut left_out = BTreeSet::new();
        for WorktreeChange { path, kind } in changes.iter() {
            let path = BString::from(path.as_slice());
            let is_submodule = submodules.contains(path.strip_suffix(b"/").unwrap_or(&path).as_bstr());
            let is_new = matches!(kind, ChangeKind::Untracked | ChangeKind::Added) || is_like_runner_path(&path);
            if is_submodule || !is_new {
                continue;
            }
            let name = match judge.judge_path(path.as_ref())? {
                HoldBackVerdict::HeldBack(name) => name,
                HoldBackVerdict::Unstorable => path.clone(),
                HoldBackVerdict::Included | HoldBackVerdict::Missing => continue,
            };
            hidden.insert(name);
            left_out.insert(path);
        }
        let is_left_out = |path: &BStr| left_out.contains(path) || hidden.contains(path);
        let candidates: Vec<WorktreeChange> =
            changes.iter().filter(|change| !is_left_out(change.path.as_bstr())).cloned().collect();
        let mut unstorable = Vec::new();
        for found in self.find_unstorable(&repo, &candidates)? {
            if has_path(&repo, &head, found.path.as_ref())? {
                unstorable.push(found);
            } else {
                hidden.insert(found.path);
            }
        }
        exclude::write_excluded_paths(self, &hidden)?;
        Ok(HeldBackFiles { paths: hidden.iter().map(|path| display_path(path)).collect(), unstorable })
    }

    /// Shows to git again what earlier commits left out and this rule does not; returns whether there was any.
    pub fn reveal_held_back(&self, rule: &HoldBackRule) -> Result<bool, GitError> {
        let repo = self.open()?;
        let head = self.commit_tree(&repo, self.head()?.commit())?;
        Ok(self.review_hidden(&repo, &head, rule)?.has_unhidden)
    }

    /// Stages everything, writes the tree, and hides what stays out from git.
    pub(crate) fn prepare_commit(
        &self,
        repo: &gix::Repository,
        request: &CommitRequest<'_>,
    ) -> Result<PreparedCommit, GitError> {
        let head = self.commit_tree(repo, request.parent)?;
        let HiddenPaths { held_back, unstorable, has_unhidden: reveals } =
            self.review_hidden(repo, &head, request.hold_back)?;
        let paths = request.paths.filter(|_| !reveals);
        let engine = self.choose_engine(repo);
        let with_gix = || self.prepare_with_gix(repo, request, paths);
        let mut prepared = engine.run_with(self, "add", with_gix, || self.prepare_with_git(repo, request))?;
        let collected = &mut prepared.collected;
        collected.held_back.extend(held_back);
        collected.unstorable.extend(unstorable);
        let mut hidden = collected.held_back.clone();
        for path in &collected.unstorable {
            if !has_path(repo, &head, path.as_ref())? {
                hidden.insert(path.clone());
            } else if !request.keeps_unstorable {
                return Err(self.explain_unstorable(repo, path.as_ref())?.into_error());
            }
        }
        exclude::write_excluded_paths(self, &hidden)?;
        Ok(prepared)
    }

    /// Rechecks what earlier commits left out, and reveals what is tracked or would now go in.
    fn review_hidden(
        &self,
        repo: &gix::Repository,
        head: &gix::Tree<'_>,
        rule: &HoldBackRule,
    ) -> Result<HiddenPaths, GitError> {
        let mut held_back = BTreeSet::new();
        let mut unstorable = BTreeSet::new();
        let hidden = exclude::read_excluded_paths(self)?;
        if hidden.is_empty() {
            return Ok(HiddenPaths { held_back, unstorable, has_unhidden: false });
        }
        let before = hidden.len();
        let submodules = declared_submodules(repo);
        let mut judge = rule.judge(repo, self)?;
        for path in hidden {
            let name = path.strip_suffix(b"/").unwrap_or(&path).as_bstr();
            if submodules.contains(name) || has_path(repo, head, name)? {
                continue;
            }
            match judge.judge_path(path.as_ref())? {
                // git leaves it out automatically, by the rules of HEAD.
                HoldBackVerdict::HeldBack(_) if judge.is_ignored_at_head(path.as_ref())? => {}
                HoldBackVerdict::HeldBack(name) => drop(held_back.insert(name)),
                HoldBackVerdict::Unstorable => drop(unstorable.insert(path)),
                HoldBackVerdict::Included | HoldBackVerdict::Missing => {}
            }
        }
        exclude::write_excluded_paths(self, &held_back.union(&unstorable).cloned().collect())?;
        let reveals = held_back.len() + unstorable.len() < before;
        Ok(HiddenPaths { held_back, unstorable, has_unhidden: reveals })
    }

    fn prepare_with_gix(
        &self,
        repo: &gix::Repository,
        request: &CommitRequest<'_>,
        paths: Option<&[Vec<u8>]>,
    ) -> Result<PreparedCommit, GitError> {
        let lock = IndexLock::acquire(repo, self)?;
        let mut tracked = TrackedFiles::load(repo, self, request.parent)?;
        let paths = paths.filter(|within| !tracked.index_diff.is_new && tracked.index_diff.is_limited_to(within));
        let scan = paths.and_then(|within| WorktreeScan::for_paths(self, &tracked.state, within));
        let scan = scan.map_or_else(|| WorktreeScan::run(repo, self, &mut tracked), Ok)?;
        let staging = WorktreeStager { repo, repository: self, rule: request.hold_back };
        let mut staged = staging.run(tracked.state, scan)?;
        let tree = cachetree::write_trees(repo, self, &mut staged.state, &mut staged.written)?;
        let StagedIndex { state, held_back, unstorable, written } = staged;
        let index = lock.write(&state)?;
        self.cache.store_files(state, tree);
        Ok(PreparedCommit { collected: CollectedTree { tree, held_back, unstorable, written }, index })
    }

    fn prepare_with_git(
        &self,
        repo: &gix::Repository,
        request: &CommitRequest<'_>,
    ) -> Result<PreparedCommit, GitError> {
        let lock = IndexLock::acquire(repo, self)?;
        let tracked = TrackedFiles::load(repo, self, request.parent)?;
        let private = PrivateIndex::create(repo, tracked)?;
        let mut collected = porcelain::stage_all(&private, request.hold_back)?;
        collected.written = self.find_new_blobs(repo, request.parent, collected.tree)?;
        let state = private.into_staged_state()?;
        let index = lock.write(&state)?;
        self.cache.store_files(state, collected.tree);
        Ok(PreparedCommit { collected, index })
    }

    /// Returns the blobs of `tree` that `commit` does not have at the same paths.
    fn find_new_blobs(
        &self,
        repo: &gix::Repository,
        commit: Option<Id>,
        tree: ObjectId,
    ) -> Result<Vec<ObjectId>, GitError> {
        let before = self.commit_tree(repo, commit)?;
        let changed = object_reader::read_tree(repo, tree).and_then(|tree| compare_trees(repo, &before, &tree));
        let changed = changed.map_err(GitError::gix("reading what git has stored", self.git_dir()))?;
        let new = changed.into_iter().filter_map(|difference| difference.new);
        Ok(new.filter(|(mode, _)| mode.is_blob_or_symlink()).map(|(_, id)| id).collect())
    }

    /// Returns the tree of a commit; the empty tree for `None`.
    pub(crate) fn commit_tree<'r>(
        &self,
        repo: &'r gix::Repository,
        commit: Option<Id>,
    ) -> Result<gix::Tree<'r>, GitError> {
        let Some(commit) = commit else { return Ok(repo.empty_tree()) };
        object_reader::read_commit_tree(repo, commit.object_id())
            .map_err(GitError::gix("reading a commit", self.git_dir()))
    }
}

fn has_path(repo: &gix::Repository, tree: &gix::Tree<'_>, path: &BStr) -> Result<bool, GitError> {
    let found = object_reader::find_at_path(repo, tree.id, path);
    Ok(found.map_err(GitError::gix("looking up a file of a commit", repo.git_dir()))?.is_some())
}
