//! Which trailers a receipt has: which the runner always writes if they apply, and which it never writes.
//!
//! A table. The values are checked elsewhere.

use protocol::verify::AuditRule;
use protocol::words::VerdictName;

use super::findings::AuditFindings;
use crate::message::Receipt;
use crate::verdict::SessionRule;

/// Whether a trailer must be present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrailerPresence {
    Always,
    Never,
    /// Depends on something in no commit: a session that was cut off may have left an answer.
    Optional,
}

/// The processes that ran in an iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct IterationProcesses {
    /// Whether there was a session; otherwise there was a person's decision.
    pub session: bool,
    /// Whether the rules required a guard, if that can be determined.
    pub guard: Option<bool>,
}

/// Checks that each trailer is present exactly if it must be.
pub(super) fn check(receipt: &Receipt, processes: IterationProcesses, findings: &mut AuditFindings) {
    let is_word = !processes.session;
    let of_session = if is_word { TrailerPresence::Never } else { TrailerPresence::Always };
    let open_or_never = |may_be: bool| if may_be { TrailerPresence::Optional } else { TrailerPresence::Never };
    let of_guard = open_or_never(processes.guard.unwrap_or(true));
    let review = receipt.review.as_ref();
    // A decision without a session has read no prompt; a reviewer that has decided has read one and has answered.
    let of_review = match review {
        Some(_) => of_session,
        None => TrailerPresence::Never,
    };
    let table = [
        ("Runner-Agent", of_session, receipt.agent.is_some()),
        ("Runner-Prompt", of_session, receipt.prompt.is_some()),
        ("Runner-Usage", of_session, receipt.usage.is_some()),
        ("Runner-Output", output_presence(receipt, is_word), receipt.output.is_some()),
        ("Runner-Notes", open_or_never(!is_word), !receipt.notes.is_empty()),
        ("Runner-Raw", open_or_never(!is_word), receipt.raw.is_some()),
        ("Runner-Guard-Wrote", of_guard, !receipt.guard_wrote.is_empty()),
        ("Runner-Signature", open_or_never(is_word && review.is_some()), receipt.signature.is_some()),
        ("Runner-Review prompt=", of_review, review.is_some_and(|review| review.prompt.is_some())),
        ("Runner-Review output=", of_review, review.is_some_and(|review| review.output.is_some())),
    ];
    for (at, due, is_present) in table {
        match (due, is_present) {
            (TrailerPresence::Always, false) => {
                findings.add_violation(AuditRule::Receipt, at, "what the runner always writes", "nothing");
            }
            (TrailerPresence::Never, true) => findings.add_violation(AuditRule::Receipt, at, "nothing", "something"),
            (TrailerPresence::Always, true) | (TrailerPresence::Never, false) | (TrailerPresence::Optional, _) => {}
        }
    }
}

/// A session that was not cut off, exceeded no limit and did not fail has answered; so has every session whose work
/// reached the guard.
fn output_presence(receipt: &Receipt, is_word: bool) -> TrailerPresence {
    if is_word {
        return TrailerPresence::Never;
    }
    let detail = receipt.verdict.detail.as_deref().unwrap_or_default();
    let has_answered = match receipt.verdict.name {
        VerdictName::Accepted | VerdictName::RedGuard | VerdictName::Rejected | VerdictName::Pending => true,
        VerdictName::Retry | VerdictName::Narrowed | VerdictName::Decomposed => true,
        VerdictName::Broken => !detail.starts_with(SessionRule::Context.as_str()),
        VerdictName::Fault | VerdictName::Unavailable | VerdictName::Timeout => receipt.guard_run.is_some(),
        VerdictName::Misconfigured | VerdictName::Interrupted => receipt.guard_run.is_some(),
    };
    if has_answered { TrailerPresence::Always } else { TrailerPresence::Optional }
}
