//! Reduces the output of guards to the bounded text that `feedback.json` keeps for the next session.
//!
//! Failures reported by a known test runner or compiler come first, then the rest of the output: its head, the first
//! lines that look like errors, its tail. Text that no known program is recognized to have written stays in the rest.
//! Deterministic, and linear in the size of the output; memory beyond the output is bounded by the limit. When feedback
//! is written or cleared is decided elsewhere.

mod classify;
mod dedup;
mod error_words;
mod excerpt;
mod failure_view;
mod failures;
mod fingerprint;
mod line_shape;
mod lines;
mod normalize;
mod report_parsers;
mod test_outcomes;
mod test_reports;

use crate::text::clip::ClipOptions;
use crate::text::fence;
use classify::OutputClassifier;
pub use failure_view::{list_failing_names, list_failures};
pub use fingerprint::{FailureFingerprint, fingerprint_failure};
pub use test_outcomes::read_test_results;
pub use test_reports::read_test_reports;

/// Prefix of every text with failures in front.
const HEADING: &str = "[failures: ";
/// Line between the failures and the rest.
const REST_HEADING: &str = "[the output without them]\n";

/// Returns what a reader needs of the output, as clean text of at most `limit_bytes`.
///
/// Escape sequences and progress bars are removed, overwritten progress is resolved to its last state, similar
/// consecutive lines are folded. Above the limit, head, errors and tail are kept, and the gaps are marked. The function
/// is idempotent.
pub fn reduce(output: &[u8], limit_bytes: usize) -> String {
    if let Some(text) = shorten_reduced(output, limit_bytes) {
        return text;
    }
    let output = String::from_utf8_lossy(output);
    let sorter = OutputClassifier::from_lines(lines::terminal_lines(&output), limit_bytes);
    let failures = &sorter.failures;
    if failures.is_empty() {
        return clip_output(&sorter.rest.finish(limit_bytes), limit_bytes);
    }
    let report = failures.render(limit_bytes / 8 * 5);
    let text = format!("{HEADING}{}]\n{report}{REST_HEADING}", failures.render_heading());
    let rest = sorter.rest.finish(limit_bytes.saturating_sub(text.len()));
    clip_output(&(text + &rest), limit_bytes)
}

/// Returns a text that was already reduced to the same limit or a smaller one; `None` for any other.
fn shorten_reduced(output: &[u8], limit: usize) -> Option<String> {
    let is_reduced = output.len() <= limit && output.starts_with(HEADING.as_bytes());
    let text = is_reduced.then(|| fence::clean(&String::from_utf8_lossy(output)))?;
    Some(clip_output(&text, limit))
}

/// Returns the text within `limit_bytes`: head and tail kept, the cut marked, characters whole.
pub fn clip_output(text: &str, limit_bytes: usize) -> String {
    ClipOptions { limit: limit_bytes, head_eighths: 5, omitted_bytes: 0, hint: "" }.apply(text).text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn identical_lines_are_folded() {
        let output = "waiting\n".repeat(38) + "\n\n\ndone\ndone\n";
        assert_eq!(
            reduce(output.as_bytes(), 1000),
            "waiting\n(same line 37 times more)\n\ndone\n(same line once more)\n"
        );
    }

    #[test]
    fn a_limit_inside_a_character_does_not_break_it() {
        let output = "é".repeat(1000);
        for limit in 0..200 {
            assert!(reduce(output.as_bytes(), limit).len() <= limit);
        }
    }

    #[test]
    fn clipped_text_keeps_head_and_tail() {
        let text: String = (0..100).flat_map(|n| ["step ".to_owned(), n.to_string(), "\n".to_owned()]).collect();
        let clipped = clip_output(&text, 120);
        assert!(clipped.starts_with("step 0\n") && clipped.ends_with("step 99\n"), "{clipped}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn reduced_output_is_bounded_clean_and_the_same_each_time(
            output in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(0x1b)], 0..2000),
            limit in 0usize..600,
        ) {
            let text = reduce(&output, limit);
            prop_assert!(text.len() <= limit);
            prop_assert_eq!(fence::clean(&text), text.clone());
            prop_assert_eq!(reduce(&output, limit), text);
        }

        #[test]
        fn many_errors_stay_within_the_limit(lines in proptest::collection::vec("(error: [a-z]{0,9}|step [0-9]|)", 0..300), limit in 0usize..900) {
            let text = reduce(lines.join("\n").as_bytes(), limit);
            prop_assert!(text.len() <= limit);
        }
    }
}
