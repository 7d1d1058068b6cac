//! Tokens and cost for people: unknown amounts are reported as unknown, never as 0.

use protocol::answer::SessionUsage;
use protocol::state::UsageTotal;

use super::measure::{format_count, format_dollars};

const UNKNOWN: &str = "unknown";

/// Returns the total usage of sessions, and how many of them reported none.
pub(crate) fn render_total(usage: &UsageTotal) -> String {
    if usage.input_tokens.or(usage.cached_tokens).or(usage.output_tokens).or(usage.cost_micro_usd).is_none() {
        return format!("sessions {}, tokens and cost {UNKNOWN}", usage.sessions);
    }
    let tokens = [("in", usage.input_tokens), ("cached", usage.cached_tokens), ("out", usage.output_tokens)];
    let tokens = tokens
        .map(|(name, tokens)| format!("{name} {}", render_at_least(tokens.map(format_count), usage.tokens_unknown)));
    format!("sessions {}, tokens {}, cost {}", usage.sessions, tokens.join(", "), render_cost(usage))
}

/// Returns the total usage of sessions; a cost computed from list prices is marked as such.
pub(crate) fn render_total_with_price(usage: &UsageTotal, list_price: Option<&str>) -> String {
    match list_price.filter(|_| usage.cost_micro_usd.is_some()) {
        Some(name) => format!("{} ({name})", render_total(usage)),
        None => render_total(usage),
    }
}

/// Returns the cost of sessions: `$3.22`, `at least $3.22 (2 of 5 sessions unknown)`, `unknown`.
pub(crate) fn render_cost(usage: &UsageTotal) -> String {
    let known = render_at_least(usage.cost_micro_usd.map(format_dollars), usage.cost_unknown);
    match (usage.cost_micro_usd, usage.cost_unknown) {
        (Some(_), unknown @ 1..) => format!("{known} ({unknown} of {} sessions unknown)", usage.sessions),
        _ => known,
    }
}

/// Returns the cost of an iteration for a column: `$0.04`, `>$0.04`, `$?`; empty if no session ran.
pub(crate) fn render_short_cost(usage: &UsageTotal) -> String {
    match (usage.cost_micro_usd, usage.cost_unknown) {
        (None, _) if usage.sessions == 0 => String::new(),
        (None, _) => "$?".to_owned(),
        (Some(micro), 0) => format_dollars(micro),
        (Some(micro), _) => format!(">{}", format_dollars(micro)),
    }
}

/// Returns the usage of one session.
pub(crate) fn render_session(usage: &SessionUsage) -> String {
    let known = |n: Option<u64>| n.map_or_else(|| UNKNOWN.to_owned(), format_count);
    let [input, cached, output] = [usage.input_tokens, usage.cached_tokens, usage.output_tokens].map(known);
    let cost = usage.cost_micro_usd.map_or_else(|| UNKNOWN.to_owned(), format_dollars);
    format!("tokens in {input}, cached {cached}, out {output}, cost {cost}")
}

fn render_at_least(known: Option<String>, unknown: u64) -> String {
    match (known, unknown) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(known), 0) => known,
        (Some(known), _) => format!("at least {known}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage_with_cost(cost_micro_usd: Option<u64>, cost_unknown: u64) -> UsageTotal {
        UsageTotal { sessions: 5, cost_micro_usd, cost_unknown, ..UsageTotal::default() }
    }

    #[test]
    fn a_cost_with_unknown_parts_says_so_and_is_never_nothing() {
        let texts =
            [usage_with_cost(Some(3_214_000), 0), usage_with_cost(Some(3_214_000), 2), usage_with_cost(None, 5)]
                .map(|usage| render_cost(&usage));
        assert_eq!(texts, ["$3.22", "at least $3.22 (2 of 5 sessions unknown)", "unknown"]);
        let texts =
            [usage_with_cost(Some(3_214_000), 0), usage_with_cost(Some(3_214_000), 2), usage_with_cost(None, 5)]
                .map(|usage| render_short_cost(&usage));
        assert_eq!(texts, ["$3.22", ">$3.22", "$?"]);
        assert_eq!(render_short_cost(&UsageTotal::default()), "");
    }

    #[test]
    fn tokens_of_which_some_are_unknown_are_a_least() {
        let usage = UsageTotal {
            sessions: 2,
            input_tokens: Some(1_250_000),
            output_tokens: Some(40),
            tokens_unknown: 1,
            cost_unknown: 2,
            ..UsageTotal::default()
        };
        assert_eq!(
            render_total(&usage),
            "sessions 2, tokens in at least 1.2M, cached unknown, out at least 40, cost unknown"
        );
    }
}
