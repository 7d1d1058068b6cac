//! The branch of a run, as landing reads it: whose each commit is, what it changed, and whether an audit finds it right.

use std::collections::BTreeSet;

use protocol::error::ErrorData;
use protocol::verify::{AuditReport, Severity};
use runner_core::audit::{CommitHeader, AuditPlan};
use runner_core::landing::{self, ChainCommit, LANDED, MissingCommits, LandedTrailer, LandQuery, LandingRefusal};

use super::{LandError, LandContext};
use crate::git::{Id, Repository};
use crate::verify::{self, VerifyTarget};

/// A run's branch.
#[derive(Debug)]
pub(super) struct RunBranch {
    /// Which.
    pub(super) target: VerifyTarget,
    /// Its commits.
    pub(super) plan: AuditPlan,
}

/// What a branch lacks of a run, and what is known of both.
#[derive(Debug)]
pub(super) struct BranchGap {
    /// What it lacks.
    pub(super) commits: MissingCommits,
    /// The commits that say what has landed, newest first, with what they say.
    pub(super) landed_commits: Vec<(Id, Vec<LandedTrailer>)>,
    /// The commit that the first one which the branch lacks stands on.
    pub(super) base: Option<String>,
}

impl RunBranch {
    /// Reads the branch of the run that is meant.
    pub(super) fn load(site: &LandContext<'_>, run: &str) -> Result<Self, LandError> {
        let target = verify::resolve_target(site.repository, Some(run)).map_err(adapt_hint)?;
        let plan = verify::plan_audit(site.repository, &target, site.stop)?;
        Ok(Self { target, plan })
    }

    /// Returns the id of the run.
    pub(super) fn run(&self) -> &str {
        &self.target.run
    }

    /// Refuses a branch that an audit does not prove; `unproven`: a part of it may stay unseen. `live` is the run of which a
    /// session is at work.
    pub(super) fn check_proven(
        &self,
        site: &LandContext<'_>,
        (allow_unproven, live): (bool, Option<&str>),
    ) -> Result<(), LandError> {
        let report = verify::verify_branch(site.repository, &self.target, live == Some(self.run()), site.stop)?;
        match find_proof_gap(&report) {
            Some((_, true)) if allow_unproven => Ok(()),
            Some((why, is_unseen)) => Err(LandingRefusal::NotProven { run: self.run().to_owned(), why, is_unseen }.into()),
            None => Ok(()),
        }
    }

    /// Says why an audit of the branch does not prove it up to one of its commits, and whether that is only for what could not
    /// be seen.
    pub(super) fn find_proof_gap_at(&self, report: &AuditReport, commit: &str) -> Option<(String, bool)> {
        let place = |id: &str| self.plan.all_commits().iter().position(|head| head.id == id);
        let at = place(commit);
        // What belongs to no commit counts everywhere.
        let findings = report.findings.iter().filter(|found| place(&found.commit) <= at).cloned().collect();
        find_proof_gap(&AuditReport { findings, ..report.clone() })
    }

    /// Finds what `onto` lacks of the run.
    pub(super) fn find_missing(&self, repository: &Repository, onto: &Id) -> Result<BranchGap, LandError> {
        let beyond: BTreeSet<String> =
            repository.first_parents_not_in(&self.target.tip, onto)?.iter().map(Id::to_string).collect();
        let heads = self.plan.all_commits();
        let other_rules = self.plan.commits_of_other_rules().find(|(at, _)| beyond.contains(&heads[*at].id));
        if let Some((at, why)) = other_rules {
            let (run, commit, why) = (self.run().to_owned(), heads[at].id.clone(), why.clone());
            return Err(LandingRefusal::Rules { run, commit, why }.into());
        }
        let is_runners = |at: usize| self.plan.owner(at).is_some_and(|whose| whose.runner_commit().is_some());
        // What stands before the first start is of no run, though the branch may not have it.
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
        let missing = landing::find_missing_commits(&LandQuery { run: self.run(), commits: &commits, before, landed: &named })?;
        Ok(BranchGap { commits: missing, landed_commits: landed, base })
    }

    fn chain_commit<'a>(&'a self, repository: &Repository, at: usize, head: &'a CommitHeader) -> Result<ChainCommit<'a>, LandError> {
        let whose = self.plan.owner(at).unwrap_or(runner_core::audit::CommitOwner::Agent);
        Ok(ChainCommit { id: &head.id, code: code_tree(repository, head)?, author: parse_author(head).0, owner: whose })
    }

    /// Returns the commit with this id among those of the branch.
    pub(super) fn find_commit(&self, id: &str) -> Option<&CommitHeader> {
        self.plan.all_commits().iter().find(|head| head.id == id)
    }

    /// Returns what commits between two on this branch have merged besides, the second included.
    pub(super) fn list_merged_between(&self, base: &str, last: &str) -> Vec<Id> {
        let heads = self.plan.all_commits();
        let from = heads.iter().position(|head| head.id == base).map_or(0, |at| at + 1);
        let to = heads.iter().position(|head| head.id == last).map_or(heads.len(), |at| at + 1);
        let others = heads.get(from..to).unwrap_or_default().iter().flat_map(|head| head.parents.iter().skip(1));
        others.filter_map(|parent| parent.parse().ok()).collect()
    }
}

/// Returns the author of a commit as `Name <address>`, and the whole line with the time.
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

/// Says why a branch is not proven, and whether that is only for what could not be seen.
fn find_proof_gap(report: &AuditReport) -> Option<(String, bool)> {
    let violations: Vec<_> = report.findings.iter().filter(|it| it.severity == Severity::Violation).collect();
    if let Some(first) = violations.first() {
        let iter = first.iter.map(|iter| format!("iteration {iter:04}, ")).unwrap_or_default();
        let more = match violations.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let (rule, at, expected, found) = (first.rule, &first.at, &first.expected, &first.found);
        return Some((format!("{iter}{rule}, {at}: expected {expected}, found {found}{more}"), false));
    }
    report.unseen.first().map(|unseen| (format!("not checked: {unseen}"), true))
}

/// A hint of the audit's, for who lands.
fn adapt_hint(error: ErrorData) -> ErrorData {
    let hint = error.hint.clone().map(|hint| hint.replace("runnerctl verify --run ", "runnerctl land "));
    ErrorData { hint, ..error }
}
