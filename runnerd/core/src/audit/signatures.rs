//! Checks that each commit of the runner, including those it makes for people, is signed by a trusted key.
//!
//! The caller names the keys: a branch cannot say who may sign it. Signatures are verified elsewhere; here, any
//! signature not known to be valid counts as invalid.

use std::collections::{BTreeMap, BTreeSet};

use protocol::verify::{AuditReport, AuditRule, AuditSigned};

use super::commit_data::CommitHeader;
use super::findings::AuditFindings;
use super::iteration_number;
use super::person_commits::parse_human_commit;
use super::plan::{AuditPlan, PlannedCommit};

/// Git's verdict on the signature of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureStatus {
    /// Valid, by a named key that may sign commits of that date.
    Valid {
        /// The principal for whom the key was named.
        principal: String,
        /// The key's fingerprint.
        key: String,
    },
    /// Intact, but by a key that was not named, or not for that date.
    UnknownKey {
        /// The key's fingerprint.
        key: String,
    },
    /// Not a signature of this commit, or its key is revoked.
    Invalid,
    /// There is no signature.
    None,
    /// Not an SSH signature, so it cannot be checked.
    Unchecked,
}

impl SignatureStatus {
    /// Returns why the signature does not count; `None` if it does.
    fn describe_fault(&self) -> Option<String> {
        match self {
            Self::Valid { .. } => None,
            Self::UnknownKey { key } if key.is_empty() => Some("a signature of a key that may not".to_owned()),
            Self::UnknownKey { key } => Some(format!("a signature of {key}, which may not")),
            Self::Invalid => Some("a signature of something else, or of a revoked key".to_owned()),
            Self::None => Some("no signature".to_owned()),
            Self::Unchecked => Some("a signature that cannot be checked as one of SSH's".to_owned()),
        }
    }
}

/// Returns the ids of the runner's audited commits, oldest first.
pub fn commits_to_sign(plan: &AuditPlan) -> Vec<String> {
    runner_commits(plan).into_iter().map(|(id, _)| id.to_owned()).collect()
}

/// Reports which of the runner's commits are not signed by a named key. A commit without an entry counts as unsigned.
pub fn report_signatures(plan: &AuditPlan, signatures: &BTreeMap<String, SignatureStatus>, report: &mut AuditReport) {
    let mut findings = AuditFindings::default();
    let all = runner_commits(plan)
        .into_iter()
        .map(|(id, iter)| ((id, iter), signatures.get(id).unwrap_or(&SignatureStatus::None)));
    let signed = count_signatures(all, |(id, iter), fault| {
        findings.begin_commit(id, iter);
        findings.add_violation(AuditRule::Signed, "signature", "a signature of a key that may sign", fault);
    });
    report.findings.extend(findings.into_findings());
    report.signed = Some(signed);
}

/// Counts the valid signatures and their principals, and reports each other one.
pub(super) fn count_signatures<'a, T>(
    all: impl IntoIterator<Item = (T, &'a SignatureStatus)>,
    mut on_fault: impl FnMut(T, &str),
) -> AuditSigned {
    let mut signed = AuditSigned::default();
    let mut by = BTreeSet::new();
    for (of, signature) in all {
        signed.commits += 1;
        if let Some(fault) = signature.describe_fault() {
            on_fault(of, &fault);
        }
        if let SignatureStatus::Valid { principal, key } = signature {
            signed.held += 1;
            by.insert(format!("{principal} {key}"));
        }
    }
    signed.by = by.into_iter().collect();
    signed
}

/// Returns the commits made by the runner: its own, each with its iteration if it ends one, and those made for people,
/// which name the command in any form that git recognizes. A person's own commits have no such trailer.
fn runner_commits(plan: &AuditPlan) -> Vec<(&str, Option<u32>)> {
    let iteration_of = |at: usize, head: &CommitHeader| match plan.planned_commit(at)? {
        PlannedCommit::Runner { commit, .. } => Some(iteration_number(commit)),
        PlannedCommit::Person => parse_human_commit(head).map(|_| None),
        PlannedCommit::Malformed(_) | PlannedCommit::Agent { .. } => None,
    };
    plan.commits()
        .iter()
        .enumerate()
        .filter_map(|(at, head)| Some((head.id.as_str(), iteration_of(at, head)?)))
        .collect()
}
