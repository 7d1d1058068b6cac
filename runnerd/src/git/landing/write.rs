//! Commits upon any parents, with an author of their own: nothing refers to them yet.

use gix::objs::Kind;
use gix::prelude::Write as _;

use crate::git::durable;
use crate::git::repository::identity::Identity;
use crate::git::repository::program::Git;
use crate::git::{GitError, Id, Repository};

/// A commit to be made.
#[derive(Debug)]
pub struct NewCommit<'a> {
    /// Its tree.
    pub tree: Id,
    /// Its parents, the first first.
    pub parents: &'a [Id],
    /// Who wrote it and when, as a commit's header has it: `Name <address> seconds zone`.
    pub author: &'a str,
    /// Who commits.
    pub committer: &'a Identity,
    /// Its message, verbatim.
    pub message: &'a str,
    /// Whether the git program is to sign it as configured.
    pub sign: bool,
}

impl Repository {
    /// Makes a commit, durably; no reference moves.
    pub fn write(&self, commit: &NewCommit<'_>) -> Result<Id, GitError> {
        if commit.sign {
            return self.write_signed_upon(commit);
        }
        let parents: String = commit.parents.iter().map(|parent| format!("parent {parent}\n")).collect();
        let (tree, author, committer) = (commit.tree, commit.author, commit.committer.stamp());
        let text = format!("tree {tree}\n{parents}author {author}\ncommitter {committer}\n\n{}", commit.message);
        let repo = self.open()?;
        let written = repo.write_buf(Kind::Commit, text.as_bytes());
        let id = written.map_err(GitError::library("writing a commit", self.git_dir()))?;
        durable::sync_objects(&self.common_dir().join("objects"), &[id])?;
        Ok(id.into())
    }

    fn write_signed_upon(&self, commit: &NewCommit<'_>) -> Result<Id, GitError> {
        let mut git = Git::new(self, "commit-tree").args(["-S", "-F", "-"]);
        for parent in commit.parents {
            git = git.arg("-p").arg(parent.to_string());
        }
        let git = commit.committer.in_environment(git.arg(commit.tree.to_string()));
        let git = match author_of(commit.author) {
            Some((name, email, date)) => {
                git.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", email).env("GIT_AUTHOR_DATE", date)
            }
            None => git,
        };
        let said = git.input(commit.message.as_bytes().to_vec()).line()?;
        said.parse().map_err(|error| GitError::Broken {
            doing: "signing a commit",
            path: self.git_dir().to_owned(),
            source: Box::new(error),
        })
    }
}

/// Takes an author line apart.
fn author_of(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once(" <")?;
    let (email, date) = rest.split_once("> ")?;
    Some((name, email, date))
}
