//! Finished iterations as lines.

use protocol::view::IterationView;

use super::measure::{short, span};
use super::paint::{DIM, PLAIN, of_guard, of_verdict};
use super::screen::Screen;
use super::table::{Table, TableCell};
use super::usage::short_cost;

const COLUMNS: [&str; 8] = ["ITER", "VERDICT", "GUARD", "NODE", "TIME", "COST", "COMMIT", "SUMMARY"];
/// The column that gives way where a terminal is narrow.
const NODE: usize = 3;

/// Returns one iteration as a line.
pub(crate) fn line(iteration: &IterationView, screen: &Screen) -> String {
    lines(std::slice::from_ref(iteration), screen, 0)
}

/// Returns iterations as aligned lines in the order given.
pub(crate) fn lines(iterations: &[IterationView], screen: &Screen, indent: usize) -> String {
    render(Table::named(COLUMNS), iterations, screen, indent)
}

/// Returns iterations as a table with a heading.
pub(crate) fn table(iterations: &[IterationView], screen: &Screen) -> String {
    render(Table::headed(COLUMNS), iterations, screen, 0)
}

fn render(table: Table<8>, iterations: &[IterationView], screen: &Screen, indent: usize) -> String {
    let mut table = table.yielding(NODE);
    for iteration in iterations {
        table.row(row(iteration, screen));
    }
    table.render(screen, indent)
}

fn number(iteration: &IterationView) -> String {
    let wait = iteration.wait.map(|wait| format!(".w{wait}")).unwrap_or_default();
    format!("{:04}{wait}", iteration.iter)
}

fn row(iteration: &IterationView, screen: &Screen) -> [TableCell; 8] {
    let guard = iteration.guard.to_string();
    let guard = if screen.is_plain { guard } else { format!("guard={guard}") };
    [
        number(iteration).into(),
        TableCell::styled(of_verdict(iteration.verdict), iteration.verdict.plain()),
        TableCell::styled(of_guard(iteration.guard), &guard),
        TableCell::from(&iteration.node),
        iteration.duration_ms.map(span).unwrap_or_default().into(),
        iteration.usage.as_ref().map(short_cost).unwrap_or_default().into(),
        TableCell::styled(DIM, iteration.commit.as_deref().map_or("-", short)),
        TableCell::styled(PLAIN, &told(iteration)),
    ]
}

/// Returns the title of its task, and what its session said.
fn told(iteration: &IterationView) -> String {
    let parts = [&iteration.title, &iteration.summary].into_iter().flatten();
    parts.map(String::as_str).collect::<Vec<_>>().join(": ")
}
