//! Reads and writes what git stores: files of a commit, listings, single blobs. Nothing here looks at the work tree.

mod added;
pub(in crate::git) mod chain;
pub(in crate::git) mod checked;
pub(in crate::git) mod copy;
pub(in crate::git) mod diff;
pub(in crate::git) mod history;
mod large_files;
pub(in crate::git) mod recoded;
mod signatures;
pub(in crate::git) mod transfer;

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::objs::tree;

use self::checked::WalkBudget;
use crate::git::durable;
use crate::git::{GitError, Id, Repository};

/// One file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitEntry {
    /// The path from the root, as bytes.
    pub path: Vec<u8>,
    /// The blob, or the commit of a submodule.
    pub id: Id,
    /// What it is.
    pub kind: EntryKind,
}

/// What a path in a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A file that can be executed.
    Executable,
    /// A symbolic link; the blob is its target.
    Symlink,
    /// A commit of another repository.
    Submodule,
}

impl EntryKind {
    /// Whether it is a file that can be executed.
    pub fn is_executable(self) -> bool {
        self == Self::Executable
    }

    /// Returns git's mode.
    pub(in crate::git) fn mode(self) -> u32 {
        match self {
            Self::File => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Symlink => 0o120_000,
            Self::Submodule => 0o160_000,
        }
    }

    fn from_mode(mode: tree::EntryMode) -> Option<Self> {
        match mode.kind() {
            tree::EntryKind::Blob => Some(Self::File),
            tree::EntryKind::BlobExecutable => Some(Self::Executable),
            tree::EntryKind::Link => Some(Self::Symlink),
            tree::EntryKind::Commit => Some(Self::Submodule),
            tree::EntryKind::Tree => None,
        }
    }
}

impl Repository {
    /// Returns the content of the file or link `path` in `commit`, if there is one.
    pub fn read_file(&self, commit: &Id, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        Ok(self.read_files(commit, [path])?.remove(path))
    }

    /// Returns the contents of those of the files and links `paths` that are in `commit`, by path.
    pub fn read_files<'p>(
        &self,
        commit: &Id,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Result<BTreeMap<&'p str, Vec<u8>>, GitError> {
        let repo = self.open()?;
        let read = || -> gix::Result<BTreeMap<&'p str, Vec<u8>>> {
            let root = checked::read_commit(&repo, commit.object_id())?.tree_id()?.detach();
            let mut files = BTreeMap::new();
            for path in paths {
                let found = checked::find_at_path(&repo, root, path.into())?;
                if let Some((_, id)) = found.filter(|(mode, _)| mode.is_blob_or_symlink()) {
                    files.insert(path, checked::read_blob(&repo, id)?);
                }
            }
            Ok(files)
        };
        read().map_err(GitError::gix("reading a file of a commit", self.git_dir()))
    }

    /// Returns what `path` is in `commit`; none where there is nothing, or a folder.
    pub fn find_entry(&self, commit: &Id, path: &str) -> Result<Option<CommitEntry>, GitError> {
        let repo = self.open()?;
        let read = || -> gix::Result<Option<CommitEntry>> {
            let root = checked::read_commit(&repo, commit.object_id())?.tree_id()?;
            let found = checked::find_at_path(&repo, root.detach(), path.into())?;
            Ok(found.and_then(|(mode, id)| {
                Some(CommitEntry { path: path.into(), id: id.into(), kind: EntryKind::from_mode(mode)? })
            }))
        };
        read().map_err(GitError::gix("looking up a file of a commit", self.git_dir()))
    }

    /// Returns all files below `folder` in `commit`, sorted by path; none if there is no such folder. The empty name is
    /// the root.
    pub fn list_entries(&self, commit: &Id, folder: &str) -> Result<Vec<CommitEntry>, GitError> {
        let repo = self.open()?;
        let read = || -> gix::Result<Vec<CommitEntry>> {
            let root = checked::read_commit(&repo, commit.object_id())?.tree_id()?.detach();
            let folder = folder.trim_matches('/');
            if folder.is_empty() {
                return list_tree_files(&repo, root, "");
            }
            let found = checked::find_at_path(&repo, root, folder.into())?.filter(|(mode, _)| mode.is_tree());
            found.map_or_else(|| Ok(Vec::new()), |(_, id)| list_tree_files(&repo, id, &format!("{folder}/")))
        };
        read().map_err(GitError::gix("listing a commit", self.git_dir()))
    }

    /// Fails where a file of a commit is not what its name in the object database says: the git program, which lays out
    /// commits, does not ask.
    pub(in crate::git) fn verify_files(&self, commit: &Id) -> Result<(), GitError> {
        let repo = self.open()?;
        let files = self.list_entries(commit, "")?.into_iter().filter(|entry| entry.kind != EntryKind::Submodule);
        let check = |entry: CommitEntry| checked::read_blob(&repo, entry.id.object_id()).map(drop);
        let mut files = files.map(check);
        files.try_for_each(|checked| checked.map_err(GitError::gix("reading a file of a commit", self.git_dir())))
    }

    /// Returns the content of a blob.
    pub fn read_blob(&self, id: &Id) -> Result<Vec<u8>, GitError> {
        let repo = self.open()?;
        checked::read_blob(&repo, id.object_id()).map_err(GitError::gix("reading a blob", self.git_dir()))
    }

    /// Stores `bytes` as a blob, durably. Nothing refers to it yet.
    pub fn write_blob(&self, bytes: &[u8]) -> Result<Id, GitError> {
        let repo = self.open()?;
        let id = repo.write_blob(bytes).map_err(GitError::gix("writing a blob", self.git_dir()))?.detach();
        durable::sync_objects(&self.common_dir().join("objects"), &[id])?;
        Ok(id.into())
    }

    /// Returns the id that `bytes` would have as a blob of this repository, without storing them.
    pub fn hash_blob(&self, bytes: &[u8]) -> Result<Id, GitError> {
        let kind = self.open()?.object_hash();
        gix::objs::compute_hash(kind, gix::objs::Kind::Blob, bytes)
            .map(Id::from)
            .map_err(GitError::gix("hashing a blob", self.git_dir()))
    }
}

/// Returns all files of a tree, sorted by path, each with `prefix` in front.
pub(in crate::git) fn list_tree_files(repo: &gix::Repository, tree: ObjectId, prefix: &str) -> gix::Result<Vec<CommitEntry>> {
    let (mut entries, mut budget) = (Vec::new(), WalkBudget::default());
    let mut folders = vec![(prefix.as_bytes().to_vec(), tree)];
    while let Some((folder, id)) = folders.pop() {
        for (name, mode, id) in checked::read_entries(repo, id)? {
            let path = [&folder[..], &name].concat();
            budget.consume(&path)?;
            match EntryKind::from_mode(mode) {
                Some(kind) => entries.push(CommitEntry { path, id: id.into(), kind }),
                None => folders.push(([&path[..], b"/"].concat(), id)),
            }
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}
