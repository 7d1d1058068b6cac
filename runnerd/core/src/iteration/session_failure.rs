//! The consequences of each class of session failure.
//!
//! How a class is recognized in an agent's output is data of the daemon, not part of this module.

use jiff::Timestamp;
use protocol::answer::SessionUsage;
use protocol::words::FailureClass;

use crate::verdict::{FaultKind, SessionEndKind};

/// A session that is longer than this may have used tokens that its program did not report.
const MAX_UNUSED_MS: u64 = 60_000;

/// A failure whose class is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassifiedFailure {
    /// Class of the failure.
    pub class: FailureClass,
    /// What the agent reported, in one line.
    pub why: String,
    /// When the service is expected back, if it said so.
    pub until: Option<Timestamp>,
    /// What a person can do about it, if there is a way specific to the agent.
    pub fix: Option<String>,
}

impl ClassifiedFailure {
    /// Returns the class of session end that the failure amounts to.
    ///
    /// A failure that passes is waited for, one that only a person can fix stops the run, and anything else is a fault
    /// of this session.
    pub fn end_kind<A>(self) -> SessionEndKind<A> {
        let text = format!("{}: {}", class_name(self.class), self.why);
        let fault = |kind: FaultKind, what: String| SessionEndKind::Faulty { kind, what };
        match self.class {
            FailureClass::UsageLimit
            | FailureClass::Quota
            | FailureClass::RateLimit
            | FailureClass::Overloaded
            | FailureClass::Network
            | FailureClass::Unexplained => SessionEndKind::Unavailable { why: text, until: self.until },
            FailureClass::Authentication
            | FailureClass::ModelUnknown
            | FailureClass::SchemaRefused
            | FailureClass::Misused => {
                let fix = self.fix.unwrap_or_else(|| class_fix(self.class).to_owned());
                SessionEndKind::Misconfigured { what: format!("{text}; {fix}") }
            }
            FailureClass::ContextExceeded => SessionEndKind::ContextExceeded { what: self.why },
            FailureClass::OutputCut | FailureClass::Empty => fault(FaultKind::NoAnswer, text),
            FailureClass::InvalidAnswer => fault(FaultKind::InvalidAnswer, text),
            FailureClass::Hung => fault(FaultKind::Silence, text),
            FailureClass::SessionLimit | FailureClass::Refused | FailureClass::Crashed => fault(FaultKind::Exit, text),
        }
    }
}

/// Returns whether a failure passes without anybody's intervention, so that it is waited for.
pub fn is_transient(class: FailureClass) -> bool {
    use FailureClass::{Network, Overloaded, Quota, RateLimit, Unexplained, UsageLimit};
    matches!(class, UsageLimit | Quota | RateLimit | Overloaded | Network | Unexplained)
}

/// Returns whether a failure of this class, reported by a session, explains the end that was observed.
///
/// A session that was ended for its time or its silence may have been waiting for an unavailable service; anything else
/// that it had reported by then was not the cause.
pub fn explains_end<A>(class: FailureClass, end: &SessionEndKind<A>) -> bool {
    match end {
        SessionEndKind::TimedOut | SessionEndKind::Faulty { kind: FaultKind::Silence, .. } => is_transient(class),
        SessionEndKind::Faulty { .. } => true,
        SessionEndKind::Answered(_)
        | SessionEndKind::Unavailable { .. }
        | SessionEndKind::Misconfigured { .. }
        | SessionEndKind::ContextExceeded { .. }
        | SessionEndKind::Cut => false,
    }
}

/// Returns the class of a fault that is known even if the agent reported nothing.
pub fn class_of_fault(kind: FaultKind) -> Option<FailureClass> {
    match kind {
        FaultKind::Crash => Some(FailureClass::Crashed),
        FaultKind::Silence => Some(FailureClass::Hung),
        FaultKind::NoAnswer => Some(FailureClass::Empty),
        FaultKind::InvalidAnswer => Some(FailureClass::InvalidAnswer),
        FaultKind::Exit | FaultKind::Timeout | FaultKind::Guard | FaultKind::Reviewer => None,
    }
}

/// Returns whether a fault that no rule explains is tried again after a wait, like an outage: an agent that fails before
/// it uses a token has most likely been refused by its service, in words that are new.
pub fn is_waited_for(kind: FaultKind, usage: &SessionUsage, elapsed_ms: u64) -> bool {
    let tokens = [usage.input_tokens, usage.cached_tokens, usage.output_tokens];
    let is_unused = match tokens.into_iter().flatten().reduce(u64::saturating_add) {
        Some(total) => total == 0,
        None => elapsed_ms <= MAX_UNUSED_MS,
    };
    is_unused && matches!(kind, FaultKind::Exit | FaultKind::Crash | FaultKind::NoAnswer)
}

/// Returns whether an outage is a failure that no rule explains, by what the verdict says about it.
pub fn is_unexplained(why: &str) -> bool {
    why.strip_prefix(class_name(FailureClass::Unexplained)).is_some_and(|rest| rest.starts_with(": "))
}

/// Returns the class in words.
pub fn class_name(class: FailureClass) -> &'static str {
    match class {
        FailureClass::UsageLimit => "usage limit",
        FailureClass::Quota => "quota or credit used up",
        FailureClass::RateLimit => "rate limit",
        FailureClass::Overloaded => "service overloaded",
        FailureClass::Network => "network",
        FailureClass::Authentication => "authentication",
        FailureClass::ModelUnknown => "unknown model",
        FailureClass::SchemaRefused => "schema refused",
        FailureClass::Misused => "refused to start",
        FailureClass::ContextExceeded => "context exceeded",
        FailureClass::SessionLimit => "limit of the session",
        FailureClass::Refused => "request declined",
        FailureClass::OutputCut => "output cut off",
        FailureClass::InvalidAnswer => "invalid answer",
        FailureClass::Empty => "no answer",
        FailureClass::Hung => "silence",
        FailureClass::Crashed => "crash",
        FailureClass::Unexplained => "failed before it used a token",
    }
}

/// Returns what a person can do if no way specific to the agent is known.
fn class_fix(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Authentication => "log in with the agent's own program, or give it a key that its service takes",
        FailureClass::ModelUnknown => "set `[executor] model` to one that the account has",
        FailureClass::SchemaRefused => "use a model that supports structured output",
        FailureClass::Misused => "check `[executor] extra_args` and the agent's version",
        FailureClass::UsageLimit
        | FailureClass::Quota
        | FailureClass::RateLimit
        | FailureClass::Overloaded
        | FailureClass::Network
        | FailureClass::ContextExceeded
        | FailureClass::SessionLimit
        | FailureClass::Refused
        | FailureClass::OutputCut
        | FailureClass::InvalidAnswer
        | FailureClass::Empty
        | FailureClass::Hung
        | FailureClass::Crashed
        | FailureClass::Unexplained => "look at the log",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: FailureClass) -> ClassifiedFailure {
        let until = Some("2026-11-22T21:16:00Z".parse().unwrap());
        ClassifiedFailure { class, why: "it said so".to_owned(), until, fix: None }
    }

    fn end_kind_of(failure: ClassifiedFailure) -> SessionEndKind {
        failure.end_kind()
    }

    /// Returns the row of the table of verdicts that a class leads to.
    fn row_name(class: FailureClass) -> &'static str {
        match end_kind_of(failure(class)) {
            SessionEndKind::Unavailable { .. } => "Unavailable",
            SessionEndKind::Misconfigured { .. } => "Misconfigured",
            SessionEndKind::ContextExceeded { .. } => "Broken",
            SessionEndKind::Faulty { .. } => "Fault",
            SessionEndKind::Answered(_) | SessionEndKind::TimedOut | SessionEndKind::Cut => "none",
        }
    }

    #[test]
    fn every_class_leads_to_its_row_of_the_table_of_verdicts() {
        let rows: Vec<(&str, &str)> =
            FailureClass::ALL.iter().map(|class| (class.as_str(), row_name(*class))).collect();
        let expected = [
            ("usage_limit", "Unavailable"),
            ("quota", "Unavailable"),
            ("rate_limit", "Unavailable"),
            ("overloaded", "Unavailable"),
            ("network", "Unavailable"),
            ("authentication", "Misconfigured"),
            ("model_unknown", "Misconfigured"),
            ("schema_refused", "Misconfigured"),
            ("misused", "Misconfigured"),
            ("context_exceeded", "Broken"),
            ("session_limit", "Fault"),
            ("refused", "Fault"),
            ("output_cut", "Fault"),
            ("invalid_answer", "Fault"),
            ("empty", "Fault"),
            ("hung", "Fault"),
            ("crashed", "Fault"),
            ("unexplained", "Unavailable"),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn what_passes_by_itself_is_what_is_waited_for() {
        for class in FailureClass::ALL {
            assert_eq!(is_transient(*class), row_name(*class) == "Unavailable", "{class}");
        }
    }

    #[test]
    fn a_wait_keeps_its_reason_and_its_time() {
        let SessionEndKind::Unavailable { why, until } = end_kind_of(failure(FailureClass::UsageLimit)) else {
            panic!("a usage limit is waited out");
        };
        assert_eq!(why, "usage limit: it said so");
        assert_eq!(until, failure(FailureClass::UsageLimit).until);
    }

    #[test]
    fn what_a_person_must_change_names_the_fix_of_the_agent_or_a_general_one() {
        let general = end_kind_of(failure(FailureClass::Authentication));
        let SessionEndKind::Misconfigured { what } = general else { panic!("only a person can log in") };
        assert_eq!(
            what,
            "authentication: it said so; log in with the agent's own program, or give it a key that its service takes"
        );
        let own =
            ClassifiedFailure { fix: Some("run `codex login`".to_owned()), ..failure(FailureClass::Authentication) };
        let SessionEndKind::Misconfigured { what } = end_kind_of(own) else { panic!("only a person can log in") };
        assert_eq!(what, "authentication: it said so; run `codex login`");
    }

    #[test]
    fn a_fault_without_tokens_is_waited_for_and_one_that_has_worked_is_not() {
        let used = |output_tokens| SessionUsage { output_tokens, ..SessionUsage::default() };
        let soon = 2_000;
        let late = MAX_UNUSED_MS + 1;
        for kind in [FaultKind::Exit, FaultKind::Crash, FaultKind::NoAnswer] {
            assert!(is_waited_for(kind, &used(None), soon) && is_waited_for(kind, &used(Some(0)), late), "{kind:?}");
            assert!(!is_waited_for(kind, &used(None), late) && !is_waited_for(kind, &used(Some(1)), soon), "{kind:?}");
        }
        for kind in [FaultKind::InvalidAnswer, FaultKind::Silence, FaultKind::Guard, FaultKind::Reviewer] {
            assert!(!is_waited_for(kind, &used(Some(0)), soon), "{kind:?}");
        }
        let SessionEndKind::Unavailable { why, .. } = end_kind_of(failure(FailureClass::Unexplained)) else {
            panic!("it is tried again")
        };
        assert!(is_unexplained(&why) && !is_unexplained("usage limit: it said so"), "{why}");
    }

    #[test]
    fn a_fault_of_a_known_class_has_the_kind_that_leads_back_to_it() {
        for kind in [FaultKind::Crash, FaultKind::Silence, FaultKind::NoAnswer, FaultKind::InvalidAnswer] {
            let class = class_of_fault(kind).expect("the fault has a class");
            let SessionEndKind::Faulty { kind: back, .. } = end_kind_of(failure(class)) else {
                panic!("{class} is a fault")
            };
            assert!(back == kind || class == FailureClass::Crashed, "{kind:?} became {back:?}");
        }
    }
}
