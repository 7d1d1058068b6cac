//! Turns the end of a reviewer's session into facts.
//!
//! Running the session is up to `agent`; the consequences are decided in `runner_core::iteration`.

use protocol::answer::ReviewAnswer;
use protocol::words::{FailureClass, ReviewVerdict};
use runner_core::iteration::{ReviewEnd, ReviewEndKind};
use runner_core::verdict::{SessionEnd, SessionEndKind};

/// Returns the end of a review from that of its session; changes to the repository are not checked here.
pub fn review_end(session: SessionEnd<ReviewAnswer>) -> ReviewEnd {
    ReviewEnd {
        agent: session.agent,
        session_id: session.session_id,
        output: session.output_digest,
        failure: session.failure,
        tries: 1,
        usage: (&session.usage).into(),
        elapsed_ms: session.elapsed_ms,
        survivors: session.survivors,
        log_fault: session.log_fault,
        containment: Some(session.containment),
        ..ReviewEnd::new(review_end_kind(session.how))
    }
}

/// Classifies the end: a full context is the reviewer's failure, not the node's.
fn review_end_kind(kind: SessionEndKind<ReviewAnswer>) -> ReviewEndKind {
    match kind {
        SessionEndKind::Answered(ReviewAnswer { verdict: ReviewVerdict::Accept, reasons }) => {
            ReviewEndKind::Accepted { reasons: number_reasons(&reasons) }
        }
        SessionEndKind::Answered(ReviewAnswer { verdict: ReviewVerdict::Reject, reasons }) => {
            ReviewEndKind::Rejected { reasons: number_reasons(&reasons) }
        }
        SessionEndKind::Unavailable { why, until } => ReviewEndKind::Unavailable { why, until },
        SessionEndKind::TimedOut => ReviewEndKind::TimedOut,
        SessionEndKind::Misconfigured { what } => {
            ReviewEndKind::Misconfigured { what: format!("the reviewer: {what}") }
        }
        SessionEndKind::ContextExceeded { what } => ReviewEndKind::Failed {
            what: format!(
                "{}: {what}",
                runner_core::iteration::session_failure::class_name(FailureClass::ContextExceeded)
            ),
        },
        SessionEndKind::Faulty { kind, what } => ReviewEndKind::Failed { what: format!("{}: {what}", kind.as_str()) },
        SessionEndKind::Cut => ReviewEndKind::Cut,
    }
}

/// Returns reasons as one text: a numbered list if there are several.
fn number_reasons(reasons: &[String]) -> String {
    match reasons {
        [only] => only.clone(),
        all => {
            let lines: Vec<String> = (1..).zip(all).map(|(number, reason)| format!("{number}. {reason}")).collect();
            lines.join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reviewed(verdict: ReviewVerdict, reasons: &[&str]) -> ReviewEndKind {
        let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
        review_end_kind(SessionEndKind::Answered(ReviewAnswer { verdict, reasons }))
    }

    #[test]
    fn reasons_are_numbered_where_there_are_several() {
        let rejected = |text: &str| ReviewEndKind::Rejected { reasons: text.to_owned() };
        assert_eq!(reviewed(ReviewVerdict::Reject, &["no test"]), rejected("no test"));
        assert_eq!(reviewed(ReviewVerdict::Reject, &["no test", "no docs"]), rejected("1. no test\n2. no docs"));
        assert_eq!(reviewed(ReviewVerdict::Accept, &[]), ReviewEndKind::Accepted { reasons: String::new() });
    }

    #[test]
    fn a_context_that_the_reviewer_outgrew_is_its_own_failing() {
        let what = "120000 tokens".to_owned();
        let failed = ReviewEndKind::Failed { what: "context exceeded: 120000 tokens".to_owned() };
        assert_eq!(review_end_kind(SessionEndKind::ContextExceeded { what }), failed);
    }
}
