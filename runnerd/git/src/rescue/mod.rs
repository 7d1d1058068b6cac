//! Saves everything in the work tree as a commit outside the branch, and restores a branch to a commit. Never stashes,
//! cleans or resets: what is in the way is removed only if the rescue has it with the same content.

pub(crate) mod abort_operation;
pub(crate) mod collect;
pub(crate) mod repair_refs;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};
use runner_os::dir_permissions::OpenedDirs;

use crate::durable;
use crate::index;
use crate::objects::object_reader;
use crate::objects::{CommitEntry, EntryKind};
use crate::path::display_path;
use crate::refs::{ExpectedRef, RefMove};
use crate::repository::identity::Identity;
use crate::repository::program::GitCommand;
use crate::worktree::hold_back::HoldBackRule;
use crate::worktree::stage::CollectedTree;
use crate::{ChangeKind, GitError, Id, Repository, WorktreeChange};

/// Size in bytes above which files are not read into memory whole.
const MAX_WHOLE_READ: u64 = 8 * 1024 * 1024;

/// What to save, and where.
#[derive(Debug, Clone)]
pub struct SnapshotRequest<'a> {
    /// Full name of the reference that keeps the snapshot, such as `refs/runner/rescue/x/0001`.
    pub name: &'a str,
    /// Commit message.
    pub message: &'a str,
    /// Author and committer.
    pub author: Identity,
    /// Rule for which untracked files stay out.
    pub hold_back: &'a HoldBackRule,
    /// A commit that may be restored next: whatever is in the place of its files is saved even if ignored.
    pub restore_target: Option<Id>,
}

/// Result of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RescueSnapshot {
    /// The commit; its parent is HEAD's commit.
    pub commit: Id,
    /// Untracked paths that the rule excluded, sorted.
    pub held_back: Vec<String>,
    /// Paths that git cannot store, sorted.
    pub unstorable: Vec<String>,
}

/// What to restore.
#[derive(Debug, Clone)]
pub struct RestoreOptions<'a> {
    /// Short name of the branch to put HEAD on.
    pub branch: &'a str,
    /// Commit for index and work tree.
    pub target: Id,
    /// Commit for the branch; differs from `target` if `target` has uncommitted changes in it.
    pub tip: Id,
    /// The snapshot of everything there now, taken with `target` as its [`SnapshotRequest::restore_target`].
    pub rescue: Id,
    /// The rule that the snapshot was taken with.
    pub hold_back: &'a HoldBackRule,
}

/// What a restoration did to untracked files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreOutcome {
    /// Untracked files that were removed, sorted; the rescue has them.
    pub removed: Vec<String>,
    /// Paths that still differ from the commit, sorted: the rescue does not have them.
    pub remaining: Vec<String>,
}

/// Type and content of files, by path.
type FileMap = BTreeMap<Vec<u8>, (EntryKind, Id)>;

/// What a restoration has to compare before it starts.
struct RestorePlan {
    target: FileMap,
    present: FileMap,
    rescued: FileMap,
    /// Paths whose content is unknown.
    unstorable: BTreeSet<BString>,
}

impl RestorePlan {
    /// Fails if the content of a file to be checked out does not match its id.
    fn verify_changed_files(&self, repo: &gix::Repository, objects: &Path) -> gix::Result<()> {
        let changed = self.target.iter().filter(|(path, file)| self.present.get(*path) != Some(*file));
        let mut changed = changed.filter(|(_, (kind, _))| *kind != EntryKind::Submodule);
        changed.try_for_each(|(_, (_, id))| {
            // A large file is not read into memory if it is a loose object.
            let is_large = repo.find_header(id.object_id())?.size() > MAX_WHOLE_READ;
            if is_large && durable::is_intact(objects, &id.object_id()) {
                return Ok(());
            }
            object_reader::read_blob(repo, id.object_id()).map(drop)
        })
    }
}

impl Repository {
    /// Saves the contents of the work tree, untracked files included, as a commit with its own reference.
    ///
    /// HEAD, index and work tree stay as they are. Ignored files are not saved.
    pub fn create_snapshot(&self, request: &SnapshotRequest<'_>) -> Result<RescueSnapshot, GitError> {
        let repo = self.open()?;
        let head = self.head()?.commit();
        // What cannot be seen cannot be saved, and files to be restored may be in a folder without permissions.
        let _open = request.restore_target.map(|to| self.open_dirs_of_commit(&to)).transpose()?;
        let mut collected = CollectedTree::collect(&repo, self, request.hold_back, request.restore_target)?;
        let signature = request.author.signature();
        let commit = gix::objs::Commit {
            tree: collected.tree,
            parents: head.iter().map(Id::object_id).collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: format!("{}\n", request.message.trim_end()).into(),
            extra_headers: Vec::new(),
        };
        let written = repo.write_object(&commit).map_err(GitError::gix("writing a commit", self.git_dir()))?;
        let commit = Id::from(written);
        collected.written.push(commit.object_id());
        durable::sync_objects(&self.common_dir().join("objects"), &collected.written)?;
        self.move_ref(&RefMove {
            name: request.name,
            to: commit,
            expected: ExpectedRef::Any,
            message: "runner: rescue",
            identity: &request.author,
        })?;
        let names = |paths: BTreeSet<BString>| paths.iter().map(|path| display_path(path)).collect();
        Ok(RescueSnapshot { commit, held_back: names(collected.held_back), unstorable: names(collected.unstorable) })
    }

    /// Returns the paths that differ between the work tree and a snapshot taken with the same rule, sorted.
    pub fn list_changed_since(&self, snapshot: &Id, hold_back: &HoldBackRule) -> Result<Vec<String>, GitError> {
        let repo = self.open()?;
        let now = CollectedTree::collect(&repo, self, hold_back, None)?;
        let now = to_file_map(self.list_tree_files(&repo, now.tree)?);
        let then = to_file_map(self.list_entries(snapshot, "")?);
        let differing = now.keys().chain(then.keys()).filter(|path| now.get(*path) != then.get(*path));
        let sorted: BTreeSet<&Vec<u8>> = differing.collect();
        Ok(sorted.into_iter().map(|path| display_path(path.as_bstr())).collect())
    }

    /// Restores HEAD, the branch, the index and the work tree to a commit, and aborts a merge or the like in progress.
    ///
    /// Fails before anything is changed if a file would be overwritten whose current content is not in the rescue.
    /// Untracked files are removed only if they are in the rescue; ignored files stay, and so do all other references.
    pub fn restore(&self, request: &RestoreOptions<'_>) -> Result<RestoreOutcome, GitError> {
        let repo = self.open()?;
        let collected = CollectedTree::collect(&repo, self, request.hold_back, Some(request.target))?;
        let plan = RestorePlan {
            target: to_file_map(self.list_entries(&request.target, "")?),
            present: to_file_map(self.list_tree_files(&repo, collected.tree)?),
            rescued: to_file_map(self.list_entries(&request.rescue, "")?),
            unstorable: collected.unstorable,
        };
        self.check_no_loss(&repo, &plan)?;
        // git leaves a file that it may not remove, and only reports that.
        let _open = self.open_dirs(plan.target.keys().chain(plan.present.keys()));
        let objects = self.common_dir().join("objects");
        plan.verify_changed_files(&repo, &objects)
            .map_err(GitError::gix("reading what is restored", self.git_dir()))?;

        self.abort_operation()?;
        let author = self.identity().unwrap_or_else(Identity::runner);
        self.move_ref(&RefMove {
            name: &format!("refs/heads/{}", request.branch),
            to: request.target,
            expected: ExpectedRef::Any,
            message: "runner: restore",
            identity: &author,
        })?;
        self.point_head(request.branch)?;
        // The program trusts what an index records about files, and a session may have written it.
        self.publish_clean_index(&repo)?;
        GitCommand::new(self, "read-tree").args(["--reset", "-u", &request.target.to_string()]).run()?;

        let removed = self.remove_untracked_files(&plan)?;
        let left = self.list_changes()?.iter().map(WorktreeChange::display_path).collect();
        if request.tip != request.target {
            self.move_ref(&RefMove {
                name: &format!("refs/heads/{}", request.branch),
                to: request.tip,
                expected: ExpectedRef::Exactly(request.target),
                message: "runner: restore",
                identity: &author,
            })?;
        }
        Ok(RestoreOutcome { removed, remaining: left })
    }

    /// Opens the folders of the work tree in which a commit has files.
    fn open_dirs_of_commit(&self, commit: &Id) -> Result<OpenedDirs, GitError> {
        Ok(self.open_dirs(self.list_entries(commit, "")?.iter().map(|entry| &entry.path)))
    }

    fn open_dirs<'p>(&self, paths: impl Iterator<Item = &'p Vec<u8>>) -> OpenedDirs {
        OpenedDirs::open_parents(self.work_dir(), paths.map(|path| OsStr::from_bytes(path)))
    }

    /// Fails if a checkout of `target` would destroy content that the rescue does not have.
    fn check_no_loss(&self, repo: &gix::Repository, plan: &RestorePlan) -> Result<(), GitError> {
        let RestorePlan { target, present, rescued, unstorable } = plan;
        let state = index::read_index(repo, self, self.head()?.commit())?;
        let is_affected = |path: &[u8]| is_obstructing(target, path) || state.entry_range(path.as_bstr()).is_some();
        let is_safe = |path: &[u8], file| rescued.get(path) == Some(file) || target.get(path) == Some(file);
        let unsafe_file = present.iter().find(|(path, file)| !is_safe(path, file) && is_affected(path));
        let is_file = |path: &BString| self.absolute_path(path).symlink_metadata().is_ok_and(|found| found.is_file());
        let unreadable = unstorable.iter().find(|path| is_file(path) && is_affected(path));
        let lost = unsafe_file.map(|(path, _)| path.as_slice()).or(unreadable.map(|path| path.as_slice()));
        lost.map_or(Ok(()), |path| {
            Err(GitError::NotRescued { file: display_path(path), path: self.work_dir().to_owned() })
        })
    }

    /// Removes files that are untracked by the rules of the restored commit and that the rescue has unchanged.
    fn remove_untracked_files(&self, plan: &RestorePlan) -> Result<Vec<String>, GitError> {
        let mut removed = Vec::new();
        for WorktreeChange { path, kind } in self.list_changes()? {
            let existing = plan.present.get(&path).filter(|(kind, _)| *kind != EntryKind::Submodule);
            if kind != ChangeKind::Untracked || existing.is_none() || existing != plan.rescued.get(&path) {
                continue;
            }
            let file = self.absolute_path(&path);
            fs::remove_file(&file).map_err(GitError::io("removing", &file))?;
            remove_empty_dirs(self.work_dir(), &file);
            removed.push(display_path(&path));
        }
        Ok(removed)
    }

    fn list_tree_files(&self, repo: &gix::Repository, tree: ObjectId) -> Result<Vec<CommitEntry>, GitError> {
        crate::objects::list_tree_files(repo, tree, "").map_err(GitError::gix("listing a tree", self.git_dir()))
    }
}

fn to_file_map(entries: Vec<CommitEntry>) -> FileMap {
    entries.into_iter().map(|entry| (entry.path, (entry.kind, entry.id))).collect()
}

/// Whether a file at `path` must be removed or changed for the files of `target` to exist.
fn is_obstructing(target: &FileMap, path: &[u8]) -> bool {
    let above = path.find_iter(b"/").map(|slash| &path[..slash]);
    let below = [path, b"/"].concat();
    let is_folder = target.range(below.clone()..).next().is_some_and(|(other, _)| other.starts_with(&below));
    target.contains_key(path) || is_folder || above.into_iter().any(|folder| target.contains_key(folder))
}

fn remove_empty_dirs(root: &Path, file: &Path) {
    let mut folder = file.parent();
    while let Some(empty) = folder.filter(|folder| *folder != root && folder.starts_with(root)) {
        if fs::remove_dir(empty).is_err() {
            return;
        }
        folder = empty.parent();
    }
}
