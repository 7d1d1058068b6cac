//! Commits everything in the work tree. Stages, writes the tree, the commit and the reference in an order in which a
//! crash loses nothing: until HEAD moves, the repository is as before.

pub(crate) mod commit_paths;
pub(crate) mod prepare;

use std::collections::BTreeSet;

use gix::ObjectId;
use gix::bstr::BString;

use self::prepare::{CommitRequest, PreparedCommit};
use crate::durable;
use crate::objects::object_reader;
use crate::path::display_path;
use crate::refs::{ExpectedRef, RefMove};
use crate::{GitError, Id, Repository};

/// The result of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitOutcome {
    /// Id of the commit.
    pub commit: Id,
    /// Id of its tree.
    pub tree: Id,
    /// Paths in the work tree that the hold-back rule excludes, sorted; nested repositories end in a slash.
    pub held_back: Vec<String>,
    /// Paths in the work tree that git cannot store, sorted.
    pub unstorable: Vec<String>,
}

impl Repository {
    /// Commits everything that differs from HEAD, untracked files included, and leaves nothing to commit.
    ///
    /// Files that are held back or cannot be stored stay in the work tree, hidden from git through `info/exclude`, and
    /// are listed in the result. The work tree's file system is flushed before HEAD moves: otherwise a file lost in a
    /// power cut but present in the commit would look like someone's change.
    ///
    /// Fails if HEAD is not at `request.parent`, if a merge or the like is in progress, and, unless empty commits are
    /// allowed, if there is nothing to commit. Runs no hooks.
    pub fn commit_all(&self, request: &CommitRequest<'_>) -> Result<CommitOutcome, GitError> {
        if let Some(operation) = self.operation() {
            return Err(GitError::OperationInProgress { operation, path: self.work_dir().to_owned() });
        }
        let found = self.head()?.commit();
        if found != request.parent {
            return Err(GitError::RefMoved {
                name: "HEAD".to_owned(),
                path: self.work_dir().to_owned(),
                expected: request.parent,
                found,
            });
        }
        let repo = self.open()?;
        let PreparedCommit { mut collected, index } = self.prepare_commit(&repo, request)?;
        if !request.allow_empty && collected.tree == self.commit_tree(&repo, request.parent)?.id {
            index.publish()?;
            return Err(GitError::NothingToCommit { path: self.work_dir().to_owned() });
        }
        self.check_written_files(&repo, request, collected.tree)?;
        let commit = self.write_commit(&repo, request, collected.tree)?;
        collected.written.push(commit.object_id());
        durable::sync_commit(self.work_dir(), &self.common_dir().join("objects"), &collected.written)?;
        self.advance_head(request, commit)?;
        index.publish()?;
        let names = |paths: BTreeSet<BString>| paths.iter().map(|path| display_path(path)).collect();
        Ok(CommitOutcome {
            commit,
            tree: collected.tree.into(),
            held_back: names(collected.held_back),
            unstorable: names(collected.unstorable),
        })
    }

    /// Fails if a tree does not hold what was written for it.
    fn check_written_files(
        &self,
        repo: &gix::Repository,
        request: &CommitRequest<'_>,
        tree: ObjectId,
    ) -> Result<(), GitError> {
        for (path, content) in request.expected_files {
            let found = object_reader::find_at_path(repo, tree, (*path).into());
            let found = found.map_err(GitError::gix("looking up a file of a commit", self.git_dir()))?;
            let expected = self.hash_blob(content)?.object_id();
            if !found.is_some_and(|(mode, id)| mode.is_blob() && id == expected) {
                return Err(GitError::FileOverwritten { file: (*path).to_owned(), path: self.work_dir().to_owned() });
            }
        }
        Ok(())
    }

    pub(crate) fn write_commit(
        &self,
        repo: &gix::Repository,
        request: &CommitRequest<'_>,
        tree: ObjectId,
    ) -> Result<Id, GitError> {
        let mut message = request.message.to_owned();
        if !message.ends_with('\n') {
            message.push('\n');
        }
        if request.sign {
            return self.write_signed_commit(request, tree, message);
        }
        let signature = request.author.signature();
        let commit = gix::objs::Commit {
            tree,
            parents: request.parent.iter().map(Id::object_id).collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: message.into(),
            extra_headers: Vec::new(),
        };
        repo.write_object(&commit).map(Id::from).map_err(GitError::gix("writing a commit", self.git_dir()))
    }

    fn write_signed_commit(
        &self,
        request: &CommitRequest<'_>,
        tree: ObjectId,
        message: String,
    ) -> Result<Id, GitError> {
        let mut git = self.signed_commit_command()?;
        if let Some(parent) = request.parent {
            git = git.arg("-p").arg(parent.to_string());
        }
        let git = request.author.apply_to(git.arg(tree.to_string()));
        let output = git.input(message.into_bytes()).run_line()?;
        output.parse().map_err(|error| GitError::Corrupt {
            doing: "signing a commit",
            path: self.git_dir().to_owned(),
            source: Box::new(error),
        })
    }

    fn advance_head(&self, request: &CommitRequest<'_>, commit: Id) -> Result<(), GitError> {
        let subject = request.message.lines().next().unwrap_or_default();
        let message = match request.parent {
            Some(_) => format!("commit: {subject}"),
            None => format!("commit (initial): {subject}"),
        };
        self.move_ref(&RefMove {
            name: "HEAD",
            to: commit,
            expected: request.parent.map_or(ExpectedRef::Missing, ExpectedRef::Exactly),
            message: &message,
            identity: &request.author,
        })
    }
}
