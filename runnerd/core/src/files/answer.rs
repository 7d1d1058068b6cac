//! Parses the bytes of `$RUNNER_OUTPUT` into an answer or a review, a stated error, or a description of what is wrong.

use std::borrow::Cow;

use protocol::answer::{AgentAnswer, AgentError, ReviewAnswer, SessionUsage};
use protocol::words::ReviewVerdict;
use serde::Deserialize as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::text::clip::truncate_text;
use crate::text::json::{self, JsonBounds, JsonBoundsError};
use crate::text::redact::Secrets;
use crate::text::strict_json;
use crate::tree::validate::{MAX_ACCEPTANCE, MAX_ACCEPTANCE_BYTES, MAX_GOAL_BYTES, MAX_TITLE_BYTES};

/// Longest summary, in bytes.
pub const MAX_SUMMARY_BYTES: usize = 20_000;
/// Most reasons of a review.
pub const MAX_REASONS: usize = 20;
/// Longest reason, in bytes.
pub const MAX_REASON_BYTES: usize = 2_000;
/// Largest answer file, in bytes: as large as a task tree, because of the children that it may contain.
pub const MAX_OUTPUT_BYTES: usize = crate::tree::MAX_TREE_BYTES;
/// Most places in a text at which an object is looked for.
const MAX_OBJECT_STARTS: usize = 256;
/// Most bytes of the description of an invalid answer.
const MAX_WHAT_BYTES: usize = 400;

const BOUNDS: JsonBounds = JsonBounds { bytes: MAX_OUTPUT_BYTES, objects: crate::tree::MAX_NODES + 3, nesting: 16 };

/// What a session is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerForm {
    /// An answer to its task.
    #[default]
    Answer,
    /// The verdict of a review.
    Review,
}

/// What is wrong with an answer file.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The file is larger than any answer may be.
    #[error(transparent)]
    OutOfBounds(#[from] JsonBoundsError),
    /// The file is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// The JSON value is not an object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// It contains both an error and an answer.
    #[error("it has `error` and an answer")]
    ErrorAndAnswer,
    /// A field has the wrong form.
    #[error("{field}: {source}")]
    InvalidField {
        /// Name of the field.
        field: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The JSON exceeds a limit on its form.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// A text is empty.
    #[error("{field} is empty")]
    Empty {
        /// Path of the field.
        field: String,
    },
    /// A text is too long.
    #[error("{field} has {bytes} bytes, more than {limit}")]
    TooLong {
        /// Path of the field.
        field: String,
        /// Its length.
        bytes: usize,
        /// Longest length allowed.
        limit: usize,
    },
    /// A review has too many reasons.
    #[error("there are {0} reasons, more than {MAX_REASONS}")]
    TooManyReasons(usize),
    /// A review rejects without giving a reason.
    #[error("a rejection has no reasons")]
    NoReasons,
    /// A child has too many acceptance statements.
    #[error("children[{child}].acceptance has more than {MAX_ACCEPTANCE} statements")]
    TooManyStatements {
        /// Index of the child, from 0.
        child: usize,
    },
    /// A child has an acceptance statement that is too long.
    #[error("children[{child}].acceptance has a statement of more than {MAX_ACCEPTANCE_BYTES} bytes")]
    StatementTooLong {
        /// Index of the child, from 0.
        child: usize,
    },
}

/// What is wrong with an answer file, as text: bounded, and with its secrets redacted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RejectedAnswer(pub String);

/// An answer of the requested form.
pub trait SessionAnswer: DeserializeOwned {
    /// The form that the type parses.
    const FORM: AnswerForm;

    /// Checks what the type alone does not express.
    fn check(&self) -> Result<(), AnswerError>;
}

/// Content of an answer file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerContent<A = AgentAnswer> {
    /// The answer, or the stated reason why there is none.
    pub content: Result<A, AgentError>,
    /// What the session says it consumed.
    pub usage: SessionUsage,
}

/// Parses an answer file and redacts the secrets in it.
pub fn read_answer<A: SessionAnswer>(text: &[u8], secrets: &Secrets) -> Result<AnswerContent<A>, RejectedAnswer> {
    parse_output(text, secrets)
        .map_err(|wrong| RejectedAnswer(truncate_text(&secrets.redact(&wrong.to_string()), MAX_WHAT_BYTES)))
}

/// Returns the only object in a text that is an answer, such as one in a code fence or below a sentence. The same object
/// may be there more than once; `None` if there is none, or if there are two that differ.
pub fn find_answer<A: SessionAnswer>(text: &str) -> Option<&str> {
    let mut found: Option<&str> = None;
    let mut rest = 0;
    let mut starts = 0;
    while let Some(start) = text[rest..].find('{').map(|at| rest + at) {
        starts += 1;
        if starts > MAX_OBJECT_STARTS {
            return None;
        }
        let mut objects = serde_json::Deserializer::from_str(&text[start..]).into_iter::<IgnoredAny>();
        let is_object = matches!(objects.next(), Some(Ok(IgnoredAny)));
        rest = start + if is_object { objects.byte_offset() } else { 1 };
        let object = &text[start..rest];
        if !is_object || !is_answer::<A>(object) || found.is_some_and(|known| is_same_value(known, object)) {
            continue;
        }
        if found.replace(object).is_some() {
            return None;
        }
    }
    found
}

fn is_answer<A: SessionAnswer>(object: &str) -> bool {
    let parsed = parse_output::<A>(object.as_bytes(), &Secrets::default());
    parsed.is_ok_and(|output| output.content.is_ok())
}

fn is_same_value(one: &str, other: &str) -> bool {
    let parse = |text: &str| strict_json::parse(text.as_bytes()).ok();
    parse(one) == parse(other)
}

fn parse_output<A: SessionAnswer>(text: &[u8], secrets: &Secrets) -> Result<AnswerContent<A>, AnswerError> {
    json::check_bounds(text, BOUNDS)?;
    let mut value = strict_json::parse(text).map_err(AnswerError::NotJson)?;
    // Redact after JSON escapes are decoded, so that no spelling of a letter hides a secret.
    redact_value(&mut value, secrets);
    let fields = value.as_object_mut().ok_or(AnswerError::NotAnObject)?;
    let part = |field| move |source| AnswerError::InvalidField { field, source };
    let usage = match fields.remove("usage") {
        None | Some(Value::Null) => SessionUsage::default(),
        Some(usage) => SessionUsage::deserialize(usage).map_err(part("usage"))?,
    };
    let content = match fields.remove("error") {
        None | Some(Value::Null) => Ok(parse_answer(value)?),
        Some(_) if !fields.is_empty() => return Err(AnswerError::ErrorAndAnswer),
        Some(error) => Err(AgentError::deserialize(error).map_err(part("error"))?),
    };
    Ok(AnswerContent { content, usage })
}

fn redact_value(value: &mut Value, secrets: &Secrets) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = secrets.redact(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| redact_value(field, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn parse_answer<A: SessionAnswer>(value: Value) -> Result<A, AnswerError> {
    let answer = A::deserialize(value)?;
    answer.check().map(|()| answer)
}

/// Checks that a text is neither empty nor too long.
fn check_text(field: impl FnOnce() -> String, text: &str, limit: usize) -> Result<(), AnswerError> {
    match text.len() {
        0 => Err(AnswerError::Empty { field: field() }),
        bytes if bytes > limit => Err(AnswerError::TooLong { field: field(), bytes, limit }),
        _ => Ok(()),
    }
}

impl SessionAnswer for AgentAnswer {
    const FORM: AnswerForm = AnswerForm::Answer;

    fn check(&self) -> Result<(), AnswerError> {
        check_text(|| "summary".to_owned(), &self.summary, MAX_SUMMARY_BYTES)?;
        check_children(self)
    }
}

impl SessionAnswer for ReviewAnswer {
    const FORM: AnswerForm = AnswerForm::Review;

    fn check(&self) -> Result<(), AnswerError> {
        let count = self.reasons.len();
        if count > MAX_REASONS {
            return Err(AnswerError::TooManyReasons(count));
        }
        if self.verdict == ReviewVerdict::Reject && count == 0 {
            return Err(AnswerError::NoReasons);
        }
        for (at, reason) in self.reasons.iter().enumerate() {
            let field = || format!("reasons[{at}]");
            if reason.trim().is_empty() {
                return Err(AnswerError::Empty { field: field() });
            }
            check_text(field, reason, MAX_REASON_BYTES)?;
        }
        Ok(())
    }
}

/// Checks the limits of the schema, in bytes as the task tree counts them.
fn check_children(answer: &AgentAnswer) -> Result<(), AnswerError> {
    for (child, spec) in answer.children.iter().flatten().enumerate() {
        check_text(|| format!("children[{child}].title"), &spec.title, MAX_TITLE_BYTES)?;
        check_text(|| format!("children[{child}].goal"), &spec.goal, MAX_GOAL_BYTES)?;
        if spec.acceptance.len() > MAX_ACCEPTANCE {
            return Err(AnswerError::TooManyStatements { child });
        }
        if spec.acceptance.iter().any(|statement| statement.len() > MAX_ACCEPTANCE_BYTES) {
            return Err(AnswerError::StatementTooLong { child });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use protocol::answer::{AgentErrorClass, AnswerStatus};

    use super::*;

    fn read_output(text: &[u8]) -> Result<AnswerContent, RejectedAnswer> {
        super::read_answer(text, &Secrets::default())
    }

    #[test]
    fn an_answer_comes_without_its_secrets_however_they_are_escaped() {
        let secrets = Secrets::from_variables([("API_KEY", "sk-0123456789")]).unwrap();
        let text = br#"{"status":"decomposed","summary":"sk-0123456789","children":[
            {"title":"\u0073k-0123456789","goal":"g","acceptance":["a sk-0123456789"]}]}"#;
        let answer = super::read_answer::<AgentAnswer>(text, &secrets).expect("reads").content.expect("an answer");
        assert_eq!(answer.summary, "[redacted: API_KEY]");
        let child = &answer.children.expect("has children")[0];
        assert_eq!((&*child.title, &*child.acceptance[0]), ("[redacted: API_KEY]", "a [redacted: API_KEY]"));
        let wrong =
            super::read_answer::<AgentAnswer>(br#"{"status":"done","summary":"x","sk-0123456789":1}"#, &secrets)
                .expect_err("wrong")
                .to_string();
        assert!(wrong.contains("unknown field `[redacted: API_KEY]`"), "{wrong}");
    }

    #[test]
    fn an_answer_is_found_in_a_fence_below_prose_and_twice_but_never_of_two() {
        let done = r#"{"status":"done","summary":"It works: {x}.","children":null}"#;
        let review = r#"{"verdict":"accept","reasons":[]}"#;
        for text in [
            done.to_owned(),
            format!("```json\n{done}\n```\n"),
            format!("All {{tests}} pass, see {{\"a\": 1}}.\n\n{done}\n\nThat is it {{."),
            format!("{done}{done}"),
            format!("{done}\n{{ \"summary\": \"It works: {{x}}.\", \"status\": \"done\", \"children\": null }}"),
            format!("{review}\n{done}"),
        ] {
            assert_eq!(find_answer::<AgentAnswer>(&text), Some(done), "{text}");
        }
        let other = done.replace("done", "retry");
        let many = format!("{}{done}", "{ ".repeat(MAX_OBJECT_STARTS));
        for text in ["", "done", review, "{\"status\":\"done\"", &format!("{done}\n{other}"), &many] {
            assert_eq!(find_answer::<AgentAnswer>(text), None, "{text}");
        }
        assert_eq!(find_answer::<ReviewAnswer>(&format!("I accept it: {review}")), Some(review));
    }

    #[test]
    fn an_answer_may_leave_out_children_and_bring_usage() {
        let output = read_output(br#"{"status": "done", "summary": "x", "usage": {"in": 3, "output_tokens": 4}}"#)
            .expect("reads");
        assert_eq!(output.content.map(|answer| answer.status), Ok(AnswerStatus::Done));
        assert_eq!((output.usage.input_tokens, output.usage.output_tokens), (Some(3), Some(4)));
    }

    #[test]
    fn a_review_is_a_verdict_and_its_reasons() {
        let read = |text: &str| super::read_answer::<ReviewAnswer>(text.as_bytes(), &Secrets::default());
        let accepts = r#"{"verdict": "accept", "reasons": [], "usage": {"in": 3, "out": 4}}"#;
        let output = read(accepts).expect("reads");
        assert_eq!(output.content, Ok(ReviewAnswer { verdict: ReviewVerdict::Accept, reasons: Vec::new() }));
        assert_eq!(output.usage.input_tokens, Some(3));
        let wrong = |text: &str| read(text).expect_err(text).0;
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
        let error = read_output(text).expect("reads").content.expect_err("an error");
        assert_eq!(error.class, AgentErrorClass::Unavailable);
        assert!(error.until.is_some());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| read_output(text.as_bytes()).expect_err(text).0;
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
