//! A person's word on a finished node: taken without secrets, durable before it is acknowledged, and an iteration of its own.
//!
//! What waits for a word is decided by `runner_core::approval` from what is committed; when the run takes the word is
//! `runner_core::run`'s.

use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::ReviewReply;
use protocol::review::{PendingReview, Word};
use protocol::words::ReviewVerdict;
use runner_core::approval::{self, Decision};
use runner_core::message::WordSignature;
use runner_core::run::{Refusal, Request};
use tokio::task::block_in_place;

use super::ask::ask;
use super::branch_tip::BranchTip;
use crate::ssh_signature::Signed;
use crate::store::StoreError;
use crate::worker::context::RunContext;
use crate::worker::queue::RepoQueue;
use crate::worker::queue::{fault, held_error, not_found};
use crate::worker::unready::Unready;

/// Takes a person's word on the node of a run that waits for it, and lets the run go on.
pub(crate) fn take(
    queue: &mut RepoQueue,
    run: Option<&str>,
    (decision, signature): (Decision, Option<WordSignature>),
) -> Result<ReviewReply, ErrorData> {
    if let Some(held) = &queue.held {
        return Err(held_error(held));
    }
    let id = queue.find(run)?.id.clone();
    let given = decision.clone();
    let decision = clean_word(queue, decision).map_err(|error| fault(&error))?;
    if let Some(signature) = &signature {
        if decision != given {
            let message = "the reason has a secret in it, and what is signed is not changed: leave it out";
            return Err(ErrorData::new(ErrorKind::InvalidRequest, message));
        }
        refuse_foreign(queue, &id, (&decision, signature))?;
    }
    let verdict = verdict(&decision);
    ask(queue, &id, Request::Review { decision, signature })?;
    let run = queue.run(&id).ok_or_else(|| not_found(&id))?;
    let on = run.uncommitted.word.as_ref().map(|word| word.on.clone()).ok_or_else(|| not_found(&id))?;
    Ok(ReviewReply { run: queue.summary(run), node: on.node, iteration: on.iter, verdict })
}

/// Tells what of a run waits for a person's word.
pub(crate) fn pending(queue: &RepoQueue, run: Option<&str>) -> Result<PendingReview, ErrorData> {
    if let Some(held) = &queue.held {
        return Err(held_error(held));
    }
    let run = queue.find(run)?;
    let nothing = || Refusal::NothingToReview(run.state.status()).told(&run.id);
    let tip = block_in_place(|| BranchTip::of(&queue.store, run)).map_err(|error| error.told())?.ok_or_else(nothing)?;
    let on = approval::pending(&tip.loaded.standing(&run.uncommitted)).ok_or_else(nothing)?;
    let commit = block_in_place(|| tip.commit_of(on.iter)).map_err(|error| Unready::from(error).told())?;
    let commit = commit.ok_or_else(|| {
        let message = format!("the commit of iteration {:04} is not among the last ones of run {}", on.iter, run.id);
        ErrorData::new(ErrorKind::Fault, message)
    })?;
    Ok(PendingReview { run: run.id.clone(), node: on.node, iteration: on.iter, commit: commit.to_string() })
}

/// Refuses a signature that is not of this word on what waits.
fn refuse_foreign(
    queue: &RepoQueue,
    run: &str,
    (decision, signature): (&Decision, &WordSignature),
) -> Result<(), ErrorData> {
    let on = pending(queue, Some(run))?;
    let reason = if let Decision::Reject { reasons } = decision { reasons } else { "" };
    let text = Word { on: &on, verdict: verdict(decision), reason }.to_string();
    let signed = Signed { signature, text: &text };
    match block_in_place(|| signed.key(&queue.store.folder())) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            let message =
                format!("the signature is not of this word on node {} of iteration {:04}", on.node, on.iteration);
            Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl status"))
        }
        Err(error) => Err(ErrorData::new(ErrorKind::Fault, format!("ssh-keygen cannot be run: {error}"))),
    }
}

fn verdict(decision: &Decision) -> ReviewVerdict {
    match decision {
        Decision::Approve => ReviewVerdict::Accept,
        Decision::Reject { .. } => ReviewVerdict::Reject,
    }
}

/// Takes the secrets that are known out of what gets into the repository.
fn clean_word(queue: &RepoQueue, decision: Decision) -> Result<Decision, StoreError> {
    let Decision::Reject { reasons } = decision else { return Ok(decision) };
    let secrets = RunContext::secrets_in(&queue.store.load_env()?);
    Ok(Decision::Reject { reasons: secrets.redact(&reasons).into_owned() })
}
