//! From what is left of a session to the facts of its end.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use protocol::answer::{AgentError, AgentErrorClass, SessionUsage};
use protocol::meta::SessionFailure;
use runner_core::answer::Answer;
use runner_core::failure::{explains, of_fault};
use runner_core::feedback::clip;
use runner_core::redact::Secrets;
use runner_core::reset_time::Clock;
use runner_core::verdict::{FaultKind, SessionEnd, SessionHow};

use super::answer_file::{self, AnswerFile};
use super::backend::Heard;
use super::evidence::Evidence;
use super::signatures::{self, KnownFailure};
use super::{redact_answer, zone};
use crate::clock;
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
    /// The zone of the times in its messages.
    pub(super) zone: TimeZone,
}

/// Returns the end of a session of which nothing is alive.
pub(super) fn of<A: Answer + Clone>(report: &Report, heard: Heard, left: &Left, blank: SessionEnd<A>) -> SessionEnd<A> {
    let written = answer_file::age(&left.output, clock::now());
    let answer = answer(&heard, left);
    redact_answer(&left.output, &left.secrets);
    let (how, failure) = left.judge(report.ended, &answer, with_exit(heard.evidence, report.ended));
    // What came after an answer that was given in time is nobody's work: the sleep of a machine, or of the daemon.
    let taken = match (&how, report.ended) {
        (SessionHow::Answered(_), Ended::TimedOut) => {
            let by_file = written.map_or(report.elapsed, |age| report.elapsed.saturating_sub(age));
            report.answered.map_or(by_file, |seen| seen.min(by_file))
        }
        _ => report.elapsed,
    };
    SessionEnd {
        how,
        failure: failure.map(Box::new),
        exit: match report.ended {
            Ended::Exited(code) => Some(code),
            Ended::Signaled(signal) => Some(-signal),
            Ended::TimedOut | Ended::Silent | Ended::Stopped | Ended::Lingered | Ended::SupervisorLost => None,
        },
        session_id: heard.session_id,
        model: heard.model,
        output_digest: answer.digest(),
        usage: usage(&answer, heard.usage, left.kind),
        elapsed_ms: u64::try_from(taken.as_millis()).unwrap_or(u64::MAX),
        captured_bytes: report.captured_bytes,
        dropped_bytes: report.dropped_bytes,
        log_fault: report.log_fault.as_ref().map(ToString::to_string),
        survivors: report.survivors,
        containment: report.containment,
        ..blank
    }
}

/// Adds the exit code, by which some programs tell why they ended.
fn with_exit(mut evidence: Evidence, ended: Ended) -> Evidence {
    if let Ended::Exited(code @ 1..) = ended {
        evidence.add("exit_code", code.to_string());
    }
    evidence
}

impl Left {
    /// Classes the end of a session by how it ended and what it has said; returns what the record keeps of a failure, too.
    fn judge<A: Clone>(
        &self,
        ended: Ended,
        answer: &AnswerFile<A>,
        evidence: Evidence,
    ) -> (SessionHow<A>, Option<SessionFailure>) {
        let evidence = evidence.redacted(&self.secrets);
        let clock = Clock { now: clock::now(), local: self.zone.clone(), zone: &zone::find };
        let seen = how(ended, answer, &said(&evidence));
        let known = signatures::classify(self.kind, &evidence, &clock);
        // Of a session whose supervisor was killed, nobody saw the end.
        let known = known.filter(|known| ended != Ended::SupervisorLost && explains(known.failure.class, &seen));
        let failure = failure(&seen, known.as_ref(), &evidence);
        (known.map_or(seen, |known| known.failure.how()), failure)
    }
}

/// Returns the answer of the structured output, where that is one, else of the file; the record holds the one that counts.
fn answer<A: Answer>(heard: &Heard, left: &Left) -> AnswerFile<A> {
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
fn usage<A>(answer: &AnswerFile<A>, heard: SessionUsage, kind: ExecutorKind) -> SessionUsage {
    if kind == ExecutorKind::Command { answer.usage() } else { heard }
}

/// Classes the end of a session; what the agent states of itself comes before its exit code, and a budget that ran
/// out before all but a valid answer and an unavailable service.
fn how<A: Clone>(ended: Ended, answer: &AnswerFile<A>, said: &str) -> SessionHow<A> {
    let fault = |kind: FaultKind, what: &str| SessionHow::Faulty { kind, what: format!("{what}{said}") };
    match (ended, answer) {
        (Ended::Stopped, _) => SessionHow::Cut,
        // It was there before the end of the budget took the program: who would have heard of it was asleep or stopped.
        (Ended::TimedOut, AnswerFile::Given { content: Ok(answer), .. }) => SessionHow::Answered(answer.clone()),
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

/// Returns what the record keeps of a failure: its class where there is one, and what there was to tell it by.
fn failure<A>(seen: &SessionHow<A>, known: Option<&KnownFailure>, evidence: &Evidence) -> Option<SessionFailure> {
    let class = match seen {
        SessionHow::Answered(_) | SessionHow::Cut => return None,
        SessionHow::Faulty { kind, .. } => known.map(|known| known.failure.class).or_else(|| of_fault(*kind)),
        SessionHow::TimedOut
        | SessionHow::Unavailable { .. }
        | SessionHow::Misconfigured { .. }
        | SessionHow::ContextExceeded { .. } => known.map(|known| known.failure.class),
    };
    let (signature, until) = (known.map(|known| known.signature.clone()), known.and_then(|known| known.failure.until));
    let shown = evidence.shown();
    (class.is_some() || !shown.is_empty()).then_some(SessionFailure { class, signature, until, evidence: shown })
}

/// Returns what the program says of its end, to be put behind what was seen.
fn said(evidence: &Evidence) -> String {
    evidence.message().map_or_else(String::new, |message| format!(": {}", clip(message, MAX_STATED)))
}

fn stated_error<A>(stated: &AgentError) -> SessionHow<A> {
    let message = clip(&stated.message, MAX_STATED);
    match stated.class {
        AgentErrorClass::Unavailable => SessionHow::Unavailable { why: message, until: stated.until },
        AgentErrorClass::Misconfigured => SessionHow::Misconfigured { what: message },
        AgentErrorClass::ContextExceeded => SessionHow::ContextExceeded { what: message },
    }
}

#[cfg(test)]
mod tests {
    use protocol::answer::AgentAnswer;
    use protocol::words::FailureClass;
    use tempfile::TempDir;

    use super::*;

    const ANSWER: &str = r#"{"status": "done", "summary": "all of it", "children": null}"#;
    const LIMIT: &[(&str, &str)] =
        &[("error_info", "usage_limit_exceeded"), ("message", "You have hit it. Try again in 3 hours.")];
    const WRONG_KEY: &[(&str, &str)] =
        &[("http_status", "401"), ("message", "Incorrect API key provided: geheim-1234567890")];
    const UNHEARD: &[(&str, &str)] = &[("error_info", "other"), ("message", "something is new")];

    /// Returns the end of a session of codex that has said something and given an answer or none.
    fn end(ended: Ended, signals: &[(&'static str, &str)], answer: Option<&str>) -> (SessionHow, SessionFailure) {
        let folder = TempDir::new().unwrap();
        let mut evidence = Evidence::default();
        for (field, value) in signals {
            evidence.add(field, *value);
        }
        let heard = Heard { evidence, answer: answer.map(|text| text.as_bytes().to_vec()), ..Heard::default() };
        let left = Left {
            output: folder.path().join("output.json"),
            secrets: Secrets::of([("API_KEY", "geheim-1234567890")]).unwrap(),
            kind: ExecutorKind::Codex,
            zone: TimeZone::UTC,
        };
        let answer = super::answer::<AgentAnswer>(&heard, &left);
        let (how, failure) = left.judge(ended, &answer, heard.evidence);
        (how, failure.unwrap_or(SessionFailure { class: None, signature: None, until: None, evidence: Vec::new() }))
    }

    #[test]
    fn what_the_program_says_of_its_end_explains_it() {
        let (how, failure) = end(Ended::Exited(1), LIMIT, None);
        let SessionHow::Unavailable { until: Some(until), .. } = how else { panic!("it is waited for: {how:?}") };
        assert_eq!((failure.class, failure.until), (Some(FailureClass::UsageLimit), Some(until)));
        assert_eq!(failure.signature.as_deref(), Some("codex error_info equals `usage_limit_exceeded`"));
        let (how, failure) = end(Ended::Exited(1), WRONG_KEY, None);
        let SessionHow::Misconfigured { what } = how else { panic!("only a person mends it: {how:?}") };
        assert!(what.contains("codex login") && !what.contains("geheim-1234567890"), "{what}");
        assert!(!failure.evidence.concat().contains("geheim-1234567890"), "{failure:?}");
    }

    #[test]
    fn what_nobody_knows_is_a_fault_that_shows_it() {
        let (how, failure) = end(Ended::Exited(1), UNHEARD, None);
        assert!(matches!(how, SessionHow::Faulty { kind: FaultKind::Exit, .. }), "{how:?}");
        assert_eq!(failure.class, None);
        assert_eq!(failure.evidence, ["error_info: other", "message: something is new"]);
    }

    #[test]
    fn an_answer_of_a_session_that_ended_in_order_counts_whatever_it_said_before() {
        for ended in [Ended::Exited(0), Ended::Lingered] {
            let (how, failure) = end(ended, LIMIT, Some(ANSWER));
            assert!(matches!(how, SessionHow::Answered(_)), "{how:?}");
            assert_eq!(failure.evidence, Vec::<String>::new());
        }
    }

    #[test]
    fn an_answer_counts_though_the_budget_ran_out_before_anybody_looked() {
        let (how, _) = end(Ended::TimedOut, &[], Some(ANSWER));
        assert!(matches!(how, SessionHow::Answered(_)), "{how:?}");
        assert_eq!(end(Ended::TimedOut, &[], Some("no answer")).0, SessionHow::TimedOut);
    }

    #[test]
    fn a_session_that_was_ended_is_explained_only_by_a_service_that_is_out() {
        for ended in [Ended::TimedOut, Ended::Silent] {
            assert!(matches!(end(ended, LIMIT, None).0, SessionHow::Unavailable { .. }), "{ended:?}");
        }
        assert_eq!(end(Ended::TimedOut, WRONG_KEY, None).0, SessionHow::TimedOut);
        let (how, failure) = end(Ended::Silent, WRONG_KEY, None);
        assert!(matches!(how, SessionHow::Faulty { kind: FaultKind::Silence, .. }), "{how:?}");
        assert_eq!(failure.class, Some(FailureClass::Hung));
        assert_eq!(end(Ended::Stopped, LIMIT, None).0, SessionHow::Cut);
        let (how, _) = end(Ended::SupervisorLost, LIMIT, None);
        assert!(matches!(how, SessionHow::Faulty { kind: FaultKind::Crash, .. }), "{how:?}");
    }
}
