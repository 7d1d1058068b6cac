//! Figures and how they are printed: a table for people, one JSON object for programs.

use std::io::{self, Write as _};
use std::time::Duration;

use serde::Serialize;

use crate::machine::MachineInfo;
use crate::samples::{Samples, format_duration};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema: &'static str,
    machine: MachineInfo,
    figures: Vec<Figure>,
    #[serde(skip)]
    as_json: bool,
}

/// One line of the report.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    /// The measurement that the figure belongs to.
    group: String,
    /// What was measured.
    what: String,
    /// The result, with its unit.
    result: String,
    /// The samples behind the result, if it is a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<Samples>,
    /// The result as a number, if it is a ratio or a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    /// Upper limit of the result, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<String>,
    /// Whether the figure is within its budget; `true` without a budget unless it is a violation.
    is_kept: bool,
    /// Whether this is a count that must be 0 and is not.
    is_violation: bool,
}

/// A group of figures that lines are added to.
#[derive(Debug)]
pub(crate) struct FigureGroup<'a> {
    report: &'a mut Report,
    name: String,
}

impl Report {
    /// Creates an empty report.
    pub(crate) fn new(machine: MachineInfo, as_json: bool) -> Self {
        let report = Self { schema: "runner-bench-1", machine, figures: Vec::new(), as_json };
        report.print_line(&report.machine.to_string());
        report
    }

    /// Starts a group.
    pub(crate) fn group(&mut self, name: impl Into<String>) -> FigureGroup<'_> {
        let name = name.into();
        self.print_line(&format!("\n{name}"));
        FigureGroup { report: self, name }
    }

    /// Returns whether every count that must be 0 is 0.
    pub(crate) fn is_clean(&self) -> bool {
        self.figures.iter().all(|figure| !figure.is_violation)
    }

    /// Prints everything as one JSON object if requested; otherwise the figures were printed as they came.
    pub(crate) fn finish(&self) -> io::Result<()> {
        if self.as_json { writeln!(io::stdout(), "{}", serde_json::to_string(self)?) } else { Ok(()) }
    }

    /// Prints a line for people right away: the whole report takes minutes.
    fn print_line(&self, line: &str) {
        if !self.as_json {
            // The reader is gone; the measurements may still be wanted for the exit code.
            let _ = writeln!(io::stdout(), "{line}");
        }
    }
}

impl FigureGroup<'_> {
    /// Adds a figure without a budget.
    pub(crate) fn add(&mut self, what: impl Into<String>, result: impl Into<String>) {
        self.push_figure(what, result, |_| {});
    }

    /// Adds a count that must be 0.
    pub(crate) fn add_zero(&mut self, what: impl Into<String>, count: usize) {
        self.push_figure(what, count.to_string(), |figure| {
            figure.is_violation = count > 0;
            figure.is_kept = count == 0;
        });
    }

    /// Adds times without a budget.
    pub(crate) fn add_times(&mut self, what: impl Into<String>, times: &Samples) {
        self.push_figure(what, times.to_string(), |figure| figure.times = Some(times.clone()));
    }

    /// Adds times with a budget on one percentile: the time that `percent` of the samples do not exceed.
    pub(crate) fn add_bounded(&mut self, what: impl Into<String>, times: &Samples, percent: usize, limit: Duration) {
        let value = times.percentile(percent);
        let result =
            if percent == 50 { times.to_string() } else { format!("p{percent} {}, {times}", format_duration(value)) };
        self.push_figure(what, result, |figure| {
            figure.times = Some(times.clone());
            figure.budget = Some(format_duration(limit));
            figure.is_kept = value <= limit;
        });
    }

    /// Adds the ratio of two medians, with its budget.
    pub(crate) fn add_ratio(
        &mut self,
        what: impl Into<String>,
        ours: &Samples,
        floor: &Samples,
        limit: impl Into<Option<f64>>,
    ) {
        let ratio = ours.median().as_secs_f64() / floor.median().as_secs_f64();
        self.add_number(what, ratio, "×", limit.into());
    }

    /// Adds a number with its unit and optional budget.
    pub(crate) fn add_number(&mut self, what: impl Into<String>, value: f64, unit: &str, limit: Option<f64>) {
        self.push_figure(what, format!("{value:.2} {unit}"), |figure| {
            figure.value = Some(value);
            figure.budget = limit.map(|limit| format!("{limit} {unit}"));
            figure.is_kept = limit.is_none_or(|limit| value <= limit);
        });
    }

    fn push_figure(&mut self, what: impl Into<String>, result: impl Into<String>, complete: impl FnOnce(&mut Figure)) {
        let mut figure = Figure {
            group: self.name.clone(),
            what: what.into(),
            result: result.into(),
            times: None,
            value: None,
            budget: None,
            is_kept: true,
            is_violation: false,
        };
        complete(&mut figure);
        self.report.print_line(&format!("  {:<58} {}{}", figure.what, figure.result, figure.budget_mark()));
        self.report.figures.push(figure);
    }
}

impl Figure {
    fn budget_mark(&self) -> String {
        match (&self.budget, self.is_kept) {
            _ if self.is_violation => "  VIOLATION".to_owned(),
            (None, _) => String::new(),
            (Some(budget), true) => format!("  (at most {budget}: kept)"),
            (Some(budget), false) => format!("  (at most {budget}: MISSED)"),
        }
    }
}

/// Reports progress on standard error: the whole takes minutes.
#[expect(clippy::print_stderr, reason = "progress of a program for the terminal")]
pub(crate) fn print_progress(text: &str) {
    eprintln!("{text}");
}
