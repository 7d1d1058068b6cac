//! Commits a few files to a branch and leaves everything else in the work tree alone: other differences stay
//! uncommitted. The branch need not be checked out.

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};
use gix::objs::tree::{Entry, EntryKind};

use crate::durable;
use crate::objects::object_reader;
use crate::refs::{ExpectedRef, RefMove};
use crate::repository::identity::Identity;
use crate::repository::program::GitCommand;
use crate::worktree::hold_back::HoldBackRule;
use crate::{CommitRequest, GitError, Id, Repository};

/// A request to commit files to a branch.
#[derive(Debug)]
pub struct PathsCommit<'a> {
    /// Short name of the branch.
    pub branch: &'a str,
    /// Commit the branch is expected to be at; it becomes the parent.
    pub parent: Id,
    /// Paths relative to the root, each with its new content.
    pub files: &'a [(&'a str, &'a [u8])],
    /// Commit message, verbatim.
    pub message: &'a str,
    /// Author and committer.
    pub author: Identity,
    /// Whether the git program signs the commit as configured.
    pub sign: bool,
}

impl Repository {
    /// Commits the files to the branch, durably; index and work tree stay as they are.
    ///
    /// Fails if the branch is elsewhere, or if a merge or the like is in progress on it.
    pub fn commit_paths(&self, graft: &PathsCommit<'_>) -> Result<Id, GitError> {
        let is_head = self.head()?.branch() == Some(graft.branch);
        if let Some(operation) = self.operation().filter(|_| is_head) {
            return Err(GitError::OperationInProgress { operation, path: self.work_dir().to_owned() });
        }
        let repo = self.open()?;
        let mut builder = TreeBuilder { repo: &repo, repository: self, written: Vec::new() };
        let mut tree = self.commit_tree(&repo, Some(graft.parent))?.id;
        for (path, content) in graft.files {
            let blob = repo.write_blob(content).map_err(GitError::gix("writing a blob", self.git_dir()))?.detach();
            builder.written.push(blob);
            tree = builder.insert_blob(Some(tree), &path.split('/').collect::<Vec<_>>(), blob)?;
        }
        let nothing = HoldBackRule::nested_only();
        let request = CommitRequest {
            message: graft.message,
            author: graft.author.clone(),
            parent: Some(graft.parent),
            hold_back: &nothing,
            sign: graft.sign,
            allow_empty: true,
            paths: None,
            expected_files: &[],
            keeps_unstorable: false,
        };
        let commit = self.write_commit(&repo, &request, tree)?;
        builder.written.push(commit.object_id());
        durable::sync_objects(&self.common_dir().join("objects"), &builder.written)?;
        let subject = graft.message.lines().next().unwrap_or_default();
        self.move_ref(&RefMove {
            name: &if is_head { "HEAD".to_owned() } else { format!("refs/heads/{}", graft.branch) },
            to: commit,
            expected: ExpectedRef::Exactly(graft.parent),
            message: &format!("commit: {subject}"),
            identity: &graft.author,
        })?;
        Ok(commit)
    }

    /// Writes these files to the work tree and the index as HEAD has them; all other files stay as they are.
    pub fn check_out_paths(&self, paths: &[&str]) -> Result<(), GitError> {
        let Some(head) = self.head()?.commit() else { return Ok(()) };
        let mut git = GitCommand::new(self, "update-index").arg("--add");
        for path in paths {
            let Some(content) = self.read_file(&head, path)? else { continue };
            let file = self.work_dir().join(path);
            if durable::read_regular_file(&file).ok().as_ref() != Some(&content) {
                durable::replace_file(&file, &content, 0o644).map_err(GitError::io("writing", &file))?;
            }
            git = git.arg("--cacheinfo").arg(format!("100644,{},{path}", self.hash_blob(&content)?));
        }
        git.run().map(drop)
    }
}

/// Builds trees, and collects the ids of the objects written for them.
struct TreeBuilder<'a> {
    repo: &'a gix::Repository,
    repository: &'a Repository,
    written: Vec<ObjectId>,
}

impl TreeBuilder<'_> {
    /// Returns `tree` with `blob` added at the end of `path`.
    fn insert_blob(&mut self, tree: Option<ObjectId>, path: &[&str], blob: ObjectId) -> Result<ObjectId, GitError> {
        let Some((name, rest)) = path.split_first() else { return Ok(blob) };
        let mut entries = tree.map_or_else(|| Ok(Vec::new()), |tree| self.read_entries(tree))?;
        let known = entries.iter().position(|entry| entry.filename.as_bstr() == name.as_bytes());
        let known = known.map(|at| entries.remove(at)).filter(|entry| entry.mode.is_tree()).map(|entry| entry.oid);
        let (oid, kind) = match rest {
            [] => (blob, EntryKind::Blob),
            _ => (self.insert_blob(known, rest, blob)?, EntryKind::Tree),
        };
        entries.push(Entry { mode: kind.into(), filename: BString::from(*name), oid });
        entries.sort();
        let stored = self.repo.write_object(&gix::objs::Tree { entries });
        let id = stored.map_err(GitError::gix("writing a tree", self.repository.git_dir()))?.detach();
        self.written.push(id);
        Ok(id)
    }

    fn read_entries(&self, tree: ObjectId) -> Result<Vec<Entry>, GitError> {
        let read = || object_reader::read_tree(self.repo, tree)?.decode().map(gix::objs::Tree::from);
        Ok(read().map_err(GitError::gix("reading a tree", self.repository.git_dir()))?.entries)
    }
}
