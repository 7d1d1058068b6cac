//! Chooses which lines of a text to keep when not all of them fit: head, tail, and the first errors with their context.
//!
//! Lines arrive one by one, and only those that can still be chosen are held, so that memory is bounded by the limit
//! and not by the text.

use std::collections::VecDeque;

use super::dedup::{LineDedup, LineKey, ShownLine};
use super::error_words::looks_like_error;

/// Room for the mark of a gap, in bytes.
const GAP_LEN: usize = 52;
/// Lines kept before a line that looks like an error.
const LINES_BEFORE_ERROR: usize = 2;
/// Lines kept after a line that looks like an error.
const LINES_AFTER_ERROR: usize = 8;

/// A line that may be kept.
#[derive(Debug)]
struct LineCandidate {
    line: ShownLine,
    /// Number of its first line in the text.
    at: usize,
    is_error: bool,
    /// Whether it is still held after dropping out of the tail.
    is_retained: bool,
}

/// The lines of a text that may be kept.
#[derive(Debug)]
pub(super) struct OutputExcerpt {
    limit: usize,
    dedup: LineDedup,
    lines: HeldLines,
}

/// The lines after folding.
#[derive(Debug, Default)]
struct HeldLines {
    limit: usize,
    early: Vec<LineCandidate>,
    tail: VecDeque<LineCandidate>,
    tail_bytes: usize,
    retained_bytes: usize,
    /// Number of further lines that belong to the context of an error.
    after_error: usize,
    total: usize,
}

impl OutputExcerpt {
    /// Starts a text of which at most `limit` bytes are kept.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, dedup: LineDedup::default(), lines: HeldLines { limit, ..HeldLines::default() } }
    }

    /// Takes the next line.
    pub(super) fn push(&mut self, line: ShownLine, key: LineKey) {
        let held = &mut self.lines;
        self.dedup.push(line, key, &mut |line| held.push(line));
    }

    /// Returns the text within `limit` bytes, or within the limit given at the start if that is less.
    pub(super) fn finish(self, limit: usize) -> String {
        let Self { limit: announced, dedup: mut fold, lines: mut held } = self;
        fold.finish(&mut |line| held.push(line));
        let total = held.total;
        let mut candidates = held.early;
        candidates.extend(held.tail);
        LineSelection::new(&candidates, total, limit.min(announced)).render()
    }
}

impl HeldLines {
    fn push(&mut self, line: ShownLine) {
        let at = self.total;
        self.total += line.line_count;
        // Once the share of the errors is used up, more of them would not be kept.
        let is_error = self.retained_bytes <= self.limit && looks_like_error(&line.text);
        if is_error {
            let around = self.tail.len().saturating_sub(LINES_BEFORE_ERROR);
            for before in self.tail.range_mut(around..).filter(|before| !before.is_retained) {
                before.is_retained = true;
                self.retained_bytes += before.line.len();
            }
            self.after_error = LINES_AFTER_ERROR + 1;
        }
        let is_wanted =
            self.retained_bytes <= self.limit && (self.after_error > 0 || self.retained_bytes < self.limit / 8);
        self.after_error = self.after_error.saturating_sub(1);
        self.retained_bytes += if is_wanted { line.len() } else { 0 };
        self.tail_bytes += line.len();
        self.tail.push_back(LineCandidate { line, at, is_error, is_retained: is_wanted });
        while self.tail_bytes > self.limit
            && let Some(passed) = self.tail.pop_front()
        {
            self.tail_bytes -= passed.line.len();
            if passed.is_retained {
                self.early.push(passed);
            }
        }
    }
}

/// The candidates that are kept, and the bytes that remain.
struct LineSelection<'a> {
    candidates: &'a [LineCandidate],
    total: usize,
    selected: Vec<bool>,
    left: usize,
}

impl<'a> LineSelection<'a> {
    fn new(candidates: &'a [LineCandidate], total: usize, limit: usize) -> Self {
        let is_whole = candidates.iter().map(|held| held.line.line_count).sum::<usize>() == total;
        let all = is_whole && candidates.iter().map(|held| held.line.render().len()).sum::<usize>() <= limit;
        let selected = vec![all; candidates.len()];
        let mut selection = Self { candidates, total, selected, left: limit.saturating_sub(GAP_LEN) };
        if !all {
            selection.choose_lines(limit);
        }
        selection
    }

    /// Gives head, tail and errors their shares; what remains extends the tail.
    fn choose_lines(&mut self, limit: usize) {
        let count = self.candidates.len();
        self.keep_all(0..count, limit / 8);
        self.keep_all((0..count).rev(), limit / 8 * 3);
        let mut share = limit / 2;
        for at in (0..count).filter(|&at| self.candidates[at].is_error) {
            let around = at.saturating_sub(LINES_BEFORE_ERROR)..count.min(at + 1 + LINES_AFTER_ERROR);
            let used = self.keep_all(around, share);
            share -= used;
            if used == 0 && !self.selected[at] {
                break;
            }
        }
        self.keep_all((0..count).rev(), usize::MAX);
    }

    /// Keeps lines in the given order while share and limit allow; returns the bytes used.
    fn keep_all(&mut self, order: impl Iterator<Item = usize>, share: usize) -> usize {
        let mut used = 0;
        for at in order {
            if self.selected[at] {
                continue;
            }
            let cost = self.candidates[at].line.len() + if self.is_adjacent(at) { 0 } else { GAP_LEN };
            if cost > self.left || used + cost > share {
                break;
            }
            self.selected[at] = true;
            self.left -= cost;
            used += cost;
        }
        used
    }

    /// Whether the line can be added without another gap mark.
    fn is_adjacent(&self, at: usize) -> bool {
        let follows = |at: usize| {
            let one = &self.candidates[at];
            let next = self.candidates.get(at + 1);
            next.is_some_and(|next| one.at + one.line.line_count == next.at)
        };
        let is_after = at.checked_sub(1).is_some_and(|before| self.selected[before] && follows(before));
        is_after || (follows(at) && self.selected[at + 1])
    }

    fn render(&self) -> String {
        let mut text = String::new();
        let mut next = 0;
        for (held, _) in self.candidates.iter().zip(&self.selected).filter(|(_, selected)| **selected) {
            text.push_str(&render_gap(held.at - next));
            text.push_str(&held.line.render());
            next = held.at + held.line.line_count;
        }
        text + &render_gap(self.total - next)
    }
}

fn render_gap(missing: usize) -> String {
    match missing {
        0 => String::new(),
        1 => "[… 1 line left out …]\n".to_owned(),
        n => format!("[… {n} lines left out …]\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt_of(lines: impl Iterator<Item = String>, limit: usize) -> String {
        let mut list = OutputExcerpt::new(limit);
        lines.for_each(|line| list.push(ShownLine::new(line), LineKey::Identical));
        list.finish(limit)
    }

    #[test]
    fn errors_in_the_middle_are_kept_with_their_surroundings() {
        let steps = |range: std::ops::Range<usize>| range.map(|n| format!("step {n}"));
        let error = ["error[E0308]: mismatched types".to_owned(), "  --> src/lib.rs:7".to_owned()];
        insta::assert_snapshot!(excerpt_of(steps(0..300).chain(error).chain(steps(300..600)), 700));
    }

    #[test]
    fn memory_does_not_grow_with_the_text() {
        let mut list = OutputExcerpt::new(4_000);
        for n in 0..200_000 {
            let text = if n % 3 == 0 { format!("error {n}") } else { format!("step {n}") };
            list.push(ShownLine::new(text), LineKey::Identical);
        }
        assert!(list.lines.early.len() + list.lines.tail.len() < 1_500);
        assert!(list.finish(4_000).contains("error 0\n"));
    }
}
