//! Runs according to their branches: one line each, or one of them in detail.

use anstyle::Style;
use protocol::branch::{BranchState, BranchView};

use super::measure::{format_ago, format_duration, short_id};
use super::paint::{BAD, DIM, GOOD, HEADING, LIVE, WARN, paint};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::table::{Table, TableCell};
use super::usage;

/// Returns a line for each run.
pub(crate) fn render_list(runs: &[BranchView], screen: &Screen) -> String {
    let mut table = Table::with_heading(["RUN", "STATE", "TASKS", "MOVED", "DRIVER", "GOAL"]).shrinking(4);
    for run in runs {
        let goal = run.fault.as_deref().or(run.goal.as_deref()).unwrap_or_default();
        table.add_row([
            TableCell::from(&run.run),
            TableCell::styled(branch_state_style(run.state), run.state.as_str()),
            render_leaves(run).into(),
            render_moved(run, screen).into(),
            run.driver.as_deref().unwrap_or_default().into(),
            TableCell::styled(HEADING, goal),
        ]);
    }
    table.render(screen, 0)
}

/// Returns everything that a branch says about its run.
pub(crate) fn render_detail(run: &BranchView, screen: &Screen) -> String {
    let state = paint(branch_state_style(run.state), run.state.as_str());
    let head = format!("run {} {state} on branch runner/{}\n", sanitize(&run.run), sanitize(&run.run));
    let mut table = Table::without_names();
    let mut row = |name: &str, text: String| table.add_row([TableCell::styled(DIM, name), text.into()]);
    if let Some(goal) = &run.goal {
        row("goal", goal.clone());
    }
    if let Some(fault) = &run.fault {
        row("fault", fault.clone());
    }
    if let Some(driver) = &run.driver {
        row("driver", driver.clone());
    }
    if run.leaves_total > 0 {
        row("tasks", format!("{} passed", render_leaves(run)));
        row("iterations", run.iterations.to_string());
        row(
            "spent",
            format!("{} in sessions and guards, {}", format_duration(run.elapsed_ms), usage::render_total(&run.usage)),
        );
    }
    if let Some(node) = &run.node {
        row("next", format!("{}  {}, attempts {}/{}", node.id, node.title, node.attempts, node.max_attempts));
    }
    if run.questions > 0 {
        row("questions", format!("{} open", run.questions));
    }
    row("commit", format!("{}  {}, {}", short_id(&run.tip), run.subject, render_moved(run, screen)));
    head + &table.render(screen, 2)
}

fn render_leaves(run: &BranchView) -> String {
    if run.leaves_total == 0 { String::new() } else { format!("{}/{}", run.leaves_passed, run.leaves_total) }
}

fn render_moved(run: &BranchView, screen: &Screen) -> String {
    run.moved_at.map(|time| format_ago(time, screen.now)).unwrap_or_default()
}

fn branch_state_style(state: BranchState) -> Style {
    match state {
        BranchState::Completed => GOOD,
        BranchState::Claimed => LIVE,
        BranchState::Released | BranchState::Open => WARN,
        BranchState::Stuck | BranchState::Unreadable => BAD,
    }
}
