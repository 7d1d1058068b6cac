//! The branch of a run, as landing reads it: whose each commit is, what it changed, and whether an audit finds it right.

use std::collections::BTreeSet;

use protocol::error::ErrorData;
use protocol::verify::{AuditReport, Severity};
use runner_core::audit::{Head, Plan};
use runner_core::landing::{self, ChainCommit, LANDED, Lacks, Landed, Question, Refusal};

use super::{LandError, Site};
use crate::git::{Id, Repository};
use crate::verify::{self, Target};

/// A run's branch.
#[derive(Debug)]
pub(super) struct Branch {
    /// Which.
    pub(super) target: Target,
    /// Its commits.
    pub(super) plan: Plan,
}

/// What a branch lacks of a run, and what is known of both.
#[derive(Debug)]
pub(super) struct Missing {
    /// What it lacks.
    pub(super) lacks: Lacks,
    /// The commits that say what has landed, newest first, with what they say.
    pub(super) landed: Vec<(Id, Vec<Landed>)>,
    /// The commit that the first one which the branch lacks stands on.
    pub(super) before: Option<String>,
}

impl Branch {
    /// Reads the branch of the run that is meant.
    pub(super) fn read(site: &Site<'_>, wanted: &str) -> Result<Self, LandError> {
        let target = verify::target(site.repository, Some(wanted)).map_err(as_landing)?;
        let plan = verify::plan(site.repository, &target, site.stop)?;
        Ok(Self { target, plan })
    }

    /// Returns the id of the run.
    pub(super) fn run(&self) -> &str {
        &self.target.run
    }

    /// Refuses a branch that an audit does not prove; `unproven`: a part of it may stay unseen. `live` is the run of which a
    /// session is at work.
    pub(super) fn refuse_unproven(
        &self,
        site: &Site<'_>,
        (unproven, live): (bool, Option<&str>),
    ) -> Result<(), LandError> {
        let report = verify::verify(site.repository, &self.target, live == Some(self.run()), site.stop)?;
        match why_not_proven(&report) {
            Some((_, true)) if unproven => Ok(()),
            Some((why, is_unseen)) => Err(Refusal::NotProven { run: self.run().to_owned(), why, is_unseen }.into()),
            None => Ok(()),
        }
    }

    /// Says why an audit of the branch does not prove it up to one of its commits, and whether that is only for what could not
    /// be seen.
    pub(super) fn why_not_proven_at(&self, report: &AuditReport, commit: &str) -> Option<(String, bool)> {
        let place = |id: &str| self.plan.all().iter().position(|head| head.id == id);
        let at = place(commit);
        // What belongs to no commit counts everywhere.
        let findings = report.findings.iter().filter(|found| place(&found.commit) <= at).cloned().collect();
        why_not_proven(&AuditReport { findings, ..report.clone() })
    }

    /// Finds what `onto` lacks of the run.
    pub(super) fn missing(&self, repository: &Repository, onto: &Id) -> Result<Missing, LandError> {
        let beyond: BTreeSet<String> =
            repository.first_parents_not_in(&self.target.tip, onto)?.iter().map(Id::to_string).collect();
        let heads = self.plan.all();
        let of_other_rules = self.plan.of_other_rules().find(|(at, _)| beyond.contains(&heads[*at].id));
        if let Some((at, why)) = of_other_rules {
            let (run, commit, why) = (self.run().to_owned(), heads[at].id.clone(), why.clone());
            return Err(Refusal::Rules { run, commit, why }.into());
        }
        let is_runners = |at: usize| self.plan.whose(at).is_some_and(|whose| whose.runners().is_some());
        // What stands before the first start is of no run, though the branch may not have it.
        let first =
            (0..heads.len()).find(|at| beyond.contains(&heads[*at].id) && is_runners(*at)).unwrap_or(heads.len());
        let mut commits = Vec::new();
        for (at, head) in heads.iter().enumerate().skip(first) {
            commits.push(self.commit(repository, at, head)?);
        }
        let before = first.checked_sub(1).and_then(|at| heads.get(at));
        let stands_on = before.map(|head| head.id.clone());
        let code = before.map(|head| code(repository, head)).transpose()?;
        let before = before.zip(code.as_deref()).map(|(head, code)| (head.id.as_str(), code));
        let landed: Vec<(Id, Vec<Landed>)> = repository
            .told_of_beyond(onto, Some(&self.target.tip), LANDED)?
            .into_iter()
            .map(|(id, message)| (id, landing::landed(&message)))
            .collect();
        let named: Vec<Landed> = landed.iter().flat_map(|(_, landed)| landed.clone()).collect();
        let lacks = landing::lacks(&Question { run: self.run(), commits: &commits, before, landed: &named })?;
        Ok(Missing { lacks, landed, before: stands_on })
    }

    fn commit<'a>(&'a self, repository: &Repository, at: usize, head: &'a Head) -> Result<ChainCommit<'a>, LandError> {
        let whose = self.plan.whose(at).unwrap_or(runner_core::audit::Whose::Agent);
        Ok(ChainCommit { id: &head.id, code: code(repository, head)?, author: author(head).0, whose })
    }

    /// Returns the commit with this id among those of the branch.
    pub(super) fn head(&self, id: &str) -> Option<&Head> {
        self.plan.all().iter().find(|head| head.id == id)
    }

    /// Returns what commits between two on this branch have merged besides, the second included.
    pub(super) fn merged_between(&self, base: &str, last: &str) -> Vec<Id> {
        let heads = self.plan.all();
        let from = heads.iter().position(|head| head.id == base).map_or(0, |at| at + 1);
        let to = heads.iter().position(|head| head.id == last).map_or(heads.len(), |at| at + 1);
        let others = heads.get(from..to).unwrap_or_default().iter().flat_map(|head| head.parents.iter().skip(1));
        others.filter_map(|parent| parent.parse().ok()).collect()
    }
}

/// Returns the author of a commit as `Name <address>`, and the whole line with the time.
pub(super) fn author(head: &Head) -> (String, String) {
    let header = String::from_utf8_lossy(&head.header);
    let line = header.lines().find_map(|line| line.strip_prefix("author ")).unwrap_or_default().to_owned();
    let who = line.rfind('>').map_or_else(|| line.clone(), |end| line[..=end].to_owned());
    (who, line)
}

fn code(repository: &Repository, head: &Head) -> Result<String, LandError> {
    let id = head.id.parse().map_err(|_| verify::VerifyError::NoCommit(head.id.clone()))?;
    Ok(repository.code_of(&id)?.to_string())
}

/// Says why a branch is not proven, and whether that is only for what could not be seen.
fn why_not_proven(report: &AuditReport) -> Option<(String, bool)> {
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
fn as_landing(error: ErrorData) -> ErrorData {
    let hint = error.hint.clone().map(|hint| hint.replace("runnerctl verify --run ", "runnerctl land "));
    ErrorData { hint, ..error }
}
