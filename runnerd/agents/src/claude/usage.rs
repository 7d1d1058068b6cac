//! What a session consumed: from its last line, or, if it was killed before that, from the lines so far.

use std::collections::BTreeMap;

use protocol::answer::SessionUsage;
use runner_config::MicroUsd;
use serde_json::Value;

/// Maximum number of messages counted per session; no budget allows more.
const MAX_MESSAGES: usize = 100_000;
/// Length limit of a message id in bytes.
const MAX_ID: usize = 128;

/// The usage counted so far.
#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    /// Input of each message, uncached and cached: a message of several parts spans several lines with the same
    /// numbers.
    messages: BTreeMap<String, (u64, u64)>,
    total: Option<SessionUsage>,
}

impl UsageMeter {
    /// Counts a line of the model.
    pub(super) fn count_message(&mut self, message: &Value) {
        let (Some(id), usage) = (message["id"].as_str(), &message["usage"]) else { return };
        let Some(input) = usage["input_tokens"].as_u64() else { return };
        if id.len() <= MAX_ID && self.messages.len() < MAX_MESSAGES {
            let cache_writes = read_number(usage, "cache_creation_input_tokens");
            let counts = (input.saturating_add(cache_writes), read_number(usage, "cache_read_input_tokens"));
            self.messages.insert(id.to_owned(), counts);
        }
    }

    /// Counts a result line; if there are several, each includes the ones before it.
    pub(super) fn count_result(&mut self, line: &Value) {
        let models = line["modelUsage"].as_object().into_iter().flatten().map(|(_, model)| model);
        let model_usage = models.clone().fold(None, |sum, model| Some(add_model_usage(sum.unwrap_or_default(), model)));
        let usage = model_usage.unwrap_or_else(|| parse_usage(&line["usage"]));
        // The program guesses a price for models that it does not know.
        let is_guess = models.clone().any(|model| model["costBasis"] == "unknown");
        let cost = line["total_cost_usd"].as_f64().filter(|_| !is_guess).and_then(MicroUsd::from_dollars);
        self.total = Some(SessionUsage { cost_micro_usd: cost.map(|cost| cost.0), ..usage });
    }

    /// Returns the sum. The output of a killed session is unknown, because its lines count only the beginning of it.
    /// Its input is that of the completed messages.
    pub(super) fn usage(self) -> SessionUsage {
        self.total.unwrap_or_else(|| {
            let sum = |part: fn(&(u64, u64)) -> u64| {
                self.messages.values().map(part).reduce(u64::saturating_add).filter(|sum| *sum > 0)
            };
            SessionUsage {
                input_tokens: sum(|(input, _)| *input),
                cached_tokens: sum(|(_, cached)| *cached),
                ..SessionUsage::default()
            }
        })
    }
}

/// Adds up all models that a session has used, including small ones for small tasks. Writes to a cache count as
/// uncached input, since they are paid for.
fn add_model_usage(sum: SessionUsage, model: &Value) -> SessionUsage {
    let add = |sum: Option<u64>, more: u64| Some(sum.unwrap_or(0).saturating_add(more));
    let input = read_number(model, "inputTokens").saturating_add(read_number(model, "cacheCreationInputTokens"));
    SessionUsage {
        input_tokens: add(sum.input_tokens, input),
        cached_tokens: add(sum.cached_tokens, read_number(model, "cacheReadInputTokens")),
        output_tokens: add(sum.output_tokens, read_number(model, "outputTokens")),
        cost_micro_usd: None,
    }
}

fn parse_usage(usage: &Value) -> SessionUsage {
    let input = usage["input_tokens"].as_u64();
    SessionUsage {
        input_tokens: input.map(|input| input.saturating_add(read_number(usage, "cache_creation_input_tokens"))),
        cached_tokens: usage["cache_read_input_tokens"].as_u64(),
        output_tokens: usage["output_tokens"].as_u64(),
        cost_micro_usd: None,
    }
}

fn read_number(object: &Value, field: &str) -> u64 {
    object[field].as_u64().unwrap_or(0)
}
