//! Output of guards and agents, reduced to the bounded text that `feedback.json` keeps for the next session.
//!
//! Deterministic and linear in the size of the output. It knows no tool's format: a line counts as an error by the
//! words that people use for errors. When feedback is written and when it is cleared is decided elsewhere.

use crate::ansi;
use crate::clip::{Cut, fit};
use crate::fence;

/// The longest line that is kept whole, in bytes.
const LINE_LIMIT: usize = 2_000;
/// What the mark of a gap may take, in bytes.
const GAP_LEN: usize = 52;
/// Lines kept in front of a line that looks like an error.
const LINES_BEFORE_ERROR: usize = 2;
/// Lines kept after a line that looks like an error.
const LINES_AFTER_ERROR: usize = 8;

/// Returns what a reader needs of the output, as clean text of at most `limit_bytes`.
///
/// Escape sequences are removed, overwritten progress is resolved to its last state, identical lines in a row are
/// folded. Over the limit the head, the first lines that look like errors with their surroundings, and the tail are
/// kept, and the gaps are marked.
pub fn reduce(output: &[u8], limit_bytes: usize) -> String {
    let text = String::from_utf8_lossy(output);
    let lines = fold(ansi::strip(&text).lines().map(settled), LINE_LIMIT.min(limit_bytes / 4));
    let selection = Selection::of(&lines, limit_bytes);
    clip(&selection.render(), limit_bytes)
}

/// Returns the text within `limit_bytes`: head and tail kept, the cut marked, characters whole.
pub fn clip(text: &str, limit_bytes: usize) -> String {
    Cut { limit: limit_bytes, head_eighths: 5, before: 0, hint: "" }.apply(text).text
}

/// The last state of a line that a program rewrote with carriage returns and backspaces.
fn settled(line: &str) -> String {
    let last = line.split('\r').rev().find(|state| !state.trim().is_empty()).unwrap_or("");
    let mut shown = String::with_capacity(last.len());
    for c in last.chars() {
        if c == '\u{8}' {
            shown.pop();
        } else {
            shown.push(c);
        }
    }
    fence::clean(&shown).trim_end().to_owned()
}

/// A line and how often it came again at once.
struct Line {
    text: String,
    again: usize,
}

impl Line {
    fn render(&self) -> String {
        match self.again {
            0 => format!("{}\n", self.text),
            1 => format!("{}\n(same line once more)\n", self.text),
            n => format!("{}\n(same line {n} times more)\n", self.text),
        }
    }

    fn len(&self) -> usize {
        self.text.len() + 1 + if self.again == 0 { 0 } else { "(same line  times more)\n".len() + 20 }
    }
}

/// Folds identical lines in a row, drops repeated blank lines, and cuts lines that are too long.
fn fold(lines: impl Iterator<Item = String>, line_limit: usize) -> Vec<Line> {
    let mut folded: Vec<Line> = Vec::new();
    for text in lines {
        let text = if text.len() > line_limit { fit(&text, line_limit) } else { text };
        match folded.last_mut() {
            Some(last) if last.text == text && text.is_empty() => {}
            Some(last) if last.text == text => last.again += 1,
            _ => folded.push(Line { text, again: 0 }),
        }
    }
    folded
}

/// Which lines are kept, and how many bytes are left to spend.
struct Selection<'a> {
    lines: &'a [Line],
    kept: Vec<bool>,
    left: usize,
}

impl<'a> Selection<'a> {
    fn of(lines: &'a [Line], limit: usize) -> Self {
        let all = lines.iter().map(|line| line.render().len()).sum::<usize>() <= limit;
        let mut selection = Self { lines, kept: vec![all; lines.len()], left: limit.saturating_sub(GAP_LEN) };
        if !all {
            selection.choose(limit);
        }
        selection
    }

    /// Head, tail and errors get their shares; what is left over extends the tail.
    fn choose(&mut self, limit: usize) {
        let lines = self.lines;
        self.take_all(0..lines.len(), limit / 8);
        self.take_all((0..lines.len()).rev(), limit / 8 * 3);
        let mut share = limit / 2;
        for at in (0..lines.len()).filter(|&at| looks_like_error(&lines[at].text)) {
            let around = at.saturating_sub(LINES_BEFORE_ERROR)..lines.len().min(at + 1 + LINES_AFTER_ERROR);
            let spent = self.take_all(around, share);
            share -= spent;
            if spent == 0 && !self.kept[at] {
                break;
            }
        }
        self.take_all((0..lines.len()).rev(), usize::MAX);
    }

    /// Keeps the lines in the given order as long as share and limit allow; returns the bytes spent.
    fn take_all(&mut self, order: impl Iterator<Item = usize>, share: usize) -> usize {
        let mut spent = 0;
        for at in order {
            if self.kept[at] {
                continue;
            }
            let cost = self.lines[at].len() + if self.touches_kept(at) { 0 } else { GAP_LEN };
            if cost > self.left || spent + cost > share {
                break;
            }
            self.kept[at] = true;
            self.left -= cost;
            spent += cost;
        }
        spent
    }

    fn touches_kept(&self, at: usize) -> bool {
        let is_kept = |at: usize| self.kept.get(at).copied().unwrap_or(false);
        is_kept(at + 1) || at.checked_sub(1).is_some_and(is_kept)
    }

    fn render(&self) -> String {
        let mut text = String::new();
        let mut missing = 0;
        for (line, kept) in self.lines.iter().zip(&self.kept) {
            if !kept {
                missing += 1;
                continue;
            }
            text.push_str(&gap(missing));
            text.push_str(&line.render());
            missing = 0;
        }
        text + &gap(missing)
    }
}

fn gap(missing: usize) -> String {
    match missing {
        0 => String::new(),
        1 => "[… 1 line left out …]\n".to_owned(),
        n => format!("[… {n} lines left out …]\n"),
    }
}

/// Words that stand in lines which report an error, in lower case.
const ERROR_WORDS: &[&str] = &[
    "error",
    "fail",
    "failed",
    "failure",
    "fatal",
    "panic",
    "panicked",
    "exception",
    "traceback",
    "undefined",
    "assertion",
    "not ok",
    "cannot",
    "no such file",
    "not found",
    "segmentation fault",
    "✗",
    "✘",
    "✖",
];

/// Whether the line reports an error, as far as its words tell: `0 errors` and `thiserror` do not.
fn looks_like_error(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ERROR_WORDS.iter().any(|word| {
        lower
            .match_indices(word)
            .any(|(at, _)| is_word(line, at, at + word.len()) && !is_denied(&lower[..at], &lower[at + word.len()..]))
    })
}

/// Whether `line[start..end]` is a word, its plural, or the last part of a name such as `TypeError`.
fn is_word(line: &str, start: usize, end: usize) -> bool {
    let before = line[..start].chars().next_back();
    let first = line[start..].chars().next();
    let rest = &line[end..];
    let after = rest.strip_prefix('s').unwrap_or(rest).chars().next();
    let camel = first.is_some_and(char::is_uppercase) && before.is_some_and(char::is_lowercase);
    (camel || !before.is_some_and(char::is_alphanumeric)) && !after.is_some_and(char::is_alphanumeric)
}

/// Whether what stands around the word says that there was none.
fn is_denied(before: &str, after: &str) -> bool {
    let counted_none = matches!(before.split_whitespace().next_back(), Some("0" | "no" | "without"));
    let after = after.strip_prefix('s').unwrap_or(after).trim_start_matches([' ', ':', '=']);
    let zero = after.strip_prefix('0').is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'));
    counted_none || zero
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbered(range: std::ops::Range<usize>) -> String {
        range.flat_map(|n| ["step ".to_owned(), n.to_string(), "\n".to_owned()]).collect()
    }

    #[test]
    fn progress_is_resolved_to_its_last_state() {
        assert_eq!(reduce(b"get 1%\rget 50%\rget 100%\r\nok\n", 1000), "get 100%\nok\n");
        assert_eq!(reduce(b"10%\x08\x08\x0820%\n", 1000), "20%\n");
    }

    #[test]
    fn colours_and_bad_bytes_do_not_survive() {
        assert_eq!(reduce(b"\x1b[31mred\x1b[0m \xff \x00\tx\n", 1000), "red \u{fffd} <U+0000>\tx\n");
    }

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
    fn errors_in_the_middle_are_kept_with_their_surroundings() {
        let output = numbered(0..300) + "error[E0308]: mismatched types\n  --> src/lib.rs:7\n" + &numbered(300..600);
        insta::assert_snapshot!(reduce(output.as_bytes(), 700));
    }

    #[test]
    fn lines_that_report_errors_are_told_from_lines_that_do_not() {
        let errors = [
            "error: x",
            "TypeError: x is undefined",
            "test a ... FAILED",
            "thread 'main' panicked at src/lib.rs",
            "2 errors",
            "java.lang.NullPointerException",
            "not ok 3 - parses",
            "0 errors, 3 failures",
        ];
        let others = [
            "Compiling thiserror v2.0",
            "0 errors",
            "5 passed; 0 failed",
            "errors: 0",
            "failed=0",
            "no errors found",
            "step 4",
        ];
        assert_eq!(errors.iter().filter(|line| !looks_like_error(line)).collect::<Vec<_>>(), Vec::<&&str>::new());
        assert_eq!(others.iter().filter(|line| looks_like_error(line)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn clipped_text_keeps_head_and_tail() {
        let text = numbered(0..100);
        let clipped = clip(&text, 120);
        assert!(clipped.starts_with("step 0\n") && clipped.ends_with("step 99\n"), "{clipped}");
    }

    proptest! {
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
