//! Trees with and without `.runner/`: separates what a run changed from the runner's own files.

use gix::ObjectId;
use gix::objs::Kind;
use gix::objs::WriteTo as _;
use gix::objs::tree::Entry;

use crate::durable;
use crate::objects::object_reader;
use crate::{GitError, Id, Repository};

/// The runner's folder.
const RUNNER_DIR: &str = ".runner";

/// The entry at `.runner` in a tree, to be put into other trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerFolder(Option<Entry>);

impl Repository {
    /// Returns the id of a commit's tree without `.runner/`; the tree is not stored.
    pub fn code_tree(&self, commit: &Id) -> Result<Id, GitError> {
        let repo = self.open()?;
        let read = || -> gix::Result<Id> {
            let tree = object_reader::read_commit_tree(&repo, commit.object_id())?;
            let entries = split_runner_entry(&tree)?.0;
            let mut bytes = Vec::new();
            gix::objs::Tree { entries }.write_to(&mut bytes).map_err(gix::Error::from_error)?;
            Ok(gix::objs::compute_hash(tree.id.kind(), Kind::Tree, &bytes)?.into())
        };
        read().map_err(GitError::gix("reading a commit", self.git_dir()))
    }

    /// Returns the entry that a commit has at `.runner`.
    pub fn read_runner_folder(&self, commit: &Id) -> Result<RunnerFolder, GitError> {
        let repo = self.open()?;
        let read =
            || Ok(RunnerFolder(split_runner_entry(&object_reader::read_commit_tree(&repo, commit.object_id())?)?.1));
        read().map_err(GitError::gix("reading a commit", self.git_dir()))
    }

    /// Stores a commit's tree with `folder` in place of its `.runner`, durably.
    pub fn replace_runner_folder(&self, commit: &Id, folder: &RunnerFolder) -> Result<Id, GitError> {
        let repo = self.open()?;
        let write = || -> gix::Result<ObjectId> {
            let (mut entries, own) = split_runner_entry(&object_reader::read_commit_tree(&repo, commit.object_id())?)?;
            if own == folder.0 {
                return Ok(object_reader::read_commit_tree(&repo, commit.object_id())?.id);
            }
            entries.extend(folder.0.clone());
            entries.sort();
            Ok(repo.write_object(gix::objs::Tree { entries })?.detach())
        };
        let tree = write().map_err(GitError::gix("writing a tree", self.git_dir()))?;
        durable::sync_objects(&self.common_dir().join("objects"), &[tree])?;
        Ok(tree.into())
    }

    /// Returns the tree of a commit.
    pub fn tree_id(&self, commit: &Id) -> Result<Id, GitError> {
        let repo = self.open()?;
        let read = || Ok(object_reader::read_commit_tree(&repo, commit.object_id())?.id.into());
        read().map_err(GitError::gix("reading a commit", self.git_dir()))
    }
}

/// Splits a tree into its entries without `.runner`, and `.runner` itself.
fn split_runner_entry(tree: &gix::Tree<'_>) -> gix::Result<(Vec<Entry>, Option<Entry>)> {
    let entries = gix::objs::Tree::from(tree.decode()?).entries;
    let (own, others): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| entry.filename == RUNNER_DIR);
    Ok((others, own.into_iter().next()))
}
