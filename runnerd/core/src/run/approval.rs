//! A person's review: what waits for one, and the word that is given on it.
//!
//! What waits follows from what is committed, so that a clone waits for the same. No session runs for a word.

use protocol::tree::Node;
use protocol::words::{GuardOutcome, IterationStatus};
use serde::{Deserialize, Serialize};

use crate::message::WordSignature;
use crate::policy::{Policy, ReviewBy};
use crate::run::Standing;
use crate::select::{Selection, select};
pub use crate::verdict::{Decision, MAX_REASONS_BYTES, WrongReasons};

/// A finished node that waits for a person's review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// Id of the node.
    pub node: String,
    /// Number of the iteration that has finished it.
    pub iter: u32,
}

/// A person's word on one finished node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonDecision {
    /// What it is about; it says nothing of any other iteration.
    pub on: Pending,
    /// What was decided.
    pub decision: Decision,
    /// The person's signature, where they have signed.
    pub signature: Option<WordSignature>,
}

impl PersonDecision {
    /// Whether it counts for the node that waits.
    pub(crate) fn counts_for(&self, pending: Option<&Pending>, policy: &Policy) -> bool {
        Some(&self.on) == pending && (self.signature.is_some() || !policy.review_signed)
    }
}

/// Returns what waits for a person's review: the next leaf, if the last iteration was about it, was green, and neither
/// passed it nor charged it.
pub fn pending(standing: &Standing<'_>) -> Option<Pending> {
    match select(standing.tree) {
        Selection::Open(leaf) => pending_leaf(standing, leaf),
        Selection::Exhausted(_) | Selection::Complete => None,
    }
}

pub(crate) fn pending_leaf(standing: &Standing<'_>, leaf: &Node) -> Option<Pending> {
    let state = standing.run_state;
    let iter = state.next_iter.checked_sub(1)?;
    let was_green = state.last_status == Some(IterationStatus::Done) && state.last_guard == Some(GuardOutcome::Pass);
    let told = standing.feedback.nodes.get(&leaf.id);
    let was_charged = told.is_some_and(|told| told.history.iter().any(|attempt| attempt.iter == iter));
    let is_pending = standing.policy.review == ReviewBy::Human
        && was_green
        && !was_charged
        && state.last_node.as_ref() == Some(&leaf.id);
    is_pending.then(|| Pending { node: leaf.id.clone(), iter })
}
