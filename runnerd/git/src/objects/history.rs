//! Commits and how they descend from each other.

use std::io;

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::revision::plumbing::merge_base;
use gix::revwalk::Graph;

use super::object_reader::{self, CheckedObjects};
use crate::durable::{read_log_end, read_regular_file};
use crate::repository::engine::RefStore;
use crate::repository::identity::Identity;
use crate::{GitError, Id, Repository};

/// Metadata of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its id.
    pub id: Id,
    /// Its parents, the first parent first.
    pub parents: Vec<Id>,
    /// Its tree.
    pub tree: Id,
    /// The whole message, with invalid UTF-8 replaced.
    pub message: String,
    /// Its author.
    pub author: Identity,
    /// When it was committed, in seconds since 1970 UTC.
    pub time: i64,
}

impl Repository {
    /// Resolves a revision, such as `HEAD~2`, a branch, a tag or the start of an id, to a commit; `None` if it names
    /// none.
    pub fn resolve_revision(&self, revision: &str) -> Result<Option<Id>, GitError> {
        let repo = self.open()?;
        if revision.is_empty() || revision.starts_with('-') {
            return Ok(None);
        }
        let commit = format!("{revision}^{{commit}}");
        if self.choose_ref_store(&repo) == RefStore::GitOnly {
            return self.parse_revision(&commit);
        }
        // A malformed, ambiguous or unknown revision names no commit; a missing object is not distinguished from these.
        Ok(repo.rev_parse_single(commit.as_str()).ok().map(Id::from))
    }

    /// Whether a shallow clone's history ends at this commit, according to its own list: its parents are named but
    /// absent.
    pub fn is_shallow_at(&self, commit: &Id) -> Result<bool, GitError> {
        let path = self.common_dir().join("shallow");
        match read_regular_file(&path) {
            Ok(listed) => Ok(listed.lines().any(|line| line.trim_ascii() == commit.to_string().as_bytes())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(GitError::io("reading", &path)(error)),
        }
    }

    /// Fails if a commit that existed is no longer in the repository.
    pub fn check_commit_exists(&self, commit: &Id) -> Result<(), GitError> {
        if self.open()?.has_object(commit.object_id()) {
            return Ok(());
        }
        Err(GitError::CommitPruned { commit: *commit, path: self.work_dir().to_owned() })
    }

    /// Whether `ancestor` is `descendant` itself or reachable from it.
    pub fn is_ancestor(&self, ancestor: &Id, descendant: &Id) -> Result<bool, GitError> {
        if ancestor == descendant {
            return Ok(true);
        }
        let repo = self.open()?;
        let mut graph = Graph::new(CheckedObjects(&repo), None);
        let bases = merge_base(ancestor.object_id(), &[descendant.object_id()], &mut graph);
        let bases = bases.map_err(GitError::gix("comparing histories", self.git_dir()))?;
        Ok(bases.is_some_and(|bases| *bases.first() == ancestor.object_id()))
    }

    /// Whether `ancestor` is `descendant` itself or on its first-parent chain.
    pub fn is_first_parent_ancestor(&self, ancestor: &Id, descendant: &Id) -> Result<bool, GitError> {
        let repo = self.open()?;
        let mut next = Some(*descendant);
        while let Some(id) = next {
            if id == *ancestor {
                return Ok(true);
            }
            let commit = object_reader::read_commit(&repo, id.object_id());
            let commit = commit.map_err(GitError::gix("reading a commit", self.git_dir()))?;
            // A shallow clone ends at parents that are named but absent.
            next = commit.parent_ids().next().map(Id::from).filter(|parent| repo.has_object(parent.object_id()));
        }
        Ok(false)
    }

    /// Whether the content of a file originated in this repository: it is uncommitted, or was committed here.
    ///
    /// What a clone, a pull or a checkout brought in was committed elsewhere; HEAD's reflog tells the difference.
    pub fn was_written_here(&self, path: &str) -> Result<bool, GitError> {
        let Some(head) = self.head()?.commit() else { return Ok(true) };
        let Some(committed) = self.find_entry(&head, path)? else { return Ok(true) };
        let current = read_regular_file(&self.work_dir().join(path)).ok();
        if current.is_some() && current != self.read_file(&head, path)? {
            return Ok(true);
        }
        let repo = self.open()?;
        for commit in self.list_local_commits().iter().rev() {
            // A commit that is no longer readable is not known to be from here. Checking whether it counts costs more.
            let introduces = introduces_file(&repo, commit.object_id(), path, committed.id.object_id());
            if introduces.unwrap_or(false) && self.is_ancestor(commit, &head)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the commits that the reflogs of HEAD record as made here: in this work tree, and in the one it is linked
    /// to.
    fn list_local_commits(&self) -> Vec<Id> {
        let mut folders = vec![self.common_dir(), self.git_dir()];
        folders.dedup();
        let logs = folders.into_iter().map(|folder| read_log_end(&folder.join("logs/HEAD")).unwrap_or_default());
        logs.flat_map(|log| String::from_utf8_lossy(&log).lines().filter_map(parse_local_commit).collect::<Vec<_>>())
            .collect()
    }

    /// Returns `tip` and its first-parent ancestors, newest first, at most `limit` commits.
    pub fn first_parents(&self, tip: &Id, limit: usize) -> Result<Vec<CommitInfo>, GitError> {
        let mut commits = Vec::new();
        self.visit_first_parents(tip, limit, |commit| {
            commits.push(commit);
            false
        })?;
        Ok(commits)
    }

    /// Visits `tip` and its first-parent ancestors, newest first, until `is_last` returns true; at most `limit`
    /// commits.
    pub fn visit_first_parents(
        &self,
        tip: &Id,
        limit: usize,
        mut is_last: impl FnMut(CommitInfo) -> bool,
    ) -> Result<(), GitError> {
        let repo = self.open()?;
        let mut next = Some(*tip);
        for _ in 0..limit {
            let Some(id) = next else { break };
            let info = read_commit_info(&repo, id).map_err(GitError::gix("reading a commit", self.git_dir()))?;
            // A shallow clone ends at parents that are named but absent.
            next = info.parents.first().copied().filter(|parent| repo.has_object(parent.object_id()));
            if is_last(info) {
                break;
            }
        }
        Ok(())
    }
}

/// Whether `commit` has this file at `path`, and its first parent has a different one or none.
fn introduces_file(repo: &gix::Repository, commit: ObjectId, path: &str, file: ObjectId) -> gix::Result<bool> {
    let has_file = |commit: ObjectId| -> gix::Result<bool> {
        let root = object_reader::read_commit(repo, commit)?.tree_id()?.detach();
        Ok(object_reader::find_at_path(repo, root, path.into())?.is_some_and(|(_, id)| id == file))
    };
    if !has_file(commit)? {
        return Ok(false);
    }
    let parent = object_reader::read_commit(repo, commit)?.parent_ids().next().map(gix::Id::detach);
    Ok(!parent.map_or(Ok(false), has_file)?)
}

fn read_commit_info(repo: &gix::Repository, id: Id) -> gix::Result<CommitInfo> {
    let commit = object_reader::read_commit(repo, id.object_id())?;
    let decoded = commit.decode()?;
    let author = decoded.author()?;
    Ok(CommitInfo {
        id,
        parents: decoded.parents().map(Id::from).collect(),
        tree: decoded.tree().into(),
        message: decoded.message.to_str_lossy().into_owned(),
        author: Identity { name: author.name.to_string(), email: author.email.to_string() },
        time: commit.time()?.seconds,
    })
}

/// Returns the commit of a reflog line, if the entry was written by a commit.
fn parse_local_commit(line: &str) -> Option<Id> {
    let (ids, message) = line.split_once('\t')?;
    let is_commit = message.starts_with("commit:") || message.starts_with("commit (");
    is_commit.then(|| ids.split(' ').nth(1)?.parse().ok())?
}
