//! Parses a session of `codex`: its steps, its answer, and the evidence for classifying its end.

use std::fs;
use std::path::PathBuf;

use protocol::answer::SessionUsage;
use protocol::event::{Activity, ActivityKind};
use runner_core::files::answer::MAX_OUTPUT_BYTES;

use super::super::backend::{OutputReader, SessionOutput, SessionRest};
use super::super::evidence::EndEvidence;
use super::super::regular_file;
use super::events::{CodexEvent, CodexItem, CodexTokens};
use super::rollout::{self, CodexRollout};

/// Size limit in bytes of a step's text; viewers truncate it further.
const MAX_TEXT: usize = 64 << 10;
/// What `codex` calls the end of a session whose context is full.
const CONTEXT_FULL: &str = "context_window_exceeded";

/// Where a session leaves what it does not print.
#[derive(Debug, Default)]
pub(super) struct CodexPaths {
    /// The program's own folder.
    pub(super) home: Option<PathBuf>,
    /// The schema of the answer.
    pub(super) schema: PathBuf,
    /// The file of the last message.
    pub(super) last_message: PathBuf,
}

/// The state of parsing a session.
#[derive(Debug)]
pub(super) struct CodexReader {
    paths: CodexPaths,
    session: Option<String>,
    last_message: Option<String>,
    end: Option<TurnEnd>,
    /// An error that is final if nothing follows it, or why the program retries its service.
    error: Option<String>,
    commands: CommandCounts,
}

/// How the session's one turn ended.
#[derive(Debug)]
enum TurnEnd {
    Completed(Option<CodexTokens>),
    Failed(String),
}

/// How many of its commands succeeded and failed.
#[derive(Debug, Default)]
struct CommandCounts {
    succeeded: u32,
    failed: u32,
}

impl CodexReader {
    pub(super) fn new(paths: CodexPaths) -> Self {
        Self { paths, session: None, last_message: None, end: None, error: None, commands: CommandCounts::default() }
    }

    fn complete_turn(&mut self, usage: Option<CodexTokens>) -> Option<Activity> {
        self.end = Some(TurnEnd::Completed(usage));
        let CommandCounts { succeeded: worked, failed } = self.commands;
        let text = format!("none of its {failed} commands worked: its sandbox may not work here");
        (worked == 0 && failed > 1).then(|| notice_step(text))
    }

    fn start_item(item: CodexItem) -> Option<Activity> {
        let text = match item.kind.as_str() {
            "command_execution" => item.command?,
            "mcp_tool_call" => format!("{} {}", item.server.unwrap_or_default(), item.tool?),
            _ => return None,
        };
        Some(bounded_step(ActivityKind::Tool, text))
    }

    fn complete_item(&mut self, item: CodexItem) -> Option<Activity> {
        let is_failed = item.status.as_deref() == Some("failed");
        match item.kind.as_str() {
            "agent_message" => {
                let text = item.text?;
                self.last_message = Some(text.clone());
                Some(bounded_step(ActivityKind::Message, text))
            }
            "reasoning" => Some(bounded_step(ActivityKind::Reasoning, item.text?)),
            "command_execution" => {
                let count = if is_failed { &mut self.commands.failed } else { &mut self.commands.succeeded };
                *count += 1;
                let code = item.exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
                let output = item.aggregated_output.unwrap_or_default();
                let text = format!("{code}: {}\n{}", item.command?, output.trim_end());
                Some(bounded_step(ActivityKind::ToolResult, text.trim_end().to_owned()))
            }
            "mcp_tool_call" => {
                let how = if is_failed { "failed" } else { "completed" };
                Some(bounded_step(ActivityKind::ToolResult, format!("{how}: {}", item.tool?)))
            }
            "web_search" => Some(bounded_step(ActivityKind::Tool, format!("web search: {}", item.query?))),
            "file_change" => {
                let paths: Vec<String> = item.changes?.into_iter().map(|change| change.path).collect();
                Some(bounded_step(ActivityKind::FileChange, paths.join(", ")))
            }
            "error" => item.message.map(notice_step),
            _ => None,
        }
    }

    /// Returns the last message from the program's file, else from its output.
    fn take_answer(&mut self) -> Option<Vec<u8>> {
        if matches!(self.end, Some(TurnEnd::Failed(_))) {
            return None;
        }
        let written = regular_file::read_regular(&self.paths.last_message, MAX_OUTPUT_BYTES as u64 + 1).ok().flatten();
        let printed = self.last_message.take().map(String::into_bytes);
        written.filter(|bytes| !bytes.is_empty()).or(printed)
    }

    /// Collects the evidence for classifying the end; after a completed turn, only what is on standard error.
    fn collect_evidence(&mut self, rollout: &CodexRollout, rest: &SessionRest<'_>) -> EndEvidence {
        let mut evidence = EndEvidence::default();
        let failed = match self.end.take() {
            Some(TurnEnd::Completed(_)) => None,
            Some(TurnEnd::Failed(message)) => Some(message),
            None => Some(self.error.take().unwrap_or_default()),
        };
        if let Some(message) = failed {
            evidence.resets_at = rollout.resets_at;
            if let Some(cause) = &rollout.cause {
                evidence.add("error_info", cause.info_word());
                evidence.add("http_status", cause.http_status().map_or_else(String::new, |code| code.to_string()));
            } else if rollout.is_compacted {
                evidence.add("error_info", CONTEXT_FULL);
                evidence.add(
                    "message",
                    "the context of the model was full, and the session gave no answer after it was compacted",
                );
            }
            let written = rollout.cause.as_ref().map(|cause| cause.message.clone()).unwrap_or_default();
            evidence.add("message", if message.trim().is_empty() { written } else { message });
        }
        evidence.add("stderr", String::from_utf8_lossy(rest.errors));
        evidence
    }

    /// Removes the session's own files: what matters is elsewhere in the record, without secrets.
    fn remove_files(&self) {
        for path in [&self.paths.schema, &self.paths.last_message] {
            let _ = fs::remove_file(path);
        }
    }
}

impl OutputReader for CodexReader {
    fn read_line(&mut self, line: &[u8]) -> Option<Activity> {
        let event = CodexEvent::parse_line(line)?;
        match event.kind.as_str() {
            "thread.started" => self.session = event.thread_id,
            "item.started" => {
                self.error = None;
                return Self::start_item(event.item?);
            }
            "item.completed" => {
                self.error = None;
                return self.complete_item(event.item?);
            }
            "turn.completed" => return self.complete_turn(event.usage),
            "turn.failed" => {
                let message = event.error?.message;
                self.end = Some(TurnEnd::Failed(message.clone()));
                return Some(notice_step(message));
            }
            "error" => {
                let message = event.message?;
                self.error = Some(retry_cause(&message).to_owned());
                return Some(notice_step(message));
            }
            _ => {}
        }
        None
    }

    fn has_answered(&self) -> bool {
        matches!(self.end, Some(TurnEnd::Completed(_)))
    }

    fn finish_output(mut self: Box<Self>, rest: &SessionRest<'_>) -> SessionOutput {
        let session = self.session.take();
        let home = self.paths.home.as_deref();
        let rollout = home.zip(session.as_deref()).and_then(|(home, session)| rollout::take_rollout(home, session));
        let rollout = rollout.unwrap_or_default();
        let printed = match &self.end {
            Some(TurnEnd::Completed(usage)) => usage.map(SessionUsage::from),
            Some(TurnEnd::Failed(_)) | None => None,
        };
        let output = SessionOutput {
            answer: self.take_answer(),
            usage: printed.or(rollout.usage).unwrap_or_default(),
            session_id: session,
            model: rollout.model.clone(),
            evidence: self.collect_evidence(&rollout, rest),
        };
        self.remove_files();
        output
    }
}

/// Returns the reason from `Reconnecting... 1/5 (reason)`; any other message as a whole.
fn retry_cause(message: &str) -> &str {
    let why = message.strip_prefix("Reconnecting").and_then(|rest| rest.split_once('(')?.1.strip_suffix(')'));
    why.unwrap_or(message)
}

fn notice_step(text: String) -> Activity {
    bounded_step(ActivityKind::Notice, text)
}

/// Creates a step. A long text is cut between words, so that it does not show half a secret, which redaction would
/// miss.
fn bounded_step(what: ActivityKind, mut text: String) -> Activity {
    if text.len() > MAX_TEXT {
        let head = &text[..text.floor_char_boundary(MAX_TEXT)];
        text.truncate(head.rfind(char::is_whitespace).unwrap_or(0));
    }
    Activity { what, text }
}
