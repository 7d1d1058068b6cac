//! How the outcome of `bisect` looks: what broke the command, and where to look.

use std::fmt::Write as _;

use protocol::bisect::{BisectPoint, PointKind};
use protocol::shell::words;

use super::measure::short;
use super::paint::{BAD, DIM, HEAD, paint};
use super::sanitize::safe;
use super::screen::Screen;
use super::wrap::flowed;
use crate::commands::bisect::BisectOutcome;

/// Columns that text is wrapped to where the terminal is not narrower.
const WIDTH: usize = 80;
/// Lines that are shown of what the command printed.
const LINES: usize = 10;

/// Names a state in a line.
pub(crate) fn named(point: &BisectPoint) -> String {
    let commit = short(&point.commit);
    match (point.kind, point.iter, &point.node) {
        (PointKind::Iteration, Some(iter), Some(node)) => format!("{commit}, iteration {iter:04}, node {}", safe(node)),
        (PointKind::Start, ..) => format!("{commit}, what the run began with"),
        _ => format!("{commit}, a person's commit"),
    }
}

/// Renders the outcome.
pub(crate) fn found(outcome: &BisectOutcome<'_>, screen: &Screen) -> String {
    let mut text = match &outcome.broken_by[..] {
        [_] => format!("{} by\n", paint(BAD, "broken")),
        _ => format!("{} by one of these; all but the last cannot be told\n", paint(BAD, "broken")),
    };
    for point in &outcome.broken_by {
        text += &state(point, screen);
    }
    if let Some(output) = outcome.output.as_deref().map(str::trim_end).filter(|output| !output.is_empty()) {
        text += &printed(output);
    }
    let tried = match outcome.tried.len() {
        0 => "nothing was run: receipts tell it".to_owned(),
        1 => "the command was run once".to_owned(),
        n => format!("the command was run {n} times"),
    };
    let _ = writeln!(text, "\n{}", paint(DIM, &format!("{} states of {}; {tried}", outcome.points, safe(outcome.run))));
    text
}

/// The last lines of what the command printed.
fn printed(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LINES)..];
    shown.iter().fold(String::from("\n"), |text, line| text + "  | " + &safe(line) + "\n")
}

fn state(point: &BisectPoint, screen: &Screen) -> String {
    let mut text = format!("  {}\n", paint(HEAD, &named(point)));
    let said = point.title.as_ref().unwrap_or(&point.subject);
    let width = screen.width.unwrap_or(WIDTH).min(WIDTH);
    text += &flowed(4, width, &safe(said));
    let show = match &point.from {
        Some(from) => words(["git", "diff", short(from), short(&point.commit), "--", ":!.runner"]),
        None => words(["git", "show", short(&point.commit)]),
    };
    let _ = writeln!(text, "    {show}");
    text
}
