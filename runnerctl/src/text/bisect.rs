//! Renders the outcome of `bisect`: what broke the command, and where to look.

use std::fmt::Write as _;

use protocol::bisect::{BisectPoint, PointKind};
use protocol::shell::join_args;

use super::measure::short_id;
use super::paint::{BAD, DIM, HEADING, paint};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::wrap::wrap_indented;
use crate::commands::bisect::BisectOutcome;

/// Width for wrapping text, if the terminal is not narrower.
const WIDTH: usize = 80;
/// Number of lines shown of the command's output.
const OUTPUT_LINES: usize = 10;

/// Describes a state in a line.
pub(crate) fn describe_point(point: &BisectPoint) -> String {
    let commit = short_id(&point.commit);
    match (point.kind, point.iter, &point.node) {
        (PointKind::Iteration, Some(iter), Some(node)) => {
            format!("{commit}, iteration {iter:04}, task {}", sanitize(node))
        }
        (PointKind::Start, ..) => format!("{commit}, what the run began with"),
        _ => format!("{commit}, a person's commit"),
    }
}

/// Renders the outcome.
pub(crate) fn render_outcome(outcome: &BisectOutcome<'_>, screen: &Screen) -> String {
    let mut text = match &outcome.broken_by[..] {
        [_] => format!("{} by\n", paint(BAD, "broken")),
        _ => format!("{} by one of these; only the last could be tested\n", paint(BAD, "broken")),
    };
    for point in &outcome.broken_by {
        text += &render_point(point, screen);
    }
    if let Some(output) = outcome.output.as_deref().map(str::trim_end).filter(|output| !output.is_empty()) {
        text += &render_output(output);
    }
    let tried = match outcome.tried.len() {
        0 => "nothing was run: receipts tell it".to_owned(),
        1 => "the command was run once".to_owned(),
        n => format!("the command was run {n} times"),
    };
    let states = if outcome.points == 1 { "1 state".to_owned() } else { format!("{} states", outcome.points) };
    let _ = writeln!(text, "\n{}", paint(DIM, &format!("{states} of {}; {tried}", sanitize(outcome.run))));
    text
}

/// The last lines of the command's output.
fn render_output(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let last = &lines[lines.len().saturating_sub(OUTPUT_LINES)..];
    last.iter().fold(String::from("\n"), |text, line| text + "  | " + &sanitize(line) + "\n")
}

fn render_point(point: &BisectPoint, screen: &Screen) -> String {
    let mut text = format!("  {}\n", paint(HEADING, &describe_point(point)));
    let title = point.title.as_ref().unwrap_or(&point.subject);
    let width = screen.width.unwrap_or(WIDTH).min(WIDTH);
    text += &wrap_indented(4, width, &sanitize(title));
    let command = match &point.from {
        Some(from) => join_args(["git", "diff", short_id(from), short_id(&point.commit), "--", ":!.runner"]),
        None => join_args(["git", "show", short_id(&point.commit)]),
    };
    let _ = writeln!(text, "    {command}");
    text
}
