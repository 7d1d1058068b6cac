//! The layout of the panes: for each size of the terminal, what fits.

use protocol::words::PhaseName;
use ratatui::layout::{Constraint, Layout, Rect};

use crate::watch::model::{Focus, Model};

/// The minimum size of the terminal: width and height.
pub(super) const MIN_SIZE: (u16, u16) = (60, 16);
/// From this width on, there are three columns.
const WIDE_COLUMNS: u16 = 170;

/// The areas of the screen.
pub(super) struct ScreenAreas {
    pub(super) machines: Rect,
    pub(super) header: Rect,
    pub(super) phases: Rect,
    pub(super) repos: Option<Rect>,
    pub(super) tree: Option<Rect>,
    pub(super) agent: Option<Rect>,
    pub(super) guard: Option<Rect>,
    pub(super) events: Option<Rect>,
    pub(super) why: Rect,
    pub(super) footer: Rect,
}

/// The areas of the panes.
struct PaneAreas {
    repos: Option<Rect>,
    tree: Option<Rect>,
    agent: Option<Rect>,
    guard: Option<Rect>,
    events: Option<Rect>,
}

/// Divides the screen.
pub(super) fn split_screen(area: Rect, model: &Model) -> ScreenAreas {
    let machine_rows = u16::from(!model.machines.is_empty());
    let above = [machine_rows, 1, 2].map(Constraint::Length);
    let below = [2, 1].map(Constraint::Length);
    let rows = above.into_iter().chain([Constraint::Fill(1)]).chain(below);
    let [machines, header, phases, body, why, footer] = Layout::vertical(rows).areas(area);
    let PaneAreas { repos, tree, agent, guard, events } = if model.shows_list() {
        PaneAreas { repos: Some(body), tree: None, agent: None, guard: None, events: None }
    } else if model.is_small() {
        small_layout(body, model)
    } else {
        large_layout(body, model)
    };
    ScreenAreas { machines, header, phases, repos, tree, agent, guard, events, why, footer }
}

/// The tree next to either agent or guard, and the events below.
fn small_layout(body: Rect, model: &Model) -> PaneAreas {
    let [left, right] = Layout::horizontal([Constraint::Percentage(42), Constraint::Fill(1)]).areas(body);
    let [top, events] = Layout::vertical([Constraint::Fill(1), Constraint::Length(body.height / 3)]).areas(right);
    let (agent, guard) = if shows_guard(model) { (None, Some(top)) } else { (Some(top), None) };
    PaneAreas { repos: None, tree: Some(left), agent, guard, events: Some(events) }
}

/// Whether to show the guard instead of the agent.
fn shows_guard(model: &Model) -> bool {
    let is_live = model.run().and_then(|run| run.phase.as_ref()).is_some_and(|phase| phase.name == PhaseName::Guard);
    model.focus == Focus::Guard || is_live && model.focus != Focus::Agent
}

fn large_layout(body: Rect, model: &Model) -> PaneAreas {
    let is_wide = body.width >= WIDE_COLUMNS;
    let left = Constraint::Length(if is_wide { 58 } else { 48 });
    let [left, right] = Layout::horizontal([left, Constraint::Fill(1)]).areas(body);
    let [repos, tree] = split_repo_list(left, model, body.height / 3);
    let [agent, guard, events] = if is_wide {
        let [agent, column] = Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(right);
        let [guard, events] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(column);
        [agent, guard, events]
    } else {
        Layout::vertical([Constraint::Fill(3), Constraint::Fill(2), Constraint::Length(8)]).areas(right)
    };
    PaneAreas { repos: Some(repos), tree: Some(tree), agent: Some(agent), guard: Some(guard), events: Some(events) }
}

/// Divides a column into a list of the repositories with a maximum height, and the rest below it.
fn split_repo_list(column: Rect, model: &Model, most: u16) -> [Rect; 2] {
    let rows = u16::try_from(model.repos.len()).unwrap_or(u16::MAX).clamp(1, most.max(1)) + 2;
    Layout::vertical([Constraint::Length(rows), Constraint::Fill(1)]).areas(column)
}
