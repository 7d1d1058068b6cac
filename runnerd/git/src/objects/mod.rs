//! Reads and writes what git stores: files of a commit, listings, single blobs. Does not look at the work tree.

pub(crate) mod commit_chain;
pub(crate) mod commit_copy;
pub(crate) mod diff;
pub(crate) mod history;
mod large_files;
pub(crate) mod message_encoding;
pub(crate) mod object_reader;
mod object_walk;
mod signatures;
pub(crate) mod transfer;

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::objs::tree;

use self::object_reader::WalkBudget;
use crate::durable;
use crate::{GitError, Id, Repository};

/// One entry of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitEntry {
    /// The path from the root, as bytes.
    pub path: Vec<u8>,
    /// The blob, or a submodule's commit.
    pub id: Id,
    /// Type of the entry.
    pub kind: EntryKind,
}

/// Type of a path in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// An executable file.
    Executable,
    /// A symbolic link; the blob is its target.
    Symlink,
    /// A submodule: a commit of another repository.
    Submodule,
}

impl EntryKind {
    /// Whether it is an executable file.
    pub fn is_executable(self) -> bool {
        self == Self::Executable
    }

    /// Returns git's file mode.
    pub(crate) fn mode(self) -> u32 {
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
    /// Returns the content of the file or link `path` in `commit`, or `None`.
    pub fn read_file(&self, commit: &Id, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        Ok(self.read_files(commit, [path])?.remove(path))
    }

    /// Returns the contents of those `paths` that are files or links in `commit`, by path.
    pub fn read_files<'p>(
        &self,
        commit: &Id,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Result<BTreeMap<&'p str, Vec<u8>>, GitError> {
        let repo = self.open()?;
        let read = || -> gix::Result<BTreeMap<&'p str, Vec<u8>>> {
            let root = object_reader::read_commit(&repo, commit.object_id())?.tree_id()?.detach();
            let mut files = BTreeMap::new();
            for path in paths {
                let found = object_reader::find_at_path(&repo, root, path.into())?;
                if let Some((_, id)) = found.filter(|(mode, _)| mode.is_blob_or_symlink()) {
                    files.insert(path, object_reader::read_blob(&repo, id)?);
                }
            }
            Ok(files)
        };
        read().map_err(GitError::gix("reading a file of a commit", self.git_dir()))
    }

    /// Returns the entry at `path` in `commit`; `None` if it does not exist or is a folder.
    pub fn find_entry(&self, commit: &Id, path: &str) -> Result<Option<CommitEntry>, GitError> {
        let repo = self.open()?;
        let read = || -> gix::Result<Option<CommitEntry>> {
            let root = object_reader::read_commit(&repo, commit.object_id())?.tree_id()?;
            let found = object_reader::find_at_path(&repo, root.detach(), path.into())?;
            Ok(found.and_then(|(mode, id)| {
                Some(CommitEntry { path: path.into(), id: id.into(), kind: EntryKind::from_mode(mode)? })
            }))
        };
        read().map_err(GitError::gix("looking up a file of a commit", self.git_dir()))
    }

    /// Returns all files in `folder` of `commit`, sorted by path; empty if there is no such folder. The empty name is
    /// the root.
    pub fn list_entries(&self, commit: &Id, folder: &str) -> Result<Vec<CommitEntry>, GitError> {
        let repo = self.open()?;
        let read = || -> gix::Result<Vec<CommitEntry>> {
            let root = object_reader::read_commit(&repo, commit.object_id())?.tree_id()?.detach();
            let folder = folder.trim_matches('/');
            if folder.is_empty() {
                return list_tree_files(&repo, root, "");
            }
            let found = object_reader::find_at_path(&repo, root, folder.into())?.filter(|(mode, _)| mode.is_tree());
            found.map_or_else(|| Ok(Vec::new()), |(_, id)| list_tree_files(&repo, id, &format!("{folder}/")))
        };
        read().map_err(GitError::gix("listing a commit", self.git_dir()))
    }

    /// Fails if the content of any file of a commit does not match its id: the git program checks commits out without
    /// verifying that.
    pub(crate) fn verify_files(&self, commit: &Id) -> Result<(), GitError> {
        let repo = self.open()?;
        let files = self.list_entries(commit, "")?.into_iter().filter(|entry| entry.kind != EntryKind::Submodule);
        let files: Vec<CommitEntry> = files.collect();
        if self.is_partial()? && files.iter().any(|entry| !repo.has_object(entry.id.object_id())) {
            return Err(GitError::ObjectsAtRemote { commit: *commit, path: self.work_dir().to_owned() });
        }
        let check = |entry: CommitEntry| object_reader::read_blob(&repo, entry.id.object_id()).map(drop);
        let mut files = files.into_iter().map(check);
        files.try_for_each(|checked| checked.map_err(GitError::gix("reading a file of a commit", self.git_dir())))
    }

    /// Returns the content of a blob.
    pub fn read_blob(&self, id: &Id) -> Result<Vec<u8>, GitError> {
        let repo = self.open()?;
        object_reader::read_blob(&repo, id.object_id()).map_err(GitError::gix("reading a blob", self.git_dir()))
    }

    /// Stores `bytes` as a blob, durably. No reference points to it yet.
    pub fn write_blob(&self, bytes: &[u8]) -> Result<Id, GitError> {
        let repo = self.open()?;
        let id = repo.write_blob(bytes).map_err(GitError::gix("writing a blob", self.git_dir()))?.detach();
        durable::sync_objects(&self.common_dir().join("objects"), &[id])?;
        Ok(id.into())
    }

    /// Returns the id `bytes` would have as a blob in this repository, without storing them.
    pub fn hash_blob(&self, bytes: &[u8]) -> Result<Id, GitError> {
        let kind = self.open()?.object_hash();
        gix::objs::compute_hash(kind, gix::objs::Kind::Blob, bytes)
            .map(Id::from)
            .map_err(GitError::gix("hashing a blob", self.git_dir()))
    }
}

/// Returns all files of a tree, sorted by path, each prefixed with `prefix`.
pub(crate) fn list_tree_files(repo: &gix::Repository, tree: ObjectId, prefix: &str) -> gix::Result<Vec<CommitEntry>> {
    let mut entries = Vec::new();
    let mut budget = WalkBudget::default();
    let mut folders = vec![(prefix.as_bytes().to_vec(), tree)];
    while let Some((folder, id)) = folders.pop() {
        for (name, mode, id) in object_reader::read_entries(repo, id)? {
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
