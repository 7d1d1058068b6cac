//! A person's review of a finished node: redacted, durable before it is acknowledged, and a separate iteration.
//!
//! What is pending review is decided by `runner_core::run::approval` from the committed state; when the run uses the review
//! is decided by `runner_core::run`.

use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::ReviewReply;
use protocol::review::{PendingReview, ReviewStatement};
use protocol::words::ReviewVerdict;
use runner_core::message::ReviewSignature;
use runner_core::run::approval::{self, Decision};
use runner_core::run::{RequestRefusal, RunRequest};
use tokio::task::block_in_place;

use super::branch_tip::BranchTip;
use super::decide::apply_request;
use crate::ssh_signature::SignedText;
use crate::store::StoreError;
use crate::worker::context::RunContext;
use crate::worker::prepare_error::PrepareError;
use crate::worker::queue::RepoQueue;
use crate::worker::queue_errors::{held_error_data, run_not_found, store_error_data};

/// Accepts a person's review of the pending node of a run, and lets the run continue.
pub(crate) fn take_review(
    queue: &mut RepoQueue,
    run: Option<&str>,
    decision: Decision,
    iter: u32,
    signature: Option<ReviewSignature>,
) -> Result<ReviewReply, ErrorData> {
    if let Some(held) = &queue.held {
        return Err(held_error_data(held));
    }
    let id = queue.resolve_run(run)?.id.clone();
    let original = decision.clone();
    let decision = redact_decision(queue, decision).map_err(|error| store_error_data(&error))?;
    if let Some(signature) = &signature {
        if decision != original {
            let message = "the reason has a secret in it, and what is signed is not changed: leave it out";
            return Err(ErrorData::new(ErrorKind::InvalidRequest, message));
        }
        refuse_wrong_signature(queue, &id, &decision, signature)?;
    }
    let verdict = review_verdict(&decision);
    apply_request(queue, &id, RunRequest::Review { decision, iter, signature })?;
    let run = queue.find_run(&id).ok_or_else(|| run_not_found(&id))?;
    let target = run.uncommitted.word.as_ref().map(|word| word.on.clone()).ok_or_else(|| run_not_found(&id))?;
    Ok(ReviewReply { run: queue.run_summary(run), node: target.node, iteration: target.iter, verdict })
}

/// Returns what is pending review in a run.
pub(crate) fn find_pending_review(queue: &RepoQueue, run: Option<&str>) -> Result<PendingReview, ErrorData> {
    if let Some(held) = &queue.held {
        return Err(held_error_data(held));
    }
    let run = queue.resolve_run(run)?;
    let nothing_to_review = || RequestRefusal::NothingToReview(run.state.status()).to_error_data(&run.id);
    let tip = block_in_place(|| BranchTip::read_tip(&queue.store, run))
        .map_err(|error| error.to_error_data())?
        .ok_or_else(nothing_to_review)?;
    let pending = approval::find_pending(&tip.loaded.run_inputs(&run.uncommitted)).ok_or_else(nothing_to_review)?;
    let commit = block_in_place(|| tip.iteration_commit(pending.iter))
        .map_err(|error| PrepareError::from(error).to_error_data())?;
    let commit = commit.ok_or_else(|| {
        let message =
            format!("the commit of iteration {:04} is not among the last ones of run {}", pending.iter, run.id);
        ErrorData::new(ErrorKind::Fault, message)
    })?;
    Ok(PendingReview { run: run.id.clone(), node: pending.node, iteration: pending.iter, commit: commit.to_string() })
}

/// Refuses a signature that is not of this decision on the pending node.
fn refuse_wrong_signature(
    queue: &RepoQueue,
    run: &str,
    decision: &Decision,
    signature: &ReviewSignature,
) -> Result<(), ErrorData> {
    let pending = find_pending_review(queue, Some(run))?;
    let reason = if let Decision::Reject { reasons } = decision { reasons } else { "" };
    let text = ReviewStatement { review: &pending, verdict: review_verdict(decision), reason }.to_string();
    let signed = SignedText { signature, text: &text };
    match block_in_place(|| signed.signing_key(&queue.store.folder())) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            let message = format!(
                "the signature is not of this decision on task {} of iteration {:04}",
                pending.node, pending.iteration
            );
            Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl status"))
        }
        Err(error) => Err(ErrorData::new(ErrorKind::Fault, format!("ssh-keygen cannot be run: {error}"))),
    }
}

fn review_verdict(decision: &Decision) -> ReviewVerdict {
    match decision {
        Decision::Approve => ReviewVerdict::Accept,
        Decision::Reject { .. } => ReviewVerdict::Reject,
    }
}

/// Redacts known secrets from what gets into the repository.
fn redact_decision(queue: &RepoQueue, decision: Decision) -> Result<Decision, StoreError> {
    let Decision::Reject { reasons } = decision else { return Ok(decision) };
    let secrets = RunContext::find_secrets(&queue.store.load_env()?);
    Ok(Decision::Reject { reasons: secrets.redact(&reasons).into_owned() })
}
