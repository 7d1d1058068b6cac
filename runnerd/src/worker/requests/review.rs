//! A person's word on a finished node: taken without secrets, durable before it is acknowledged, and an iteration of its own.
//!
//! What waits for a word is decided by `runner_core::approval` from what is committed; when the run takes the word is
//! `runner_core::run`'s.

use protocol::error::ErrorData;
use protocol::reply::ReviewReply;
use protocol::words::ReviewVerdict;
use runner_core::approval::Decision;
use runner_core::run::Request;

use super::ask::ask;
use crate::store::StoreError;
use crate::worker::context::RunContext;
use crate::worker::queue::RepoQueue;
use crate::worker::queue::{fault, held_error, not_found};

/// Takes a person's word on the node of a run that waits for it, and lets the run go on.
pub(crate) fn take(queue: &mut RepoQueue, run: Option<&str>, decision: Decision) -> Result<ReviewReply, ErrorData> {
    if let Some(held) = &queue.held {
        return Err(held_error(held));
    }
    let id = queue.find(run)?.id.clone();
    let decision = clean_word(queue, decision).map_err(|error| fault(&error))?;
    let verdict = match decision {
        Decision::Approve => ReviewVerdict::Accept,
        Decision::Reject { .. } => ReviewVerdict::Reject,
    };
    ask(queue, &id, Request::Review(decision))?;
    let run = queue.run(&id).ok_or_else(|| not_found(&id))?;
    let on = run.uncommitted.word.as_ref().map(|word| word.on.clone()).ok_or_else(|| not_found(&id))?;
    Ok(ReviewReply { run: queue.summary(run), node: on.node, iteration: on.iter, verdict })
}

/// Takes the secrets that are known out of what gets into the repository.
fn clean_word(queue: &RepoQueue, decision: Decision) -> Result<Decision, StoreError> {
    let Decision::Reject { reasons } = decision else { return Ok(decision) };
    let secrets = RunContext::secrets_in(&queue.store.load_env()?);
    Ok(Decision::Reject { reasons: secrets.redact(&reasons).into_owned() })
}
