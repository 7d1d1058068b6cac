//! Bringing a result home: which commits of a run's branch become which commits of another, what they say, and what is
//! refused.
//!
//! Commits come in as data, and a plan goes out. Merging, guards and references are the daemon's.

pub mod cuts;
pub(crate) mod harmless;
pub mod message;
pub mod refusal;
pub mod train;

use std::collections::BTreeSet;

use protocol::doctor::LANDING_GIT;

use self::cuts::{Cut, cuts};
pub use self::message::{LANDED, Landed, LandedHead, LandedMessage, NO_NODE, Words, landed, merged_by};
pub use self::refusal::Refusal;
use crate::audit::{Plan, Whose};
use crate::git_version::is_older;
use crate::message::RunnerCommit;

/// Refuses a git that cannot merge trees, by the version that it says.
pub fn refuse_old_git(version: &str) -> Result<(), Refusal> {
    if is_older(version, LANDING_GIT) { Err(Refusal::OldGit { version: version.to_owned() }) } else { Ok(()) }
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
    pub whose: Whose<'a>,
}

/// What a branch is asked of a run before anything is merged.
#[derive(Debug)]
pub struct Question<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// Its commits that the branch has not, on first parents, oldest first.
    pub commits: &'a [ChainCommit<'a>],
    /// The id and the code of the commit before them; none where they begin with a root.
    pub before: Option<(&'a str, &'a str)>,
    /// What the branch says that it has landed.
    pub landed: &'a [Landed],
}

/// What is to be landed of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// The commit that the first merge begins from.
    pub base: String,
    /// What becomes a commit, oldest first; not empty.
    pub cuts: Vec<Cut>,
    /// The place among these of the last that changes a file.
    pub last: usize,
    /// How many commits with changes come after the last of them: they do not land.
    pub left: usize,
}

/// What a branch lacks of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lacks {
    /// This.
    Something(Landing),
    /// Nothing: it has landed, by the commits that say so, the newest last.
    Nothing,
}

/// Decides what is to be landed of a run.
///
/// What has landed before is known by the commits that say so, as far as they name commits of this run's branch: landing
/// goes on behind the newest of them.
pub fn lacks(question: &Question<'_>) -> Result<Lacks, Refusal> {
    let Question { run, commits, before, landed } = question;
    let named: BTreeSet<&str> = landed.iter().map(|landed| landed.commit.as_str()).collect();
    let newest = commits.iter().rposition(|commit| named.contains(commit.id));
    let rest = &commits[newest.map_or(0, |at| at + 1)..];
    let base = match newest {
        Some(at) => Some((commits[at].id, commits[at].code.as_str())),
        None => *before,
    };
    let Some((base, code)) = base else { return Err(Refusal::Unrelated { run: (*run).to_owned() }) };
    if let Some(on) = unlanded(run, rest) {
        return Err(Refusal::BeginsOn { run: (*run).to_owned(), on });
    }
    let cuts = cuts(rest, code);
    let Some(last) = cuts.last() else {
        let is_there = newest.is_some() || rest.is_empty();
        return if is_there { Ok(Lacks::Nothing) } else { Err(Refusal::NothingPassed { run: (*run).to_owned() }) };
    };
    let left = changing(&rest[last.at + 1..], &rest[last.at].code);
    let codes: Vec<&str> = std::iter::once(code).chain(cuts.iter().map(|cut| rest[cut.at].code.as_str())).collect();
    let last = codes.windows(2).rposition(|pair| pair[0] != pair[1]).unwrap_or_default();
    Ok(Lacks::Something(Landing { base: base.to_owned(), left, last, cuts }))
}

/// Returns the run whose leaves are among these commits, if one of another than `run` is.
fn unlanded(run: &str, commits: &[ChainCommit<'_>]) -> Option<String> {
    let passed = commits.iter().filter_map(|commit| commit.whose.runners()?.accepted());
    passed.map(|receipt| &receipt.run).find(|of| *of != run).cloned()
}

/// Counts the commits that have other files than the one before.
fn changing(commits: &[ChainCommit<'_>], before: &str) -> usize {
    let before = std::iter::once(before).chain(commits.iter().map(|commit| commit.code.as_str()));
    commits.iter().zip(before).filter(|(commit, before)| commit.code != *before).count()
}

/// Returns the runs whose commits are among those of a plan, besides its own, oldest first.
pub fn begins_on(plan: &Plan) -> Vec<String> {
    let mut runs: Vec<String> = Vec::new();
    for at in 0..plan.all().len() {
        let run = plan.whose(at).and_then(super::audit::Whose::runners).map(RunnerCommit::run);
        if let Some(run) = run.filter(|run| *run != plan.run() && !runs.iter().any(|known| known == run)) {
            runs.push(run.to_owned());
        }
    }
    runs
}
