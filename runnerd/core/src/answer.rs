//! From the bytes of `$RUNNER_OUTPUT` to an answer or a review, a stated error, or what is wrong.

use std::borrow::Cow;

use protocol::answer::{AgentAnswer, AgentError, ReviewAnswer, SessionUsage};
use protocol::words::ReviewVerdict;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::clip::fit;
use crate::json::{self, Bounds};
use crate::redact::Secrets;
use crate::strict_json;
use crate::validate::{MAX_ACCEPTANCE, MAX_ACCEPTANCE_BYTES, MAX_GOAL_BYTES, MAX_TITLE_BYTES};

/// Longest summary, in bytes.
pub const MAX_SUMMARY_BYTES: usize = 20_000;
/// Most reasons of a review.
pub const MAX_REASONS: usize = 20;
/// Longest reason, in bytes.
pub const MAX_REASON_BYTES: usize = 2_000;
/// Largest answer file, in bytes: as much as a task tree, for the children that it may bring.
pub const MAX_OUTPUT_BYTES: usize = crate::tree::MAX_TREE_BYTES;
/// Most bytes of what is said about a wrong answer.
const MAX_WHAT_BYTES: usize = 400;

const BOUNDS: Bounds = Bounds { bytes: MAX_OUTPUT_BYTES, objects: crate::tree::MAX_NODES + 3, nesting: 16 };

/// What a session is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An answer to its task.
    Answer,
    /// The verdict of a review.
    Review,
}

/// An answer of the form that was asked for.
pub trait Answer: DeserializeOwned {
    /// The form.
    const FORM: Form;

    /// Checks what its shape does not say; the error says what is wrong.
    fn check(&self) -> Result<(), String>;
}

/// What an answer file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output<A = AgentAnswer> {
    /// The answer, or why there is none.
    pub content: Result<A, AgentError>,
    /// What the session says it consumed.
    pub usage: SessionUsage,
}

/// Reads an answer file, without the secrets in it; the error says what is wrong with it, bounded.
pub fn read<A: Answer>(text: &[u8], secrets: &Secrets) -> Result<Output<A>, String> {
    output(text, secrets).map_err(|what| fit(&secrets.redact(&what), MAX_WHAT_BYTES))
}

fn output<A: Answer>(text: &[u8], secrets: &Secrets) -> Result<Output<A>, String> {
    json::check_bounds(text, BOUNDS).map_err(|error| error.to_string())?;
    let mut value = strict_json::parse(text).map_err(|error| format!("it is not JSON: {error}"))?;
    // After the escapes of JSON are read: no spelling of a letter hides a secret.
    redact(&mut value, secrets);
    let fields = value.as_object_mut().ok_or_else(|| "it is not a JSON object".to_owned())?;
    let usage = match fields.remove("usage") {
        None | Some(Value::Null) => SessionUsage::default(),
        Some(usage) => SessionUsage::deserialize(usage).map_err(|error| format!("usage: {error}"))?,
    };
    let content = match fields.remove("error") {
        None | Some(Value::Null) => Ok(answer(value)?),
        Some(_) if !fields.is_empty() => return Err("it has `error` and an answer".to_owned()),
        Some(error) => Err(AgentError::deserialize(error).map_err(|error| format!("error: {error}"))?),
    };
    Ok(Output { content, usage })
}

fn redact(value: &mut Value, secrets: &Secrets) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = secrets.redact(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| redact(field, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn answer<A: Answer>(value: Value) -> Result<A, String> {
    let answer = A::deserialize(value).map_err(|error| error.to_string())?;
    answer.check().map(|()| answer)
}

impl Answer for AgentAnswer {
    const FORM: Form = Form::Answer;

    fn check(&self) -> Result<(), String> {
        match self.summary.len() {
            0 => Err("summary is empty".to_owned()),
            bytes if bytes > MAX_SUMMARY_BYTES => {
                Err(format!("summary has {bytes} bytes, more than {MAX_SUMMARY_BYTES}"))
            }
            _ => check_children(self),
        }
    }
}

impl Answer for ReviewAnswer {
    const FORM: Form = Form::Review;

    fn check(&self) -> Result<(), String> {
        let count = self.reasons.len();
        if count > MAX_REASONS {
            return Err(format!("there are {count} reasons, more than {MAX_REASONS}"));
        }
        if self.verdict == ReviewVerdict::Reject && count == 0 {
            return Err("a rejection has no reasons".to_owned());
        }
        for (at, reason) in self.reasons.iter().enumerate() {
            match reason.len() {
                _ if reason.trim().is_empty() => return Err(format!("reasons[{at}] is empty")),
                bytes if bytes > MAX_REASON_BYTES => {
                    return Err(format!("reasons[{at}] has {bytes} bytes, more than {MAX_REASON_BYTES}"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Checks the limits of the schema, in bytes as the task tree counts them.
fn check_children(answer: &AgentAnswer) -> Result<(), String> {
    for (at, child) in answer.children.iter().flatten().enumerate() {
        let within = |field: &str, bytes: usize, limit: usize| match bytes {
            0 => Err(format!("children[{at}].{field} is empty")),
            bytes if bytes > limit => Err(format!("children[{at}].{field} has {bytes} bytes, more than {limit}")),
            _ => Ok(()),
        };
        within("title", child.title.len(), MAX_TITLE_BYTES)?;
        within("goal", child.goal.len(), MAX_GOAL_BYTES)?;
        if child.acceptance.len() > MAX_ACCEPTANCE {
            return Err(format!("children[{at}].acceptance has more than {MAX_ACCEPTANCE} statements"));
        }
        if child.acceptance.iter().any(|statement| statement.len() > MAX_ACCEPTANCE_BYTES) {
            return Err(format!("children[{at}].acceptance has a statement of more than {MAX_ACCEPTANCE_BYTES} bytes"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use protocol::answer::{AgentErrorClass, AnswerStatus};

    use super::*;

    fn read(text: &[u8]) -> Result<Output, String> {
        super::read(text, &Secrets::default())
    }

    #[test]
    fn an_answer_comes_without_its_secrets_however_they_are_escaped() {
        let secrets = Secrets::of([("API_KEY", "sk-0123456789")]).unwrap();
        let text = br#"{"status":"decomposed","summary":"sk-0123456789","children":[
            {"title":"\u0073k-0123456789","goal":"g","acceptance":["a sk-0123456789"]}]}"#;
        let answer = super::read::<AgentAnswer>(text, &secrets).expect("reads").content.expect("an answer");
        assert_eq!(answer.summary, "[redacted: API_KEY]");
        let child = &answer.children.expect("has children")[0];
        assert_eq!((&*child.title, &*child.acceptance[0]), ("[redacted: API_KEY]", "a [redacted: API_KEY]"));
        let wrong = super::read::<AgentAnswer>(br#"{"status":"done","summary":"x","sk-0123456789":1}"#, &secrets)
            .expect_err("wrong");
        assert!(wrong.contains("unknown field `[redacted: API_KEY]`"), "{wrong}");
    }

    #[test]
    fn an_answer_may_leave_out_children_and_bring_usage() {
        let output =
            read(br#"{"status": "done", "summary": "x", "usage": {"in": 3, "output_tokens": 4}}"#).expect("reads");
        assert_eq!(output.content.map(|answer| answer.status), Ok(AnswerStatus::Done));
        assert_eq!((output.usage.input_tokens, output.usage.output_tokens), (Some(3), Some(4)));
    }

    #[test]
    fn a_review_is_a_verdict_and_its_reasons() {
        let read = |text: &str| super::read::<ReviewAnswer>(text.as_bytes(), &Secrets::default());
        let accepts = r#"{"verdict": "accept", "reasons": [], "usage": {"in": 3, "out": 4}}"#;
        let output = read(accepts).expect("reads");
        assert_eq!(output.content, Ok(ReviewAnswer { verdict: ReviewVerdict::Accept, reasons: Vec::new() }));
        assert_eq!(output.usage.input_tokens, Some(3));
        let wrong = |text: &str| read(text).expect_err(text);
        assert_eq!(wrong(r#"{"verdict": "reject", "reasons": []}"#), "a rejection has no reasons");
        assert_eq!(wrong(r#"{"verdict": "reject", "reasons": ["a", " "]}"#), "reasons[1] is empty");
        assert!(wrong(r#"{"verdict": "perhaps", "reasons": []}"#).contains("unknown variant `perhaps`"));
        assert!(wrong(r#"{"verdict": "accept"}"#).contains("missing field `reasons`"));
        assert!(wrong(r#"{"status": "done", "summary": "x", "children": null}"#).contains("unknown field `"));
        let many = format!(r#"{{"verdict": "reject", "reasons": [{}]}}"#, [r#""a""#; 21].join(","));
        assert_eq!(wrong(&many), "there are 21 reasons, more than 20");
        let long = format!(r#"{{"verdict": "reject", "reasons": ["{}"]}}"#, "x".repeat(2_001));
        assert_eq!(wrong(&long), "reasons[0] has 2001 bytes, more than 2000");
    }

    #[test]
    fn a_stated_error_is_no_answer() {
        let text = br#"{"error": {"class": "unavailable", "until": "2026-01-01T00:00:00Z", "message": "limit"}}"#;
        let error = read(text).expect("reads").content.expect_err("an error");
        assert_eq!(error.class, AgentErrorClass::Unavailable);
        assert!(error.until.is_some());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| read(text.as_bytes()).expect_err(text);
        assert_eq!(wrong(r#"{"status":"done","summary":""}"#), "summary is empty");
        assert!(wrong(r#"{"status":"finished","summary":"x"}"#).contains("unknown variant `finished`"));
        assert!(wrong(r#"{"status":"done","summary":"x","extra":1}"#).contains("unknown field `extra`"));
        assert!(wrong(r#"{"status":"done","status":"retry","summary":"x"}"#).contains("stands twice"));
        assert!(wrong(&format!(r#"{{"status":"done","summary":"{}"}}"#, "x".repeat(20_001))).contains("20001 bytes"));
        let child = |title: &str, goal: &str, acceptance: &str| {
            format!(
                r#"{{"status":"decomposed","summary":"x","children":[{{"title":"{title}","goal":"{goal}","acceptance":[{acceptance}]}}]}}"#
            )
        };
        assert_eq!(wrong(&child("", "g", "")), "children[0].title is empty");
        assert_eq!(wrong(&child(&"ä".repeat(101), "g", "")), "children[0].title has 202 bytes, more than 200");
        assert_eq!(wrong(&child("t", &"x".repeat(8193), "")), "children[0].goal has 8193 bytes, more than 8192");
        assert!(wrong(&child("t", "g", &["\"a\""; 21].join(","))).contains("more than 20 statements"));
        assert!(wrong(&child("t", "g", &format!("\"{}\"", "x".repeat(401)))).contains("more than 400 bytes"));
        assert!(
            wrong(r#"{"status":"decomposed","summary":"x","children":[{"id":"a"}]}"#).contains("unknown field `id`")
        );
        assert_eq!(wrong("[]"), "it is not a JSON object");
        assert!(wrong("").contains("not JSON"));
        assert!(wrong(&format!(r#"{{"{}":1}}"#, "x".repeat(100_000))).len() < 1_000);
    }
}
