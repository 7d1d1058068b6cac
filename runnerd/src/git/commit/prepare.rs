//! The part of a commit before the commit: everything that is to go in, staged and written as a tree, by whichever
//! engine handles the repository. HEAD is as before when it is done.

use std::collections::BTreeSet;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};

use crate::git::index::cachetree;
use crate::git::index::{IndexLock, PendingIndex};
use crate::git::objects::checked;
use crate::git::objects::diff::compare_trees;
use crate::git::path::display;
use crate::git::repository::identity::Identity;
use crate::git::worktree::change::{Change, ChangeKind};
use crate::git::worktree::exclude;
use crate::git::worktree::hold_back::{HoldBack, Verdict};
use crate::git::worktree::known::Tracked;
use crate::git::worktree::porcelain;
use crate::git::worktree::private::PrivateIndex;
use crate::git::worktree::refused::Refused;
use crate::git::worktree::scan::Scan;
use crate::git::worktree::stage::{Collected, Staged, Staging, declared_submodules};
use crate::git::{GitError, Id, Repository};

/// What to commit and how.
#[derive(Debug, Clone)]
pub struct CommitRequest<'a> {
    /// The message, verbatim; a line end is added if it has none.
    pub message: &'a str,
    /// Author and committer.
    pub author: Identity,
    /// The commit that HEAD is expected to be at; none before the first.
    pub parent: Option<Id>,
    /// Which new files stay out.
    pub hold_back: &'a HoldBack,
    /// Whether the git program is to sign the commit as configured.
    pub sign: bool,
    /// Whether to commit even if nothing changed.
    pub allow_empty: bool,
    /// The only paths that may differ from HEAD, for who has looked and knows what was written since; none: all do.
    pub within: Option<&'a [Vec<u8>]>,
    /// Files that the caller has written, and what: nothing is committed that has them otherwise.
    pub written: &'a [(&'a str, &'a [u8])],
    /// Whether files of HEAD whose change cannot be stored are left as HEAD has them; otherwise nothing is committed.
    pub leaves_refused: bool,
}

/// What stays out of the next commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// New files, sorted; paths of repositories end in a slash.
    pub paths: Vec<String>,
    /// Files of HEAD that were changed into what git cannot store.
    pub refused: Vec<Refused>,
}

/// The tree to commit, and the index to publish once HEAD moved.
pub(in crate::git) struct Prepared {
    pub(in crate::git) collected: Collected,
    pub(in crate::git) index: PendingIndex,
}

/// What earlier commits left out and the next does as well.
struct Reconsidered {
    held_back: BTreeSet<BString>,
    unstorable: BTreeSet<BString>,
    /// Whether something is hidden no longer.
    reveals: bool,
}

impl Repository {
    /// Hides from git the new files that a commit would leave out now, and returns what it would leave out.
    ///
    /// `changes` are what was seen last; if files come to light that were hidden then, they become what is seen now.
    pub fn hold_back(&self, rule: &HoldBack, changes: &mut Vec<Change>) -> Result<HeldBack, GitError> {
        let repo = self.open()?;
        let head = self.tree_of(&repo, self.head()?.commit())?;
        let reconsidered = self.reconsider(&repo, &head, rule)?;
        if reconsidered.reveals {
            *changes = self.changes()?;
        }
        let mut hidden = reconsidered.held_back;
        hidden.extend(reconsidered.unstorable);
        let submodules = declared_submodules(&repo);
        for Change { path, kind } in changes.iter() {
            let path = BString::from(path.as_slice());
            let is_submodule = submodules.contains(path.strip_suffix(b"/").unwrap_or(&path).as_bstr());
            if is_submodule || !matches!(kind, ChangeKind::Untracked | ChangeKind::Added) {
                continue;
            }
            if matches!(rule.judge(self, path.as_ref()), Verdict::HeldBack | Verdict::Unstorable) {
                hidden.insert(path);
            }
        }
        let candidates: Vec<Change> =
            changes.iter().filter(|change| !hidden.contains(change.path.as_bstr())).cloned().collect();
        let mut refused = Vec::new();
        for found in self.refused_of(&repo, &candidates)? {
            if has_path(&repo, &head, found.path.as_ref())? {
                refused.push(found);
            } else {
                hidden.insert(found.path);
            }
        }
        exclude::write(self, &hidden)?;
        Ok(HeldBack { paths: hidden.iter().map(|path| display(path)).collect(), refused })
    }

    /// Stages everything and writes the tree; hides from git what stays out.
    pub(in crate::git) fn prepare(
        &self,
        repo: &gix::Repository,
        request: &CommitRequest<'_>,
    ) -> Result<Prepared, GitError> {
        let head = self.tree_of(repo, request.parent)?;
        let Reconsidered { held_back, unstorable, reveals } = self.reconsider(repo, &head, request.hold_back)?;
        let within = request.within.filter(|_| !reveals);
        let engine = self.engine(repo);
        let by_library = || self.prepare_by_library(repo, request, within);
        let mut prepared = engine.carry_out(by_library, || self.prepare_by_program(repo, request))?;
        let collected = &mut prepared.collected;
        collected.held_back.extend(held_back);
        collected.unstorable.extend(unstorable);
        let mut hidden = collected.held_back.clone();
        for path in &collected.unstorable {
            if !has_path(repo, &head, path.as_ref())? {
                hidden.insert(path.clone());
            } else if !request.leaves_refused {
                return Err(self.refusal_of(repo, path.as_ref())?.into_error());
            }
        }
        exclude::write(self, &hidden)?;
        Ok(prepared)
    }

    /// Looks again at what earlier commits left out: what is tracked or would go in now is hidden no longer.
    fn reconsider(
        &self,
        repo: &gix::Repository,
        head: &gix::Tree<'_>,
        rule: &HoldBack,
    ) -> Result<Reconsidered, GitError> {
        let (mut held_back, mut unstorable) = (BTreeSet::new(), BTreeSet::new());
        let hidden = exclude::read(self)?;
        if hidden.is_empty() {
            return Ok(Reconsidered { held_back, unstorable, reveals: false });
        }
        let before = hidden.len();
        let submodules = declared_submodules(repo);
        for path in hidden {
            let name = path.strip_suffix(b"/").unwrap_or(&path).as_bstr();
            if submodules.contains(name) || has_path(repo, head, name)? {
                continue;
            }
            match rule.judge(self, path.as_ref()) {
                Verdict::HeldBack => drop(held_back.insert(path)),
                Verdict::Unstorable => drop(unstorable.insert(path)),
                Verdict::Welcome | Verdict::Absent => {}
            }
        }
        exclude::write(self, &held_back.union(&unstorable).cloned().collect())?;
        let reveals = held_back.len() + unstorable.len() < before;
        Ok(Reconsidered { held_back, unstorable, reveals })
    }

    fn prepare_by_library(
        &self,
        repo: &gix::Repository,
        request: &CommitRequest<'_>,
        within: Option<&[Vec<u8>]>,
    ) -> Result<Prepared, GitError> {
        let lock = IndexLock::acquire(repo, self)?;
        let mut tracked = Tracked::open(repo, self, request.parent)?;
        let within = within.filter(|within| !tracked.names.is_new && tracked.names.lie_within(within));
        let scan = within.and_then(|within| Scan::within(self, &tracked.state, within));
        let scan = scan.map_or_else(|| Scan::run(repo, self, &mut tracked), Ok)?;
        let staging = Staging { repo, paths: self, rule: request.hold_back };
        let mut staged = staging.run(tracked.state, scan)?;
        let tree = cachetree::write(repo, self, &mut staged.state, &mut staged.written)?;
        let Staged { state, held_back, unstorable, written } = staged;
        let index = lock.write(&state)?;
        self.memory.keep(state, tree);
        Ok(Prepared { collected: Collected { tree, held_back, unstorable, written }, index })
    }

    fn prepare_by_program(&self, repo: &gix::Repository, request: &CommitRequest<'_>) -> Result<Prepared, GitError> {
        let lock = IndexLock::acquire(repo, self)?;
        let tracked = Tracked::open(repo, self, request.parent)?;
        let private = PrivateIndex::of(repo, tracked)?;
        let mut collected = porcelain::stage(&private, request.hold_back)?;
        collected.written = self.objects_since(repo, request.parent, collected.tree)?;
        let state = private.into_staged()?;
        let index = lock.write(&state)?;
        self.memory.keep(state, collected.tree);
        Ok(Prepared { collected, index })
    }

    /// Returns the blobs of a tree that a commit does not have at their paths.
    fn objects_since(
        &self,
        repo: &gix::Repository,
        commit: Option<Id>,
        tree: ObjectId,
    ) -> Result<Vec<ObjectId>, GitError> {
        let before = self.tree_of(repo, commit)?;
        let changed = checked::tree(repo, tree).and_then(|tree| compare_trees(repo, &before, &tree));
        let changed = changed.map_err(GitError::library("reading what git has stored", self.git_dir()))?;
        let new = changed.into_iter().filter_map(|difference| difference.new);
        Ok(new.filter(|(mode, _)| mode.is_blob_or_symlink()).map(|(_, id)| id).collect())
    }

    /// Returns the tree of a commit; the empty one before the first.
    pub(in crate::git) fn tree_of<'r>(
        &self,
        repo: &'r gix::Repository,
        commit: Option<Id>,
    ) -> Result<gix::Tree<'r>, GitError> {
        let Some(commit) = commit else { return Ok(repo.empty_tree()) };
        checked::tree_of(repo, commit.object()).map_err(GitError::library("reading a commit", self.git_dir()))
    }
}

fn has_path(repo: &gix::Repository, tree: &gix::Tree<'_>, path: &BStr) -> Result<bool, GitError> {
    let found = checked::at_path(repo, tree.id, path);
    Ok(found.map_err(GitError::library("looking up a file of a commit", repo.git_dir()))?.is_some())
}
