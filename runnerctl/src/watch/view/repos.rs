//! The pane of the repositories: a row each, its state by icon and word.

use protocol::view::StatusView;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::{PaneCanvas, first_row, fit, marked};
use crate::text::paint::{DIM, PLAIN};
use crate::text::repo;
use crate::text::usage::short_cost;
use crate::watch::machines::state_of;
use crate::watch::model::{Focus, Model};

/// Columns of everything but the name: mark, state, leaves, cost, and what is between them.
const BESIDE: usize = 2 + 12 + 8 + 8;

/// Draws the pane.
pub(super) fn draw(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let inner = canvas.pane(Focus::Repos, "Repositories", area);
    let height = usize::from(inner.height);
    let first = first_row(model.position().unwrap_or(0), model.repos.len(), height);
    let shown = model.repos.iter().skip(first).take(height);
    canvas.lines(shown.map(|status| row(model, status, inner.width.into())).collect(), inner);
}

fn row(model: &Model, status: &StatusView, width: usize) -> Line<'static> {
    let look = model.look;
    let is_selected = model.selected.as_ref() == Some(&status.repo.id);
    let room = width.saturating_sub(BESIDE).max(8);
    let name = fit(model, &look.text(&name(model, status)), room);
    let state = state(model, status);
    let padded = Span::styled(format!("{:<11} ", state.content), state.style);
    let (leaves, cost) = status.run.as_ref().map_or_else(Default::default, |run| {
        (format!("{}/{}", run.leaves_passed, run.leaves_total), short_cost(&run.usage))
    });
    let mark = if is_selected { look.pick("▸ ", "> ") } else { "  " };
    let spans = vec![
        look.span(PLAIN, mark),
        look.span(PLAIN, &name),
        Span::raw(" ".repeat(room.saturating_sub(name.width()) + 1)),
        padded,
        look.span(PLAIN, &format!("{leaves:<7} ")),
        look.span(DIM, &cost),
    ];
    Line::from(spans).style(marked(is_selected && model.focus == Focus::Repos))
}

/// Returns the name of a repository: its folder, with the one above where another has the same; of the workspace of an
/// isolated run below its repository, the run.
fn name(model: &Model, status: &StatusView) -> String {
    match repo::isolated_run(status) {
        Some(run) if repo::is_below(status, &model.repos) => return format!("{}{run}", model.look.pick("└ ", "+ ")),
        Some(_) => return repo::place(status),
        None => {}
    }
    let last = |status: &StatusView| status.repo.path.as_path().file_name().map(std::ffi::OsStr::to_owned);
    let own = last(status);
    let path = status.repo.path.as_path();
    let is_one_of_many = model.repos.iter().filter(|other| last(other) == own).count() > 1;
    let above = path.parent().and_then(std::path::Path::file_name).filter(|_| is_one_of_many);
    let own = own.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    above.map_or(own.clone(), |above| format!("{}/{own}", above.to_string_lossy()))
}

/// Returns the state of a repository as icon and word.
pub(super) fn state(model: &Model, status: &StatusView) -> Span<'static> {
    state_of(status).map_or_else(|| model.look.span(DIM, "- idle"), |state| model.look.state(state))
}
