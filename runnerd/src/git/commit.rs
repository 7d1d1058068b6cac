//! Commits everything that the work tree holds. Stages, writes the tree, the commit and the reference in the order in
//! which a death in between loses nothing: until HEAD moves, the repository is as before.

use std::collections::BTreeSet;

use gix::ObjectId;
use gix::bstr::BString;

use super::hold_back::{HoldBack, Verdict};
use super::index::{self, IndexLock, PendingIndex};
use super::preflight::Engine;
use super::program::Git;
use super::refs::{Before, Move};
use super::scan::{Scan, display};
use super::stage::Staging;
use super::status::{self, ChangeKind};
use super::{GitError, Id, Repository, cachetree, durable, exclude, porcelain};

/// Who a commit is by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name, in any script.
    pub name: String,
    /// The address.
    pub email: String,
}

impl Identity {
    /// Returns who commits where nobody is configured.
    pub fn runner() -> Self {
        Self { name: "runnerd".to_owned(), email: "runnerd@localhost".to_owned() }
    }

    /// Returns the signature of this moment.
    pub(super) fn signature(&self) -> gix::actor::Signature {
        gix::actor::Signature {
            name: clean(&self.name).into(),
            email: clean(&self.email).into(),
            time: gix::date::Time::now_local_or_utc(),
        }
    }

    /// Returns the signature of this moment as git writes it.
    pub(super) fn stamp(&self) -> String {
        let signature = self.signature();
        format!("{} <{}> {}", signature.name, signature.email, signature.time)
    }

    /// Makes a command of the git program commit as this identity.
    pub(super) fn in_environment<'a>(&self, git: Git<'a>) -> Git<'a> {
        let (name, email) = (clean(&self.name), clean(&self.email));
        git.env("GIT_AUTHOR_NAME", &name)
            .env("GIT_AUTHOR_EMAIL", &email)
            .env("GIT_COMMITTER_NAME", &name)
            .env("GIT_COMMITTER_EMAIL", &email)
    }
}

/// Leaves out what would end the field early in a commit.
fn clean(field: &str) -> String {
    let kept: String = field.chars().filter(|c| !matches!(c, '<' | '>' | '\n' | '\r' | '\0')).collect();
    let kept = kept.trim();
    if kept.is_empty() { "runnerd".to_owned() } else { kept.to_owned() }
}

/// What to commit and how.
#[derive(Debug, Clone)]
pub struct CommitRequest<'a> {
    /// The message, verbatim; a line end is added if it has none.
    pub message: &'a str,
    /// Author and committer.
    pub author: Identity,
    /// The commit that HEAD is expected to be at; none before the first.
    pub parent: Option<Id>,
    /// Which new files stay out.
    pub hold_back: &'a HoldBack,
    /// Whether the git program is to sign the commit as configured.
    pub sign: bool,
    /// Whether to commit even if nothing changed.
    pub allow_empty: bool,
}

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The commit.
    pub commit: Id,
    /// Its tree.
    pub tree: Id,
    /// Paths that the rule keeps out and that are in the work tree now, sorted; repositories end in a slash.
    pub held_back: Vec<String>,
    /// Paths that git cannot store and that are in the work tree now, sorted.
    pub unstorable: Vec<String>,
}

/// Everything up to the tree, by either engine.
struct Prepared {
    tree: ObjectId,
    held_back: BTreeSet<BString>,
    unstorable: BTreeSet<BString>,
    /// Objects that are not on disk for sure.
    written: Vec<ObjectId>,
    /// The index to publish once HEAD moved; the git program publishes its own at once.
    index: Option<PendingIndex>,
}

impl Repository {
    /// Commits all that differs from HEAD, untracked files included, and leaves nothing to commit.
    ///
    /// What is held back or cannot be stored stays in the work tree, hidden from git through `info/exclude`, and is
    /// named. Fails if HEAD is not at `request.parent`, while a merge or the like is under way, and, unless empty
    /// commits are allowed, if there is nothing to commit. No hooks are run.
    pub fn commit_all(&self, request: &CommitRequest<'_>) -> Result<Committed, GitError> {
        if let Some(operation) = self.operation() {
            return Err(GitError::OperationUnderWay { operation, path: self.work_dir().to_owned() });
        }
        let found = self.head()?.commit();
        if found != request.parent {
            return Err(GitError::Moved {
                name: "HEAD".to_owned(),
                path: self.work_dir().to_owned(),
                expected: request.parent,
                found,
            });
        }
        let repo = self.open()?;
        let mut prepared = self.prepare(&repo, request)?;
        if !request.allow_empty && Some(prepared.tree) == self.tree_of(&repo, request.parent)? {
            prepared.index.map_or(Ok(()), PendingIndex::publish)?;
            return Err(GitError::NothingToCommit { path: self.work_dir().to_owned() });
        }
        let commit = self.write_commit(&repo, request, prepared.tree)?;
        prepared.written.push(commit.object());
        durable::sync_objects(&self.common_dir().join("objects"), &prepared.written)?;
        self.advance_head(request, commit)?;
        prepared.index.map_or(Ok(()), PendingIndex::publish)?;
        let names = |paths: BTreeSet<BString>| paths.iter().map(|path| display(path)).collect();
        Ok(Committed {
            commit,
            tree: prepared.tree.into(),
            held_back: names(prepared.held_back),
            unstorable: names(prepared.unstorable),
        })
    }

    /// Hides from git what a commit would leave out now, and returns the paths, sorted.
    pub fn hold_back(&self, rule: &HoldBack) -> Result<Vec<String>, GitError> {
        let (held_back, unstorable) = self.reconsider(rule)?;
        let mut hidden: BTreeSet<BString> = held_back.union(&unstorable).cloned().collect();
        let is_new = |kind: ChangeKind| matches!(kind, ChangeKind::Untracked | ChangeKind::Added);
        for change in self.changes()?.into_iter().filter(|change| is_new(change.kind)) {
            let path = BString::from(change.path);
            if matches!(rule.judge(self, path.as_ref()), Verdict::HeldBack | Verdict::Unstorable) {
                hidden.insert(path);
            }
        }
        exclude::write(self, &hidden)?;
        Ok(hidden.iter().map(|path| display(path)).collect())
    }

    fn prepare(&self, repo: &gix::Repository, request: &CommitRequest<'_>) -> Result<Prepared, GitError> {
        let (held_back, unstorable) = self.reconsider(request.hold_back)?;
        let by_program = || self.prepare_by_program(request);
        let mut prepared = match self.engine(repo) {
            Engine::Program => by_program()?,
            Engine::Library => self.prepare_by_library(repo, request).or_else(|error| match error {
                GitError::Broken { .. } => {
                    tracing::warn!(%error, "the library cannot stage the work tree; git does");
                    by_program()
                }
                obstacle => Err(obstacle),
            })?,
        };
        prepared.held_back.extend(held_back);
        prepared.unstorable.extend(unstorable);
        exclude::write(self, &prepared.held_back.union(&prepared.unstorable).cloned().collect())?;
        Ok(prepared)
    }

    /// Looks again at what earlier commits left out: what would go in now is hidden no longer.
    fn reconsider(&self, rule: &HoldBack) -> Result<(BTreeSet<BString>, BTreeSet<BString>), GitError> {
        let hidden = exclude::read(self)?;
        let (mut held_back, mut unstorable) = (BTreeSet::new(), BTreeSet::new());
        for path in &hidden {
            match rule.judge(self, path.as_ref()) {
                Verdict::HeldBack => drop(held_back.insert(path.clone())),
                Verdict::Unstorable => drop(unstorable.insert(path.clone())),
                Verdict::Welcome | Verdict::Absent => {}
            }
        }
        exclude::write(self, &held_back.union(&unstorable).cloned().collect())?;
        Ok((held_back, unstorable))
    }

    fn prepare_by_library(&self, repo: &gix::Repository, request: &CommitRequest<'_>) -> Result<Prepared, GitError> {
        let lock = IndexLock::acquire(repo, self)?;
        let state = index::read(repo, self, request.parent)?.state;
        let scan = Scan::run(repo, self, &state)?;
        let changes = status::staged(repo, self, request.parent, &state)?;
        let added = changes.into_iter().filter(|(_, kind)| *kind == ChangeKind::Added).map(|(path, _)| path).collect();
        let staging = Staging { repo, paths: self, rule: request.hold_back, added };
        let mut staged = staging.run(state, scan)?;
        let tree = cachetree::write(repo, self, &mut staged.state, &mut staged.written)?;
        Ok(Prepared {
            tree,
            held_back: staged.held_back,
            unstorable: staged.unstorable,
            written: staged.written,
            index: Some(lock.write(staged.state)?),
        })
    }

    fn prepare_by_program(&self, request: &CommitRequest<'_>) -> Result<Prepared, GitError> {
        let staged = porcelain::stage(self, request.hold_back, None)?;
        Ok(Prepared {
            tree: staged.tree,
            held_back: staged.held_back,
            unstorable: staged.unstorable,
            written: Vec::new(),
            index: None,
        })
    }

    fn tree_of(&self, repo: &gix::Repository, commit: Option<Id>) -> Result<Option<ObjectId>, GitError> {
        let Some(commit) = commit else {
            return Ok(None);
        };
        let read = || repo.find_commit(commit.object())?.tree_id().map(gix::Id::detach);
        read().map(Some).map_err(GitError::library("reading a commit", self.git_dir()))
    }

    fn write_commit(
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
            return self.write_signed(request, tree, message);
        }
        let signature = request.author.signature();
        let commit = gix::objs::Commit {
            tree,
            parents: request.parent.iter().map(Id::object).collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: message.into(),
            extra_headers: Vec::new(),
        };
        repo.write_object(&commit).map(Id::from).map_err(GitError::library("writing a commit", self.git_dir()))
    }

    fn write_signed(&self, request: &CommitRequest<'_>, tree: ObjectId, message: String) -> Result<Id, GitError> {
        let mut git = Git::new(self, "commit-tree").args(["-S", "-F", "-"]);
        if let Some(parent) = request.parent {
            git = git.arg("-p").arg(parent.to_string());
        }
        let git = request.author.in_environment(git.arg(tree.to_string()));
        let said = git.input(message.into_bytes()).line()?;
        said.parse().map_err(|error| GitError::Broken {
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
        self.move_ref(&Move {
            name: "HEAD",
            to: commit,
            before: request.parent.map_or(Before::Nothing, Before::Exactly),
            message: &message,
            by: &request.author,
        })
    }

    /// Returns who the user is by git's configuration, if it says so completely.
    pub fn identity(&self) -> Option<Identity> {
        let repo = self.open().ok()?;
        let config = repo.config_snapshot();
        let value = |key: &str| config.string(key).map(|value| value.to_string()).filter(|value| !value.is_empty());
        Some(Identity { name: value("user.name")?, email: value("user.email")? })
    }
}
