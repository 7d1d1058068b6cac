//! Creates commits with arbitrary parents and their own author; no reference points to them yet.

use std::path::Path;

use gix::objs::Kind;
use gix::prelude::Write as _;

use crate::durable;
use crate::repository::identity::Identity;
use crate::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

/// A commit to be created.
#[derive(Debug)]
pub struct NewCommit<'a> {
    /// Its tree.
    pub tree: Id,
    /// Its parents, the first parent first.
    pub parents: &'a [Id],
    /// Author and time, as in a commit header: `Name <address> seconds zone`; `None` for the committer, at the same time.
    pub author: Option<&'a str>,
    /// Who commits.
    pub committer: &'a Identity,
    /// Commit message, verbatim.
    pub message: &'a str,
    /// Whether the git program signs it as configured.
    pub sign: bool,
}

impl Repository {
    /// Creates a commit, durably; moves no reference.
    pub fn create_commit(&self, commit: &NewCommit<'_>) -> Result<Id, GitError> {
        if commit.sign {
            return self.create_signed_commit(commit);
        }
        let parents = commit.parents.iter().map(ToString::to_string);
        let parents: String = parents.flat_map(|parent| ["parent ".to_owned(), parent, "\n".to_owned()]).collect();
        let tree = commit.tree;
        let committer = commit.committer.stamp();
        let author = commit.author.unwrap_or(&committer);
        let text = format!("tree {tree}\n{parents}author {author}\ncommitter {committer}\n\n{}", commit.message);
        let repo = self.open()?;
        let written = repo.write_buf(Kind::Commit, text.as_bytes());
        let id = written.map_err(GitError::gix("writing a commit", self.git_dir()))?;
        durable::sync_objects(&self.common_dir().join("objects"), &[id])?;
        Ok(id.into())
    }

    /// Stores the tree of a commit with some files replaced (mode and blob) or removed (`None`), and returns an
    /// unreferenced commit of it. `index` is a scratch file for the program, in one of the daemon's folders.
    pub fn create_commit_with_files(
        &self,
        commit: &Id,
        files: &[(String, Option<(u32, Id)>)],
        index: &Path,
    ) -> Result<Id, GitError> {
        let git = |name| GitCommand::new(self, name).env("GIT_INDEX_FILE", index);
        git("read-tree").arg(commit.to_string()).run()?;
        let null = "0".repeat(commit.to_string().len());
        let line = |(path, file): &(String, Option<(u32, Id)>)| match file {
            Some((mode, blob)) => format!("{mode:o} {blob}\t{path}\0"),
            None => format!("0 {null}\t{path}\0"),
        };
        let lines: String = files.iter().map(line).collect();
        git("update-index").args(["-z", "--index-info"]).input(lines.into_bytes()).run()?;
        let tree = git("write-tree").run_line()?;
        let by = Identity::runner();
        let git =
            by.apply_to(GitCommand::new(self, "commit-tree").args([&tree, "-p", &commit.to_string(), "-m", "A check"]));
        let output = git.run_line()?;
        output.parse().map_err(|error| GitError::Corrupt {
            doing: "making a commit for a check",
            path: self.git_dir().to_owned(),
            source: Box::new(error),
        })
    }

    fn create_signed_commit(&self, commit: &NewCommit<'_>) -> Result<Id, GitError> {
        let mut git = self.signed_commit_command()?;
        for parent in commit.parents {
            git = git.arg("-p").arg(parent.to_string());
        }
        let git = commit.committer.apply_to(git.arg(commit.tree.to_string()));
        let git = match commit.author.and_then(parse_author) {
            Some((name, email, date)) => {
                git.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", email).env("GIT_AUTHOR_DATE", date)
            }
            None => git,
        };
        let output = git.input(commit.message.as_bytes().to_vec()).run_line()?;
        output.parse().map_err(|error| GitError::Corrupt {
            doing: "signing a commit",
            path: self.git_dir().to_owned(),
            source: Box::new(error),
        })
    }
}

/// Splits an author line into name, address and time.
fn parse_author(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once(" <")?;
    let (email, date) = rest.split_once("> ")?;
    Some((name, email, date))
}
