//! A person's word on a finished node, taken at the desk: durable before it is acknowledged, and an iteration of its own.
//!
//! What waits for a word is decided by `runner_core::approval` from what is committed; when the run takes the word is
//! `runner_core::run`'s.

use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::ReviewReply;
use protocol::words::{ReviewVerdict, RunStatus};
use runner_core::approval::{self, Decision, Pending, PersonDecision};
use tokio::task::block_in_place;

use super::changes::told;
use super::desk::Desk;
use super::ground::Ground;
use super::requests::{fault, held_error, not_found, wrong_state};
use super::site::Site;
use crate::store::{AskedFor, RunRecord, StoreError};

/// What a person types about a node that waits for them.
const WAYS_ON: &str = "runnerctl approve, or: runnerctl reject REASON";

impl Desk {
    /// Takes a person's word on the node of a run that waits for it, and lets the run go on.
    ///
    /// A run that the user had paused is paused again after it.
    pub(super) fn take_word(&mut self, run: Option<&str>, decision: Decision) -> Result<ReviewReply, ErrorData> {
        if let Some(held) = &self.held {
            return Err(held_error(held));
        }
        let run = self.find(run)?.clone();
        let decision = self.clean_word(decision).map_err(|error| fault(&error))?;
        decision.check().map_err(|wrong| ErrorData::new(ErrorKind::InvalidRequest, wrong.to_string()))?;
        let on = self.under_review(&run)?;
        let reply = ReviewReply {
            run: self.summary(&run),
            node: on.node.clone(),
            iteration: on.iter,
            verdict: match decision {
                Decision::Approve => ReviewVerdict::Accept,
                Decision::Reject { .. } => ReviewVerdict::Reject,
            },
        };
        let was_paused = run.state == RunStatus::Paused;
        self.put_into_queue(&run, |record| {
            record.uncommitted.word = Some(PersonDecision { on, decision });
            record.asked = was_paused.then_some(AskedFor::Step);
        })?;
        let run = self.run(&run.id).map(|run| self.summary(run)).ok_or_else(|| not_found(&run.id))?;
        Ok(ReviewReply { run, ..reply })
    }

    /// Returns what of a run waits for a person's word; the error says that nothing does, and what goes on.
    fn under_review(&self, run: &RunRecord) -> Result<Pending, ErrorData> {
        let nothing = |why: String| wrong_state(&format!("nothing waits for a review: {why}"), "runnerctl status");
        if self.live.as_ref() == Some(&run.id) || self.unfinished.as_ref() == Some(&run.id) {
            return Err(nothing(format!("run {} is at work", run.id)));
        }
        if run.state == RunStatus::Cancelled {
            let hint = format!("runnerctl start --id {}", run.id);
            return Err(wrong_state(&format!("run {} is cancelled", run.id), &hint));
        }
        let pending = block_in_place(|| self.pending(run))?;
        pending.ok_or_else(|| nothing(format!("run {} is {}", run.id, self.summary(run).state)))
    }

    /// Says that a run which waits without a time does so for a person, if that is so.
    pub(super) fn waits_for_review(&self, run: &RunRecord) -> Option<ErrorData> {
        let Pending { node, .. } = block_in_place(|| self.pending(run)).ok()??;
        Some(wrong_state(&format!("run {} waits for a person to review node {node}", run.id), WAYS_ON))
    }

    fn pending(&self, run: &RunRecord) -> Result<Option<Pending>, ErrorData> {
        let ground = Ground::of(&self.store, run).map_err(|error| told(&error))?;
        Ok(ground.and_then(|ground| approval::pending(&ground.loaded.standing(&run.uncommitted))))
    }

    /// Takes the secrets that are known out of what gets into the repository.
    fn clean_word(&self, decision: Decision) -> Result<Decision, StoreError> {
        let Decision::Reject { reasons } = decision else { return Ok(decision) };
        let secrets = Site::secrets_in(&self.store.load_env()?);
        Ok(Decision::Reject { reasons: secrets.redact(&reasons).into_owned() })
    }
}
