//! The branch of a run as landing sees it: who made each commit, what it changed, and whether an audit finds it sound.

use std::collections::BTreeSet;

use protocol::error::ErrorData;
use protocol::verify::{AuditReport, Severity};
use runner_core::audit::{AuditPlan, CommitHeader};
use runner_core::landing::{self, ChainCommit, LANDED, LandQuery, LandedTrailer, LandingRefusal, MissingCommits};
use runner_git::{GitError, Id, Repository};
use tokio_util::sync::CancellationToken;

use super::{LandContext, LandError};
use crate::verify::{self, VerifyTarget};

/// A run's branch, read for landing.
#[derive(Debug)]
pub(super) struct RunBranch {
    /// The run and its last commit.
    pub(super) target: VerifyTarget,
    /// Its commits, assigned to their makers.
    pub(super) plan: AuditPlan,
}

/// What a branch lacks of a run.
#[derive(Debug)]
pub(super) struct BranchGap {
    /// The commits it lacks.
    pub(super) commits: MissingCommits,
    /// The commits of the branch that record landings, newest first, with their trailers.
    pub(super) landed_commits: Vec<(Id, Vec<LandedTrailer>)>,
    /// The parent of the first missing commit.
    pub(super) base: Option<String>,
}

/// Whether a commit has everything of a run, so that there is nothing to land.
pub fn has_landed(
    repository: &Repository,
    target: &VerifyTarget,
    onto: &Id,
    stop: &CancellationToken,
) -> Result<bool, LandError> {
    if repository.is_ancestor(&target.tip, onto)? {
        return Ok(true);
    }
    match find_gap(repository, target, onto, stop) {
        Ok(gap) => Ok(gap.commits == MissingCommits::AlreadyLanded),
        Err(LandError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a run has something to land that a commit lacks: it has landed only in part, or not at all, and a task of it
/// has passed since.
pub fn has_rest(
    repository: &Repository,
    target: &VerifyTarget,
    onto: &Id,
    stop: &CancellationToken,
) -> Result<bool, LandError> {
    if repository.is_ancestor(&target.tip, onto)? {
        return Ok(false);
    }
    match find_gap(repository, target, onto, stop) {
        Ok(gap) => Ok(gap.commits != MissingCommits::AlreadyLanded),
        Err(LandError::Refused(LandingRefusal::NothingPassed { .. })) => Ok(false),
        Err(LandError::Refused(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns the newest commit of a branch that has landed commits of a run, according to its message.
pub fn find_landed_commit(repository: &Repository, run: &str, onto: &Id) -> Result<Option<Id>, GitError> {
    let landed = repository.find_commits_mentioning(onto, None, LANDED)?;
    let is_of_run = |message: &str| landing::parse_landed(message).iter().any(|landed| landed.run == run);
    Ok(landed.into_iter().find(|(_, message)| is_of_run(message)).map(|(id, _)| id))
}

fn find_gap(
    repository: &Repository,
    target: &VerifyTarget,
    onto: &Id,
    stop: &CancellationToken,
) -> Result<BranchGap, LandError> {
    let branch = RunBranch { target: target.clone(), plan: verify::plan_audit(repository, target, stop)? };
    branch.find_missing(repository, onto)
}

impl RunBranch {
    /// Reads the branch of the run that `run` refers to.
    pub(super) fn load(site: &LandContext<'_>, run: &str) -> Result<Self, LandError> {
        let target = verify::resolve_target(site.repository, Some(run), "land").map_err(adapt_hint)?;
        let plan = verify::plan_audit(site.repository, &target, site.stop)?;
        Ok(Self { target, plan })
    }

    /// Returns the id of the run.
    pub(super) fn run(&self) -> &str {
        &self.target.run
    }

    /// Fails if an audit does not prove the branch; with `allow_unproven`, a part of it may be unverifiable. `live` is
    /// the run with a session in progress.
    pub(super) fn check_proven(
        &self,
        site: &LandContext<'_>,
        allow_unproven: bool,
        live: Option<&str>,
    ) -> Result<(), LandError> {
        let report = verify::verify_branch(site.repository, &self.target, live == Some(self.run()), site.stop)?;
        match find_proof_gap(&report) {
            Some((_, true)) if allow_unproven => Ok(()),
            Some((why, is_unseen)) => {
                Err(LandingRefusal::NotProven { run: self.run().to_owned(), why, is_unseen }.into())
            }
            None => Ok(()),
        }
    }

    /// Explains why an audit does not prove the branch up to one of its commits, and returns whether that is only
    /// because something could not be checked.
    pub(super) fn find_proof_gap_at(&self, report: &AuditReport, commit: &str) -> Option<(String, bool)> {
        let place = |id: &str| self.plan.all_commits().iter().position(|head| head.id == id);
        let at = place(commit);
        // Findings without a commit always count.
        let findings = report.findings.iter().filter(|found| place(&found.commit) <= at).cloned().collect();
        find_proof_gap(&AuditReport { findings, ..report.clone() })
    }

    /// Determines what `onto` lacks of the run.
    pub(super) fn find_missing(&self, repository: &Repository, onto: &Id) -> Result<BranchGap, LandError> {
        let beyond: BTreeSet<String> =
            repository.first_parents_not_in(&self.target.tip, onto)?.iter().map(Id::to_string).collect();
        let heads = self.plan.all_commits();
        let other_rules = self.plan.commits_of_other_rules().find(|(at, _)| beyond.contains(&heads[*at].id));
        if let Some((at, why)) = other_rules {
            let run = self.run().to_owned();
            let commit = heads[at].id.clone();
            let why = why.clone();
            return Err(LandingRefusal::Rules { run, commit, why }.into());
        }
        let is_runners = |at: usize| self.plan.owner(at).is_some_and(|whose| whose.runner_commit().is_some());
        // Commits before the first start belong to no run, even if the branch lacks them.
        let first =
            (0..heads.len()).find(|at| beyond.contains(&heads[*at].id) && is_runners(*at)).unwrap_or(heads.len());
        let mut commits = Vec::new();
        for (at, head) in heads.iter().enumerate().skip(first) {
            commits.push(self.chain_commit(repository, at, head)?);
        }
        let before = first.checked_sub(1).and_then(|at| heads.get(at));
        let base = before.map(|head| head.id.clone());
        let code = before.map(|head| code_tree(repository, head)).transpose()?;
        let before = before.zip(code.as_deref()).map(|(head, code)| (head.id.as_str(), code));
        let landed: Vec<(Id, Vec<LandedTrailer>)> = repository
            .find_commits_mentioning(onto, Some(&self.target.tip), LANDED)?
            .into_iter()
            .map(|(id, message)| (id, landing::parse_landed(&message)))
            .collect();
        let named: Vec<LandedTrailer> = landed.iter().flat_map(|(_, landed)| landed.clone()).collect();
        let missing =
            landing::find_missing_commits(&LandQuery { run: self.run(), commits: &commits, before, landed: &named })?;
        Ok(BranchGap { commits: missing, landed_commits: landed, base })
    }

    fn chain_commit<'a>(
        &'a self,
        repository: &Repository,
        at: usize,
        head: &'a CommitHeader,
    ) -> Result<ChainCommit<'a>, LandError> {
        let whose = self.plan.owner(at).unwrap_or(runner_core::audit::CommitOwner::Agent);
        Ok(ChainCommit { id: &head.id, code: code_tree(repository, head)?, author: parse_author(head).0, owner: whose })
    }

    /// Returns this branch's commit with this id.
    pub(super) fn find_commit(&self, id: &str) -> Option<&CommitHeader> {
        self.plan.all_commits().iter().find(|head| head.id == id)
    }

    /// Returns the additional parents merged by the commits after `base`, up to and including `last`.
    pub(super) fn list_merged_between(&self, base: &str, last: &str) -> Vec<Id> {
        let heads = self.plan.all_commits();
        let from = heads.iter().position(|head| head.id == base).map_or(0, |at| at + 1);
        let to = heads.iter().position(|head| head.id == last).map_or(heads.len(), |at| at + 1);
        let others = heads.get(from..to).unwrap_or_default().iter().flat_map(|head| head.parents.iter().skip(1));
        others.filter_map(|parent| parent.parse().ok()).collect()
    }
}

/// Returns a commit's author as `Name <address>`, and the whole line with the time.
pub(super) fn parse_author(head: &CommitHeader) -> (String, String) {
    let header = String::from_utf8_lossy(&head.headers);
    let line = header.lines().find_map(|line| line.strip_prefix("author ")).unwrap_or_default().to_owned();
    let who = line.rfind('>').map_or_else(|| line.clone(), |end| line[..=end].to_owned());
    (who, line)
}

fn code_tree(repository: &Repository, head: &CommitHeader) -> Result<String, LandError> {
    let id = head.id.parse().map_err(|_| verify::VerifyError::InvalidCommit(head.id.clone()))?;
    Ok(repository.code_tree(&id)?.to_string())
}

/// Explains why a branch is not proven, and returns whether that is only because something could not be checked.
fn find_proof_gap(report: &AuditReport) -> Option<(String, bool)> {
    let violations: Vec<_> = report.findings.iter().filter(|finding| finding.severity == Severity::Violation).collect();
    if let Some(first) = violations.first() {
        let iter = first.iter.map(|iter| format!("iteration {iter:04}, ")).unwrap_or_default();
        let more = match violations.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let rule = first.rule;
        let at = &first.at;
        let expected = &first.expected;
        let found = &first.found;
        return Some((format!("{iter}{rule}, {at}: expected {expected}, found {found}{more}"), false));
    }
    report.unseen.first().map(|unseen| (format!("not checked: {unseen}"), true))
}

/// Rewords a hint of the audit for a person who is landing.
fn adapt_hint(error: ErrorData) -> ErrorData {
    let hint = error.hint.clone().map(|hint| hint.replace("runnerctl verify --run ", "runnerctl land "));
    ErrorData { hint, ..error }
}
