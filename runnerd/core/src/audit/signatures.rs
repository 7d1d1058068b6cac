//! Whether each commit of the runner's, those that it makes for people included, is signed by a key that was named.
//!
//! Whoever asks names the keys: a branch does not say who may sign it. What a signature is worth is said elsewhere; here what
//! is not known to hold does not.

use std::collections::{BTreeMap, BTreeSet};

use protocol::verify::{AuditReport, AuditRule, AuditSigned};

use super::findings::Findings;
use super::link::Head;
use super::number;
use super::people_commits::human;
use super::plan::{Part, Plan};

/// What git says of the signature of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signature {
    /// It is of a key that was named, which may sign commits of that date.
    Holds {
        /// Whom the key was named for.
        principal: String,
        /// The key's fingerprint.
        key: String,
    },
    /// It is whole, and of a key that was not named, or not for that date.
    Foreign {
        /// The key's fingerprint.
        key: String,
    },
    /// It is not of what it is said to be of, or its key is revoked.
    Broken,
    /// There is none.
    None,
    /// It cannot be checked: it is none of SSH's.
    Unchecked,
}

impl Signature {
    /// Says why it does not hold.
    fn fault(&self) -> Option<String> {
        match self {
            Self::Holds { .. } => None,
            Self::Foreign { key } if key.is_empty() => Some("a signature of a key that may not".to_owned()),
            Self::Foreign { key } => Some(format!("a signature of {key}, which may not")),
            Self::Broken => Some("a signature of something else, or of a revoked key".to_owned()),
            Self::None => Some("no signature".to_owned()),
            Self::Unchecked => Some("a signature that cannot be checked as one of SSH's".to_owned()),
        }
    }
}

/// Returns the ids of the commits of the runner's that are looked at, oldest first.
pub fn to_be_signed(plan: &Plan) -> Vec<String> {
    runners(plan).into_iter().map(|(id, _)| id.to_owned()).collect()
}

/// Adds to a report which commits of the runner's are not signed by a key that was named. Nothing said of one is no signature.
pub fn signed(plan: &Plan, said: &BTreeMap<String, Signature>, report: &mut AuditReport) {
    let mut findings = Findings::default();
    let all = runners(plan).into_iter().map(|(id, iter)| ((id, iter), said.get(id).unwrap_or(&Signature::None)));
    let signed = tally(all, |(id, iter), fault| {
        findings.turn_to(id, iter);
        findings.violation(AuditRule::Signed, "signature", ("a signature of a key that may sign", fault));
    });
    report.findings.extend(findings.into_findings());
    report.signed = Some(signed);
}

/// Counts the signatures that hold and tells whose they are; of each other one it says what is wrong.
pub(super) fn tally<'a, T>(
    all: impl IntoIterator<Item = (T, &'a Signature)>,
    mut amiss: impl FnMut(T, &str),
) -> AuditSigned {
    let mut signed = AuditSigned::default();
    let mut by = BTreeSet::new();
    for (of, signature) in all {
        signed.commits += 1;
        if let Some(fault) = signature.fault() {
            amiss(of, &fault);
        }
        if let Signature::Holds { principal, key } = signature {
            signed.held += 1;
            by.insert(format!("{principal} {key}"));
        }
    }
    signed.by = by.into_iter().collect();
    signed
}

/// Returns the commits that the runner has made: its own, each with its iteration where it is one's end, and those for people,
/// which name the command, in whatever form git reads that. A person's own has no such name.
fn runners(plan: &Plan) -> Vec<(&str, Option<u32>)> {
    let made = |at: usize, head: &Head| match plan.part(at)? {
        Part::Runner { commit, .. } => Some(number(commit)),
        Part::Person => human(head).map(|_| None),
        Part::Malformed(_) | Part::Agent { .. } => None,
    };
    plan.heads().iter().enumerate().filter_map(|(at, head)| Some((head.id.as_str(), made(at, head)?))).collect()
}
