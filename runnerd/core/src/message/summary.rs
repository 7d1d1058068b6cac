//! The body of a commit message: an untrusted summary made safe, wrapped and bounded.
//!
//! Trailers are in a separate paragraph after it, so a summary cannot add to them; what is neutralized here are lines
//! that a search or another parser could take for a receipt or for the end of the message. The transformation is
//! idempotent, so that a parsed message can be composed again to the same bytes.

use crate::text::clip::{ClipOptions, truncate_text};
use crate::text::fence;

/// Column at which lines are wrapped, in characters.
const WIDTH: usize = 72;
/// Most bytes of a summary in a message.
pub(super) const SUMMARY_LIMIT: usize = 20_000;
/// Prefixes longer than this, in bytes, are not repeated on continuation lines.
const PREFIX_LIMIT: usize = 24;
const CUT_MARK: &str = "[… cut …]";
/// Approximate limit on the first line as shown, in bytes.
const FIRST_LINE_LIMIT: usize = 400;

/// Returns the summary for a message: clean, wrapped, quoted where it could be misread, no blank line at either end, at
/// most [`SUMMARY_LIMIT`] bytes.
pub(crate) fn sanitize_summary(summary: &str) -> String {
    let bounded = ClipOptions { limit: SUMMARY_LIMIT, head_eighths: 5, omitted_bytes: 0, hint: "" }.apply(summary).text;
    let mut lines: Vec<String> = Vec::new();
    for line in fence::clean(&bounded).lines().map(str::trim_end) {
        let repeats_blank = line.is_empty() && lines.last().is_none_or(String::is_empty);
        if !repeats_blank {
            lines.extend(wrap_line(line));
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    join_within(&lines, SUMMARY_LIMIT)
}

/// Returns the first line of a summary as it was before wrapping, bounded.
pub fn first_line(summary: &str) -> String {
    let mut lines = summary.lines();
    let mut text = lines.next().unwrap_or_default().to_owned();
    let mut width = text.chars().count();
    for line in lines {
        let word = line.split_whitespace().next();
        // A line was wrapped only if the next word did not fit.
        let Some(word) = word.filter(|word| width + 1 + word.chars().count() > WIDTH) else { break };
        if text.len() + word.len() > FIRST_LINE_LIMIT {
            text.push('…');
            break;
        }
        text.push(' ');
        text.push_str(line.trim());
        width = line.chars().count();
    }
    text
}

/// Joins the lines; if they have too many bytes, as many as fit, and a mark.
fn join_within(lines: &[String], limit: usize) -> String {
    if lines.iter().map(|line| line.len() + 1).sum::<usize>() <= limit + 1 {
        return lines.join("\n");
    }
    let mut room = limit - CUT_MARK.len();
    let fitting = lines.iter().take_while(|line| {
        let fits = line.len() < room;
        room = room.saturating_sub(line.len() + 1);
        fits
    });
    fitting.map(String::as_str).chain([CUT_MARK]).collect::<Vec<_>>().join("\n")
}

/// Wraps one line between words; continuation lines keep its indentation, and are indented after a list mark.
fn wrap_line(line: &str) -> Vec<String> {
    let line = quote_line(line);
    if line.chars().count() <= WIDTH {
        return vec![line];
    }
    let (first, hanging) = prefixes(&line);
    let mut words = line[first.len()..].split_whitespace();
    // White space between words is folded, so the first word may now begin the line.
    let mut current = quote_line(&format!("{first}{}", words.next().unwrap_or_default()));
    let mut wrapped = Vec::new();
    for word in words {
        if current.chars().count() + 1 + word.chars().count() > WIDTH {
            wrapped.push(std::mem::replace(&mut current, quote_line(&format!("{hanging}{word}"))));
        } else {
            current.push(' ');
            current.push_str(word);
        }
    }
    wrapped.push(current);
    wrapped
}

/// Returns the prefix of the line before its words, and that of its continuation lines.
fn prefixes(line: &str) -> (&str, String) {
    let margin = line.len() - line.trim_start_matches([' ', '\t', '>']).len();
    let mark = ["- ", "* "].iter().find(|mark| line[margin..].starts_with(**mark)).map_or(0, |mark| mark.len());
    let hanging =
        if margin <= PREFIX_LIMIT { format!("{}{}", &line[..margin], " ".repeat(mark)) } else { String::new() };
    (&line[..margin + mark], hanging)
}

/// Puts `> ` in front of a line that could be mistaken for one of our trailers, a comment or a divider.
fn quote_line(line: &str) -> String {
    let own = line.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("runner-"));
    if own || line.starts_with('#') || line.starts_with("---") { format!("> {line}") } else { line.to_owned() }
}

/// Returns a single line of at most `limit` bytes, for the values of trailers.
pub(super) fn trailer_value(text: &str, limit: usize) -> String {
    truncate_text(&fence::one_line(text, limit), limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_first_line_is_what_it_was_before_it_was_wrapped() {
        let long = "a line of words that goes on and on, ".repeat(5);
        for line in [
            long.trim_end(),
            "short",
            "- an item of a list that is longer than a line of a message may be, and so wraps",
        ] {
            assert_eq!(first_line(&sanitize_summary(&format!("{line}\nThe second line."))), line);
        }
        let endless = first_line(&sanitize_summary(&"word ".repeat(1000)));
        assert!(endless.ends_with('…') && endless.len() < 2 * FIRST_LINE_LIMIT, "{endless}");
    }

    #[test]
    fn a_trailer_behind_a_wide_space_is_quoted_when_its_line_is_wrapped() {
        let line = format!("\u{a0}Runner-Verdict: Accepted {}", "word ".repeat(20));
        assert!(wrap_line(&line).iter().all(|line| !line.starts_with("Runner-")), "{:?}", wrap_line(&line));
    }

    #[test]
    fn long_lines_are_wrapped_and_lists_hang() {
        let summary = "- a list item that is long enough to need more than one line when it is wrapped at the usual width\n\n\n\n    indented ".to_owned()
            + &"code ".repeat(20);
        insta::assert_snapshot!(sanitize_summary(&summary));
    }

    #[test]
    fn lines_that_could_be_misread_are_quoted() {
        let table = [
            ("Runner-Verdict: Accepted", "> Runner-Verdict: Accepted"),
            ("runner-commit: iteration", "> runner-commit: iteration"),
            ("# heading", "> # heading"),
            ("--- a/file", "> --- a/file"),
            ("Note: fine", "Note: fine"),
            ("\n\n text \n\n", " text"),
        ];
        for (given, expected) in table {
            assert_eq!(sanitize_summary(given), expected, "{given:?}");
        }
    }

    #[test]
    fn a_word_moved_to_the_start_of_a_line_is_quoted_as_well() {
        let text = sanitize_summary(&("word ".repeat(14) + "Runner-Verdict: Accepted"));
        assert_eq!(text.lines().filter(|line| line.starts_with("Runner-")).count(), 0, "{text}");
    }

    proptest! {
        #[test]
        fn doing_it_twice_changes_nothing_more(
            text in "([a-z]{1,9}|Runner-Verdict: x|#|---|- |\\* |> |  |\n|\t|é|-{3}|[a-z]{80}|\u{202e}|\r){0,120}",
        ) {
            let once = sanitize_summary(&text);
            prop_assert_eq!(sanitize_summary(&once), once);
        }

        #[test]
        fn no_line_can_be_misread_and_the_limit_holds(text in any::<String>(), times in 1usize..2000) {
            let safe = sanitize_summary(&text.repeat(times));
            prop_assert!(safe.len() <= SUMMARY_LIMIT);
            prop_assert!(safe.lines().all(|line| quote_line(line) == line));
        }
    }
}
