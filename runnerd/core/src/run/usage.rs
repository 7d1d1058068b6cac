//! Adds up what sessions have consumed: an unknown amount is never 0, and is counted separately.

use protocol::state::UsageTotal;
use serde::{Deserialize, Serialize};

/// What sessions have consumed, and the time they took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceUsage {
    /// Tokens and cost.
    pub usage: UsageTotal,
    /// Time of sessions and guards, in milliseconds.
    pub elapsed_ms: u64,
}

impl ResourceUsage {
    /// Returns the sum of this and later usage.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Self {
        Self { usage: add_usage(&self.usage, &more.usage), elapsed_ms: self.elapsed_ms.saturating_add(more.elapsed_ms) }
    }

    /// Whether nothing was consumed.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the sum of two totals.
pub fn add_usage(a: &UsageTotal, b: &UsageTotal) -> UsageTotal {
    let known = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    UsageTotal {
        sessions: a.sessions.saturating_add(b.sessions),
        input_tokens: known(a.input_tokens, b.input_tokens),
        cached_tokens: known(a.cached_tokens, b.cached_tokens),
        output_tokens: known(a.output_tokens, b.output_tokens),
        cost_micro_usd: known(a.cost_micro_usd, b.cost_micro_usd),
        tokens_unknown: a.tokens_unknown.saturating_add(b.tokens_unknown),
        cost_unknown: a.cost_unknown.saturating_add(b.cost_unknown),
    }
}

/// Returns what is impossible about a total, if anything.
pub fn find_fault(total: &UsageTotal) -> Option<&'static str> {
    let UsageTotal { sessions, tokens_unknown, cost_unknown, .. } = *total;
    let are_tokens_known = total.input_tokens.is_some() && total.output_tokens.is_some();
    match total {
        _ if sessions == 0 => Some("no session"),
        _ if tokens_unknown > sessions || cost_unknown > sessions => Some("more that is unknown than sessions"),
        _ if !are_tokens_known && tokens_unknown == 0 => Some("tokens that are unknown, of no session"),
        _ if total.cost_micro_usd.is_some() == (cost_unknown == sessions) => Some("a cost of none of the sessions"),
        _ => None,
    }
}

/// Returns all known tokens: read, read from a cache, and written.
pub fn total_tokens(total: &UsageTotal) -> u64 {
    let parts = [total.input_tokens, total.cached_tokens, total.output_tokens];
    parts.into_iter().flatten().fold(0, u64::saturating_add)
}
