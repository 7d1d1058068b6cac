//! Finished iterations as lines.

use protocol::view::IterationView;

use super::measure::{short, span};
use super::paint::{DIM, PLAIN, of_guard, of_verdict};
use super::screen::Screen;
use super::table::{Cell, Table};
use super::usage::short_cost;

/// Returns one iteration as a line.
pub(crate) fn line(iteration: &IterationView, screen: &Screen) -> String {
    lines(std::slice::from_ref(iteration), screen, 0)
}

/// Returns iterations as aligned lines in the order given.
pub(crate) fn lines(iterations: &[IterationView], screen: &Screen, indent: usize) -> String {
    let mut table = Table::bare();
    for iteration in iterations {
        table.row(row(iteration));
    }
    table.render(screen, indent)
}

/// Returns iterations as a table with a heading.
pub(crate) fn table(iterations: &[IterationView], screen: &Screen) -> String {
    let mut table = Table::headed(["ITER", "VERDICT", "GUARD", "NODE", "TIME", "COST", "COMMIT", "SUMMARY"]);
    for iteration in iterations {
        table.row(row(iteration));
    }
    table.render(screen, 0)
}

fn number(iteration: &IterationView) -> String {
    let wait = iteration.wait.map(|wait| format!(".w{wait}")).unwrap_or_default();
    format!("{:04}{wait}", iteration.iter)
}

fn row(iteration: &IterationView) -> [Cell; 8] {
    [
        number(iteration).into(),
        Cell::styled(of_verdict(iteration.verdict), iteration.verdict.as_str()),
        Cell::styled(of_guard(iteration.guard), &format!("guard={}", iteration.guard)),
        Cell::from(&iteration.node),
        iteration.duration_ms.map(span).unwrap_or_default().into(),
        iteration.usage.as_ref().map(short_cost).unwrap_or_default().into(),
        Cell::styled(DIM, iteration.commit.as_deref().map_or("-", short)),
        Cell::styled(PLAIN, iteration.summary.as_deref().unwrap_or_default()),
    ]
}
