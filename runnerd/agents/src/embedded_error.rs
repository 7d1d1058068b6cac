//! Extracts machine-readable parts of messages: the error of a service as JSON, and the HTTP status of a reply.
//!
//! Programs embed both in their own wording, which changes; the embedded parts do not.

use serde::Deserialize as _;
use serde_json::Value;

use super::evidence::EndSignal;

/// Maximum number of bytes of a message that are searched.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum number of places in a message at which JSON is tried.
const MAX_OBJECTS: usize = 4;
/// How many words before a number are checked.
const MAX_DISTANCE: usize = 3;
/// Words before a number that make it a status.
const WORDS_BEFORE_STATUS: [&str; 6] = ["api", "code", "error", "http", "status", "statuscode"];
/// Words after a number that make it a status: the first ones of the standard phrases.
const WORDS_AFTER_STATUS: [&str; 8] =
    ["bad", "forbidden", "gateway", "internal", "payment", "service", "too", "unauthorized"];

/// Returns the codes and the statuses in a message.
pub(super) fn find_signals(message: &str) -> Vec<EndSignal> {
    let message = clip_message(message);
    let mut signals = Vec::new();
    for error in find_object(message).iter().flat_map(error_objects) {
        add_codes(error, &mut signals);
    }
    let has_status = signals.iter().any(|signal| signal.field == "http_status");
    signals.extend(find_status(message).filter(|_| !has_status));
    signals
}

/// Returns a service's text for people, if a message contains its error.
pub(super) fn find_error_text(message: &str) -> Option<String> {
    let body = find_object(clip_message(message));
    let texts = body.iter().flat_map(error_objects).filter_map(|error| error["message"].as_str());
    texts.map(str::to_owned).find(|text| !text.trim().is_empty())
}

fn clip_message(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_BYTES)]
}

/// Returns the first JSON object in a text.
fn find_object(text: &str) -> Option<Value> {
    let mut braces = text.match_indices('{').take(MAX_OBJECTS);
    braces.find_map(|(at, _)| Value::deserialize(&mut serde_json::Deserializer::from_str(&text[at..])).ok())
}

/// Returns where an error may describe itself: in its own object, in details, or in the enclosing one.
fn error_objects(body: &Value) -> Vec<&Value> {
    let error = &body["error"];
    let details = error["details"].as_array().into_iter().flatten();
    [error].into_iter().chain(details).chain([body]).filter(|value| value.is_object()).collect()
}

fn add_codes(error: &Value, into: &mut Vec<EndSignal>) {
    for field in ["code", "type", "status", "reason"] {
        match &error[field] {
            Value::String(code) => into.push(EndSignal { field: "code", value: code.clone() }),
            Value::Number(number) => {
                into.extend(number.as_u64().filter(|status| is_failure_status(*status)).map(status_signal));
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
        }
    }
}

fn is_failure_status(status: u64) -> bool {
    (400..=599).contains(&status)
}

fn status_signal(status: u64) -> EndSignal {
    EndSignal { field: "http_status", value: status.to_string() }
}

/// Finds the status in phrases such as `last status: 429 Too Many Requests`, `API Error: 500` or `rejected (429)`.
fn find_status(message: &str) -> Option<EndSignal> {
    let lower = message.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_named = |at: usize| {
        let near = &words[at.saturating_sub(MAX_DISTANCE)..at];
        let has_word_before = near.iter().any(|word| WORDS_BEFORE_STATUS.contains(word));
        has_word_before || words.get(at + 1).is_some_and(|next| WORDS_AFTER_STATUS.contains(next))
    };
    let enclosed = |status: u64| lower.contains(&format!("({status})"));
    let found = words.iter().enumerate().filter_map(|(at, word)| Some((at, word.parse::<u64>().ok()?)));
    found
        .filter(|(_, status)| is_failure_status(*status))
        .find(|(at, status)| is_named(*at) || enclosed(*status))
        .map(|(_, status)| status_signal(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_pairs(message: &str) -> Vec<(&'static str, String)> {
        find_signals(message).into_iter().map(|signal| (signal.field, signal.value)).collect()
    }

    #[test]
    fn the_error_of_a_service_is_found_wherever_it_is_put() {
        let openai = r#"{"error":{"message":"No.","type":"invalid_request_error","code":"model_not_found"}}"#;
        let expected = [("code", "model_not_found".to_owned()), ("code", "invalid_request_error".to_owned())];
        assert_eq!(find_pairs(openai), expected);
        assert_eq!(find_pairs(&format!("it failed {{so}}: {openai} (after 3 tries)")), expected);
        assert_eq!(find_error_text(openai).as_deref(), Some("No."));
        let google = r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        let expected = [("http_status", "400"), ("code", "INVALID_ARGUMENT"), ("code", "API_KEY_INVALID")];
        assert_eq!(find_pairs(google), expected.map(|(field, value)| (field, value.to_owned())));
    }

    #[test]
    fn a_status_is_a_number_that_is_called_one() {
        for message in [
            "exceeded retry limit, last status: 429 Too Many Requests",
            "API Error: 429 {",
            "API Error: Request rejected (429) \u{b7} later",
            "HTTP/1.1 429",
            "429 Too Many Requests",
            "request failed with status code 429",
        ] {
            assert_eq!(find_pairs(message), [("http_status", "429".to_owned())], "{message}");
        }
        for message in ["read 500 lines", "at port 443", "listening on 127.0.0.1:503", "status 200", "limit 40000"] {
            assert_eq!(find_pairs(message), [], "{message}");
        }
    }

    #[test]
    fn a_message_of_any_kind_is_read_without_harm() {
        for message in ["{", "{\"error\":[]}", "{{{{{{{{", "{\"error\":{\"message\":1}}", "\u{2019}"] {
            assert_eq!(find_pairs(message), [], "{message}");
            assert_eq!(find_error_text(message), None, "{message}");
        }
        assert_eq!(find_pairs(&"[{\"a\":".repeat(100_000)), []);
        assert_eq!(find_pairs(&"\u{1f980}".repeat(100_000)), []);
    }
}
