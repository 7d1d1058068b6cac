//! A person's review: which node waits for one, and the decision on it.
//!
//! What waits follows from what is committed, so that it is the same in a clone. No session runs for a decision.

use protocol::tree::Node;
use protocol::words::{GuardOutcome, IterationStatus};
use runner_config::ReviewPolicy;
use serde::{Deserialize, Serialize};

use crate::message::ReviewSignature;
use crate::policy::Policy;
use crate::run::RunInputs;
use crate::tree::select::{LeafSelection, select};
pub use crate::verdict::{Decision, InvalidReasons, MAX_REASONS_BYTES};

/// A finished node that waits for a person's review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingNode {
    /// Id of the node.
    pub node: String,
    /// Number of the iteration that finished it.
    pub iter: u32,
}

/// A person's decision on one finished node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewDecision {
    /// The node it applies to; it does not apply to any other iteration.
    pub on: PendingNode,
    /// The decision.
    pub decision: Decision,
    /// The person's signature, if they signed.
    pub signature: Option<ReviewSignature>,
}

impl ReviewDecision {
    /// Whether it applies to the node that waits.
    pub(crate) fn counts_for(&self, pending: Option<&PendingNode>, policy: &Policy) -> bool {
        Some(&self.on) == pending && (self.signature.is_some() || !policy.review_signed)
    }
}

/// Returns the node that waits for a person's review: the next leaf, if the last iteration worked on it, was green, and
/// neither passed nor charged it.
pub fn find_pending(inputs: &RunInputs<'_>) -> Option<PendingNode> {
    match select(inputs.tree) {
        LeafSelection::Open(leaf) => find_pending_leaf(inputs, leaf),
        LeafSelection::Exhausted(_) | LeafSelection::Complete => None,
    }
}

pub(crate) fn find_pending_leaf(inputs: &RunInputs<'_>, leaf: &Node) -> Option<PendingNode> {
    let state = inputs.run_state;
    let iter = state.next_iter.checked_sub(1)?;
    let was_green = state.last_status == Some(IterationStatus::Done) && state.last_guard == Some(GuardOutcome::Pass);
    let node_feedback = inputs.feedback.nodes.get(&leaf.id);
    let was_charged = node_feedback.is_some_and(|told| told.history.iter().any(|attempt| attempt.iter == iter));
    let is_pending = (inputs.policy.review == ReviewPolicy::Human || state.review_required)
        && was_green
        && !was_charged
        && state.last_node.as_ref() == Some(&leaf.id);
    is_pending.then(|| PendingNode { node: leaf.id.clone(), iter })
}
