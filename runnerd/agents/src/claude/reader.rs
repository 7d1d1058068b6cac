//! Parses what `claude` prints: a line of JSON per step, the last of which has the answer and the totals.
//!
//! Unknown lines and fields are skipped: later versions have more of them.

use std::path::PathBuf;

use jiff::Timestamp;
use protocol::event::Activity;
use runner_core::files::answer::AnswerForm;
use serde_json::Value;

use super::activity;
use super::usage::UsageMeter;
use crate::answer_file;
use crate::backend::{OutputReader, SessionOutput, SessionRest};
use crate::evidence::EndEvidence;

/// Length limit of a session id in bytes.
const MAX_ID: usize = 128;

/// Fields of a line that say why the session ended, the most telling first.
const STRUCTURED_FIELDS: [&str; 5] = ["api_error_status", "error", "api_error", "terminal_reason", "subtype"];

/// Why the model stops when nothing is wrong.
const NORMAL_REASONS: [&str; 3] = ["end_turn", "stop_sequence", "tool_use"];

/// What a session has printed so far.
#[derive(Debug, Default)]
pub(super) struct ClaudeReader {
    /// The file for the answer, which takes precedence over the text.
    output: PathBuf,
    /// The kind of answer asked for.
    form: AnswerForm,
    meter: UsageMeter,
    session_id: Option<String>,
    answer: Option<Value>,
    /// The last line of all, without the answer; a background command may cause a second one.
    result: Option<Value>,
    /// An unresolved failure of the model's service.
    fault: Option<Value>,
    resets_at: Option<Timestamp>,
}

impl OutputReader for ClaudeReader {
    fn read_line(&mut self, line: &[u8]) -> Option<Activity> {
        let line: Value = serde_json::from_slice(line).ok()?;
        if let Some(id) = line["session_id"].as_str().filter(|id| id.len() <= MAX_ID) {
            self.session_id = Some(id.to_owned());
        }
        let activity = activity::parse_activity(&line);
        match line["type"].as_str()? {
            "assistant" => self.record_message(line),
            "system" if line["subtype"] == "api_retry" => self.fault = Some(retry_fault(&line)),
            "rate_limit_event" => self.record_limit(&line["rate_limit_info"]),
            "result" => self.record_result(line),
            _ => {}
        }
        activity
    }

    fn has_answered(&self) -> bool {
        self.answer.is_some()
    }

    fn finish_output(self: Box<Self>, rest: &SessionRest<'_>) -> SessionOutput {
        SessionOutput {
            evidence: self.collect_evidence(rest),
            answer: self.final_answer(),
            session_id: self.session_id,
            model: None,
            usage: self.meter.usage(),
        }
    }
}

impl ClaudeReader {
    pub(super) fn new(output: PathBuf, form: AnswerForm) -> Self {
        Self { output, form, ..Self::default() }
    }

    /// Returns the structured answer, else the one in the last text.
    fn final_answer(&self) -> Option<Vec<u8>> {
        let message = || {
            let text = self.result.as_ref().filter(|line| !is_error(line))?["result"].as_str()?;
            answer_file::find_text_answer(text, self.form, &self.output)
        };
        self.answer.as_ref().map(|answer| answer.to_string().into_bytes()).or_else(message)
    }

    fn record_message(&mut self, line: Value) {
        self.meter.count_message(&line["message"]);
        self.fault = line["error"].is_string().then_some(line);
    }

    /// Updates the state of a limit; a session may be admitted again after it was refused.
    fn record_limit(&mut self, info: &Value) {
        let is_refused = info["status"] == "rejected";
        self.resets_at = is_refused.then(|| activity::resets_at(info)).flatten();
    }

    fn record_result(&mut self, mut line: Value) {
        self.meter.count_result(&line);
        let answer = line.get_mut("structured_output").map(Value::take);
        if let Some(answer) = answer.filter(|answer| !answer.is_null() && !is_error(&line)) {
            self.answer = Some(answer);
        }
        self.result = Some(line);
    }

    /// Collects what the program says about its service and itself, apart from what the model says: a model that talks
    /// of limits has not hit one.
    fn collect_evidence(&self, rest: &SessionRest<'_>) -> EndEvidence {
        let mut evidence = EndEvidence { resets_at: self.resets_at, ..EndEvidence::default() };
        let result = self.result.as_ref();
        let fault = self.fault.as_ref();
        for field in STRUCTURED_FIELDS {
            let value = [result, fault].into_iter().flatten().find_map(|line| scalar_text(&line[field]));
            evidence.add(field, value.unwrap_or_default());
        }
        let reason = result.and_then(|line| line["stop_reason"].as_str());
        evidence.add("stop_reason", reason.filter(|reason| !NORMAL_REASONS.contains(reason)).unwrap_or_default());
        let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
        let errors = result.map(|line| join_texts(&line["errors"])).unwrap_or_default();
        match result {
            Some(line) if is_error(line) && line["result"].is_string() => evidence.add("message", text(line, "result")),
            Some(line) if is_error(line) => evidence.add("message", errors.as_str()),
            Some(line) => evidence.add("said", text(line, "result")),
            None => evidence.add("message", fault.map(message_text).unwrap_or_default()),
        }
        evidence.add("errors", errors);
        evidence.add("stderr", String::from_utf8_lossy(rest.errors));
        evidence
    }
}

/// Converts a retry line to the field names of a failure.
fn retry_fault(line: &Value) -> Value {
    serde_json::json!({ "api_error_status": line["error_status"], "error": line["error"] })
}

fn is_error(result: &Value) -> bool {
    result["is_error"] == true || result["subtype"].as_str().is_some_and(|subtype| subtype != "success")
}

/// Returns a string or a number as text; anything else is not a signal.
fn scalar_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}

fn join_texts(values: &Value) -> String {
    let texts = values.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.collect::<Vec<_>>().join("\n")
}

fn message_text(line: &Value) -> String {
    let contents = line["message"]["content"].as_array();
    let text = contents.into_iter().flatten().find_map(|content| content["text"].as_str());
    text.unwrap_or_default().to_owned()
}
