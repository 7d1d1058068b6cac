//! A branch as a chain: its first-parent commits, what each changed, and the content of selected files. All reads share
//! one view of the repository, so that a long branch is read once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use gix::bstr::BStr;
use runner_core::fsck::{self, PathFault, RawCommit, TreeId};

use super::diff::{DiffSide, compare_trees};
use super::object_reader;
use super::{EntryKind, list_tree_files};
use crate::{GitError, Id, Repository};

/// Context for errors while reading a commit.
const READING_COMMIT: &str = "reading a commit";
/// Number of trees kept for the next commit.
const MAX_CACHED_TREES: usize = 256;
/// Largest blob that is read, in bytes.
const MAX_BLOB: u64 = 64 * 1024 * 1024;

/// Reads many commits of one repository.
pub struct CommitChain<'a> {
    repository: &'a Repository,
    repo: gix::Repository,
    /// Recently read trees: consecutive commits share most of them.
    trees: RefCell<BTreeMap<TreeId, Vec<u8>>>,
}

/// A commit as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainCommit {
    /// Its id.
    pub id: Id,
    /// Its parents, the first parent first.
    pub parents: Vec<Id>,
    /// Its tree.
    pub tree: Id,
    /// The raw headers.
    pub header: Vec<u8>,
    /// The raw message.
    pub message: Vec<u8>,
    /// The message as `git log` shows it, if a header declares an encoding other than UTF-8.
    pub recoded_message: Option<Vec<u8>>,
}

/// The entry at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainFile {
    /// Git's file mode.
    pub mode: u32,
    /// The blob, or a submodule's commit.
    pub id: Id,
    /// The content, if it was requested, the entry is a file or link, and it is not too large.
    pub content: Option<Arc<[u8]>>,
}

/// A path that differs, its old entry (without content), and its new entry.
pub type ChainChange = (Vec<u8>, Option<ChainFile>, Option<ChainFile>);

impl Repository {
    /// Opens the repository for reading many commits.
    pub fn open_chain(&self) -> Result<CommitChain<'_>, GitError> {
        Ok(CommitChain { repository: self, repo: self.open()?, trees: RefCell::default() })
    }

    /// Whether this is a partial clone (`--filter`), which leaves objects with a remote until they are needed: nothing
    /// is fetched here.
    pub fn is_partial(&self) -> Result<bool, GitError> {
        let repo = self.open()?;
        let config = repo.config_snapshot();
        let is_promisor = |remote: &BStr| config.boolean(&format!("remote.{remote}.promisor")).unwrap_or(false);
        Ok(repo.remote_names().iter().any(|remote| is_promisor(remote.as_ref())))
    }
}

impl CommitChain<'_> {
    /// Returns a commit; `None` if it is not here. Reads whatever git can walk, however odd the other headers are.
    pub fn read_commit(&self, id: &Id) -> Result<Option<ChainCommit>, GitError> {
        let read = || -> gix::Result<Option<Vec<u8>>> {
            let Some(object) = object_reader::try_read_object(&self.repo, id.object_id())? else { return Ok(None) };
            Ok(Some(object.try_into_commit()?.detach().data))
        };
        let Some(stored) = read().map_err(GitError::gix(READING_COMMIT, self.repository.git_dir()))? else {
            return Ok(None);
        };
        let commit = RawCommit::parse(&stored).and_then(|parts| {
            Some(ChainCommit {
                id: *id,
                parents: parts.parents.iter().map(|id| id.parse().ok()).collect::<Option<_>>()?,
                tree: parts.tree.parse().ok()?,
                header: parts.header.to_vec(),
                message: parts.message.to_vec(),
                recoded_message: None,
            })
        });
        commit.map(Some).ok_or_else(|| GitError::Corrupt {
            doing: READING_COMMIT,
            path: self.repository.git_dir().to_owned(),
            source: format!("{id} names no tree, or a parent that is none").into(),
        })
    }

    /// Returns what is wrong with the trees that the new commit has and the old one lacks; objects that are not here
    /// are skipped.
    pub fn find_tree_faults(&self, old: Option<&Id>, new: &Id) -> Result<Vec<PathFault>, GitError> {
        let bytes = |id: &Id| id.object_id().as_bytes().to_vec();
        let read = |id: &TreeId| -> gix::Result<Option<Vec<u8>>> {
            if let Some(known) = self.trees.borrow().get(id) {
                return Ok(Some(known.clone()));
            }
            let object = object_reader::try_read_object(&self.repo, gix::ObjectId::try_from(id.as_slice())?)?;
            let Some(tree) = object.filter(|found| found.kind == gix::objs::Kind::Tree) else { return Ok(None) };
            let tree = tree.detach().data;
            let mut trees = self.trees.borrow_mut();
            if trees.len() >= MAX_CACHED_TREES {
                trees.clear();
            }
            trees.insert(id.clone(), tree.clone());
            Ok(Some(tree))
        };
        fsck::check_added_trees(old.map(bytes), bytes(new), read)
            .map_err(GitError::gix("checking trees", self.repository.git_dir()))
    }

    /// Returns the differences between two trees (`None` is the empty tree), with the new content of the paths
    /// that `wants_content` accepts.
    pub fn diff_trees(
        &self,
        old: Option<&Id>,
        new: &Id,
        wants_content: fn(&[u8]) -> bool,
    ) -> Result<Vec<ChainChange>, GitError> {
        let read = || -> gix::Result<Vec<ChainChange>> {
            let tree = |id: &Id| object_reader::read_tree(&self.repo, id.object_id());
            let old = old.map_or_else(|| Ok(self.repo.empty_tree()), tree)?;
            let mut changes: BTreeMap<Vec<u8>, (Option<ChainFile>, Option<ChainFile>)> = BTreeMap::new();
            for difference in compare_trees(&self.repo, &old, &tree(new)?)? {
                let old = self.load_file(difference.old, false)?;
                let new = self.load_file(difference.new, wants_content(&difference.path))?;
                // A file that becomes a link is reported as removed and added.
                let sides = changes.entry(difference.path.into()).or_default();
                *sides = (sides.0.take().or(old), sides.1.take().or(new));
            }
            Ok(changes.into_iter().map(|(path, (old, new))| (path, old, new)).collect())
        };
        read().map_err(GitError::gix("comparing commits", self.repository.git_dir()))
    }

    /// Returns the files of a tree in a folder, with the content of those that `wants_content` accepts.
    pub fn list_files(
        &self,
        tree: &Id,
        folder: &str,
        wants_content: fn(&[u8]) -> bool,
    ) -> Result<Vec<(Vec<u8>, ChainFile)>, GitError> {
        let read = || -> gix::Result<Vec<(Vec<u8>, ChainFile)>> {
            let found = object_reader::find_at_path(&self.repo, tree.object_id(), folder.into())?;
            let Some((_, id)) = found.filter(|(mode, _)| mode.is_tree()) else { return Ok(Vec::new()) };
            let entries = list_tree_files(&self.repo, id, &format!("{folder}/"))?;
            let file = |entry: super::CommitEntry| {
                let is_wanted = wants_content(&entry.path) && entry.kind != EntryKind::Submodule;
                let content = if is_wanted { self.read_content(entry.id.object_id())? } else { None };
                Ok((entry.path, ChainFile { mode: entry.kind.mode(), id: entry.id, content }))
            };
            entries.into_iter().map(file).collect()
        };
        read().map_err(GitError::gix("listing a commit", self.repository.git_dir()))
    }

    /// Returns the files in the root of a tree that `wants_content` accepts, with their content.
    pub fn list_root_files(
        &self,
        tree: &Id,
        wants_content: fn(&[u8]) -> bool,
    ) -> Result<Vec<(Vec<u8>, ChainFile)>, GitError> {
        let read = || -> gix::Result<Vec<(Vec<u8>, ChainFile)>> {
            let mut files = Vec::new();
            for (name, mode, id) in object_reader::read_entries(&self.repo, tree.object_id())? {
                let is_wanted = mode.is_blob_or_symlink() && wants_content(&name);
                let file = if is_wanted { self.load_file(Some((mode, id)), true)? } else { None };
                files.extend(file.map(|file| (name.into(), file)));
            }
            Ok(files)
        };
        read().map_err(GitError::gix("listing a commit", self.repository.git_dir()))
    }

    /// Whether a file is here. A submodule's commit always counts: it belongs to another repository.
    pub fn has_file(&self, file: &ChainFile) -> bool {
        file.mode == EntryKind::Submodule.mode() || self.repo.has_object(file.id.object_id())
    }

    /// Returns a blob's content; `None` if it is not here or too large.
    pub fn read_blob(&self, id: &Id) -> Result<Option<Arc<[u8]>>, GitError> {
        if !self.repo.has_object(id.object_id()) {
            return Ok(None);
        }
        self.read_content(id.object_id()).map_err(GitError::gix("reading a blob", self.repository.git_dir()))
    }

    fn load_file(&self, side: DiffSide, is_wanted: bool) -> gix::Result<Option<ChainFile>> {
        let Some((mode, id)) = side else { return Ok(None) };
        let content = if is_wanted && mode.is_blob_or_symlink() { self.read_content(id)? } else { None };
        Ok(Some(ChainFile { mode: u32::from(mode.value()), id: id.into(), content }))
    }

    fn read_content(&self, id: gix::ObjectId) -> gix::Result<Option<Arc<[u8]>>> {
        if self.repo.find_header(id)?.size() > MAX_BLOB {
            return Ok(None);
        }
        Ok(Some(Arc::from(object_reader::read_blob(&self.repo, id)?)))
    }
}
