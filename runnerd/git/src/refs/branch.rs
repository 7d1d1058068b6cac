//! Switches the work tree to a branch. Starting one at HEAD's commit only moves references; everything else is a
//! checkout by the git program, which refuses to overwrite uncommitted changes.

use std::fs::OpenOptions;
use std::io::Write as _;

use gix::date::parse::TimeBuf;
use gix::refs::Target;
use gix::refs::transaction::{PreviousValue, RefEdit};

use super::branch_use::BranchUser;
use super::{ExpectedRef, Head, PACKED_REFS_LOCK_TIMEOUT, REF_LOCK_TIMEOUT, RefMove, full_name};
use crate::durable;
use crate::repository::engine::RefStore;
use crate::repository::identity::Identity;
use crate::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

impl Repository {
    /// Creates the branch `name` at commit `at` and switches the work tree to it.
    ///
    /// Fails if the branch exists. Uncommitted changes stay; a checkout that would overwrite one is refused.
    pub fn start_branch(&self, name: &str, at: &Id) -> Result<(), GitError> {
        if self.find_branch_tip(name)?.is_some() {
            return Err(GitError::BranchExists { name: name.to_owned(), path: self.work_dir().to_owned() });
        }
        self.check_ref_conflict(&format!("refs/heads/{name}"))?;
        let head = self.head()?;
        let repo = self.open()?;
        if head.commit() != Some(*at) || self.choose_ref_store(&repo) == RefStore::GitOnly {
            let at = at.to_string();
            return self.run_checkout(&["--no-track", "-b", name, at.as_str()]);
        }
        self.move_ref(&RefMove {
            name: &format!("refs/heads/{name}"),
            to: *at,
            expected: ExpectedRef::Missing,
            message: "branch: Created from HEAD",
            identity: &self.identity().unwrap_or_else(Identity::runner),
        })?;
        self.point_head(name)
    }

    /// Switches the work tree to the existing branch `name`.
    ///
    /// Uncommitted changes stay; a checkout that would overwrite one, or an ignored file, is refused.
    pub fn switch_branch(&self, name: &str) -> Result<(), GitError> {
        let Some(tip) = self.find_branch_tip(name)? else {
            return Err(GitError::MissingBranch { name: name.to_owned(), path: self.work_dir().to_owned() });
        };
        match self.head()? {
            Head::Branch { name: current, .. } if current == name => Ok(()),
            head => {
                self.check_not_in_use(name)?;
                if head.commit() == Some(tip) {
                    return self.point_head(name);
                }
                // git counts removed work trees as users of the branch.
                self.run_checkout(&["--ignore-other-worktrees", "--no-guess", name])
            }
        }
    }

    fn run_checkout(&self, args: &[&str]) -> Result<(), GitError> {
        // After sessions the index may be theirs, and hide from the program what it would overwrite.
        if self.pinned.is_some() {
            self.invalidate_index_stats()?;
        }
        GitCommand::new(self, "checkout")
            .args(["--quiet", "--no-overwrite-ignore"])
            .args(args)
            .arg("--")
            .run()
            .map(drop)
    }

    fn check_not_in_use(&self, name: &str) -> Result<(), GitError> {
        let other = self.find_branch_users(name)?.into_iter().find(|user| user.git_dir() != self.git_dir());
        other.map_or(Ok(()), |BranchUser { work_tree, .. }| {
            let branch = name.to_owned();
            let from = self.work_dir().to_owned();
            Err(GitError::BranchInUse { branch, path: work_tree, from })
        })
    }

    /// Points HEAD at the branch, with the reflog entry of a checkout; nothing else changes.
    pub(crate) fn point_head(&self, branch: &str) -> Result<(), GitError> {
        let repo = self.open()?;
        let head = self.head()?;
        let from = match &head {
            Head::Branch { name, .. } => name.clone(),
            Head::Detached { commit } => commit.to_string(),
        };
        let message = format!("checkout: moving from {from} to {branch}");
        let target = format!("refs/heads/{branch}");
        if self.choose_ref_store(&repo) == RefStore::GitOnly {
            return GitCommand::new(self, "symbolic-ref").args(["-m", &message, "HEAD", &target]).run().map(drop);
        }
        let target = Target::Symbolic(full_name(&target, self)?);
        let edit = RefEdit::update(full_name("HEAD", self)?, target, PreviousValue::Any, "");
        let lock = self.git_dir().join("HEAD.lock");
        let prepared = self.with_stale_lock_retry(|| {
            let prepared = repo.refs.transaction().prepare([edit.clone()], REF_LOCK_TIMEOUT, PACKED_REFS_LOCK_TIMEOUT);
            prepared.map_err(GitError::gix("moving", &lock))
        })?;
        durable::sync_lock(self.git_dir(), "HEAD")?;
        prepared
            .commit(Some(Identity::runner().signature().to_ref(&mut TimeBuf::default())))
            .map_err(GitError::gix("moving", &lock))?;
        durable::sync_ref(self.git_dir(), "HEAD")?;
        self.append_head_log(head.commit(), self.find_branch_tip(branch)?, &message)
    }

    /// The library writes no reflog entry when HEAD changes branches, so `git checkout -` would not find the way back.
    fn append_head_log(&self, old: Option<Id>, new: Option<Id>, message: &str) -> Result<(), GitError> {
        let path = self.git_dir().join("logs/HEAD");
        let Some(some) = old.or(new) else {
            return Ok(());
        };
        let null = "0".repeat(some.to_string().len());
        let text = |id: Option<Id>| id.map_or_else(|| null.clone(), |id| id.to_string());
        let mut line = format!("{} {} ", text(old), text(new)).into_bytes();
        let by = self.identity().unwrap_or_else(Identity::runner);
        line.extend_from_slice(by.stamp().as_bytes());
        line.extend_from_slice(format!("\t{message}\n").as_bytes());
        if !self.has_private_log("HEAD") {
            return Ok(());
        }
        match OpenOptions::new().append(true).open(&path) {
            Ok(mut log) => log.write_all(&line).map_err(GitError::io("writing", &path)),
            // No reflog is kept here: nothing to append to.
            Err(_) => Ok(()),
        }
    }
}
