//! Collects people's decisions on finished nodes; checks whether each pass has one, and whether each is signed by a
//! trusted key.
//!
//! The caller names the keys. What a signature covers follows from the branch alone: a decision's claims about itself
//! are not trusted.

use std::collections::BTreeSet;

use protocol::review::{PendingReview, ReviewStatement};
use protocol::state::Feedback;
use protocol::verify::{AuditPass, AuditReport, AuditReview, AuditRule};
use protocol::words::{ReviewVerdict, Role};

use super::evidence::find_failure;
use super::findings::AuditFindings;
use super::signatures::{SignatureStatus, count_signatures};
use crate::message::Receipt;

/// Returns a person's decision on `on`, if the receipt of a commit records one.
pub(super) fn read_review(
    receipt: &Receipt,
    commit: String,
    on: &PendingReview,
    after: &Feedback,
) -> Option<AuditReview> {
    let review = receipt.review.as_ref().filter(|_| receipt.role == Role::Human)?;
    let verdict = if review.accepted { ReviewVerdict::Accept } else { ReviewVerdict::Reject };
    let failure = find_failure(after, &receipt.node, receipt.iter).filter(|_| !review.accepted);
    let reason = failure.map_or("", |failure| failure.text.as_str());
    Some(AuditReview {
        commit,
        iter: receipt.iter,
        node: receipt.node.clone(),
        verdict,
        text: ReviewStatement { review: on, verdict, reason }.to_string(),
        signature: receipt.signature.as_ref().map(ToString::to_string),
    })
}

/// Reports which leaves have passed without a person's decision, and which decisions are not signed by a named key;
/// `signatures` has the signature status of each, in order.
pub fn report_reviews(signatures: &[SignatureStatus], report: &mut AuditReport) {
    let mut findings = AuditFindings::default();
    let by_people: BTreeSet<&str> = report.reviews.iter().map(|review| review.commit.as_str()).collect();
    for AuditPass { node, iter, commit } in &report.passes {
        if by_people.contains(commit.as_str()) {
            continue;
        }
        findings.begin_commit(commit, Some(*iter));
        let at = format!("node {node}");
        findings.add_violation(AuditRule::Signed, &at, "an approval by a person who may review", "a pass without one");
    }
    let signatures = signatures.iter().chain(std::iter::repeat(&SignatureStatus::None));
    let signed = count_signatures(report.reviews.iter().zip(signatures), |review, fault| {
        findings.begin_commit(&review.commit, Some(review.iter));
        findings.add_violation(AuditRule::Signed, "Runner-Signature", "a signature of a person who may review", fault);
    });
    report.findings.extend(findings.into_findings());
    report.reviewed = Some(signed);
}
