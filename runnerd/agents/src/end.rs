//! Turns what is left of a session into the facts of its end.

use std::path::PathBuf;
use std::time::Duration;

use jiff::tz::TimeZone;
use protocol::answer::{AgentError, AgentErrorClass, SessionUsage};
use protocol::meta::SessionFailure;
use protocol::words::FailureClass;
use runner_config::ExecutorKind;
use runner_core::feedback::clip_output;
use runner_core::files::answer::{self, SessionAnswer};
use runner_core::iteration::session_failure::{ClassifiedFailure, class_of_fault, explains_end, is_waited_for};
use runner_core::text::redact::Secrets;
use runner_core::text::reset_time::Clock;
use runner_core::verdict::{FaultKind, SessionEnd, SessionEndKind};
use runner_os::clock;
use runner_process::{ProgramEnd, ProgramReport};

use super::answer_file::{self, AnswerFile};
use super::backend::SessionOutput;
use super::evidence::EndEvidence;
use super::signatures::{self, KnownFailure};
use super::{redact_answer, zone};

/// Size limit in bytes of an error reported by an agent itself.
const MAX_STATED_BYTES: usize = 2_000;

/// What is needed to read what a session has left.
#[derive(Debug)]
pub(super) struct SessionLeftovers {
    pub(super) output: PathBuf,
    pub(super) secrets: Secrets,
    pub(super) kind: ExecutorKind,
    /// The time zone of the times in its messages.
    pub(super) zone: TimeZone,
}

/// Returns the end of a session of which no process is alive.
pub(super) fn session_end<A: SessionAnswer + Clone>(
    report: &ProgramReport,
    output: SessionOutput,
    leftovers: &SessionLeftovers,
    blank: SessionEnd<A>,
) -> SessionEnd<A> {
    let answer_age = answer_file::file_age(&leftovers.output, clock::now());
    let answer = choose_answer(&output, leftovers);
    redact_answer(&leftovers.output, &leftovers.secrets);
    let evidence = with_exit_code(output.evidence, report.end);
    let (how, failure) = leftovers.classify_end(report.end, &answer, evidence, &output.usage, report.elapsed);
    // Time after a timely answer is charged to no one: the machine slept, or the daemon did.
    let elapsed = match (&how, report.end) {
        (SessionEndKind::Answered(_), ProgramEnd::TimedOut) => {
            let by_file = answer_age.map_or(report.elapsed, |age| report.elapsed.saturating_sub(age));
            report.answered.map_or(by_file, |seen| seen.min(by_file))
        }
        _ => report.elapsed,
    };
    SessionEnd {
        how,
        failure: failure.map(Box::new),
        exit: match report.end {
            ProgramEnd::Exited(code) => Some(code),
            ProgramEnd::Signaled(signal) => Some(-signal),
            ProgramEnd::TimedOut
            | ProgramEnd::Silent
            | ProgramEnd::Stopped
            | ProgramEnd::Lingered
            | ProgramEnd::SupervisorLost => None,
        },
        session_id: output.session_id,
        model: output.model,
        output_digest: answer.digest(),
        usage: session_usage(&answer, output.usage, leftovers.kind),
        elapsed_ms: elapsed_ms(elapsed),
        captured_bytes: report.captured_bytes,
        dropped_bytes: report.dropped_bytes,
        log_fault: report.log_fault.as_ref().map(ToString::to_string),
        survivors: report.survivors,
        containment: report.containment,
        ..blank
    }
}

fn elapsed_ms(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Adds the exit code, by which some programs say why they ended.
fn with_exit_code(mut evidence: EndEvidence, ended: ProgramEnd) -> EndEvidence {
    if let ProgramEnd::Exited(code @ 1..) = ended {
        evidence.add("exit_code", code.to_string());
    }
    evidence
}

impl SessionLeftovers {
    /// Classifies the end of a session by how it ended and what it printed; also returns the record's entry for a
    /// failure.
    fn classify_end<A: Clone>(
        &self,
        ended: ProgramEnd,
        answer: &AnswerFile<A>,
        evidence: EndEvidence,
        usage: &SessionUsage,
        elapsed: Duration,
    ) -> (SessionEndKind<A>, Option<SessionFailure>) {
        let evidence = evidence.redact_signals(&self.secrets);
        let clock = Clock { now: clock::now(), local: self.zone.clone(), zone: &zone::zone_by_name };
        let observed = end_kind(ended, answer, &message_suffix(&evidence));
        let known = signatures::classify(self.kind, &evidence, &clock)
            .filter(|known| explains_end(known.failure.class, &observed))
            .or_else(|| self.unexplained_failure(&observed, usage, elapsed_ms(elapsed)))
            // If the supervisor was killed, no one saw the session's end.
            .filter(|_| ended != ProgramEnd::SupervisorLost);
        let failure = session_failure(&observed, known.as_ref(), &evidence);
        (known.map_or(observed, |known| known.failure.end_kind()), failure)
    }

    /// Returns the failure of a session that is tried again later although no rule explains it. A program of kind
    /// `command` is a person's own: its faults are theirs to mend.
    fn unexplained_failure<A>(
        &self,
        observed: &SessionEndKind<A>,
        usage: &SessionUsage,
        elapsed_ms: u64,
    ) -> Option<KnownFailure> {
        let SessionEndKind::Faulty { kind, what } = observed else { return None };
        let is_tried_again = self.kind != ExecutorKind::Command && is_waited_for(*kind, usage, elapsed_ms);
        is_tried_again.then(|| KnownFailure {
            failure: ClassifiedFailure { class: FailureClass::Unexplained, why: what.clone(), until: None, fix: None },
            signature: None,
        })
    }
}

/// Returns the answer of the structured output if valid, else that of the file; the record contains the one that
/// counts.
fn choose_answer<A: SessionAnswer>(output: &SessionOutput, leftovers: &SessionLeftovers) -> AnswerFile<A> {
    let file = answer_file::read_answer(&leftovers.output, &leftovers.secrets);
    let file = if leftovers.kind == ExecutorKind::Command { file } else { file.without_stated_error() };
    let Some(bytes) = &output.answer else { return file };
    // It may be wrapped in prose, or in a code fence.
    let found = str::from_utf8(bytes).ok().and_then(answer::find_answer::<A>);
    let bytes = found.map_or(&bytes[..], str::as_bytes);
    let structured = answer_file::parse_answer(bytes, &leftovers.secrets).without_stated_error();
    let file_counts = matches!((&structured, &file), (AnswerFile::Invalid { .. }, AnswerFile::Given { .. }));
    if file_counts {
        return file;
    }
    if let Err(error) = answer_file::replace_file(&leftovers.output, bytes) {
        tracing::warn!(path = %leftovers.output.display(), %error, "the record lacks the answer");
    }
    structured
}

/// Returns the usage. A program of kind `command` reports it in its answer; other kinds are not asked to.
fn session_usage<A>(answer: &AnswerFile<A>, reported: SessionUsage, kind: ExecutorKind) -> SessionUsage {
    if kind == ExecutorKind::Command { answer.usage() } else { reported }
}

/// Classifies the end of a session; the agent's own report takes precedence over its exit code, and an exhausted budget
/// over everything but a valid answer and an unavailable service.
fn end_kind<A: Clone>(ended: ProgramEnd, answer: &AnswerFile<A>, suffix: &str) -> SessionEndKind<A> {
    let fault = |kind: FaultKind, what: &str| SessionEndKind::Faulty { kind, what: format!("{what}{suffix}") };
    match (ended, answer) {
        (ProgramEnd::Stopped, _) => SessionEndKind::Cut,
        // The answer existed before the budget ran out: the daemon or the machine was asleep or stopped.
        (ProgramEnd::TimedOut, AnswerFile::Given { content: Ok(answer), .. }) => {
            SessionEndKind::Answered(answer.clone())
        }
        (ProgramEnd::TimedOut, answer) if !answer.is_unavailable() => SessionEndKind::TimedOut,
        (_, AnswerFile::Given { content: Err(stated), .. }) => stated_error_end(stated),
        (ProgramEnd::TimedOut, _) => SessionEndKind::TimedOut,
        (ProgramEnd::Silent, _) => fault(FaultKind::Silence, "it printed nothing for idle_timeout_secs"),
        (ProgramEnd::SupervisorLost, _) => fault(FaultKind::Crash, "its supervisor was killed"),
        (ProgramEnd::Signaled(signal), _) => fault(FaultKind::Crash, &format!("it died of signal {signal}")),
        (ProgramEnd::Exited(code), _) if code != 0 => fault(FaultKind::Exit, &format!("it exited with code {code}")),
        (ProgramEnd::Exited(_) | ProgramEnd::Lingered, AnswerFile::Absent) => {
            fault(FaultKind::NoAnswer, "it gave no answer")
        }
        (ProgramEnd::Exited(_) | ProgramEnd::Lingered, AnswerFile::Invalid { what, .. }) => {
            fault(FaultKind::InvalidAnswer, what)
        }
        (ProgramEnd::Exited(_) | ProgramEnd::Lingered, AnswerFile::Given { content: Ok(answer), .. }) => {
            SessionEndKind::Answered(answer.clone())
        }
    }
}

/// Returns the record's entry for a failure: its class if known, and the evidence.
fn session_failure<A>(
    observed: &SessionEndKind<A>,
    matched: Option<&KnownFailure>,
    evidence: &EndEvidence,
) -> Option<SessionFailure> {
    let class = match observed {
        SessionEndKind::Answered(_) | SessionEndKind::Cut => return None,
        SessionEndKind::Faulty { kind, .. } => {
            matched.map(|known| known.failure.class).or_else(|| class_of_fault(*kind))
        }
        SessionEndKind::TimedOut
        | SessionEndKind::Unavailable { .. }
        | SessionEndKind::Misconfigured { .. }
        | SessionEndKind::ContextExceeded { .. } => matched.map(|known| known.failure.class),
    };
    let signature = matched.and_then(|known| known.signature.clone());
    let until = matched.and_then(|known| known.failure.until);
    let shown = evidence.record_lines();
    (class.is_some() || !shown.is_empty()).then_some(SessionFailure { class, signature, until, evidence: shown })
}

/// Returns what the program says about its end, to be appended to what was observed.
fn message_suffix(evidence: &EndEvidence) -> String {
    evidence
        .first_message()
        .map_or_else(String::new, |message| format!(": {}", clip_output(&message, MAX_STATED_BYTES)))
}

fn stated_error_end<A>(stated: &AgentError) -> SessionEndKind<A> {
    let message = clip_output(&stated.message, MAX_STATED_BYTES);
    match stated.class {
        AgentErrorClass::Unavailable => SessionEndKind::Unavailable { why: message, until: stated.until },
        AgentErrorClass::Misconfigured => SessionEndKind::Misconfigured { what: message },
        AgentErrorClass::ContextExceeded => SessionEndKind::ContextExceeded { what: message },
    }
}

#[cfg(test)]
mod tests {
    use protocol::answer::AgentAnswer;
    use tempfile::TempDir;

    use super::*;

    const ANSWER: &str = r#"{"status": "done", "summary": "all of it", "children": null}"#;
    const LIMIT: &[(&str, &str)] =
        &[("error_info", "usage_limit_exceeded"), ("message", "You have hit it. Try again in 3 hours.")];
    const WRONG_KEY: &[(&str, &str)] =
        &[("http_status", "401"), ("message", "Incorrect API key provided: geheim-1234567890")];
    const UNHEARD: &[(&str, &str)] = &[("error_info", "other"), ("message", "something is new")];

    /// Returns the end of a session of codex that has used tokens, with these signals and this answer.
    fn classify_sample(
        ended: ProgramEnd,
        signals: &[(&'static str, &str)],
        answer: Option<&str>,
    ) -> (SessionEndKind, SessionFailure) {
        let usage = SessionUsage { output_tokens: Some(7), ..SessionUsage::default() };
        classify_with_usage(ended, signals, answer, usage)
    }

    fn classify_with_usage(
        ended: ProgramEnd,
        signals: &[(&'static str, &str)],
        answer: Option<&str>,
        usage: SessionUsage,
    ) -> (SessionEndKind, SessionFailure) {
        let folder = TempDir::new().unwrap();
        let mut evidence = EndEvidence::default();
        for (field, value) in signals {
            evidence.add(field, *value);
        }
        let output =
            SessionOutput { evidence, answer: answer.map(|text| text.as_bytes().to_vec()), ..SessionOutput::default() };
        let left = SessionLeftovers {
            output: folder.path().join("output.json"),
            secrets: Secrets::from_variables([("API_KEY", "geheim-1234567890")]).unwrap(),
            kind: ExecutorKind::Codex,
            zone: TimeZone::UTC,
        };
        let answer = super::choose_answer::<AgentAnswer>(&output, &left);
        let (how, failure) = left.classify_end(ended, &answer, output.evidence, &usage, Duration::from_secs(2));
        (how, failure.unwrap_or(SessionFailure { class: None, signature: None, until: None, evidence: Vec::new() }))
    }

    #[test]
    fn what_the_program_says_of_its_end_explains_it() {
        let (how, failure) = classify_sample(ProgramEnd::Exited(1), LIMIT, None);
        let SessionEndKind::Unavailable { until: Some(until), .. } = how else { panic!("it is waited for: {how:?}") };
        assert_eq!((failure.class, failure.until), (Some(FailureClass::UsageLimit), Some(until)));
        assert_eq!(failure.signature.as_deref(), Some("codex error_info equals `usage_limit_exceeded`"));
        let (how, failure) = classify_sample(ProgramEnd::Exited(1), WRONG_KEY, None);
        let SessionEndKind::Misconfigured { what } = how else { panic!("only a person mends it: {how:?}") };
        assert!(what.contains("codex login") && !what.contains("geheim-1234567890"), "{what}");
        assert!(!failure.evidence.concat().contains("geheim-1234567890"), "{failure:?}");
    }

    #[test]
    fn what_no_rule_knows_is_a_fault_that_shows_it_or_is_tried_again_later() {
        let (how, failure) = classify_sample(ProgramEnd::Exited(1), UNHEARD, None);
        assert!(matches!(how, SessionEndKind::Faulty { kind: FaultKind::Exit, .. }), "{how:?}");
        assert_eq!(failure.class, None);
        assert_eq!(failure.evidence, ["error_info: other", "message: something is new"]);
        let (how, failure) = classify_with_usage(ProgramEnd::Exited(1), UNHEARD, None, SessionUsage::default());
        let SessionEndKind::Unavailable { why, until: None } = how else { panic!("it is tried again: {how:?}") };
        assert_eq!(why, "failed before it used a token: it exited with code 1: something is new");
        assert_eq!((failure.class, failure.signature), (Some(FailureClass::Unexplained), None));
        let (how, _) = classify_with_usage(ProgramEnd::SupervisorLost, UNHEARD, None, SessionUsage::default());
        assert!(matches!(how, SessionEndKind::Faulty { kind: FaultKind::Crash, .. }), "{how:?}");
    }

    #[test]
    fn an_answer_of_a_session_that_ended_in_order_counts_whatever_it_said_before() {
        for ended in [ProgramEnd::Exited(0), ProgramEnd::Lingered] {
            let (how, failure) = classify_sample(ended, LIMIT, Some(ANSWER));
            assert!(matches!(how, SessionEndKind::Answered(_)), "{how:?}");
            assert_eq!(failure.evidence, Vec::<String>::new());
        }
    }

    #[test]
    fn an_answer_in_a_code_fence_counts_and_one_of_two_does_not() {
        let fenced = format!("```json\n{ANSWER}\n```");
        let (how, _) = classify_sample(ProgramEnd::Exited(0), &[], Some(&fenced));
        assert!(matches!(how, SessionEndKind::Answered(_)), "{how:?}");
        let two = format!("{ANSWER} {}", ANSWER.replace("done", "retry"));
        let (how, _) = classify_sample(ProgramEnd::Exited(0), &[], Some(&two));
        assert!(matches!(how, SessionEndKind::Faulty { kind: FaultKind::InvalidAnswer, .. }), "{how:?}");
    }

    #[test]
    fn an_answer_counts_though_the_budget_ran_out_before_anybody_looked() {
        let (how, _) = classify_sample(ProgramEnd::TimedOut, &[], Some(ANSWER));
        assert!(matches!(how, SessionEndKind::Answered(_)), "{how:?}");
        assert_eq!(classify_sample(ProgramEnd::TimedOut, &[], Some("no answer")).0, SessionEndKind::TimedOut);
    }

    #[test]
    fn a_session_that_was_ended_is_explained_only_by_a_service_that_is_out() {
        for ended in [ProgramEnd::TimedOut, ProgramEnd::Silent] {
            assert!(matches!(classify_sample(ended, LIMIT, None).0, SessionEndKind::Unavailable { .. }), "{ended:?}");
        }
        assert_eq!(classify_sample(ProgramEnd::TimedOut, WRONG_KEY, None).0, SessionEndKind::TimedOut);
        let (how, failure) = classify_sample(ProgramEnd::Silent, WRONG_KEY, None);
        assert!(matches!(how, SessionEndKind::Faulty { kind: FaultKind::Silence, .. }), "{how:?}");
        assert_eq!(failure.class, Some(FailureClass::Hung));
        assert_eq!(classify_sample(ProgramEnd::Stopped, LIMIT, None).0, SessionEndKind::Cut);
        let (how, _) = classify_sample(ProgramEnd::SupervisorLost, LIMIT, None);
        assert!(matches!(how, SessionEndKind::Faulty { kind: FaultKind::Crash, .. }), "{how:?}");
    }
}
