//! A person's word on a finished node: taken without secrets, durable before it is acknowledged, and an iteration of its own.
//!
//! What waits for a word is decided by `runner_core::approval` from what is committed; when the run takes the word is
//! `runner_core::run`'s.

use protocol::error::ErrorData;
use protocol::reply::ReviewReply;
use protocol::words::ReviewVerdict;
use runner_core::approval::Decision;
use runner_core::run::Request;

use super::desk::Desk;
use super::requests::{fault, held_error, not_found};
use super::site::Site;
use crate::store::StoreError;

impl Desk {
    /// Takes a person's word on the node of a run that waits for it, and lets the run go on.
    pub(super) fn take_word(&mut self, run: Option<&str>, decision: Decision) -> Result<ReviewReply, ErrorData> {
        if let Some(held) = &self.held {
            return Err(held_error(held));
        }
        let id = self.find(run)?.id.clone();
        let decision = self.clean_word(decision).map_err(|error| fault(&error))?;
        let verdict = match decision {
            Decision::Approve => ReviewVerdict::Accept,
            Decision::Reject { .. } => ReviewVerdict::Reject,
        };
        self.ask(&id, Request::Review(decision))?;
        let run = self.run(&id).ok_or_else(|| not_found(&id))?;
        let on = run.uncommitted.word.as_ref().map(|word| word.on.clone()).ok_or_else(|| not_found(&id))?;
        Ok(ReviewReply { run: self.summary(run), node: on.node, iteration: on.iter, verdict })
    }

    /// Takes the secrets that are known out of what gets into the repository.
    fn clean_word(&self, decision: Decision) -> Result<Decision, StoreError> {
        let Decision::Reject { reasons } = decision else { return Ok(decision) };
        let secrets = Site::secrets_in(&self.store.load_env()?);
        Ok(Decision::Reject { reasons: secrets.redact(&reasons).into_owned() })
    }
}
