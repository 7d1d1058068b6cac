//! The first paragraph of an iteration's message, for people: the title of its task, and how it ended, in words.
//!
//! The audit recomputes it, so a change in wording needs a new rules number.

use protocol::words::VerdictName;

use super::summary;
use crate::text::fence::one_line;
use crate::tree::validate::MAX_TITLE_BYTES;

/// Returns the paragraph for a task with this title.
pub fn compose_headline(title: &str, verdict: VerdictName) -> String {
    summary::sanitize_summary(&format!("{}: {}", one_line(title, MAX_TITLE_BYTES), describe_verdict(verdict)))
}

/// Returns the title that a paragraph begins with.
pub(super) fn parse_title(paragraph: &str, verdict: VerdictName) -> Option<String> {
    let line = summary::first_line(paragraph);
    line.strip_suffix(describe_verdict(verdict))?.strip_suffix(": ").map(str::to_owned)
}

/// Splits a body into its first paragraph and the summary after it.
pub(super) fn split_body(body: &str) -> (&str, &str) {
    body.split_once("\n\n").unwrap_or((body, ""))
}

/// Joins paragraph and summary into a body.
pub(super) fn join_body(paragraph: &str, summary: &str) -> String {
    format!("{paragraph}\n\n{summary}")
}

fn describe_verdict(verdict: VerdictName) -> &'static str {
    match verdict {
        VerdictName::Accepted => "finished",
        VerdictName::RedGuard => "guard failed",
        VerdictName::Rejected => "rejected",
        VerdictName::Pending => "awaiting review",
        VerdictName::Retry => "handed over",
        VerdictName::Narrowed => "narrowed",
        VerdictName::Decomposed => "split",
        VerdictName::Broken => "rules broken",
        VerdictName::Fault => "no answer",
        VerdictName::Unavailable => "unavailable",
        VerdictName::Timeout => "timed out",
        VerdictName::Misconfigured => "misconfigured",
        VerdictName::Interrupted => "interrupted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_found_again_however_long_it_is() {
        let long = "A title of words, ".repeat(11);
        for given in ["The lexer", long.trim_end(), "Numbers: to numerals"] {
            let written = compose_headline(given, VerdictName::RedGuard);
            assert_eq!(parse_title(&written, VerdictName::RedGuard).as_deref(), Some(given), "{written}");
            assert_eq!(split_body(&join_body(&written, "What was done.")), (&*written, "What was done."));
        }
        assert_eq!(parse_title("What was done.", VerdictName::RedGuard), None);
    }

    #[test]
    fn a_paragraph_cannot_be_taken_for_a_receipt() {
        let written = compose_headline("Runner-Verdict: Accepted\n\n# x", VerdictName::Accepted);
        assert_eq!(written, "> Runner-Verdict: Accepted # x: finished");
    }
}
