//! Decides who owns each commit of a branch (the runner, a person, or an agent's session), and where the audit begins.
//!
//! Works from the newest commit to the oldest: a receipt names the commit at which its session began, and everything
//! between the two belongs to the session, whatever its messages say. The state at the tip is not trusted: a run begins
//! with its start commit, and if that follows another run's iteration, the audit begins with the start of that run.

use std::collections::BTreeMap;

use super::commit_data::CommitHeader;
use super::completeness::BranchEnd;
use crate::driver::ClaimState;
use crate::message::{
    MessageError, Receipt, RulesError, RunnerCommit, claims_receipt, has_look_alike_trailer, has_runner_subject,
};

/// The commits of one run along first parents, oldest first, each with its owner.
#[derive(Debug)]
pub struct AuditPlan {
    run: String,
    commits: Vec<CommitHeader>,
    planned: Vec<PlannedCommit>,
    first_position: usize,
    run_starts: Vec<RunStart>,
    has_start: bool,
    end: BranchEnd,
}

/// The commit at which the files watched for the guard are determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchPoint {
    /// The start of a run, before which nothing was watched.
    Start,
    /// The commit at which a session begins, or on which another commit of the runner is based.
    From,
}

/// Owner of a commit, for callers that do not judge it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOwner<'a> {
    /// The runner, with what the commit says.
    Runner(&'a RunnerCommit),
    /// A person.
    Person,
    /// An agent's session, or someone who imitates the runner.
    Agent,
}

impl<'a> CommitOwner<'a> {
    /// Returns what the commit says, if it is the runner's.
    pub fn runner_commit(self) -> Option<&'a RunnerCommit> {
        match self {
            Self::Runner(commit) => Some(commit),
            Self::Person | Self::Agent => None,
        }
    }
}

/// Where a run begins.
#[derive(Debug)]
struct RunStart {
    run: String,
    /// Index of its start commit; of the oldest commit if the start is not here.
    position: usize,
}

/// A commit, by its owner.
#[derive(Debug)]
pub(super) enum PlannedCommit {
    /// The runner made it.
    Runner {
        /// What the commit says.
        commit: Box<RunnerCommit>,
        /// Whether the commit that it names as From comes before it.
        has_from: bool,
    },
    /// The commit claims to be the runner's, in a form that the runner does not write.
    Malformed(MessageError),
    /// A person made it.
    Person,
    /// An agent's session made it.
    Agent {
        /// Whether its message imitates one of the runner's.
        imitates_runner: bool,
    },
}

impl AuditPlan {
    /// Classifies all available commits of the branch of `run`.
    pub fn new(run: &str, commits: Vec<CommitHeader>, end: BranchEnd) -> Self {
        let parts = classify_commits(&commits);
        // If the parents of the oldest commit are missing, its changes are unknown.
        let oldest = usize::from(commits.first().is_some_and(|head| !head.parents.is_empty()));
        let (runs, is_found) = find_run_starts(run, &parts);
        let begin = runs.last().map_or(0, |begun| begun.position);
        let has_start = is_found && begin >= oldest;
        Self {
            run: run.to_owned(),
            commits,
            planned: parts,
            first_position: begin.max(oldest),
            run_starts: runs,
            has_start,
            end,
        }
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the commits to audit.
    pub fn commits(&self) -> &[CommitHeader] {
        self.commits.get(self.first_position..).unwrap_or_default()
    }

    /// Returns the commit before the first one to audit, if it is available.
    pub fn preceding_commit(&self) -> Option<&CommitHeader> {
        self.first_position.checked_sub(1).and_then(|at| self.commits.get(at))
    }

    /// Returns whether the first commit to audit begins the run, or the run from which it was forked.
    pub fn has_start(&self) -> bool {
        self.has_start
    }

    /// Returns whether the start is missing although no history is known to be cut off.
    pub fn is_start_missing(&self) -> bool {
        !self.has_start && self.end.is_complete()
    }

    /// Describes the missing part of the branch, if its start is missing.
    pub(super) fn describe_truncation(&self) -> Option<String> {
        let oldest = self.preceding_commit().filter(|_| !self.has_start())?;
        self.end.describe(&oldest.id)
    }

    /// Returns whether the audit begins at an iteration, such as when a fork's parent is the oldest available commit:
    /// there may then be files that no person has accepted.
    pub fn begins_at_iteration(&self) -> bool {
        // What precedes a claim that is the oldest available commit is unknown.
        let is_iteration = |at| {
            last_settled_position(&self.planned, at).is_none_or(|at| iteration_receipt(&self.planned, at).is_some())
        };
        self.first_position.checked_sub(1).is_some_and(is_iteration)
    }

    /// Returns the run to which the audited commit at this index must belong.
    pub(super) fn run_at(&self, at: usize) -> &str {
        let start = self.run_starts.iter().find(|begun| begun.position <= self.first_position + at);
        start.map_or(&self.run, |begun| &begun.run)
    }

    /// Returns whether a run begins with the audited commit at this index.
    pub(super) fn is_run_start(&self, at: usize) -> bool {
        let is_start = self.planned_commit(at).is_some_and(|part| is_start(part, self.run_at(at)));
        is_start && self.run_starts.iter().any(|begun| begun.position == self.first_position + at)
    }

    /// Returns the receipt of the commit before the audited one at this index, if that ends an iteration; claims and
    /// releases in between are skipped.
    pub(super) fn receipt_before(&self, at: usize) -> Option<&Receipt> {
        iteration_receipt(&self.planned, (self.first_position + at).checked_sub(1)?)
    }

    /// Returns who had claimed the run before the audited commit at this index, if that is known.
    pub(super) fn claim_before(&self, at: usize) -> Option<ClaimState> {
        let before = self.planned.get(..self.first_position + at)?.iter().rev();
        before.filter_map(PlannedCommit::commit).find_map(|commit| ClaimState::from_commit(commit.clone()))
    }

    /// Returns the commit of an iteration before the audited one at this index: the last one with that number, in any
    /// run, because a fork continues another's numbering.
    pub(super) fn iteration_commit(&self, iter: u32, at: usize) -> Option<&str> {
        let is_iteration = |part: &PlannedCommit| matches!(part.commit(), Some(RunnerCommit::Iteration(receipt)) if receipt.iter == iter);
        let found = self.planned.get(..self.first_position + at)?.iter().rposition(is_iteration)?;
        self.commits.get(found).map(|head| head.id.as_str())
    }

    /// Returns the commit at which the watched files are determined for the audited commit at this index, if any.
    pub fn watch_point(&self, at: usize) -> Option<WatchPoint> {
        let is_agents = |at: usize| matches!(self.planned.get(at), Some(PlannedCommit::Agent { .. }));
        let position = self.first_position + at;
        match self.planned.get(position)? {
            PlannedCommit::Person | PlannedCommit::Malformed(_) => return None,
            PlannedCommit::Runner { commit, .. } if commit.is_transparent() => return None,
            PlannedCommit::Agent { .. } if position.checked_sub(1).is_some_and(is_agents) => return None,
            PlannedCommit::Runner { .. } if position.checked_sub(1).is_some_and(is_agents) => return None,
            PlannedCommit::Agent { .. } | PlannedCommit::Runner { .. } => {}
        }
        match self.planned[position..].iter().find_map(PlannedCommit::commit)? {
            RunnerCommit::Start(_) => Some(WatchPoint::Start),
            RunnerCommit::Baseline(..) | RunnerCommit::Resume(_) | RunnerCommit::Iteration(_) => Some(WatchPoint::From),
            // Claims and releases end no session, so there is nothing to examine in between.
            RunnerCommit::Claim(_) | RunnerCommit::Release(_) => None,
        }
    }

    /// Returns all available commits of the branch, including those before the first one to audit.
    pub fn all_commits(&self) -> &[CommitHeader] {
        &self.commits
    }

    /// Returns, with their indices, those of all available commits that were made by the runner under other rules:
    /// around them the owners cannot be determined.
    pub fn commits_of_other_rules(&self) -> impl Iterator<Item = (usize, &RulesError)> {
        self.planned.iter().enumerate().filter_map(|(at, part)| match part {
            PlannedCommit::Malformed(MessageError::Rules(why)) => Some((at, why)),
            PlannedCommit::Malformed(_)
            | PlannedCommit::Runner { .. }
            | PlannedCommit::Person
            | PlannedCommit::Agent { .. } => None,
        })
    }

    /// Returns the owner of the commit at this index, counting all available ones.
    pub fn owner(&self, at: usize) -> Option<CommitOwner<'_>> {
        Some(match self.planned.get(at)? {
            PlannedCommit::Runner { commit, .. } => CommitOwner::Runner(commit),
            PlannedCommit::Person => CommitOwner::Person,
            PlannedCommit::Malformed(_) | PlannedCommit::Agent { .. } => CommitOwner::Agent,
        })
    }

    /// Returns the owner of the audited commit at this index, and what is wrong with it.
    pub(super) fn planned_commit(&self, at: usize) -> Option<&PlannedCommit> {
        self.planned.get(self.first_position + at)
    }

    /// Returns the runner's commit before the first audited one, if it belongs to this run; claims and releases are
    /// skipped.
    pub(super) fn runner_commit_before(&self) -> Option<&RunnerCommit> {
        let part = self.planned.get(last_settled_position(&self.planned, self.first_position.checked_sub(1)?)?)?;
        part.commit().filter(|commit| commit.run() == self.run_at(0))
    }
}

impl PlannedCommit {
    /// Returns what a commit of the runner says; `None` for any other.
    pub(super) fn commit(&self) -> Option<&RunnerCommit> {
        match self {
            Self::Runner { commit, .. } => Some(commit),
            Self::Malformed(_) | Self::Person | Self::Agent { .. } => None,
        }
    }

    /// Whether it only says who drives the run.
    pub(super) fn is_transparent(&self) -> bool {
        self.commit().is_some_and(RunnerCommit::is_transparent)
    }
}

/// Finds where a run begins, and the runs that it was forked from, newest first; also returns whether the last start
/// was found.
///
/// Of several starts of one run the oldest counts, so that a later one hides nothing.
fn find_run_starts(run: &str, parts: &[PlannedCommit]) -> (Vec<RunStart>, bool) {
    let mut runs = Vec::new();
    let mut run = run.to_owned();
    let mut end = parts.len();
    loop {
        let Some(at) = parts[..end].iter().position(|part| is_start(part, &run)) else {
            runs.push(RunStart { run, position: 0 });
            return (runs, false);
        };
        runs.push(RunStart { run, position: at });
        let Some(receipt) = at.checked_sub(1).and_then(|before| iteration_receipt(parts, before)) else {
            return (runs, true);
        };
        (run, end) = (receipt.run.clone(), at);
    }
}

/// Returns the index of the last commit up to this one that says more than who drives the run.
fn last_settled_position(parts: &[PlannedCommit], at: usize) -> Option<usize> {
    parts.get(..=at)?.iter().rposition(|part| !part.is_transparent())
}

/// Returns the receipt of the iteration at an index, or of the one it is based on.
fn iteration_receipt(parts: &[PlannedCommit], at: usize) -> Option<&Receipt> {
    match parts.get(last_settled_position(parts, at)?)?.commit()? {
        RunnerCommit::Iteration(receipt) => Some(receipt),
        RunnerCommit::Start(_)
        | RunnerCommit::Baseline(..)
        | RunnerCommit::Resume(_)
        | RunnerCommit::Claim(_)
        | RunnerCommit::Release(_) => None,
    }
}

fn is_start(part: &PlannedCommit, run: &str) -> bool {
    matches!(part.commit(), Some(RunnerCommit::Start(milestone)) if milestone.run == run)
}

fn classify_commits(commits: &[CommitHeader]) -> Vec<PlannedCommit> {
    let mut parts = Vec::with_capacity(commits.len());
    // Number of commits before each one, counting those before the oldest as one.
    let before = commits.first().and_then(|head| head.parents.first()).into_iter();
    let places: BTreeMap<&str, usize> =
        before.map(|id| (id.as_str(), 0)).chain((1..).zip(commits).map(|(at, head)| (head.id.as_str(), at))).collect();
    // The commit at which the session being read began.
    let mut session: Option<&str> = None;
    for (at, header) in commits.iter().enumerate().rev() {
        session = session.filter(|from| *from != header.id);
        if session.is_some() {
            parts.push(PlannedCommit::Agent {
                imitates_runner: claims_runner(header)
                    || has_look_alike_trailer(&header.message)
                    || has_runner_subject(&header.message),
            });
            continue;
        }
        parts.push(match RunnerCommit::parse_bytes(&header.message) {
            Ok(commit) => {
                let from = commit.from();
                let known = from.and_then(|from| places.get_key_value(from)).filter(|(_, place)| **place <= at);
                session = known.map(|(id, _)| *id);
                PlannedCommit::Runner { has_from: from.is_none() || session.is_some(), commit: Box::new(commit) }
            }
            Err(error) if claims_receipt(&header.message) => PlannedCommit::Malformed(error),
            Err(_) if claims_runner(header) => PlannedCommit::Malformed(MessageError::Encoding),
            Err(_) if has_look_alike_trailer(&header.message) => PlannedCommit::Malformed(MessageError::LookAlike),
            Err(_) => PlannedCommit::Person,
        });
    }
    parts.reverse();
    parts
}

/// Whether a commit claims to be the runner's, either as git stores the message or as git shows it.
fn claims_runner(header: &CommitHeader) -> bool {
    claims_receipt(&header.message) || header.recoded.as_deref().is_some_and(claims_receipt)
}
