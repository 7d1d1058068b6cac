//! The pane of the repositories: one row each, with its state as icon and word.

use protocol::view::StatusView;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::{PaneCanvas, first_row, selection_style, truncate_text};
use crate::text::paint::{DIM, PLAIN};
use crate::text::repo;
use crate::text::usage::render_short_cost;
use crate::watch::machines::repo_state;
use crate::watch::model::{Focus, Model};

/// Width of everything except the name: mark, state, leaves, cost, and spacing.
const OTHER_COLUMNS: usize = 2 + 12 + 8 + 8;

/// Draws the pane.
pub(super) fn draw_repos(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let inner = canvas.draw_pane(Focus::Repos, "Repositories", area);
    let height = usize::from(inner.height);
    let first = first_row(model.selected_index().unwrap_or(0), model.repos.len(), height);
    let visible = model.repos.iter().skip(first).take(height);
    canvas.draw_lines(visible.map(|status| repo_row(model, status, inner.width.into())).collect(), inner);
}

fn repo_row(model: &Model, status: &StatusView, width: usize) -> Line<'static> {
    let caps = model.caps;
    let is_selected = model.selected.as_ref() == Some(&status.repo.id);
    let available = width.saturating_sub(OTHER_COLUMNS).max(8);
    let name = truncate_text(model, &caps.safe_text(&repo_name(model, status)), available);
    let state = state_span(model, status);
    let padded = Span::styled(format!("{:<11} ", state.content), state.style);
    let (leaves, cost) = status.run.as_ref().map_or_else(Default::default, |run| {
        (format!("{}/{}", run.leaves_passed, run.leaves_total), render_short_cost(&run.usage))
    });
    let mark = if is_selected { caps.pick_symbol("▸ ", "> ") } else { "  " };
    let spans = vec![
        caps.styled_span(PLAIN, mark),
        caps.styled_span(PLAIN, &name),
        Span::raw(" ".repeat(available.saturating_sub(name.width()) + 1)),
        padded,
        caps.styled_span(PLAIN, &format!("{leaves:<7} ")),
        caps.styled_span(DIM, &cost),
    ];
    Line::from(spans).style(selection_style(is_selected && model.focus == Focus::Repos))
}

/// Returns the name of a repository: its folder, including the parent if another one has the same name; for a workspace
/// of an isolated run, listed below its repository, the run.
fn repo_name(model: &Model, status: &StatusView) -> String {
    match repo::isolated_run_id(status) {
        Some(run) if repo::is_nested(status, &model.repos) => {
            return format!("{}{run}", model.caps.pick_symbol("└ ", "+ "));
        }
        Some(_) => return repo::display_name(status),
        None => {}
    }
    let dir_name = |status: &StatusView| status.repo.path.as_path().file_name().map(std::ffi::OsStr::to_owned);
    let own_name = dir_name(status);
    let path = status.repo.path.as_path();
    let is_one_of_many = model.repos.iter().filter(|other| dir_name(other) == own_name).count() > 1;
    let parent_name = path.parent().and_then(std::path::Path::file_name).filter(|_| is_one_of_many);
    let own_name = own_name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    parent_name.map_or(own_name.clone(), |above| format!("{}/{own_name}", above.to_string_lossy()))
}

/// Returns the state of a repository as icon and word.
pub(super) fn state_span(model: &Model, status: &StatusView) -> Span<'static> {
    repo_state(status).map_or_else(|| model.caps.styled_span(DIM, "- idle"), |state| model.caps.state_span(state))
}
