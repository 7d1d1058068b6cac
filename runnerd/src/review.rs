//! A review: from the end of a reviewer's session to facts.
//!
//! How a session is run is `agent`'s; what the facts amount to is decided in `runner_core::iteration`.

use protocol::answer::ReviewAnswer;
use protocol::words::{FailureClass, ReviewVerdict};
use runner_core::iteration::{ReviewEnd, ReviewHow};
use runner_core::verdict::{SessionEnd, SessionHow};

/// Returns the end of a review by a session that has ended; what it did to the repository is not looked at here.
pub fn ended(session: SessionEnd<ReviewAnswer>) -> ReviewEnd {
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
        ..ReviewEnd::new(how(session.how))
    }
}

/// Classes the end: an outgrown context is the reviewer's failing, not the node's.
fn how(how: SessionHow<ReviewAnswer>) -> ReviewHow {
    match how {
        SessionHow::Answered(ReviewAnswer { verdict: ReviewVerdict::Accept, reasons }) => {
            ReviewHow::Accepted { reasons: listed(&reasons) }
        }
        SessionHow::Answered(ReviewAnswer { verdict: ReviewVerdict::Reject, reasons }) => {
            ReviewHow::Rejected { reasons: listed(&reasons) }
        }
        SessionHow::Unavailable { why, until } => ReviewHow::Unavailable { why, until },
        SessionHow::TimedOut => ReviewHow::TimedOut,
        SessionHow::Misconfigured { what } => ReviewHow::Misconfigured { what: format!("the reviewer: {what}") },
        SessionHow::ContextExceeded { what } => {
            ReviewHow::Failed { what: format!("{}: {what}", runner_core::failure::name(FailureClass::ContextExceeded)) }
        }
        SessionHow::Faulty { kind, what } => ReviewHow::Failed { what: format!("{}: {what}", kind.as_str()) },
        SessionHow::Cut => ReviewHow::Cut,
    }
}

/// Returns reasons as one text: a numbered list where there is more than one.
fn listed(reasons: &[String]) -> String {
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

    fn reasons(verdict: ReviewVerdict, reasons: &[&str]) -> ReviewHow {
        let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
        how(SessionHow::Answered(ReviewAnswer { verdict, reasons }))
    }

    #[test]
    fn reasons_are_numbered_where_there_are_several() {
        let rejected = |text: &str| ReviewHow::Rejected { reasons: text.to_owned() };
        assert_eq!(reasons(ReviewVerdict::Reject, &["no test"]), rejected("no test"));
        assert_eq!(reasons(ReviewVerdict::Reject, &["no test", "no docs"]), rejected("1. no test\n2. no docs"));
        assert_eq!(reasons(ReviewVerdict::Accept, &[]), ReviewHow::Accepted { reasons: String::new() });
    }

    #[test]
    fn a_context_that_the_reviewer_outgrew_is_its_own_failing() {
        let what = "120000 tokens".to_owned();
        let failed = ReviewHow::Failed { what: "context exceeded: 120000 tokens".to_owned() };
        assert_eq!(how(SessionHow::ContextExceeded { what }), failed);
    }
}
