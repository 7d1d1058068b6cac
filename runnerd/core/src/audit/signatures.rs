//! Whether each commit of the runner's, those that it makes for people included, is signed by a key that was named.
//!
//! Whoever asks names the keys: a branch does not say who may sign it. What a signature is worth is said elsewhere; here what
//! is not known to hold does not.

use std::collections::{BTreeMap, BTreeSet};

use protocol::verify::{AuditReport, AuditRule, AuditSigned};

use super::findings::AuditFindings;
use super::commit_data::CommitHeader;
use super::iteration_number;
use super::person_commits::parse_human_commit;
use super::plan::{PlannedCommit, AuditPlan};

/// What git says of the signature of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureStatus {
    /// It is of a key that was named, which may sign commits of that date.
    Valid {
        /// Whom the key was named for.
        principal: String,
        /// The key's fingerprint.
        key: String,
    },
    /// It is whole, and of a key that was not named, or not for that date.
    UnknownKey {
        /// The key's fingerprint.
        key: String,
    },
    /// It is not of what it is said to be of, or its key is revoked.
    Invalid,
    /// There is none.
    None,
    /// It cannot be checked: it is none of SSH's.
    Unchecked,
}

impl SignatureStatus {
    /// Says why it does not hold.
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

/// Returns the ids of the commits of the runner's that are looked at, oldest first.
pub fn commits_to_sign(plan: &AuditPlan) -> Vec<String> {
    runner_commits(plan).into_iter().map(|(id, _)| id.to_owned()).collect()
}

/// Adds to a report which commits of the runner's are not signed by a key that was named. Nothing said of one is no signature.
pub fn report_signatures(plan: &AuditPlan, signatures: &BTreeMap<String, SignatureStatus>, report: &mut AuditReport) {
    let mut findings = AuditFindings::default();
    let all = runner_commits(plan).into_iter().map(|(id, iter)| ((id, iter), signatures.get(id).unwrap_or(&SignatureStatus::None)));
    let signed = count_signatures(all, |(id, iter), fault| {
        findings.begin_commit(id, iter);
        findings.add_violation(AuditRule::Signed, "signature", ("a signature of a key that may sign", fault));
    });
    report.findings.extend(findings.into_findings());
    report.signed = Some(signed);
}

/// Counts the signatures that hold and tells whose they are; of each other one it says what is wrong.
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

/// Returns the commits that the runner has made: its own, each with its iteration where it is one's end, and those for people,
/// which name the command, in whatever form git reads that. A person's own has no such name.
fn runner_commits(plan: &AuditPlan) -> Vec<(&str, Option<u32>)> {
    let iteration_of = |at: usize, head: &CommitHeader| match plan.planned_commit(at)? {
        PlannedCommit::Runner { commit, .. } => Some(iteration_number(commit)),
        PlannedCommit::Person => parse_human_commit(head).map(|_| None),
        PlannedCommit::Malformed(_) | PlannedCommit::Agent { .. } => None,
    };
    plan.commits().iter().enumerate().filter_map(|(at, head)| Some((head.id.as_str(), iteration_of(at, head)?))).collect()
}
