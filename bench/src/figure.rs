//! Figures and how they are shown: a table for people, one JSON object for programs.

use std::io::{self, Write as _};
use std::time::Duration;

use serde::Serialize;

use crate::machine::Machine;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema: &'static str,
    machine: Machine,
    figures: Vec<Figure>,
}

/// One line of the report.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    /// The measurement that it belongs to.
    group: &'static str,
    /// What was measured.
    what: String,
    /// The result, with its unit.
    result: String,
    /// Whether a promise is broken by it.
    is_violation: bool,
}

impl Report {
    /// Begins an empty report.
    pub(crate) fn new(machine: Machine) -> Self {
        Self { schema: "bench-survival-1", machine, figures: Vec::new() }
    }

    /// Adds a figure that is what it is.
    pub(crate) fn add(&mut self, group: &'static str, what: impl Into<String>, result: impl Into<String>) {
        self.figures.push(Figure { group, what: what.into(), result: result.into(), is_violation: false });
    }

    /// Adds a count that has to be 0.
    pub(crate) fn add_zero(&mut self, group: &'static str, what: impl Into<String>, count: usize) {
        let figure = Figure { group, what: what.into(), result: count.to_string(), is_violation: count > 0 };
        self.figures.push(figure);
    }

    /// Returns whether every count that has to be 0 is.
    pub(crate) fn is_clean(&self) -> bool {
        self.figures.iter().all(|figure| !figure.is_violation)
    }

    /// Prints everything to standard output.
    pub(crate) fn print(&self, as_json: bool) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if as_json {
            return writeln!(out, "{}", serde_json::to_string(self)?);
        }
        let Machine { kernel, cores, load, git, version, profile } = &self.machine;
        writeln!(out, "runnerd {version} ({profile}), Linux {kernel}, {cores} cores, load {load}, {git}")?;
        let mut group = "";
        for figure in &self.figures {
            if figure.group != group {
                group = figure.group;
                writeln!(out, "\n{group}")?;
            }
            let mark = if figure.is_violation { "  VIOLATION" } else { "" };
            writeln!(out, "  {:<58} {}{mark}", figure.what, figure.result)?;
        }
        Ok(())
    }
}

/// Says how measurements spread, in milliseconds.
pub(crate) fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let Some(last) = times.last() else { return "not measured".to_owned() };
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_millis();
    format!("median {} ms, 95 % {} ms, worst {} ms, n {}", at(50), at(95), last.as_millis(), times.len())
}

/// Tells how it goes, on standard error: the whole takes minutes.
#[expect(clippy::print_stderr, reason = "progress of a program for the terminal")]
pub(crate) fn progress(text: &str) {
    eprintln!("{text}");
}
