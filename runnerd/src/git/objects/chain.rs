//! A branch as a chain: its commits along first parents, what each changed, and the bytes of what somebody wants to
//! read. One view of the repository for all of them, so that a long branch is read once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use gix::bstr::BStr;
use runner_core::fsck::{self, PathFault, RawCommit, TreeId};

use super::checked;
use super::diff::{DiffSide, compare_trees};
use super::{EntryKind, list_tree_files};
use crate::git::{GitError, Id, Repository};

/// What is being done where a commit is read.
const READING_COMMIT: &str = "reading a commit";
/// Most trees that are kept for the next commit.
const MAX_CACHED_TREES: usize = 256;
/// Most bytes of a blob that is read.
const MAX_BLOB: u64 = 64 * 1024 * 1024;

/// A reader of commits.
pub struct CommitChain<'a> {
    repository: &'a Repository,
    repo: gix::Repository,
    /// Trees that were read last: what one commit has, the next has mostly too.
    trees: RefCell<BTreeMap<TreeId, Vec<u8>>>,
}

/// A commit as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainCommit {
    /// Its id.
    pub id: Id,
    /// Its parents, the first first.
    pub parents: Vec<Id>,
    /// The tree with its files.
    pub tree: Id,
    /// All headers.
    pub header: Vec<u8>,
    /// The whole message.
    pub message: Vec<u8>,
    /// The message as `git log` has it, where a header says that it is encoded in something else than UTF-8.
    pub recoded_message: Option<Vec<u8>>,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainFile {
    /// Git's mode.
    pub mode: u32,
    /// The blob, or the commit of a submodule.
    pub id: Id,
    /// Its bytes, where they were wanted, it is a file or a link, and they are not too many.
    pub content: Option<Arc<[u8]>>,
}

/// A path that differs: before, without its bytes, and after.
pub type ChainChange = (Vec<u8>, Option<ChainFile>, Option<ChainFile>);

impl Repository {
    /// Opens the repository for reading many commits.
    pub fn open_chain(&self) -> Result<CommitChain<'_>, GitError> {
        Ok(CommitChain { repository: self, repo: self.open()?, trees: RefCell::default() })
    }

    /// Tells whether it is a clone that leaves objects with a remote until they are asked for (`--filter`): none is
    /// fetched here.
    pub fn is_partial(&self) -> Result<bool, GitError> {
        let repo = self.open()?;
        let config = repo.config_snapshot();
        let is_promisor = |remote: &BStr| config.boolean(&format!("remote.{remote}.promisor")).unwrap_or(false);
        Ok(repo.remote_names().iter().any(|remote| is_promisor(remote.as_ref())))
    }
}

impl CommitChain<'_> {
    /// Returns a commit; none if it is not here. What git can walk is read, however odd its other headers are.
    pub fn read_commit(&self, id: &Id) -> Result<Option<ChainCommit>, GitError> {
        let read = || -> gix::Result<Option<Vec<u8>>> {
            let Some(object) = checked::try_read_object(&self.repo, id.object_id())? else { return Ok(None) };
            Ok(Some(object.try_into_commit()?.detach().data))
        };
        let Some(stored) = read().map_err(GitError::gix(READING_COMMIT, self.repository.git_dir()))? else { return Ok(None) };
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

    /// Returns what is wrong with the trees that one commit's tree has and another's has not; what is not here is not
    /// told of.
    pub fn find_tree_faults(&self, old: Option<&Id>, new: &Id) -> Result<Vec<PathFault>, GitError> {
        let bytes = |id: &Id| id.object_id().as_bytes().to_vec();
        let read = |id: &TreeId| -> gix::Result<Option<Vec<u8>>> {
            if let Some(known) = self.trees.borrow().get(id) {
                return Ok(Some(known.clone()));
            }
            let object = checked::try_read_object(&self.repo, gix::ObjectId::try_from(id.as_slice())?)?;
            let Some(tree) = object.filter(|it| it.kind == gix::objs::Kind::Tree) else { return Ok(None) };
            let tree = tree.detach().data;
            let mut trees = self.trees.borrow_mut();
            if trees.len() >= MAX_CACHED_TREES {
                trees.clear();
            }
            trees.insert(id.clone(), tree.clone());
            Ok(Some(tree))
        };
        fsck::check_added_trees((old.map(bytes), bytes(new)), read)
            .map_err(GitError::gix("checking trees", self.repository.git_dir()))
    }

    /// Returns what differs between two trees, the empty one where there is none, with the new bytes of the paths that
    /// are `wanted`.
    pub fn diff_trees(&self, old: Option<&Id>, new: &Id, wants_content: fn(&[u8]) -> bool) -> Result<Vec<ChainChange>, GitError> {
        let read = || -> gix::Result<Vec<ChainChange>> {
            let tree = |id: &Id| checked::read_tree(&self.repo, id.object_id());
            let old = old.map_or_else(|| Ok(self.repo.empty_tree()), tree)?;
            let mut changes: BTreeMap<Vec<u8>, (Option<ChainFile>, Option<ChainFile>)> = BTreeMap::new();
            for difference in compare_trees(&self.repo, &old, &tree(new)?)? {
                let (old, new) =
                    (self.load_file(difference.old, false)?, self.load_file(difference.new, wants_content(&difference.path))?);
                // A file that becomes a link is told as gone and new.
                let sides = changes.entry(difference.path.into()).or_default();
                *sides = (sides.0.take().or(old), sides.1.take().or(new));
            }
            Ok(changes.into_iter().map(|(path, (old, new))| (path, old, new)).collect())
        };
        read().map_err(GitError::gix("comparing commits", self.repository.git_dir()))
    }

    /// Returns the files of a tree below a folder, with their bytes where they are `wanted`.
    pub fn list_files(
        &self,
        tree: &Id,
        folder: &str,
        wants_content: fn(&[u8]) -> bool,
    ) -> Result<Vec<(Vec<u8>, ChainFile)>, GitError> {
        let read = || -> gix::Result<Vec<(Vec<u8>, ChainFile)>> {
            let found = checked::find_at_path(&self.repo, tree.object_id(), folder.into())?;
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

    /// Tells whether a file is here. The commit of a submodule is another repository's.
    pub fn has_file(&self, file: &ChainFile) -> bool {
        file.mode == EntryKind::Submodule.mode() || self.repo.has_object(file.id.object_id())
    }

    /// Returns the bytes of a blob; none if it is not here, or too large.
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
        Ok(Some(Arc::from(checked::read_blob(&self.repo, id)?)))
    }
}
