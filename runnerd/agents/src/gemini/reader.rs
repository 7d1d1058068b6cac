//! Parses what `gemini` prints: an event per line, with text in pieces, and the totals in the last one.
//!
//! Unknown lines and fields are skipped: later versions have more of them.

use std::path::PathBuf;

use protocol::answer::SessionUsage;
use protocol::event::{Activity, ActivityKind};
use runner_core::feedback::clip_output;
use runner_core::files::answer::{AnswerForm, MAX_OUTPUT_BYTES};
use serde_json::Value;

use crate::answer_file;
use crate::backend::{OutputReader, SessionOutput, SessionRest};
use crate::evidence::EndEvidence;

/// Size limit in bytes of a step.
const MAX_TEXT: usize = 4 << 10;
/// Length limit of a session id in bytes.
const MAX_ID: usize = 128;
/// The parameters by which a tool call is described, the most telling first.
const KEY_PARAMETERS: [&str; 8] =
    ["command", "file_path", "absolute_path", "pattern", "dir_path", "path", "query", "prompt"];

/// What a session has printed so far.
#[derive(Debug)]
pub(super) struct GeminiReader {
    /// The file for the answer, which takes precedence over the text.
    output: PathBuf,
    /// The kind of answer asked for.
    form: AnswerForm,
    session_id: Option<String>,
    /// Text since the last tool call.
    last_text: String,
    /// The last error that did not end the session.
    last_error: Option<String>,
    result: Option<Value>,
}

impl OutputReader for GeminiReader {
    fn read_line(&mut self, line: &[u8]) -> Option<Activity> {
        let line: Value = serde_json::from_slice(line).ok()?;
        let text = |field: &str| line[field].as_str().unwrap_or_default();
        match line["type"].as_str()? {
            "init" => {
                self.session_id = Some(text("session_id").to_owned()).filter(|id| (1..=MAX_ID).contains(&id.len()));
                make_step(ActivityKind::Notice, &format!("gemini with {}", text("model")))
            }
            "message" if line["role"] == "assistant" => self.add_text(text("content")),
            "tool_use" => {
                self.last_text.clear();
                tool_step(text("tool_name"), &line["parameters"])
            }
            "tool_result" => {
                let text = line["output"].as_str().or_else(|| line["error"]["message"].as_str())?;
                make_step(ActivityKind::ToolResult, text)
            }
            "error" => {
                self.last_error = Some(text("message").to_owned());
                make_step(ActivityKind::Notice, text("message"))
            }
            "result" => {
                let activity = line["error"]["message"].as_str().and_then(|text| make_step(ActivityKind::Notice, text));
                self.result = Some(line);
                activity
            }
            _ => None,
        }
    }

    fn has_answered(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result["status"] == "success")
    }

    fn finish_output(self: Box<Self>, rest: &SessionRest<'_>) -> SessionOutput {
        SessionOutput {
            answer: self.final_answer(),
            evidence: self.collect_evidence(rest),
            usage: self.result.as_ref().map(|result| parse_usage(&result["stats"])).unwrap_or_default(),
            session_id: self.session_id,
            model: None,
        }
    }
}

impl GeminiReader {
    pub(super) fn new(output: PathBuf, form: AnswerForm) -> Self {
        Self { output, form, session_id: None, last_text: String::new(), last_error: None, result: None }
    }

    /// Takes a piece of text; it is only stored up to the size limit of an answer.
    fn add_text(&mut self, piece: &str) -> Option<Activity> {
        if self.last_text.len() + piece.len() <= MAX_OUTPUT_BYTES {
            self.last_text.push_str(piece);
        }
        make_step(ActivityKind::Message, piece)
    }

    /// Returns the answer in the last text, if no file contains one.
    fn final_answer(&self) -> Option<Vec<u8>> {
        self.has_answered().then(|| answer_file::find_text_answer(&self.last_text, self.form, &self.output))?
    }

    /// Collects what the program says about its service, apart from what the model says.
    fn collect_evidence(&self, rest: &SessionRest<'_>) -> EndEvidence {
        let mut evidence = EndEvidence::default();
        let error = self.result.as_ref().map_or(&Value::Null, |result| &result["error"]);
        let text = |field: &str| error[field].as_str().unwrap_or_default();
        evidence.add("type", text("type"));
        evidence.add("message", text("message"));
        evidence.add("message", self.last_error.as_deref().filter(|_| !self.has_answered()).unwrap_or_default());
        evidence.add("said", clip_output(&self.last_text, MAX_TEXT));
        evidence.add("stderr", String::from_utf8_lossy(rest.errors));
        evidence
    }
}

fn make_step(what: ActivityKind, text: &str) -> Option<Activity> {
    let text = text.trim();
    (!text.is_empty()).then(|| Activity { what, text: clip_output(text, MAX_TEXT) })
}

fn tool_step(name: &str, parameters: &Value) -> Option<Activity> {
    let key_parameter = KEY_PARAMETERS.iter().find_map(|field| parameters[field].as_str()).unwrap_or_default();
    match name {
        "run_shell_command" => make_step(ActivityKind::Tool, key_parameter),
        "write_file" | "replace" => make_step(ActivityKind::FileChange, key_parameter),
        _ => make_step(ActivityKind::Tool, &format!("{name} {key_parameter}")),
    }
}

/// Sums up the usage. The output count excludes the model's thinking, which is paid for and part of the total.
fn parse_usage(stats: &Value) -> SessionUsage {
    let number = |field: &str| stats[field].as_u64();
    let prompt = number("input_tokens");
    let cached = number("cached");
    let uncached = prompt.map(|prompt| prompt.saturating_sub(cached.unwrap_or(0)));
    let written = number("output_tokens");
    let beyond_prompt = number("total_tokens").zip(prompt).map(|(total, prompt)| total.saturating_sub(prompt));
    SessionUsage {
        input_tokens: uncached,
        cached_tokens: cached,
        output_tokens: written.map(|written| written.max(beyond_prompt.unwrap_or(0))),
        cost_micro_usd: None,
    }
}
