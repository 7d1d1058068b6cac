//! Plans a landing: which commits of a run's branch become which commits of another branch, their messages, and what is
//! refused.
//!
//! Commits come in as data, and a plan goes out. The daemon does the merging, runs guards and updates references.

pub mod commit_groups;
pub mod merge_queue;
pub mod message;
pub mod refusal;
pub mod resolution;
pub(crate) mod sanitize_message;

use std::collections::BTreeSet;

use protocol::doctor::LANDING_GIT;

use self::commit_groups::{CommitGroup, group_commits};
pub use self::message::{
    InvalidLandedTrailer, LANDED, LandedCommitFields, LandedMessage, LandedTrailer, MessageText, NO_NODE,
    landing_values, parse_accepted, parse_git_version, parse_landed,
};
pub use self::refusal::LandingRefusal;
use crate::audit::{AuditPlan, CommitOwner};
use crate::git_version::is_older;
use crate::message::RunnerCommit;

/// Refuses a git that cannot merge trees, judging by its version string.
pub fn check_git_version(version: &str) -> Result<(), LandingRefusal> {
    if is_older(version, LANDING_GIT) { Err(LandingRefusal::OldGit { version: version.to_owned() }) } else { Ok(()) }
}

/// A commit on the first parents of a run's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainCommit<'a> {
    /// Id of the commit.
    pub id: &'a str,
    /// Id of its tree without `.runner/`.
    pub code: String,
    /// Its author, as `Name <address>`.
    pub author: String,
    /// Owner of the commit.
    pub owner: CommitOwner<'a>,
}

/// Input for a landing plan.
#[derive(Debug)]
pub struct LandQuery<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// The run's commits that the target branch lacks, on first parents, oldest first.
    pub commits: &'a [ChainCommit<'a>],
    /// Id and code of the commit before them; `None` if they begin with a root commit.
    pub before: Option<(&'a str, &'a str)>,
    /// What the target branch says it has landed.
    pub landed: &'a [LandedTrailer],
}

/// A plan for landing a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandPlan {
    /// Base commit of the first merge.
    pub base: String,
    /// The commits to land, oldest first; not empty.
    pub groups: Vec<CommitGroup>,
    /// Index of the last one that changes a file.
    pub last_change: usize,
    /// Number of commits with changes after the last one; they do not land.
    pub not_landed: usize,
}

/// What a branch lacks of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingCommits {
    /// It lacks the commits in this plan.
    Missing(LandPlan),
    /// It lacks nothing: the run has landed in the commits that say so, newest last.
    AlreadyLanded,
}

/// Plans what to land of a run.
///
/// Earlier landings are identified by the commits that name commits of this run's branch: landing continues after the
/// newest of them.
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
        let has_landed = newest.is_some() || rest.is_empty();
        return if has_landed {
            Ok(MissingCommits::AlreadyLanded)
        } else {
            Err(LandingRefusal::NothingPassed { run: (*run).to_owned() })
        };
    };
    let left = count_changes(&rest[last.position + 1..], &rest[last.position].code);
    let codes: Vec<&str> =
        std::iter::once(code).chain(cuts.iter().map(|cut| rest[cut.position].code.as_str())).collect();
    let last = codes.windows(2).rposition(|pair| pair[0] != pair[1]).unwrap_or_default();
    Ok(MissingCommits::Missing(LandPlan { base: base.to_owned(), not_landed: left, last_change: last, groups: cuts }))
}

/// Returns the run whose leaves are among these commits, if it is a run other than `run`.
fn find_unlanded_run(run: &str, commits: &[ChainCommit<'_>]) -> Option<String> {
    let passed = commits.iter().filter_map(|commit| commit.owner.runner_commit()?.accepted_receipt());
    passed.map(|receipt| &receipt.run).find(|of| *of != run).cloned()
}

/// Counts the commits whose files differ from those of the previous one.
fn count_changes(commits: &[ChainCommit<'_>], before: &str) -> usize {
    let before = std::iter::once(before).chain(commits.iter().map(|commit| commit.code.as_str()));
    commits.iter().zip(before).filter(|(commit, before)| commit.code != *before).count()
}

/// Returns the other runs whose commits are among those of a plan, oldest first.
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
