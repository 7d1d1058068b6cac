//! Tokens and cost as people read them: what is not known is said, and never 0.

use protocol::answer::SessionUsage;
use protocol::state::UsageTotal;

use super::measure::{count, dollars};

const UNKNOWN: &str = "unknown";

/// Returns what sessions have consumed together, and how many of them did not say.
pub(crate) fn total(usage: &UsageTotal) -> String {
    if usage.input_tokens.or(usage.cached_tokens).or(usage.output_tokens).or(usage.cost_micro_usd).is_none() {
        return format!("sessions {}, tokens and cost {UNKNOWN}", usage.sessions);
    }
    let tokens = [("in", usage.input_tokens), ("cached", usage.cached_tokens), ("out", usage.output_tokens)];
    let tokens = tokens.map(|(name, tokens)| format!("{name} {}", at_least(tokens.map(count), usage.tokens_unknown)));
    format!("sessions {}, tokens {}, cost {}", usage.sessions, tokens.join(", "), cost(usage))
}

/// Returns what sessions have consumed together; a cost that is computed from list prices is called so.
pub(crate) fn total_at(usage: &UsageTotal, list_price: Option<&str>) -> String {
    match list_price.filter(|_| usage.cost_micro_usd.is_some()) {
        Some(name) => format!("{} ({name})", total(usage)),
        None => total(usage),
    }
}

/// Returns the cost of sessions: `$3.22`, `at least $3.22 (2 of 5 sessions unknown)`, `unknown`.
pub(crate) fn cost(usage: &UsageTotal) -> String {
    let known = at_least(usage.cost_micro_usd.map(dollars), usage.cost_unknown);
    match (usage.cost_micro_usd, usage.cost_unknown) {
        (Some(_), unknown @ 1..) => format!("{known} ({unknown} of {} sessions unknown)", usage.sessions),
        _ => known,
    }
}

/// Returns the cost of an iteration for a column: `$0.04`, `>$0.04`, `$?`; nothing where no session ran.
pub(crate) fn short_cost(usage: &UsageTotal) -> String {
    match (usage.cost_micro_usd, usage.cost_unknown) {
        (None, _) if usage.sessions == 0 => String::new(),
        (None, _) => "$?".to_owned(),
        (Some(micro), 0) => dollars(micro),
        (Some(micro), _) => format!(">{}", dollars(micro)),
    }
}

/// Returns what one session consumed.
pub(crate) fn session(usage: &SessionUsage) -> String {
    let known = |n: Option<u64>| n.map_or_else(|| UNKNOWN.to_owned(), count);
    let [input, cached, output] = [usage.input_tokens, usage.cached_tokens, usage.output_tokens].map(known);
    let cost = usage.cost_micro_usd.map_or_else(|| UNKNOWN.to_owned(), dollars);
    format!("tokens in {input}, cached {cached}, out {output}, cost {cost}")
}

fn at_least(known: Option<String>, unknown: u64) -> String {
    match (known, unknown) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(known), 0) => known,
        (Some(known), _) => format!("at least {known}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cost_micro_usd: Option<u64>, cost_unknown: u64) -> UsageTotal {
        UsageTotal { sessions: 5, cost_micro_usd, cost_unknown, ..UsageTotal::default() }
    }

    #[test]
    fn a_cost_with_unknown_parts_says_so_and_is_never_nothing() {
        let texts = [of(Some(3_214_000), 0), of(Some(3_214_000), 2), of(None, 5)].map(|usage| cost(&usage));
        assert_eq!(texts, ["$3.22", "at least $3.22 (2 of 5 sessions unknown)", "unknown"]);
        let texts = [of(Some(3_214_000), 0), of(Some(3_214_000), 2), of(None, 5)].map(|usage| short_cost(&usage));
        assert_eq!(texts, ["$3.22", ">$3.22", "$?"]);
        assert_eq!(short_cost(&UsageTotal::default()), "");
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
        assert_eq!(total(&usage), "sessions 2, tokens in at least 1.2M, cached unknown, out at least 40, cost unknown");
    }
}
