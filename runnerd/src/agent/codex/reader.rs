//! Follows a session of `codex`: what it does, what it answers, and what its end can be classed by.

use std::fs;
use std::path::PathBuf;

use protocol::answer::SessionUsage;
use protocol::event::{Activity, ActivityKind};
use runner_core::answer::MAX_OUTPUT_BYTES;

use super::super::backend::{Heard, Reader, Rest};
use super::super::evidence::Evidence;
use super::super::regular;
use super::events::{Event, Item, Tokens};
use super::rollout::{self, Rollout};

/// Longest text of a step, in bytes; whoever shows it takes less.
const MAX_TEXT: usize = 64 << 10;
/// What `codex` warns of, each time, because this program asks for it.
const ASKED_FOR: &str = "--dangerously-bypass-hook-trust";
/// How `codex` calls the end of a session whose context is full.
const CONTEXT_FULL: &str = "context_window_exceeded";

/// Where a session leaves what it does not print.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Its own folder.
    pub(super) home: Option<PathBuf>,
    /// What its answer had to look like.
    pub(super) schema: PathBuf,
    /// Its last message.
    pub(super) last: PathBuf,
    /// There if it was to be compacted.
    pub(super) mark: PathBuf,
}

/// Follows a session.
#[derive(Debug)]
pub(super) struct CodexReader {
    places: Places,
    session: Option<String>,
    last_message: Option<String>,
    end: Option<End>,
    /// An error that is final if nothing comes after it; why it asks its service again, while it waits to do so.
    error: Option<String>,
    commands: Commands,
}

/// How the session's one turn ended.
#[derive(Debug)]
enum End {
    Completed(Option<Tokens>),
    Failed(String),
}

/// How many of its commands worked.
#[derive(Debug, Default)]
struct Commands {
    worked: u32,
    failed: u32,
}

impl CodexReader {
    pub(super) fn new(places: Places) -> Self {
        Self { places, session: None, last_message: None, end: None, error: None, commands: Commands::default() }
    }

    fn completed(&mut self, usage: Option<Tokens>) -> Option<Activity> {
        self.end = Some(End::Completed(usage));
        let Commands { worked, failed } = self.commands;
        let text = format!("none of its {failed} commands worked: its sandbox may not work here");
        (worked == 0 && failed > 1).then(|| notice(text))
    }

    fn began(item: Item) -> Option<Activity> {
        let text = match item.kind.as_str() {
            "command_execution" => item.command?,
            "mcp_tool_call" => format!("{} {}", item.server.unwrap_or_default(), item.tool?),
            _ => return None,
        };
        Some(step(ActivityKind::Tool, text))
    }

    fn done(&mut self, item: Item) -> Option<Activity> {
        let is_failed = item.status.as_deref() == Some("failed");
        match item.kind.as_str() {
            "agent_message" => {
                let text = item.text?;
                self.last_message = Some(text.clone());
                Some(step(ActivityKind::Message, text))
            }
            "reasoning" => Some(step(ActivityKind::Reasoning, item.text?)),
            "command_execution" => {
                let count = if is_failed { &mut self.commands.failed } else { &mut self.commands.worked };
                *count += 1;
                let code = item.exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
                let output = item.aggregated_output.unwrap_or_default();
                let text = format!("{code}: {}\n{}", item.command?, output.trim_end());
                Some(step(ActivityKind::ToolResult, text.trim_end().to_owned()))
            }
            "mcp_tool_call" => {
                let how = if is_failed { "failed" } else { "completed" };
                Some(step(ActivityKind::ToolResult, format!("{how}: {}", item.tool?)))
            }
            "web_search" => Some(step(ActivityKind::Tool, format!("web search: {}", item.query?))),
            "file_change" => {
                let paths: Vec<String> = item.changes?.into_iter().map(|change| change.path).collect();
                Some(step(ActivityKind::FileChange, paths.join(", ")))
            }
            "error" => item.message.filter(|message| !message.contains(ASKED_FOR)).map(notice),
            _ => None,
        }
    }

    /// Returns the last message as the program has written it down, else as it has printed it.
    fn answer(&mut self) -> Option<Vec<u8>> {
        if matches!(self.end, Some(End::Failed(_))) {
            return None;
        }
        let written = regular::read(&self.places.last, MAX_OUTPUT_BYTES as u64 + 1).ok().flatten();
        let printed = self.last_message.take().map(String::into_bytes);
        written.filter(|bytes| !bytes.is_empty()).or(printed)
    }

    /// Collects what the end can be classed by; nothing after a turn that was completed but what is on standard error.
    fn evidence(&mut self, rollout: &Rollout, rest: &Rest<'_>) -> Evidence {
        let mut evidence = Evidence::default();
        let failed = match self.end.take() {
            Some(End::Completed(_)) => None,
            Some(End::Failed(message)) => Some(message),
            None => Some(self.error.take().unwrap_or_default()),
        };
        if let Some(message) = failed {
            evidence.resets_at = rollout.resets_at;
            if self.places.mark.exists() {
                evidence.add("error_info", CONTEXT_FULL);
                evidence.add("message", "the context of the model is full, and a session is not compacted");
            }
            if let Some(cause) = &rollout.cause {
                evidence.add("error_info", cause.info());
                evidence.add("http_status", cause.http_status().map_or_else(String::new, |code| code.to_string()));
            }
            let written = rollout.cause.as_ref().map(|cause| cause.message.clone()).unwrap_or_default();
            evidence.add("message", if message.trim().is_empty() { written } else { message });
        }
        evidence.add("stderr", String::from_utf8_lossy(rest.errors));
        evidence
    }

    /// Removes the session's own files: what counts of them stands elsewhere in the record, without secrets.
    fn clear(&self) {
        for path in [&self.places.schema, &self.places.last, &self.places.mark] {
            let _ = fs::remove_file(path);
        }
    }
}

impl Reader for CodexReader {
    fn line(&mut self, line: &[u8]) -> Option<Activity> {
        let event = Event::of(line)?;
        match event.kind.as_str() {
            "thread.started" => self.session = event.thread_id,
            "item.started" => {
                self.error = None;
                return Self::began(event.item?);
            }
            "item.completed" => {
                self.error = None;
                return self.done(event.item?);
            }
            "turn.completed" => return self.completed(event.usage),
            "turn.failed" => {
                let message = event.error?.message;
                self.end = Some(End::Failed(message.clone()));
                return Some(notice(message));
            }
            "error" => {
                let message = event.message?;
                self.error = Some(cause(&message).to_owned());
                return Some(notice(message));
            }
            _ => {}
        }
        None
    }

    fn has_answered(&self) -> bool {
        matches!(self.end, Some(End::Completed(_)))
    }

    fn finish(mut self: Box<Self>, rest: &Rest<'_>) -> Heard {
        let session = self.session.take();
        let home = self.places.home.as_deref();
        let rollout = home.zip(session.as_deref()).and_then(|(home, session)| rollout::take(home, session));
        let rollout = rollout.unwrap_or_default();
        let printed = match &self.end {
            Some(End::Completed(usage)) => usage.map(SessionUsage::from),
            Some(End::Failed(_)) | None => None,
        };
        let heard = Heard {
            answer: self.answer(),
            usage: printed.or(rollout.usage).unwrap_or_default(),
            session_id: session,
            model: rollout.model.clone(),
            evidence: self.evidence(&rollout, rest),
        };
        self.clear();
        heard
    }
}

/// Returns why the session asks again, of `Reconnecting... 1/5 (why)`; of any other message the whole.
fn cause(message: &str) -> &str {
    let why = message.strip_prefix("Reconnecting").and_then(|rest| rest.split_once('(')?.1.strip_suffix(')'));
    why.unwrap_or(message)
}

fn notice(text: String) -> Activity {
    step(ActivityKind::Notice, text)
}

/// A long text is cut between its words, so that no half of a secret is shown that could not be found any more.
fn step(what: ActivityKind, mut text: String) -> Activity {
    if text.len() > MAX_TEXT {
        let head = &text[..text.floor_char_boundary(MAX_TEXT)];
        text.truncate(head.rfind(char::is_whitespace).unwrap_or(0));
    }
    Activity { what, text }
}
