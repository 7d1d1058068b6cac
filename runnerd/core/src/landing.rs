//! Bringing a result home: which commits of a run's branch become which commits of another, what they say, and what is
//! refused.
//!
//! Commits come in as data, and a plan goes out. Merging, guards and references are the daemon's.

pub mod commit_groups;
pub(crate) mod sanitize_message;
pub mod message;
pub mod refusal;
pub mod merge_queue;

use std::collections::BTreeSet;

use protocol::doctor::LANDING_GIT;

use self::commit_groups::{CommitGroup, group_commits};
pub use self::message::{LANDED, LandedTrailer, LandedCommitFields, LandedMessage, NO_NODE, MessageText, parse_landed, parse_git_version};
pub use self::refusal::LandingRefusal;
use crate::audit::{AuditPlan, CommitOwner};
use crate::git_version::is_older;
use crate::message::RunnerCommit;

/// Refuses a git that cannot merge trees, by the version that it says.
pub fn check_git_version(version: &str) -> Result<(), LandingRefusal> {
    if is_older(version, LANDING_GIT) { Err(LandingRefusal::OldGit { version: version.to_owned() }) } else { Ok(()) }
}

/// A commit on first parents of a run's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainCommit<'a> {
    /// Its id.
    pub id: &'a str,
    /// The id of its tree without `.runner/`.
    pub code: String,
    /// Who wrote it, as `Name <address>`.
    pub author: String,
    /// Whose it is.
    pub owner: CommitOwner<'a>,
}

/// What a branch is asked of a run before anything is merged.
#[derive(Debug)]
pub struct LandQuery<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// Its commits that the branch has not, on first parents, oldest first.
    pub commits: &'a [ChainCommit<'a>],
    /// The id and the code of the commit before them; none where they begin with a root.
    pub before: Option<(&'a str, &'a str)>,
    /// What the branch says that it has landed.
    pub landed: &'a [LandedTrailer],
}

/// What is to be landed of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandPlan {
    /// The commit that the first merge begins from.
    pub base: String,
    /// What becomes a commit, oldest first; not empty.
    pub groups: Vec<CommitGroup>,
    /// The place among these of the last that changes a file.
    pub last_change: usize,
    /// How many commits with changes come after the last of them: they do not land.
    pub not_landed: usize,
}

/// What a branch lacks of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingCommits {
    /// This.
    Missing(LandPlan),
    /// Nothing: it has landed, by the commits that say so, the newest last.
    AlreadyLanded,
}

/// Decides what is to be landed of a run.
///
/// What has landed before is known by the commits that say so, as far as they name commits of this run's branch: landing
/// goes on behind the newest of them.
pub fn find_missing_commits(question: &LandQuery<'_>) -> Result<MissingCommits, LandingRefusal> {
    let LandQuery { run, commits, before, landed } = question;
    let named: BTreeSet<&str> = landed.iter().map(|landed| landed.commit.as_str()).collect();
    let newest = commits.iter().rposition(|commit| named.contains(commit.id));
    let rest = &commits[newest.map_or(0, |at| at + 1)..];
    let base = match newest {
        Some(at) => Some((commits[at].id, commits[at].code.as_str())),
        None => *before,
    };
    let Some((base, code)) = base else { return Err(LandingRefusal::Unrelated { run: (*run).to_owned() }) };
    if let Some(on) = find_unlanded_run(run, rest) {
        return Err(LandingRefusal::BaseNotLanded { run: (*run).to_owned(), on });
    }
    let cuts = group_commits(rest, code);
    let Some(last) = cuts.last() else {
        let is_there = newest.is_some() || rest.is_empty();
        return if is_there { Ok(MissingCommits::AlreadyLanded) } else { Err(LandingRefusal::NothingPassed { run: (*run).to_owned() }) };
    };
    let left = count_changes(&rest[last.position + 1..], &rest[last.position].code);
    let codes: Vec<&str> = std::iter::once(code).chain(cuts.iter().map(|cut| rest[cut.position].code.as_str())).collect();
    let last = codes.windows(2).rposition(|pair| pair[0] != pair[1]).unwrap_or_default();
    Ok(MissingCommits::Missing(LandPlan { base: base.to_owned(), not_landed: left, last_change: last, groups: cuts }))
}

/// Returns the run whose leaves are among these commits, if one of another than `run` is.
fn find_unlanded_run(run: &str, commits: &[ChainCommit<'_>]) -> Option<String> {
    let passed = commits.iter().filter_map(|commit| commit.owner.runner_commit()?.accepted_receipt());
    passed.map(|receipt| &receipt.run).find(|of| *of != run).cloned()
}

/// Counts the commits that have other files than the one before.
fn count_changes(commits: &[ChainCommit<'_>], before: &str) -> usize {
    let before = std::iter::once(before).chain(commits.iter().map(|commit| commit.code.as_str()));
    commits.iter().zip(before).filter(|(commit, before)| commit.code != *before).count()
}

/// Returns the runs whose commits are among those of a plan, besides its own, oldest first.
pub fn base_runs(plan: &AuditPlan) -> Vec<String> {
    let mut runs: Vec<String> = Vec::new();
    for at in 0..plan.all_commits().len() {
        let run = plan.owner(at).and_then(super::audit::CommitOwner::runner_commit).map(RunnerCommit::run);
        if let Some(run) = run.filter(|run| *run != plan.run() && !runs.iter().any(|known| known == run)) {
            runs.push(run.to_owned());
        }
    }
    runs
}
