//! The lines that the runner itself adds to `guardrails.md`: one for each failure that occurred twice in the same way
//! at one node.
//!
//! A function of the node's committed feedback alone, so that an audit can compute the same line. Lines added by agents
//! are not touched, except to keep the file bounded when the runner adds one.

use protocol::state::NodeFeedback;

use crate::feedback::fingerprint_failure;

/// Heading of `guardrails.md`.
pub const HEADING: &str = "# Guardrails\n";
/// Most bytes of `guardrails.md` after a line was added.
pub const MAX_GUARDRAILS: usize = 64 * 1024;

/// A line for `guardrails.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guardrail {
    /// Identifies the line: the digest of the failure, in brackets.
    tag: String,
    line: String,
}

/// Returns the line to add after the last attempt at a node, if an earlier attempt failed in the same way.
pub fn find_due_guardrail(node: &str, feedback: &NodeFeedback) -> Option<Guardrail> {
    let (last, earlier) = feedback.history.split_last()?;
    let digest = last.failure_digest.as_ref()?;
    earlier.iter().any(|attempt| attempt.failure_digest.as_ref() == Some(digest)).then_some(())?;
    let failure = feedback.failures.iter().find(|failure| failure.iter == last.iter)?;
    let words = fingerprint_failure(&failure.text).summary;
    let tag = format!("[{digest}]");
    Some(Guardrail { line: format!("- `{node}` has failed twice in the same way {tag}: {words}\n"), tag })
}

impl Guardrail {
    /// Returns the text with the line appended, dropping the oldest lines if it would be too long; `None` if it already
    /// has the line, even for another node.
    pub fn append_to(&self, text: &[u8]) -> Option<Vec<u8>> {
        if self.is_present_in(text) {
            return None;
        }
        let mut after = if text.is_empty() { HEADING.as_bytes() } else { text }.to_vec();
        if !after.ends_with(b"\n") {
            after.push(b'\n');
        }
        if after == HEADING.as_bytes() {
            after.push(b'\n');
        }
        after.extend(self.line.as_bytes());
        Some(keep_newest_lines(after))
    }

    /// Returns whether `after` can result from [`Guardrail::append_to`] on a text that begins with `before`; what a
    /// session has appended is unknown.
    pub fn explains_change(&self, before: &[u8], after: &[u8]) -> bool {
        if after.starts_with(before) {
            return self.is_present_in(after);
        }
        // If the oldest lines had to be dropped, what remains is so long that one more line would not have fit.
        after.ends_with(self.line.as_bytes()) && (MAX_GUARDRAILS / 2..=MAX_GUARDRAILS).contains(&after.len())
    }

    fn is_present_in(&self, text: &[u8]) -> bool {
        text.windows(self.tag.len()).any(|part| part == self.tag.as_bytes())
    }
}

/// Drops the oldest lines after the heading until the text fits.
fn keep_newest_lines(text: Vec<u8>) -> Vec<u8> {
    let Some(surplus) = text.len().checked_sub(MAX_GUARDRAILS).filter(|surplus| *surplus > 0) else { return text };
    let heading = if text.starts_with(HEADING.as_bytes()) { HEADING.len() } else { 0 };
    let (heading, lines) = text.split_at(heading);
    let from = surplus.min(lines.len());
    let end = lines[from - 1..].iter().position(|byte| *byte == b'\n').map_or(lines.len(), |end| from + end);
    [heading, &lines[end..]].concat()
}

#[cfg(test)]
mod tests {
    use protocol::state::{Attempt, Failure};
    use protocol::words::VerdictName;

    use super::*;

    fn feedback(digests: &[Option<&str>]) -> NodeFeedback {
        let attempt = |(iter, digest): (u32, Option<&str>)| Attempt {
            iter,
            verdict: VerdictName::RedGuard,
            detail: None,
            summary: None,
            failure_digest: digest.map(str::to_owned),
        };
        let text = "error: the ledger does not match\n".to_owned();
        let history: Vec<Attempt> = (1..).zip(digests.iter().copied()).map(attempt).collect();
        let iter = history.last().map_or(0, |last| last.iter);
        let failure = Failure { iter, verdict: VerdictName::RedGuard, text, invalid_tree: None };
        NodeFeedback { history, failures: vec![failure] }
    }

    fn sample_guardrail() -> Guardrail {
        find_due_guardrail("root.2", &feedback(&[Some("aa"), Some("aa")])).expect("it has failed twice")
    }

    #[test]
    fn line_is_due_where_an_earlier_attempt_has_failed_in_the_same_way() {
        let table: [(&[Option<&str>], bool); 7] = [
            (&[], false),
            (&[Some("aa")], false),
            (&[Some("aa"), Some("aa")], true),
            (&[Some("aa"), None, Some("bb"), Some("aa")], true),
            (&[Some("aa"), Some("bb")], false),
            (&[Some("aa"), Some("aa"), None], false),
            (&[None, None], false),
        ];
        for (digests, is_due) in table {
            assert_eq!(find_due_guardrail("b", &feedback(digests)).is_some(), is_due, "{digests:?}");
        }
    }

    #[test]
    fn line_says_where_and_what() {
        let text = String::from_utf8(sample_guardrail().append_to(b"").expect("it is new")).expect("it is text");
        assert_eq!(
            text,
            "# Guardrails\n\n- `root.2` has failed twice in the same way [aa]: error: the ledger does not match\n"
        );
    }

    #[test]
    fn line_follows_what_agents_wrote_and_comes_once() {
        let once = sample_guardrail().append_to(b"# Guardrails\n\n- \xff no newline").expect("it is new");
        assert!(once.starts_with(b"# Guardrails\n\n- \xff no newline\n- `root.2`"));
        assert_eq!(sample_guardrail().append_to(&once), None);
        let other = find_due_guardrail("root.3", &feedback(&[Some("aa"), Some("aa")])).expect("it has failed twice");
        assert_eq!(other.append_to(&once), None, "another node fails in no other way");
    }

    #[test]
    fn oldest_lines_give_way() {
        let many: String = (0..9_000).flat_map(|n| ["- rule ".to_owned(), n.to_string(), "\n".to_owned()]).collect();
        let text = sample_guardrail().append_to(format!("{HEADING}{many}").as_bytes()).expect("it is new");
        assert!(text.len() <= MAX_GUARDRAILS && text.len() > MAX_GUARDRAILS - 100);
        let text = String::from_utf8(text).expect("it is text");
        assert!(text.starts_with("# Guardrails\n- rule ") && text.contains("- rule 8999\n- `root.2`"), "{text}");
        let endless = sample_guardrail().append_to(&vec![b'x'; 2 * MAX_GUARDRAILS]).expect("it is new");
        assert!(endless.starts_with(b"- `root.2`"));
    }
}
