//! What people have said of finished nodes, and whether each word is signed by a key that was named.
//!
//! Whoever asks names the keys. What a signature is of follows from the branch alone: nothing that a word says of itself is
//! believed.

use protocol::review::{PendingReview, Word};
use protocol::state::Feedback;
use protocol::verify::{AuditReport, AuditReview, AuditRule};
use protocol::words::{ReviewVerdict, Role};

use super::findings::Findings;
use super::signatures::{Signature, tally};
use crate::message::Receipt;

/// Returns a person's word, where the receipt of a commit tells one; `on` is the commit of the iteration that it is about.
pub(super) fn review((receipt, commit): (&Receipt, &str), on: &str, after: &Feedback) -> Option<AuditReview> {
    let review = receipt.review.as_ref().filter(|_| receipt.role == Role::Human)?;
    let verdict = if review.accepted { ReviewVerdict::Accept } else { ReviewVerdict::Reject };
    let told = after.nodes.get(&receipt.node).and_then(|told| told.failure.as_ref()).filter(|_| !review.accepted);
    let reason = told.map_or("", |failure| failure.text.as_str());
    let on = PendingReview {
        run: receipt.run.clone(),
        node: receipt.node.clone(),
        iteration: receipt.iter.saturating_sub(1),
        commit: on.to_owned(),
    };
    Some(AuditReview {
        commit: commit.to_owned(),
        iter: receipt.iter,
        node: receipt.node.clone(),
        verdict,
        text: Word { on: &on, verdict, reason }.to_string(),
        signature: receipt.signature.as_ref().map(ToString::to_string),
    })
}

/// Adds to a report which of its reviews are not signed by a key that was named; `said` has what is known of each, in order.
pub fn reviewed(said: &[Signature], report: &mut AuditReport) {
    let mut findings = Findings::default();
    let said = said.iter().chain(std::iter::repeat(&Signature::None));
    let signed = tally(report.reviews.iter().zip(said), |review, fault| {
        findings.turn_to(&review.commit, Some(review.iter));
        findings.violation(AuditRule::Signed, "Runner-Signature", ("a signature of a person who may review", fault));
    });
    report.findings.extend(findings.into_findings());
    report.reviewed = Some(signed);
}
