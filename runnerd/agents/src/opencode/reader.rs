//! Parses what `opencode run --format json` prints: an event per line.
//!
//! Unknown lines and fields are skipped: later versions have more of them.

use std::path::PathBuf;

use protocol::answer::SessionUsage;
use protocol::event::{Activity, ActivityKind};
use runner_core::feedback::clip_output;
use runner_core::files::answer::AnswerForm;
use serde::Deserialize;
use serde_json::Value;

use crate::answer_file;
use crate::backend::{OutputReader, SessionOutput, SessionRest};
use crate::evidence::EndEvidence;

/// Size limit in bytes of a step's text; viewers truncate it further.
const MAX_TEXT: usize = 64 << 10;
/// Words before the reply of its service in a line of its log.
const SERVICE_ERROR: &str = "AI_APICallError: ";
/// Number of such replies in a row after which a session ends: the program would ask again for ever.
const MAX_REFUSALS: u32 = 3;
/// Why a step ends when nothing is wrong.
const NORMAL_REASONS: [&str; 2] = ["stop", "tool-calls"];
/// Micro-dollars in a dollar.
const MICROS_PER_DOLLAR: f64 = 1_000_000.0;

/// What a session has printed so far.
#[derive(Debug)]
pub(super) struct OpencodeReader {
    /// The file for the answer, which takes precedence over the text.
    output: PathBuf,
    /// The kind of answer asked for.
    form: AnswerForm,
    session: Option<String>,
    /// The last text.
    last_text: Option<String>,
    usage: SessionUsage,
    cost: f64,
    error: Option<OpencodeFailure>,
    /// Why its last step ended.
    finish_reason: Option<String>,
    /// What its service has replied in the place of an event, and how often in a row.
    refusal: Option<(String, u32)>,
}

/// A line of output: an event.
#[derive(Debug, Deserialize)]
struct OpencodeEvent {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "sessionID")]
    session: Option<String>,
    part: Option<OpencodePart>,
    error: Option<OpencodeFailure>,
}

/// What a step consists of.
#[derive(Debug, Deserialize)]
struct OpencodePart {
    text: Option<String>,
    tool: Option<String>,
    state: Option<OpencodeTool>,
    reason: Option<String>,
    tokens: Option<OpencodeTokens>,
    cost: Option<f64>,
}

/// A tool call, reported when it is over.
#[derive(Debug, Deserialize)]
struct OpencodeTool {
    status: Option<String>,
    title: Option<String>,
}

/// Tokens of one reply; thinking is not included in the output.
#[derive(Debug, Deserialize)]
struct OpencodeTokens {
    input: u64,
    output: u64,
    #[serde(default)]
    reasoning: u64,
    cache: Option<OpencodeCache>,
}

#[derive(Debug, Deserialize)]
struct OpencodeCache {
    #[serde(default)]
    read: u64,
    #[serde(default)]
    write: u64,
}

/// Why a session failed.
#[derive(Debug, Deserialize)]
struct OpencodeFailure {
    #[serde(default)]
    name: String,
    #[serde(default)]
    data: Value,
}

impl OpencodeReader {
    pub(super) fn new(output: PathBuf, form: AnswerForm) -> Self {
        let usage = SessionUsage::default();
        Self {
            output,
            form,
            session: None,
            last_text: None,
            usage,
            cost: 0.0,
            error: None,
            finish_reason: None,
            refusal: None,
        }
    }

    fn add_usage(&mut self, part: &OpencodePart) {
        self.finish_reason.clone_from(&part.reason);
        self.cost += part.cost.filter(|cost| *cost > 0.0).unwrap_or_default();
        let Some(tokens) = &part.tokens else { return };
        let (read, write) = tokens.cache.as_ref().map_or((0, 0), |cache| (cache.read, cache.write));
        let add = |sum: &mut Option<u64>, more: u64| *sum = Some(sum.unwrap_or(0).saturating_add(more));
        add(&mut self.usage.input_tokens, tokens.input.saturating_add(write));
        add(&mut self.usage.cached_tokens, read);
        add(&mut self.usage.output_tokens, tokens.output.saturating_add(tokens.reasoning));
    }

    fn is_complete(&self) -> bool {
        self.finish_reason.as_deref() == Some("stop") && self.error.is_none()
    }

    /// Returns the answer in the last text, if no file contains one.
    fn final_answer(&self) -> Option<Vec<u8>> {
        let text = self.last_text.as_deref().filter(|_| self.is_complete())?;
        answer_file::find_text_answer(text, self.form, &self.output)
    }

    fn collect_evidence(&self, rest: &SessionRest<'_>) -> EndEvidence {
        let mut evidence = EndEvidence::default();
        if let Some(OpencodeFailure { name, data }) = &self.error {
            evidence.add("error_name", name.as_str());
            evidence.add("http_status", data["statusCode"].as_u64().map_or_else(String::new, |code| code.to_string()));
            evidence.add("message", data["message"].as_str().unwrap_or(name));
        } else if let Some((message, _)) = self.refusal.as_ref().filter(|_| !self.is_complete()) {
            evidence.add("message", message.as_str());
        }
        let reason = self.finish_reason.as_deref().filter(|reason| !NORMAL_REASONS.contains(reason));
        evidence.add("finish_reason", reason.unwrap_or_default());
        evidence.add("stderr", String::from_utf8_lossy(rest.errors));
        evidence
    }
}

impl OutputReader for OpencodeReader {
    fn read_line(&mut self, line: &[u8]) -> Option<Activity> {
        let OpencodeEvent { kind, session, part, error } = serde_json::from_slice(line).ok()?;
        self.session = session.or(self.session.take());
        // Once it has been given up, it is being ended.
        self.refusal.take_if(|(_, count)| *count < MAX_REFUSALS);
        match kind.as_str() {
            "step_start" => self.finish_reason = None,
            "step_finish" => self.add_usage(&part?),
            "text" => {
                let text = part?.text?;
                self.last_text = Some(text.clone());
                return bounded_step(ActivityKind::Message, text);
            }
            "reasoning" => return bounded_step(ActivityKind::Reasoning, part?.text?),
            "tool_use" => {
                let OpencodePart { tool, state, .. } = part?;
                let OpencodeTool { status, title } = state?;
                let status = status.unwrap_or_default();
                let title = title.unwrap_or_default();
                return bounded_step(ActivityKind::ToolResult, format!("{status}: {} {title}", tool?));
            }
            "error" => {
                let failure = error?;
                let text = failure.data["message"].as_str().unwrap_or(&failure.name).to_owned();
                self.error = Some(failure);
                return bounded_step(ActivityKind::Notice, text);
            }
            _ => {}
        }
        None
    }

    fn read_error_line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let Some((_, message)) = line.split_once(SERVICE_ERROR) else { return };
        let message = message.split_once('"').map_or(message, |(message, _)| message);
        let count = self.refusal.take().map_or(0, |(_, count)| count);
        self.refusal = Some((clip_output(message, MAX_TEXT), count.saturating_add(1)));
    }

    fn has_answered(&self) -> bool {
        self.is_complete() || self.refusal.as_ref().is_some_and(|(_, count)| *count >= MAX_REFUSALS)
    }

    fn finish_output(mut self: Box<Self>, rest: &SessionRest<'_>) -> SessionOutput {
        // A cost of zero is an unknown one.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sums of what is above nothing")]
        let cost = (self.cost > 0.0).then(|| (self.cost * MICROS_PER_DOLLAR).round() as u64);
        SessionOutput {
            answer: self.final_answer(),
            usage: SessionUsage { cost_micro_usd: cost, ..self.usage },
            evidence: self.collect_evidence(rest),
            session_id: self.session.take(),
            model: None,
        }
    }
}

/// Creates a step. A long text is cut between words, so that it does not show half a secret, which redaction would
/// miss.
fn bounded_step(what: ActivityKind, mut text: String) -> Option<Activity> {
    if text.len() > MAX_TEXT {
        let head = &text[..text.floor_char_boundary(MAX_TEXT)];
        text.truncate(head.rfind(char::is_whitespace).unwrap_or(0));
    }
    (!text.trim().is_empty()).then_some(Activity { what, text })
}
