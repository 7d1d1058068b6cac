//! Audits every branch of a run in the repositories of a folder, as `runnerctl verify` does, and lists those that do
//! not follow the rules.
//!
//! Separate from the test kit, whose dependencies are rebuilt whenever the daemon changes. It does not use a daemon's
//! state, like another machine.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use protocol::verify::{AuditFinding, AuditReport, Severity};
use runner_git::{GitError, Repository};
use runnerd::verify::{VerifyTarget, verify_branch};
use tokio_util::sync::CancellationToken;

const BRANCH_PREFIX: &str = "refs/heads/runner/";

fn main() -> anyhow::Result<()> {
    let [_, folder] =
        <[OsString; 2]>::try_from(env::args_os().collect::<Vec<_>>()).ok().context("one folder is wanted")?;
    for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))? {
        let path = entry.with_context(|| format!("listing {}", folder.display()))?.path();
        audit_repository(&path).with_context(|| format!("auditing {}", path.display()))?;
    }
    Ok(())
}

/// Fails if a branch of this repository does not follow the rules, or cannot be read.
fn audit_repository(path: &Path) -> anyhow::Result<()> {
    let repository = match Repository::discover_read_only(path) {
        Err(GitError::NoRepository { .. }) => return Ok(()),
        found => found?,
    };
    for (name, commit) in repository.list_refs()? {
        let Some(run) = name.strip_prefix(BRANCH_PREFIX) else { continue };
        let target =
            VerifyTarget { run: run.to_owned(), tip: commit.parse().context("reading the commit of a branch")? };
        let report = verify_branch(&repository, &target, false, &CancellationToken::new())?;
        if let Some(wrong) = describe_problem(&report) {
            bail!("the rules do not make {name}: {wrong}");
        }
    }
    Ok(())
}

/// Returns what is wrong with a branch; that of a run that has only started proves nothing.
fn describe_problem(report: &AuditReport) -> Option<String> {
    let is_violation = |finding: &&AuditFinding| finding.severity == Severity::Violation;
    let violations: Vec<&AuditFinding> = report.findings.iter().filter(is_violation).collect();
    let is_unseen = report.counts.iterations > 0 && !report.unseen.is_empty();
    (is_unseen || !violations.is_empty()).then(|| format!("{violations:#?}, not checked: {:#?}", report.unseen))
}
