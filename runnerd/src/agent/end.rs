//! From what is left of a session to the facts of its end.

use std::path::PathBuf;

use protocol::answer::{AgentError, AgentErrorClass, SessionUsage};
use runner_core::feedback::clip;
use runner_core::redact::Secrets;
use runner_core::verdict::{FaultKind, SessionEnd, SessionHow};

use super::answer_file::{self, AnswerFile};
use super::backend::Heard;
use super::redact_answer;
use crate::config::ExecutorKind;
use crate::process::{Ended, Report};

/// Most bytes of an error that an agent states of itself.
const MAX_STATED: usize = 2_000;

/// What is needed to read what a session has left.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) output: PathBuf,
    pub(super) secrets: Secrets,
    pub(super) kind: ExecutorKind,
}

/// Returns the end of a session of which nothing is alive.
pub(super) fn of(report: &Report, heard: Heard, left: &Left, blank: SessionEnd) -> SessionEnd {
    let answer = answer(&heard, left);
    redact_answer(&left.output, &left.secrets);
    SessionEnd {
        how: how(report.ended, &answer, &said(&heard, left)),
        exit: match report.ended {
            Ended::Exited(code) => Some(code),
            Ended::Signaled(signal) => Some(-signal),
            Ended::TimedOut | Ended::Silent | Ended::Stopped | Ended::Lingered | Ended::SupervisorLost => None,
        },
        output_digest: answer.digest(),
        usage: usage(&answer, &heard, left.kind),
        elapsed_ms: u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
        captured_bytes: report.captured_bytes,
        dropped_bytes: report.dropped_bytes,
        log_fault: report.log_fault.as_ref().map(ToString::to_string),
        survivors: report.survivors,
        containment: report.containment,
        ..blank
    }
}

/// Returns the answer of the structured output, where that is one, else of the file; the record holds the one that counts.
fn answer(heard: &Heard, left: &Left) -> AnswerFile {
    let file = answer_file::read(&left.output, &left.secrets);
    let file = if left.kind == ExecutorKind::Command { file } else { file.without_stated_error() };
    let Some(bytes) = &heard.answer else { return file };
    let structured = answer_file::of(bytes, &left.secrets).without_stated_error();
    let file_counts = matches!((&structured, &file), (AnswerFile::Invalid { .. }, AnswerFile::Given { .. }));
    if file_counts {
        return file;
    }
    if let Err(error) = answer_file::replace(&left.output, bytes) {
        tracing::warn!(path = %left.output.display(), %error, "the record lacks the answer");
    }
    structured
}

/// A program of kind `command` states what it consumed beside its answer; nobody else is asked to.
fn usage(answer: &AnswerFile, heard: &Heard, kind: ExecutorKind) -> SessionUsage {
    if kind == ExecutorKind::Command { answer.usage() } else { heard.usage }
}

/// Classes the end of a session; what the agent states of itself comes before its exit code, and a budget that ran
/// out before all but an unavailable service.
fn how(ended: Ended, answer: &AnswerFile, said: &str) -> SessionHow {
    let fault = |kind: FaultKind, what: &str| SessionHow::Faulty { kind, what: format!("{what}{said}") };
    match (ended, answer) {
        (Ended::Stopped, _) => SessionHow::Cut,
        (Ended::TimedOut, answer) if !answer.is_unavailable() => SessionHow::TimedOut,
        (_, AnswerFile::Given { content: Err(stated), .. }) => stated_error(stated),
        (Ended::TimedOut, _) => SessionHow::TimedOut,
        (Ended::Silent, _) => fault(FaultKind::Silence, "it printed nothing for idle_timeout_secs"),
        (Ended::SupervisorLost, _) => fault(FaultKind::Crash, "its supervisor was killed"),
        (Ended::Signaled(signal), _) => fault(FaultKind::Crash, &format!("it died of signal {signal}")),
        (Ended::Exited(code), _) if code != 0 => fault(FaultKind::Exit, &format!("it exited with code {code}")),
        (Ended::Exited(_) | Ended::Lingered, AnswerFile::Absent) => fault(FaultKind::NoAnswer, "it gave no answer"),
        (Ended::Exited(_) | Ended::Lingered, AnswerFile::Invalid { what, .. }) => fault(FaultKind::InvalidAnswer, what),
        (Ended::Exited(_) | Ended::Lingered, AnswerFile::Given { content: Ok(answer), .. }) => {
            SessionHow::Answered(answer.clone())
        }
    }
}

/// Returns what the program says of its end, to be put behind what was seen.
fn said(heard: &Heard, left: &Left) -> String {
    let message = heard.evidence.message().map(|message| left.secrets.redact(message));
    message.map_or_else(String::new, |message| format!(": {}", clip(&message, MAX_STATED)))
}

fn stated_error(stated: &AgentError) -> SessionHow {
    let message = clip(&stated.message, MAX_STATED);
    match stated.class {
        AgentErrorClass::Unavailable => SessionHow::Unavailable { why: message, until: stated.until },
        AgentErrorClass::Misconfigured => SessionHow::Misconfigured { what: message },
        AgentErrorClass::ContextExceeded => SessionHow::ContextExceeded { what: message },
    }
}
