//! Runs of lines that say the same, folded while they come: the first and the last are kept, with how many there were.
//!
//! Lines that report an error or name a place in a file are folded only where they are identical or very many.

use std::mem::take;

use super::shape;
use super::words::look_like_error;

/// Lines of a run that are kept where there are no more.
const FEW: usize = 4;
/// Lines kept of a run that reports errors, before its last one.
const FEW_ERRORS: usize = 8;

/// A line as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownLine {
    /// Its text.
    pub(super) text: String,
    /// How often it came again at once.
    pub(super) again: usize,
    /// How many lines of the output it stands for.
    pub(super) span: usize,
}

impl ShownLine {
    /// A line that came once.
    pub(super) fn new(text: String) -> Self {
        Self { text, again: 0, span: 1 }
    }

    /// A line of the runner's that stands for others.
    pub(super) fn mark(text: String, span: usize) -> Self {
        Self { text, again: 0, span }
    }

    fn repeat(&mut self) {
        self.again += 1;
        self.span += 1;
    }

    /// Returns the line with its end, and how often it came.
    pub(super) fn render(&self) -> String {
        match self.again {
            0 => format!("{}\n", self.text),
            1 => format!("{}\n(same line once more)\n", self.text),
            n => format!("{}\n(same line {n} times more)\n", self.text),
        }
    }

    /// Returns the most bytes that the line takes.
    pub(super) fn len(&self) -> usize {
        self.text.len() + 1 + if self.again == 0 { 0 } else { "(same line  times more)\n".len() + 20 }
    }
}

/// What makes lines fall into one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Key {
    /// Nothing but being identical.
    #[default]
    Own,
    /// The shape of the text.
    Shape(u64),
    /// What a runner says of the line, such as that a test passed.
    Kind(&'static str),
}

impl Key {
    /// Returns the key of a line that nobody recognised.
    pub(super) fn of(text: &str) -> Self {
        if text.is_empty() { Self::Own } else { Self::Shape(shape::key(text)) }
    }
}

/// Lines on their way, the run that they are in held back until it has ended.
#[derive(Debug, Default)]
pub(super) struct Fold {
    key: Key,
    first: Vec<ShownLine>,
    few: usize,
    left_out: usize,
    last: Option<ShownLine>,
}

impl Fold {
    /// Takes a line, and hands on those of which nothing more can come.
    pub(super) fn take(&mut self, line: ShownLine, key: Key, out: &mut impl FnMut(ShownLine)) {
        if let Some(latest) = self.last.as_mut().or(self.first.last_mut()).filter(|latest| latest.text == line.text) {
            // Blank lines add nothing by being many.
            return if line.text.is_empty() { latest.span += 1 } else { latest.repeat() };
        }
        let goes_on = key != Key::Own && key == self.key && !self.is_own(&line.text);
        if !goes_on {
            self.finish(out);
            self.key = key;
        }
        if self.last.is_none() && self.first.len() < self.few {
            self.first.push(line);
        } else {
            self.left_out += self.last.replace(line).map_or(0, |last| last.span);
        }
    }

    /// Whether the line must stand for itself; the first such line of a run lets the run keep more.
    fn is_own(&mut self, text: &str) -> bool {
        if self.few == FEW - 1 && !matches!(self.key, Key::Kind(_)) && self.left_out == 0 && look_like_error(text) {
            self.few = FEW_ERRORS;
        }
        matches!(self.key, Key::Shape(_)) && shape::has_place(text)
    }

    /// Hands on what is held back.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(ShownLine)) {
        let first = take(&mut self.first);
        let is_neutral = self.few < FEW_ERRORS;
        let kept = if self.left_out > 0 && is_neutral { 1 } else { first.len() };
        let hidden =
            take(&mut self.left_out) + first[kept.min(first.len())..].iter().map(|line| line.span).sum::<usize>();
        first.into_iter().take(kept).for_each(&mut *out);
        match hidden {
            0 => {}
            1 => out(ShownLine::mark("[… 1 line like these …]".to_owned(), 1)),
            n => out(ShownLine::mark(format!("[… {n} lines like these …]"), n)),
        }
        self.last.take().into_iter().for_each(&mut *out);
        self.few = FEW - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(lines: &[&str]) -> Vec<String> {
        let (mut fold, mut out) = (Fold::default(), Vec::new());
        for line in lines {
            fold.take(ShownLine::new((*line).to_owned()), Key::of(line), &mut |line| out.push(line));
        }
        fold.finish(&mut |line| out.push(line));
        assert_eq!(out.iter().map(|line| line.span).sum::<usize>(), lines.len(), "no line is forgotten");
        out.iter().map(|line| line.render().trim_end().to_owned()).collect()
    }

    fn numbered(text: &str, count: usize) -> Vec<String> {
        (1..=count).map(|n| text.replace('#', &n.to_string())).collect()
    }

    fn all(lines: &[String]) -> Vec<String> {
        folded(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn identical_lines_become_one() {
        assert_eq!(folded(&["a", "a", "b", "", "", "b"]), ["a\n(same line once more)", "b", "", "b"]);
    }

    #[test]
    fn lines_that_only_count_are_folded_to_first_and_last() {
        assert_eq!(all(&numbered("try # after 2.5s", 4)).len(), 4);
        let kept = all(&numbered("try # after 2.5s", 90));
        assert_eq!(kept, ["try 1 after 2.5s", "[… 88 lines like these …]", "try 90 after 2.5s"]);
    }

    #[test]
    fn more_is_kept_of_errors_that_only_count() {
        let kept = all(&numbered("case #: FAILED", 90));
        assert_eq!(kept.len(), 10);
        assert_eq!(kept[7..], ["case 8: FAILED", "[… 81 lines like these …]", "case 90: FAILED"]);
    }

    #[test]
    fn lines_with_a_place_are_not_folded() {
        assert_eq!(all(&numbered("src/lib.rs:#: unused", 50)).len(), 50);
    }
}
