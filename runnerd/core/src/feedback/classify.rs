//! Sorts lines, in one pass, into failures that a known program reports and everything else.

use std::mem::take;

use super::dedup::{LineKey, ShownLine};
use super::excerpt::OutputExcerpt;
use super::failures::{FailureList, FailureReport};
use super::report_parsers::{self, LineContinuation, ReportLine, ReportParser};

/// An output that is being sorted.
#[derive(Debug)]
pub(super) struct OutputClassifier {
    open: Option<OpenFailure>,
    removed: RemovedLines,
    /// Failures that known programs report.
    pub(super) failures: FailureList,
    /// Everything else.
    pub(super) rest: OutputExcerpt,
}

/// A failure that may continue.
#[derive(Debug)]
struct OpenFailure {
    failure: FailureReport,
    /// Uninformative lines that were omitted from it.
    noise: usize,
    is_proven: bool,
}

/// What was removed from the rest since its last line.
#[derive(Debug, Default)]
struct RemovedLines {
    lines: usize,
    failures: usize,
}

impl RemovedLines {
    fn marker(&self) -> ShownLine {
        let count = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let text = format!("[… {} of {} …]", count(self.lines, "line"), count(self.failures, "failure"));
        ShownLine::marker(text, self.lines)
    }
}

impl OutputClassifier {
    /// Sorts all lines of an output, of which at most `limit` bytes are kept.
    pub(super) fn from_lines(lines: impl Iterator<Item = String>, limit: usize) -> Self {
        let failures = FailureList::new(limit);
        let rest = OutputExcerpt::new(limit);
        let mut sorter = Self { open: None, removed: RemovedLines::default(), failures, rest };
        lines.for_each(|line| sorter.classify_line(line));
        sorter.close_failure();
        sorter.mark_removed();
        sorter.failures.count_names();
        sorter
    }

    fn classify_line(&mut self, line: String) {
        match self.open.as_ref().map(|open| (open.failure.parser.continuation)(&line)) {
            Some(LineContinuation::Over) => self.close_failure(),
            Some(LineContinuation::Last) => {
                self.push_to_failure(line);
                return self.close_failure();
            }
            Some(LineContinuation::Continues) | None => {}
        }
        match report_parsers::parse_line(&line, self.open.as_ref().map(|open| open.failure.parser.level)) {
            Some((runner, ReportLine::FailureStart(name))) if !self.is_open(runner, Some(name)) => {
                let failure = FailureReport::new(runner, name, line.clone());
                self.close_failure();
                self.open = Some(OpenFailure { failure, noise: 0, is_proven: (runner.is_proof)(&line) });
            }
            Some((runner, sign)) if self.open.is_none() => self.keep_recognised(runner, sign, &line),
            Some((runner, sign @ (ReportLine::Routine | ReportLine::FailureEnd))) if self.is_open(runner, None) => {
                self.close_failure();
                self.keep_recognised(runner, sign, &line);
            }
            _ if self.open.is_some() => self.push_to_failure(line),
            _ => self.keep_line(line),
        }
    }

    fn is_open(&self, runner: &ReportParser, name: Option<&str>) -> bool {
        let open = self.open.as_ref().map(|open| &open.failure);
        open.is_some_and(|open| open.parser.name == runner.name && name.is_none_or(|name| open.name == name))
    }

    fn push_to_failure(&mut self, line: String) {
        let Some(open) = &mut self.open else { return };
        open.is_proven |= (open.failure.parser.is_proof)(&line);
        if (open.failure.parser.is_noise)(&line) {
            open.noise += 1;
        } else if open.failure.is_full() {
            self.close_failure();
            self.keep_line(line);
        } else {
            open.failure.lines.push(line);
        }
    }

    /// Adds a line to the rest if its program reports only a name or nothing.
    fn keep_recognised(&mut self, runner: &'static ReportParser, sign: ReportLine<'_>, line: &str) {
        if let ReportLine::FailureName(name) | ReportLine::FailureSummary(name) = sign {
            self.failures.add_name(runner.name, name);
        }
        let key = match sign {
            ReportLine::FailureName(_) | ReportLine::Routine => LineKey::Kind(runner.name),
            ReportLine::FailureSummary(_) => LineKey::Identical,
            ReportLine::FailureStart(_) | ReportLine::FailureEnd => LineKey::for_line(line),
        };
        self.mark_removed();
        self.rest.push(ShownLine::new(line.to_owned()), key);
    }

    /// Adds a line to the rest.
    fn keep_line(&mut self, line: String) {
        self.mark_removed();
        let key = LineKey::for_line(&line);
        self.rest.push(ShownLine::new(line), key);
    }

    /// Marks in the rest what was removed from it.
    fn mark_removed(&mut self) {
        if self.removed.lines > 0 {
            self.rest.push(take(&mut self.removed).marker(), LineKey::Identical);
        }
    }

    /// Ends the open failure; without proof it was not a failure.
    fn close_failure(&mut self) {
        let Some(OpenFailure { mut failure, noise, is_proven }) = self.open.take() else { return };
        if !is_proven {
            return failure.lines.into_iter().for_each(|line| self.keep_line(line));
        }
        self.removed.lines += failure.lines.len() + noise;
        self.removed.failures += 1;
        failure.trim();
        self.failures.add(failure);
    }
}
