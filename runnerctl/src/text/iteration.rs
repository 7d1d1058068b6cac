//! Finished iterations as lines.

use protocol::view::IterationView;

use super::measure::{format_duration, short_id};
use super::paint::{DIM, PLAIN, guard_style, verdict_style};
use super::screen::Screen;
use super::table::{Table, TableCell};
use super::usage::render_short_cost;

const COLUMNS: [&str; 8] = ["ITER", "VERDICT", "GUARD", "TASK", "TIME", "COST", "COMMIT", "SUMMARY"];
/// The column that is cut if a terminal is narrow.
const SHRINKING_COLUMN: usize = 3;

/// Returns one iteration as a line.
pub(crate) fn render_line(iteration: &IterationView, screen: &Screen) -> String {
    render_lines(std::slice::from_ref(iteration), screen, 0)
}

/// Returns iterations as aligned lines in the order given.
pub(crate) fn render_lines(iterations: &[IterationView], screen: &Screen, indent: usize) -> String {
    fill_table(Table::with_names(COLUMNS), iterations, screen, indent)
}

/// Returns iterations as a table with a heading.
pub(crate) fn render_table(iterations: &[IterationView], screen: &Screen) -> String {
    fill_table(Table::with_heading(COLUMNS), iterations, screen, 0)
}

fn fill_table(table: Table<8>, iterations: &[IterationView], screen: &Screen, indent: usize) -> String {
    let mut table = table.shrinking(SHRINKING_COLUMN);
    for iteration in iterations {
        table.add_row(iteration_row(iteration, screen));
    }
    table.render(screen, indent)
}

fn render_number(iteration: &IterationView) -> String {
    let wait = iteration.wait.map(|wait| format!(".w{wait}")).unwrap_or_default();
    format!("{:04}{wait}", iteration.iter)
}

fn iteration_row(iteration: &IterationView, screen: &Screen) -> [TableCell; 8] {
    let guard = iteration.guard.to_string();
    let guard = if screen.is_plain { guard } else { format!("guard={guard}") };
    [
        render_number(iteration).into(),
        TableCell::styled(verdict_style(iteration.verdict), iteration.verdict.label()),
        TableCell::styled(guard_style(iteration.guard), &guard),
        TableCell::from(&iteration.node),
        iteration.duration_ms.map(format_duration).unwrap_or_default().into(),
        iteration.usage.as_ref().map(render_short_cost).unwrap_or_default().into(),
        TableCell::styled(DIM, iteration.commit.as_deref().map_or("-", short_id)),
        TableCell::styled(PLAIN, &title_and_summary(iteration)),
    ]
}

/// Returns the title of its task, and its session's summary.
fn title_and_summary(iteration: &IterationView) -> String {
    let parts = [&iteration.title, &iteration.summary].into_iter().flatten();
    parts.map(String::as_str).collect::<Vec<_>>().join(": ")
}
