//! Keeps everything that is in the work tree as a commit beside the branch, and brings a branch back to a commit. Never
//! stashes, cleans or resets: what is in the way goes only after it was seen in the rescue with the same content.

pub(in crate::git) mod abandon;
pub(in crate::git) mod keep;
pub(in crate::git) mod mend;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};

use crate::folders::Opened;
use crate::git::durable;
use crate::git::index;
use crate::git::objects::checked;
use crate::git::objects::{CommitEntry, EntryKind};
use crate::git::path::display;
use crate::git::refs::{Before, Move};
use crate::git::repository::identity::Identity;
use crate::git::repository::program::Git;
use crate::git::worktree::hold_back::HoldBack;
use crate::git::worktree::stage::Collected;
use crate::git::{Change, ChangeKind, GitError, Id, Repository};

/// Longer files are not read as a whole; bytes.
const LARGE: u64 = 8 * 1024 * 1024;

/// What to keep and where.
#[derive(Debug, Clone)]
pub struct SnapshotRequest<'a> {
    /// The full name of the reference that keeps it, such as `refs/runner/rescue/x/0001`.
    pub name: &'a str,
    /// The message of the commit.
    pub message: &'a str,
    /// Author and committer.
    pub author: Identity,
    /// Which untracked files stay out.
    pub hold_back: &'a HoldBack,
    /// A commit that may be restored next: what the work tree has in the place of its files is kept even if ignored.
    pub restoring: Option<Id>,
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit; its parent is HEAD's commit.
    pub commit: Id,
    /// Untracked paths that were left out by the rule, sorted.
    pub held_back: Vec<String>,
    /// Paths that git cannot store, sorted.
    pub unstorable: Vec<String>,
}

/// Where to go back to.
#[derive(Debug, Clone)]
pub struct Restore<'a> {
    /// The short name of the branch that HEAD is to be on.
    pub branch: &'a str,
    /// The commit that index and work tree are to be at.
    pub to: Id,
    /// The commit that the branch is to be at; another than `to` where that has what is not committed.
    pub tip: Id,
    /// The snapshot that has everything that is there now, taken with `to` as [`SnapshotRequest::restoring`].
    pub rescue: Id,
    /// The rule that the snapshot was taken with.
    pub hold_back: &'a HoldBack,
}

/// What a restoration did to untracked files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Untracked files that were removed, sorted; the rescue has them.
    pub removed: Vec<String>,
    /// Paths that still differ from the commit, sorted: the rescue does not have them.
    pub left: Vec<String>,
}

/// Files by path: what they are and their content.
type Files = BTreeMap<Vec<u8>, (EntryKind, Id)>;

/// What a restoration has to compare before it may begin.
struct Scene {
    target: Files,
    present: Files,
    rescued: Files,
    /// Paths of which the content is not known.
    unstorable: BTreeSet<BString>,
}

impl Scene {
    /// Fails where a file that has to be laid out is not what its name in the object database says.
    fn check_changed(&self, repo: &gix::Repository, objects: &Path) -> gix::Result<()> {
        let changed = self.target.iter().filter(|(path, file)| self.present.get(*path) != Some(*file));
        let mut changed = changed.filter(|(_, (kind, _))| *kind != EntryKind::Submodule);
        changed.try_for_each(|(_, (_, id))| {
            // A large one is not held in memory where it is a file of its own.
            let is_large = repo.find_header(id.object())?.size() > LARGE;
            if is_large && durable::is_whole(objects, &id.object()) {
                return Ok(());
            }
            checked::blob(repo, id.object()).map(drop)
        })
    }
}

impl Repository {
    /// Keeps all that is in the work tree, untracked files included, as a commit under a reference of its own.
    ///
    /// HEAD, index and work tree stay as they are. Ignored files are not kept.
    pub fn snapshot(&self, request: &SnapshotRequest<'_>) -> Result<Snapshot, GitError> {
        let repo = self.open()?;
        let head = self.head()?.commit();
        // What is not seen is not kept, and what is restored may be in a folder that nobody may look into.
        let _open = request.restoring.map(|to| self.open_ways_to(&to)).transpose()?;
        let mut kept = Collected::collect(&repo, self, request.hold_back, request.restoring)?;
        let signature = request.author.signature();
        let commit = gix::objs::Commit {
            tree: kept.tree,
            parents: head.iter().map(Id::object).collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: format!("{}\n", request.message.trim_end()).into(),
            extra_headers: Vec::new(),
        };
        let written = repo.write_object(&commit).map_err(GitError::library("writing a commit", self.git_dir()))?;
        let commit = Id::from(written);
        kept.written.push(commit.object());
        durable::sync_objects(&self.common_dir().join("objects"), &kept.written)?;
        self.move_ref(&Move {
            name: request.name,
            to: commit,
            before: Before::Anything,
            message: "runner: rescue",
            by: &request.author,
        })?;
        let names = |paths: BTreeSet<BString>| paths.iter().map(|path| display(path)).collect();
        Ok(Snapshot { commit, held_back: names(kept.held_back), unstorable: names(kept.unstorable) })
    }

    /// Returns the paths that differ between the work tree and a snapshot that was taken with the same rule, sorted.
    pub fn changed_since(&self, snapshot: &Id, hold_back: &HoldBack) -> Result<Vec<String>, GitError> {
        let repo = self.open()?;
        let now = Collected::collect(&repo, self, hold_back, None)?;
        let (now, then) = (files(self.files_of(&repo, now.tree)?), files(self.entries(snapshot, "")?));
        let differing = now.keys().chain(then.keys()).filter(|path| now.get(*path) != then.get(*path));
        let sorted: BTreeSet<&Vec<u8>> = differing.collect();
        Ok(sorted.into_iter().map(|path| display(path.as_bstr())).collect())
    }

    /// Brings HEAD, the branch, the index and the work tree to a commit, and ends a merge or the like under way.
    ///
    /// Fails before anything is changed if a file would be overwritten that is not in the rescue as it is. Untracked
    /// files go only if they are in the rescue; ignored files stay, and so do all other references.
    pub fn restore(&self, request: &Restore<'_>) -> Result<Restored, GitError> {
        let repo = self.open()?;
        let kept = Collected::collect(&repo, self, request.hold_back, Some(request.to))?;
        let scene = Scene {
            target: files(self.entries(&request.to, "")?),
            present: files(self.files_of(&repo, kept.tree)?),
            rescued: files(self.entries(&request.rescue, "")?),
            unstorable: kept.unstorable,
        };
        self.refuse_loss(&repo, &scene)?;
        // Git leaves a file that it may not remove, and says nothing but that.
        let _open = self.open_ways(scene.target.keys().chain(scene.present.keys()));
        let objects = self.common_dir().join("objects");
        scene.check_changed(&repo, &objects).map_err(GitError::library("reading what is restored", self.git_dir()))?;

        self.abandon_operation()?;
        let author = self.identity().unwrap_or_else(Identity::runner);
        self.move_ref(&Move {
            name: &format!("refs/heads/{}", request.branch),
            to: request.to,
            before: Before::Anything,
            message: "runner: restore",
            by: &author,
        })?;
        self.point_head(request.branch)?;
        // The program believes what an index says of the files, and a session can have written it.
        self.publish_known(&repo)?;
        Git::new(self, "read-tree").args(["--reset", "-u", &request.to.to_string()]).run()?;

        let removed = self.remove_untracked(&scene)?;
        let left = self.changes()?.iter().map(Change::display_path).collect();
        if request.tip != request.to {
            self.move_ref(&Move {
                name: &format!("refs/heads/{}", request.branch),
                to: request.tip,
                before: Before::Exactly(request.to),
                message: "runner: restore",
                by: &author,
            })?;
        }
        Ok(Restored { removed, left })
    }

    /// Opens the folders of the work tree in which a commit has files.
    fn open_ways_to(&self, commit: &Id) -> Result<Opened, GitError> {
        Ok(self.open_ways(self.entries(commit, "")?.iter().map(|entry| &entry.path)))
    }

    fn open_ways<'p>(&self, paths: impl Iterator<Item = &'p Vec<u8>>) -> Opened {
        Opened::ways(self.work_dir(), paths.map(|path| OsStr::from_bytes(path)))
    }

    /// Fails if a checkout of `target` would destroy what the rescue does not have.
    fn refuse_loss(&self, repo: &gix::Repository, scene: &Scene) -> Result<(), GitError> {
        let Scene { target, present, rescued, unstorable } = scene;
        let state = index::read(repo, self, self.head()?.commit())?;
        let is_affected = |path: &[u8]| is_in_the_way(target, path) || state.entry_range(path.as_bstr()).is_some();
        let is_safe = |path: &[u8], file| rescued.get(path) == Some(file) || target.get(path) == Some(file);
        let unsafe_file = present.iter().find(|(path, file)| !is_safe(path, file) && is_affected(path));
        let is_file = |path: &BString| self.file(path).symlink_metadata().is_ok_and(|found| found.is_file());
        let unreadable = unstorable.iter().find(|path| is_file(path) && is_affected(path));
        let lost = unsafe_file.map(|(path, _)| path.as_slice()).or(unreadable.map(|path| path.as_slice()));
        lost.map_or(Ok(()), |path| Err(GitError::NotRescued { file: display(path), path: self.work_dir().to_owned() }))
    }

    /// Removes files that are untracked by the rules of the commit restored, and that the rescue has as they are.
    fn remove_untracked(&self, scene: &Scene) -> Result<Vec<String>, GitError> {
        let mut removed = Vec::new();
        for Change { path, kind } in self.changes()? {
            let seen = scene.present.get(&path).filter(|(kind, _)| *kind != EntryKind::Submodule);
            if kind != ChangeKind::Untracked || seen.is_none() || seen != scene.rescued.get(&path) {
                continue;
            }
            let file = self.file(&path);
            fs::remove_file(&file).map_err(GitError::io("removing", &file))?;
            remove_empty_folders(self.work_dir(), &file);
            removed.push(display(&path));
        }
        Ok(removed)
    }

    fn files_of(&self, repo: &gix::Repository, tree: ObjectId) -> Result<Vec<CommitEntry>, GitError> {
        crate::git::objects::files(repo, tree, "").map_err(GitError::library("listing a tree", self.git_dir()))
    }
}

fn files(entries: Vec<CommitEntry>) -> Files {
    entries.into_iter().map(|entry| (entry.path, (entry.kind, entry.id))).collect()
}

/// Tells whether a file at `path` has to go, or to change, for the files of `target` to be there.
fn is_in_the_way(target: &Files, path: &[u8]) -> bool {
    let above = path.find_iter(b"/").map(|slash| &path[..slash]);
    let below = [path, b"/"].concat();
    let is_folder = target.range(below.clone()..).next().is_some_and(|(other, _)| other.starts_with(&below));
    target.contains_key(path) || is_folder || above.into_iter().any(|folder| target.contains_key(folder))
}

fn remove_empty_folders(root: &Path, file: &Path) {
    let mut folder = file.parent();
    while let Some(empty) = folder.filter(|folder| *folder != root && folder.starts_with(root)) {
        if fs::remove_dir(empty).is_err() {
            return;
        }
        folder = empty.parent();
    }
}
