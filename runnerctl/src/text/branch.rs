//! Runs as their branches tell them: a line each, or one of them in detail.

use anstyle::Style;
use protocol::branch::{BranchState, BranchView};

use super::measure::{ago, short, span};
use super::paint::{BAD, DIM, GOOD, HEAD, LIVE, LOOK, paint};
use super::sanitize::safe;
use super::screen::Screen;
use super::table::{Table, TableCell};
use super::usage;

/// Returns a line for each run.
pub(crate) fn list(runs: &[BranchView], screen: &Screen) -> String {
    let mut table = Table::headed(["RUN", "STATE", "LEAVES", "MOVED", "DRIVER", "GOAL"]).yielding(4);
    for run in runs {
        let goal = run.fault.as_deref().or(run.goal.as_deref()).unwrap_or_default();
        table.row([
            TableCell::from(&run.run),
            TableCell::styled(of_state(run.state), run.state.as_str()),
            leaves(run).into(),
            moved(run, screen).into(),
            run.driver.as_deref().unwrap_or_default().into(),
            TableCell::styled(HEAD, goal),
        ]);
    }
    table.render(screen, 0)
}

/// Returns everything that a branch tells.
pub(crate) fn detail(run: &BranchView, screen: &Screen) -> String {
    let state = paint(of_state(run.state), run.state.as_str());
    let head = format!("run {} {state} on branch runner/{}\n", safe(&run.run), safe(&run.run));
    let mut table = Table::bare();
    let mut row = |name: &str, text: String| table.row([TableCell::styled(DIM, name), text.into()]);
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
        row("leaves", format!("{} passed", leaves(run)));
        row("iterations", run.iterations.to_string());
        row("spent", format!("{} in iterations, {}", span(run.elapsed_ms), usage::total(&run.usage)));
    }
    if let Some(node) = &run.node {
        row("next", format!("{}  {}, attempts {}/{}", node.id, node.title, node.attempts, node.max_attempts));
    }
    if run.questions > 0 {
        row("questions", format!("{} open", run.questions));
    }
    row("commit", format!("{}  {}, {}", short(&run.tip), run.subject, moved(run, screen)));
    head + &table.render(screen, 2)
}

fn leaves(run: &BranchView) -> String {
    if run.leaves_total == 0 { String::new() } else { format!("{}/{}", run.leaves_passed, run.leaves_total) }
}

fn moved(run: &BranchView, screen: &Screen) -> String {
    run.moved_at.map(|time| ago(time, screen.now)).unwrap_or_default()
}

fn of_state(state: BranchState) -> Style {
    match state {
        BranchState::Completed => GOOD,
        BranchState::Claimed => LIVE,
        BranchState::Released | BranchState::Open => LOOK,
        BranchState::Stuck | BranchState::Unreadable => BAD,
    }
}
