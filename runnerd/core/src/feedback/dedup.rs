//! Folds runs of similar lines as they arrive: the first and the last are kept, with a count of the others.
//!
//! Lines that report an error or name a place in a file are folded only if they are identical or very numerous.

use std::mem::take;

use super::error_words::looks_like_error;
use super::line_shape;

/// Most lines of a run that are all kept.
const MAX_REPEATED_LINES: usize = 4;
/// Lines kept of a run that reports errors, before its last one.
const MAX_REPEATED_ERRORS: usize = 8;

/// A line as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownLine {
    /// Its text.
    pub(super) text: String,
    /// How often it was repeated immediately.
    pub(super) repeats: usize,
    /// How many lines of the output it represents.
    pub(super) line_count: usize,
}

impl ShownLine {
    /// A line that occurred once.
    pub(super) fn new(text: String) -> Self {
        Self { text, repeats: 0, line_count: 1 }
    }

    /// A line written by the runner that represents others.
    pub(super) fn marker(text: String, span: usize) -> Self {
        Self { text, repeats: 0, line_count: span }
    }

    fn repeat(&mut self) {
        self.repeats += 1;
        self.line_count += 1;
    }

    /// Returns the line with its line end and its number of repetitions.
    pub(super) fn render(&self) -> String {
        match self.repeats {
            0 => format!("{}\n", self.text),
            1 => format!("{}\n(same line once more)\n", self.text),
            n => format!("{}\n(same line {n} times more)\n", self.text),
        }
    }

    /// Returns the most bytes that the line can take up.
    pub(super) fn len(&self) -> usize {
        self.text.len() + 1 + if self.repeats == 0 { 0 } else { "(same line  times more)\n".len() + 20 }
    }
}

/// What groups lines into one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LineKey {
    /// Only identical lines.
    #[default]
    Identical,
    /// The shape of the text.
    Shape(u64),
    /// What a runner says about the line, such as that a test passed.
    Kind(&'static str),
}

impl LineKey {
    /// Returns the key of a line that was not recognized.
    pub(super) fn for_line(text: &str) -> Self {
        if text.is_empty() { Self::Identical } else { Self::Shape(line_shape::shape_hash(text)) }
    }
}

/// Lines in transit; the current run is held back until it has ended.
#[derive(Debug, Default)]
pub(super) struct LineDedup {
    key: LineKey,
    first: Vec<ShownLine>,
    keep_limit: usize,
    left_out: usize,
    last: Option<ShownLine>,
}

impl LineDedup {
    /// Takes a line, and passes on those to which nothing can be added.
    pub(super) fn push(&mut self, line: ShownLine, key: LineKey, out: &mut impl FnMut(ShownLine)) {
        if let Some(latest) = self.last.as_mut().or(self.first.last_mut()).filter(|latest| latest.text == line.text) {
            // Repeated blank lines carry no information.
            return if line.text.is_empty() { latest.line_count += 1 } else { latest.repeat() };
        }
        let goes_on = key != LineKey::Identical && key == self.key && !self.stands_alone(&line.text);
        if !goes_on {
            self.finish(out);
            self.key = key;
        }
        if self.last.is_none() && self.first.len() < self.keep_limit {
            self.first.push(line);
        } else {
            self.left_out += self.last.replace(line).map_or(0, |last| last.line_count);
        }
    }

    /// Whether the line must be kept as it is; the first such line of a run lets the run keep more.
    fn stands_alone(&mut self, text: &str) -> bool {
        if self.keep_limit == MAX_REPEATED_LINES - 1
            && !matches!(self.key, LineKey::Kind(_))
            && self.left_out == 0
            && looks_like_error(text)
        {
            self.keep_limit = MAX_REPEATED_ERRORS;
        }
        matches!(self.key, LineKey::Shape(_)) && line_shape::has_location(text)
    }

    /// Passes on the lines that are held back.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(ShownLine)) {
        let first = take(&mut self.first);
        let is_neutral = self.keep_limit < MAX_REPEATED_ERRORS;
        let count = if self.left_out > 0 && is_neutral { 1 } else { first.len() };
        let hidden = take(&mut self.left_out)
            + first[count.min(first.len())..].iter().map(|line| line.line_count).sum::<usize>();
        first.into_iter().take(count).for_each(&mut *out);
        match hidden {
            0 => {}
            1 => out(ShownLine::marker("[… 1 line like these …]".to_owned(), 1)),
            n => out(ShownLine::marker(format!("[… {n} lines like these …]"), n)),
        }
        self.last.take().into_iter().for_each(&mut *out);
        self.keep_limit = MAX_REPEATED_LINES - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dedup_lines(lines: &[&str]) -> Vec<String> {
        let mut fold = LineDedup::default();
        let mut out = Vec::new();
        for line in lines {
            fold.push(ShownLine::new((*line).to_owned()), LineKey::for_line(line), &mut |line| out.push(line));
        }
        fold.finish(&mut |line| out.push(line));
        assert_eq!(out.iter().map(|line| line.line_count).sum::<usize>(), lines.len(), "no line is forgotten");
        out.iter().map(|line| line.render().trim_end().to_owned()).collect()
    }

    fn numbered_lines(text: &str, count: usize) -> Vec<String> {
        (1..=count).map(|n| text.replace('#', &n.to_string())).collect()
    }

    fn owned_lines(lines: &[String]) -> Vec<String> {
        dedup_lines(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn identical_lines_become_one() {
        assert_eq!(dedup_lines(&["a", "a", "b", "", "", "b"]), ["a\n(same line once more)", "b", "", "b"]);
    }

    #[test]
    fn lines_that_only_count_are_folded_to_first_and_last() {
        assert_eq!(owned_lines(&numbered_lines("try # after 2.5s", 4)).len(), 4);
        let lines = owned_lines(&numbered_lines("try # after 2.5s", 90));
        assert_eq!(lines, ["try 1 after 2.5s", "[… 88 lines like these …]", "try 90 after 2.5s"]);
    }

    #[test]
    fn more_is_kept_of_errors_that_only_count() {
        let lines = owned_lines(&numbered_lines("case #: FAILED", 90));
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[7..], ["case 8: FAILED", "[… 81 lines like these …]", "case 90: FAILED"]);
    }

    #[test]
    fn lines_with_a_place_are_not_folded() {
        assert_eq!(owned_lines(&numbered_lines("src/lib.rs:#: unused", 50)).len(), 50);
    }
}
