//! Whose each commit of a branch is: the runner's, a person's, or of an agent's session.
//!
//! Told from the newest commit to the oldest: a receipt names the commit at which its session began, and what lies
//! between the two is the session's, whatever its messages say.

use std::collections::BTreeMap;

use super::link::Head;
use crate::message::{MessageError, RunnerCommit, claims};

/// The commits of one run along first parents, oldest first, and whose each is.
#[derive(Debug)]
pub struct Plan {
    run: String,
    heads: Vec<Head>,
    parts: Vec<Part>,
    first: usize,
}

/// Whose a commit is.
#[derive(Debug)]
pub(super) enum Part {
    /// The runner's.
    Runner {
        /// What it says.
        commit: Box<RunnerCommit>,
        /// Whether the commit that its receipt names as From is before it.
        has_from: bool,
    },
    /// It says that it is the runner's, in a form that the runner does not write.
    Malformed(MessageError),
    /// A person's.
    Person,
    /// Of an agent's session.
    Agent {
        /// Whether its message reads like one of the runner's.
        poses: bool,
    },
}

impl Plan {
    /// Sorts the commits of the branch of `run`.
    ///
    /// The run begins after `base`, the commit that the run state at the tip names; where that is not among them, with
    /// its start commit; else with the oldest commit whose parent is known.
    pub fn new(run: &str, base: Option<&str>, heads: Vec<Head>) -> Self {
        let parts = sort(&heads);
        let after_base = base.and_then(|base| heads.iter().position(|head| head.id == base)).map(|at| at + 1);
        let start = || parts.iter().position(|part| is_start(part, run));
        // What the oldest commit changed is not known where its parents are not here.
        let oldest = usize::from(heads.first().is_some_and(|head| !head.parents.is_empty()));
        let first = after_base.or_else(start).unwrap_or_default().max(oldest);
        Self { run: run.to_owned(), heads, parts, first }
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the commits that are looked at.
    pub fn heads(&self) -> &[Head] {
        self.heads.get(self.first..).unwrap_or_default()
    }

    /// Returns the commit before the first that is looked at, where it is here.
    pub fn before(&self) -> Option<&Head> {
        self.first.checked_sub(1).and_then(|at| self.heads.get(at))
    }

    /// Returns whether the first commit that is looked at begins the run.
    pub fn has_start(&self) -> bool {
        self.part(0).is_some_and(|part| is_start(part, &self.run))
    }

    /// Returns whether it begins at an iteration, as a fork does: then files may stand there that no person has accepted.
    pub fn begins_at_iteration(&self) -> bool {
        let before = self.first.checked_sub(1).and_then(|at| self.parts.get(at));
        let is_iteration = |part: &Part| matches!(part.commit(), Some(RunnerCommit::Iteration(_)));
        self.has_start() && before.is_some_and(is_iteration)
    }

    /// Returns whose a commit that is looked at is.
    pub(super) fn part(&self, at: usize) -> Option<&Part> {
        self.parts.get(self.first + at)
    }

    /// Returns the runner's commit before the first that is looked at, where that is one of this run's.
    pub(super) fn runners_before(&self) -> Option<&RunnerCommit> {
        let part = self.parts.get(self.first.checked_sub(1)?)?;
        part.commit().filter(|commit| commit.run() == self.run)
    }
}

impl Part {
    /// Returns what a commit of the runner's says.
    pub(super) fn commit(&self) -> Option<&RunnerCommit> {
        match self {
            Self::Runner { commit, .. } => Some(commit),
            Self::Malformed(_) | Self::Person | Self::Agent { .. } => None,
        }
    }
}

fn is_start(part: &Part, run: &str) -> bool {
    matches!(part.commit(), Some(RunnerCommit::Start(milestone)) if milestone.run == run)
}

fn sort(heads: &[Head]) -> Vec<Part> {
    let mut parts = Vec::with_capacity(heads.len());
    // How many commits come before one, where those before the oldest are one.
    let before = heads.first().and_then(|head| head.parents.first()).into_iter();
    let places: BTreeMap<&str, usize> =
        before.map(|id| (id.as_str(), 0)).chain((1..).zip(heads).map(|(at, head)| (head.id.as_str(), at))).collect();
    // The commit at which the session began whose commits are being passed.
    let mut session: Option<&str> = None;
    for (at, head) in heads.iter().enumerate().rev() {
        session = session.filter(|from| *from != head.id);
        if session.is_some() {
            parts.push(Part::Agent { poses: claims(&head.message) });
            continue;
        }
        parts.push(match RunnerCommit::parse_bytes(&head.message) {
            Ok(commit) => {
                let from = commit.from();
                let known = from.and_then(|from| places.get_key_value(from)).filter(|(_, place)| **place <= at);
                session = known.map(|(id, _)| *id);
                Part::Runner { has_from: from.is_none() || session.is_some(), commit: Box::new(commit) }
            }
            Err(error) if claims(&head.message) => Part::Malformed(error),
            Err(_) => Part::Person,
        });
    }
    parts.reverse();
    parts
}
