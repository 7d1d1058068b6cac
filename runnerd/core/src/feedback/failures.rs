//! Collects the failures that test runners report, line by line, and renders them as bounded text.
//!
//! The first ones are shown with what the test runner said about them, the others by name.

use std::collections::BTreeSet;

use super::dedup::{LineKey, ShownLine};
use super::excerpt::OutputExcerpt;
use super::report_parsers::ReportParser;
use crate::text::clip::truncate_text;

/// Least room for each failure shown with details, in bytes.
const MIN_SHARE: usize = 700;
/// Most lines of one failure.
const MAX_LINES: usize = 200;
/// Most names that are held.
const MAX_NAMES: usize = 2_000;
/// Most failures that are compared with others.
const MAX_COMPARED: usize = 4_000;
/// Room for the text around the names of failures without details, in bytes.
const MARK_LEN: usize = 60;
/// Longest name, in bytes.
const NAME_LIMIT: usize = 160;

/// One failure, as its runner reports it.
#[derive(Debug, Clone)]
pub(super) struct FailureReport {
    /// The parser that recognized it.
    pub(super) parser: &'static ReportParser,
    /// What failed.
    pub(super) name: String,
    /// The report about it, including its first line.
    pub(super) lines: Vec<String>,
}

impl FailureReport {
    /// Starts a failure with the line that names it.
    pub(super) fn new(runner: &'static ReportParser, name: &str, line: String) -> Self {
        Self { parser: runner, name: truncate_text(name, NAME_LIMIT), lines: vec![line] }
    }

    /// Whether it has as many lines as a failure may have.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= MAX_LINES
    }

    /// Least room for it with details and a blank line, in bytes.
    fn min_len(&self) -> usize {
        self.len().min(MIN_SHARE) + 1
    }

    fn len(&self) -> usize {
        self.lines.iter().map(|line| line.len() + 1).sum()
    }

    /// Removes the blank lines at the end.
    pub(super) fn trim(&mut self) {
        while self.lines.last().is_some_and(String::is_empty) {
            self.lines.pop();
        }
    }

    fn render(&self, limit: usize) -> String {
        let mut list = OutputExcerpt::new(limit);
        for line in &self.lines {
            list.push(ShownLine::new(line.clone()), LineKey::for_line(line));
        }
        list.finish(limit)
    }
}

/// All failures of an output, bounded.
#[derive(Debug)]
pub(super) struct FailureList {
    limit: usize,
    /// The first failures, complete.
    pub(super) detailed: Vec<FailureReport>,
    bytes: usize,
    /// Names of the others.
    other_names: Vec<String>,
    /// Failures for which only a name was reported, by test runner.
    named_by_parser: Vec<(&'static str, String)>,
    count: usize,
    known_lines: BTreeSet<(String, String)>,
    parsers: BTreeSet<&'static str>,
}

impl FailureList {
    /// Starts an empty list; its text has at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            detailed: Vec::new(),
            bytes: 0,
            other_names: Vec::new(),
            named_by_parser: Vec::new(),
            count: 0,
            known_lines: BTreeSet::new(),
            parsers: BTreeSet::new(),
        }
    }

    /// Adds a failure, unless one with the same text was added before.
    pub(super) fn add(&mut self, failure: FailureReport) {
        let words = failure.lines.get(1..).unwrap_or_default().join("\n");
        let key = (failure.name.clone(), truncate_text(&words, NAME_LIMIT));
        let is_known = self.known_lines.contains(&key) || (words.is_empty() && self.is_named(&failure.name));
        if is_known {
            return;
        }
        if self.known_lines.len() < MAX_COMPARED {
            self.known_lines.insert(key);
        }
        self.parsers.insert(failure.parser.name);
        self.count += 1;
        if self.bytes < 4 * self.limit {
            self.bytes += failure.len();
            self.detailed.push(failure);
        } else if self.other_names.len() < MAX_NAMES {
            self.other_names.push(failure.name);
        }
    }

    fn is_named(&self, name: &str) -> bool {
        self.known_lines.range((name.to_owned(), String::new())..).next().is_some_and(|(known, _)| known == name)
    }

    /// Adds a failure for which this line gives only the name.
    pub(super) fn add_name(&mut self, runner: &'static str, name: &str) {
        let named = (runner, truncate_text(name, NAME_LIMIT));
        if self.named_by_parser.len() < MAX_NAMES && !self.named_by_parser.contains(&named) {
            self.named_by_parser.push(named);
        }
    }

    /// Counts the names from test runners that reported nothing else.
    pub(super) fn count_names(&mut self) {
        for (runner, name) in std::mem::take(&mut self.named_by_parser) {
            if !self.detailed.iter().any(|failure| failure.parser.name == runner) {
                self.parsers.insert(runner);
                self.other_names.push(name);
                self.count += 1;
            }
        }
    }

    /// Whether there are no failures.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Names of failures about which nothing else is known.
    pub(super) fn names_without_lines(&self) -> &[String] {
        &self.other_names
    }

    /// Returns the number of failures and who reported them.
    pub(super) fn render_heading(&self) -> String {
        let runners: Vec<&str> = self.parsers.iter().copied().collect();
        format!("{}, reported by {}", self.count, runners.join(", "))
    }

    /// Returns the text: the first failures with details, then the names of the others.
    pub(super) fn render(&self, limit: usize) -> String {
        let for_names = if self.other_names.is_empty() && self.count_detailed(limit) == self.detailed.len() {
            0
        } else {
            limit / 8
        };
        let limit = limit - for_names;
        let count = self.count_detailed(limit);
        let mut reserved: usize = self.detailed[..count].iter().map(FailureReport::min_len).sum();
        let mut text = String::new();
        for (at, failure) in self.detailed[..count].iter().enumerate() {
            let spare = limit.saturating_sub(text.len() + reserved) / (count - at);
            reserved -= failure.min_len();
            text.push_str(&failure.render(failure.min_len() + spare - 1));
            text.push('\n');
        }
        text + &self.render_others(count, for_names)
    }

    /// Number of failures that fit with details.
    fn count_detailed(&self, limit: usize) -> usize {
        let mut bytes = 0;
        let fits = |failure: &&FailureReport| {
            bytes += failure.min_len();
            bytes <= limit
        };
        self.detailed.iter().take_while(fits).count()
    }

    /// The names of all but the first `count` failures, as far as they fit.
    fn render_others(&self, count: usize, limit: usize) -> String {
        let missing = self.count - count;
        let rest = self.detailed[count..].iter().map(|failure| &failure.name).chain(&self.other_names);
        let mut text = String::new();
        let mut named = 0;
        for name in rest {
            if text.len() + name.len() + MARK_LEN > limit {
                break;
            }
            text.push_str(if named == 0 { "[also failed: " } else { ", " });
            text.push_str(name);
            named += 1;
        }
        match (named, missing - named) {
            (0, 0) => String::new(),
            (0, more) => format!("[also failed: {more} more]\n"),
            (_, 0) => text + "]\n",
            (_, more) => format!("{text} and {more} more]\n"),
        }
    }
}
