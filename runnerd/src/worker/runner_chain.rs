//! Whose each commit of a run's branch is, along first parents from the newest: the runner's, a session's, a person's.
//!
//! Anyone can write a commit message. Only where the chain of receipts leads to a commit of the runner does its message
//! count.

use runner_core::message::RunnerCommit;
use runner_git::{CommitInfo, GitError, Id, Repository};

/// Distinguishes the runner's commits from those of sessions, along first parents from the newest.
#[derive(Debug, Default)]
pub(crate) struct RunnerChain {
    /// The From of the last receipt, until that commit is reached.
    from: Option<Id>,
}

impl RunnerChain {
    /// Whether the next commit was made by a session.
    fn is_session_commit(&self, commit: &CommitInfo) -> bool {
        self.from.is_some_and(|from| from != commit.id)
    }

    /// Returns the content of the next commit, unless a session made it.
    pub(crate) fn next_runner_commit(&mut self, commit: &CommitInfo) -> Option<RunnerCommit> {
        if self.is_session_commit(commit) {
            return None;
        }
        self.from = None;
        let runner_commit = RunnerCommit::parse(&commit.message).ok()?;
        if let RunnerCommit::Iteration(receipt) = &runner_commit {
            self.from = receipt.from.parse().ok();
        }
        Some(runner_commit)
    }
}

/// What people have committed on a run's branch.
pub(crate) struct PersonCommits {
    /// Newest first, each from the commit before it to its last.
    pub ranges: Vec<(Id, Id)>,
    /// The commit at which the search ended.
    pub end: Option<Id>,
}

/// Finds the commits that people have made on a run's branch.
pub(crate) fn find_person_commits(
    repository: &Repository,
    tip: Id,
    is_end: impl Fn(Id) -> bool,
) -> Result<PersonCommits, GitError> {
    let mut chain = RunnerChain::default();
    let mut ranges = Vec::new();
    let mut last = None;
    let mut end = None;
    repository.visit_first_parents(&tip, usize::MAX, |commit| {
        if chain.is_session_commit(&commit) {
            return false;
        }
        let is_runners = chain.next_runner_commit(&commit).is_some();
        let is_last = is_end(commit.id);
        let newest = *last.get_or_insert(commit.id);
        if is_runners || is_last {
            ranges.extend((newest != commit.id).then_some((commit.id, newest)));
            last = None;
        }
        end = is_last.then_some(commit.id);
        is_last
    })?;
    Ok(PersonCommits { ranges, end })
}
