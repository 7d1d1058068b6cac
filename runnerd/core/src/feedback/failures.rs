//! The failures that runners report, gathered while lines come in, and told in a bounded text.
//!
//! The first ones are told with what the runner said of them, the others by name.

use std::collections::BTreeSet;

use super::fold::{Key, ShownLine};
use super::runner::Runner;
use super::shortlist::Shortlist;
use crate::clip::fit;

/// Failures that are told with details get at least this much, in bytes.
const SHARE_MIN: usize = 700;
/// Most lines of one failure.
const MOST_LINES: usize = 200;
/// Most names that are held.
const MOST_NAMES: usize = 2_000;
/// Most failures that are compared with others.
const MOST_SEEN: usize = 4_000;
/// What stands around the names of failures without details may take, in bytes.
const MARK_LEN: usize = 60;
/// The longest name, in bytes.
const NAME_LIMIT: usize = 160;

/// One failure, as its runner reports it.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// Who reports it.
    pub(super) runner: &'static Runner,
    /// What failed.
    pub(super) name: String,
    /// What was said of it, its first line included.
    pub(super) lines: Vec<String>,
}

impl Failure {
    /// Begins a failure with the line that names it.
    pub(super) fn new(runner: &'static Runner, name: &str, line: String) -> Self {
        Self { runner, name: fit(name, NAME_LIMIT), lines: vec![line] }
    }

    /// Whether it holds as many lines as a failure may.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= MOST_LINES
    }

    /// What it takes at least where it is told with details, and a blank line.
    fn least(&self) -> usize {
        self.len().min(SHARE_MIN) + 1
    }

    fn len(&self) -> usize {
        self.lines.iter().map(|line| line.len() + 1).sum()
    }

    /// Takes off the blank lines at the end.
    pub(super) fn trim(&mut self) {
        while self.lines.last().is_some_and(String::is_empty) {
            self.lines.pop();
        }
    }

    fn render(&self, limit: usize) -> String {
        let mut list = Shortlist::new(limit);
        for line in &self.lines {
            list.take(ShownLine::new(line.clone()), Key::of(line));
        }
        list.finish(limit)
    }
}

/// All failures of an output, bounded.
#[derive(Debug)]
pub(super) struct Failures {
    limit: usize,
    /// The first ones, whole.
    pub(super) told: Vec<Failure>,
    bytes: usize,
    /// Names of the others.
    others: Vec<String>,
    /// Failures of which only the name was said, by runner.
    named: Vec<(&'static str, String)>,
    count: usize,
    seen: BTreeSet<(String, String)>,
    runners: BTreeSet<&'static str>,
}

impl Failures {
    /// Begins with none; the text of all of them has at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            told: Vec::new(),
            bytes: 0,
            others: Vec::new(),
            named: Vec::new(),
            count: 0,
            seen: BTreeSet::new(),
            runners: BTreeSet::new(),
        }
    }

    /// Adds a failure, if it is not one that was told in the same words before.
    pub(super) fn add(&mut self, failure: Failure) {
        let words = failure.lines.get(1..).unwrap_or_default().join("\n");
        let key = (failure.name.clone(), fit(&words, NAME_LIMIT));
        let is_known = self.seen.contains(&key) || (words.is_empty() && self.is_named(&failure.name));
        if is_known {
            return;
        }
        if self.seen.len() < MOST_SEEN {
            self.seen.insert(key);
        }
        self.runners.insert(failure.runner.name);
        self.count += 1;
        if self.bytes < 4 * self.limit {
            self.bytes += failure.len();
            self.told.push(failure);
        } else if self.others.len() < MOST_NAMES {
            self.others.push(failure.name);
        }
    }

    fn is_named(&self, name: &str) -> bool {
        self.seen.range((name.to_owned(), String::new())..).next().is_some_and(|(known, _)| known == name)
    }

    /// Adds a failure of which this line says only the name.
    pub(super) fn add_name(&mut self, runner: &'static str, name: &str) {
        let named = (runner, fit(name, NAME_LIMIT));
        if self.named.len() < MOST_NAMES && !self.named.contains(&named) {
            self.named.push(named);
        }
    }

    /// Counts the names of runners that said no more than names.
    pub(super) fn settle(&mut self) {
        for (runner, name) in std::mem::take(&mut self.named) {
            if !self.told.iter().any(|failure| failure.runner.name == runner) {
                self.runners.insert(runner);
                self.others.push(name);
                self.count += 1;
            }
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Names of failures of which nothing else is held.
    pub(super) fn named_only(&self) -> &[String] {
        &self.others
    }

    /// Returns how many there are and who reports them.
    pub(super) fn heading(&self) -> String {
        let runners: Vec<&str> = self.runners.iter().copied().collect();
        format!("{}, reported by {}", self.count, runners.join(", "))
    }

    /// Returns the text: the first failures with what was said of them, then the names of the others.
    pub(super) fn render(&self, limit: usize) -> String {
        let for_names = if self.others.is_empty() && self.fitting(limit) == self.told.len() { 0 } else { limit / 8 };
        let limit = limit - for_names;
        let shown = self.fitting(limit);
        let mut reserved: usize = self.told[..shown].iter().map(Failure::least).sum();
        let mut text = String::new();
        for (at, failure) in self.told[..shown].iter().enumerate() {
            let spare = limit.saturating_sub(text.len() + reserved) / (shown - at);
            reserved -= failure.least();
            text.push_str(&failure.render(failure.least() + spare - 1));
            text.push('\n');
        }
        text + &self.render_others(shown, for_names)
    }

    /// How many failures can be told with details.
    fn fitting(&self, limit: usize) -> usize {
        let mut bytes = 0;
        let fits = |failure: &&Failure| {
            bytes += failure.least();
            bytes <= limit
        };
        self.told.iter().take_while(fits).count()
    }

    /// The names of all but the first `shown` failures, as far as there is room.
    fn render_others(&self, shown: usize, limit: usize) -> String {
        let missing = self.count - shown;
        let rest = self.told[shown..].iter().map(|failure| &failure.name).chain(&self.others);
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
