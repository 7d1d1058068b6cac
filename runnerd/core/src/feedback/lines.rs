//! Splits output into the lines that a terminal would show in the end: clean, bounded, without progress bars.
//!
//! A line that was rewritten has its last state; one that only drew progress is gone. The content of lines is not
//! examined here, except for the envelopes in which `go test -json` sends its text.

use std::borrow::Cow;

use serde::Deserialize;

use crate::text::ansi;
use crate::text::clip::truncate_text;
use crate::text::fence;

/// Longest line that is kept whole, in bytes.
const LINE_LIMIT: usize = 2_000;
/// Bytes of a raw line that are examined: colours may take up most of them.
const RAW_LIMIT: usize = 8 * LINE_LIMIT;

/// Returns the lines of an output, without those that only drew progress.
pub(super) fn terminal_lines(output: &str) -> impl Iterator<Item = String> {
    output.strip_suffix('\n').unwrap_or(output).split('\n').filter_map(final_line)
}

/// Returns the final state of the line; `None` if it was only progress.
fn final_line(raw: &str) -> Option<String> {
    let last = last_state(raw);
    let last = &last[..last.floor_char_boundary(RAW_LIMIT)];
    let text = if is_plain(last) { Cow::Borrowed(last) } else { Cow::Owned(resolve_controls(last)) };
    let text = unwrap_go_event(&text)?;
    let text = text.trim_end();
    (!is_progress(text)).then(|| truncate_text(text, LINE_LIMIT))
}

/// Returns what was written after the last carriage return that is followed by something.
fn last_state(raw: &str) -> &str {
    let mut written = raw.trim_end();
    while let Some(start) = written.rfind('\r') {
        let last = &written[start + 1..];
        // Some programs only clear the line in the end: then the last state is the text before that.
        if !ansi::strip(&last[..last.floor_char_boundary(RAW_LIMIT)]).trim().is_empty() {
            return last;
        }
        written = written[..start].trim_end();
    }
    written
}

/// Whether the text can be shown unchanged.
fn is_plain(text: &str) -> bool {
    for byte in text.as_bytes() {
        if !matches!(byte, b'\t' | 0x20..=0x7e) {
            return false;
        }
    }
    true
}

/// Returns the text without escapes, with backspaces applied and hidden characters spelled out.
fn resolve_controls(text: &str) -> String {
    let text = ansi::strip(text);
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\u{8}' {
            shown.pop();
        } else {
            shown.push(c);
        }
    }
    fence::clean(&shown)
}

/// Whether a line only drew a bar or a spinner.
fn is_progress(text: &str) -> bool {
    let mut marks = text.trim().chars().peekable();
    let is_spinner = |c: char| matches!(c, '\u{2800}'..='\u{28ff}' | '◐'..='◓' | '◜'..='◟');
    match marks.peek() {
        Some('█' | '▉'..='▏' | '░'..='▓' | '╸' | '╺') => true,
        Some('━') => text.contains(|c: char| c.is_ascii_digit()) || text.contains(['╸', '╺']),
        Some(&c) if is_spinner(c) => true,
        _ => has_bar(text),
    }
}

/// Whether there is a bar in brackets, such as `[=====>    ] 12/40` or `[####....]`.
fn has_bar(text: &str) -> bool {
    let Some((_, rest)) = text.split_once('[') else { return false };
    let Some((inside, after)) = rest.split_once(']') else { return false };
    let is_drawn = inside.len() >= 8 && inside.chars().all(|c| matches!(c, '=' | '-' | '#' | '>' | '.' | ' ' | '█'));
    let is_counted = text.contains('%') || after.contains('/');
    is_drawn && is_counted
}

/// An event of `go test -json`.
#[derive(Deserialize)]
struct GoEvent {
    #[serde(rename = "Action")]
    action: String,
    #[serde(rename = "Output")]
    output: Option<String>,
}

/// Returns the text inside an envelope, or the line itself; `None` if the envelope is empty.
fn unwrap_go_event(text: &str) -> Option<Cow<'_, str>> {
    if !(text.starts_with("{\"Time\":\"") || text.starts_with("{\"Action\":\"")) {
        return Some(Cow::Borrowed(text));
    }
    match serde_json::from_str::<GoEvent>(text) {
        Ok(GoEvent { output: Some(output), .. }) => Some(Cow::Owned(resolve_controls(output.trim_end_matches('\n')))),
        Ok(event) if event.action.chars().all(|c| c.is_ascii_lowercase()) => None,
        _ => Some(Cow::Borrowed(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(output: &[u8]) -> Vec<String> {
        terminal_lines(&String::from_utf8_lossy(output)).collect()
    }

    #[test]
    fn line_that_was_rewritten_has_its_last_state() {
        assert_eq!(lines(b"get 1%\rget 50%\rget 100%\r\nok\n"), ["get 100%", "ok"]);
        assert_eq!(lines(b"10%\x08\x08\x0820%\n"), ["20%"]);
        assert_eq!(lines(b"tests passed\r\x1b[K\r\n"), ["tests passed"]);
    }

    #[test]
    fn bars_and_spinners_are_gone() {
        let bars = [
            "    Building [=====================>   ] 12/40: shop, core",
            "   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 62.1/62.1 kB 1.2 MB/s eta 0:00:00",
            "⠹ installing",
            "██████████░░░░░░ 62%",
            "Downloading [#######.....] 58%",
            "(⠂⠂⠂) [          ] / idealTree: timing",
        ];
        let expected = [
            "test [ok] 3/4",
            "array [1, 2, 3] 100%",
            "━━━━━━━━",
            "[-----] 4 checks",
            "error[E0308]: mismatched types",
            "[==========] Running 3 tests from 1 test suite.",
        ];
        assert_eq!(lines(bars.join("\n").as_bytes()), Vec::<String>::new());
        assert_eq!(lines(expected.join("\n").as_bytes()), expected);
    }

    #[test]
    fn colours_and_bad_bytes_do_not_survive() {
        assert_eq!(lines(b"\x1b[31mred\x1b[0m \xff \x00\tx\n"), ["red \u{fffd} <U+0000>\tx"]);
    }

    #[test]
    fn text_of_go_events_is_taken_out_of_them() {
        let events = concat!(
            "{\"Time\":\"2026-01-01T00:00:00Z\",\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"T\"}\n",
            "{\"Time\":\"2026-01-01T00:00:00Z\",\"Action\":\"output\",\"Output\":\"--- FAIL: T (0.00s)\\n\"}\n",
            "{\"Time\":\"not an event\n",
        );
        assert_eq!(lines(events.as_bytes()), ["--- FAIL: T (0.00s)", "{\"Time\":\"not an event"]);
    }

    #[test]
    fn line_without_end_costs_no_more_than_its_limit() {
        let line = lines(&vec![0; 1_000_000]);
        assert!(line.len() == 1 && line[0].len() <= LINE_LIMIT);
    }
}
