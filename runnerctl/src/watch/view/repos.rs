//! The pane of the repositories: one row each, with its state as icon and word; with the whole screen, also why it needs
//! a person, or its goal.

use protocol::view::StatusView;
use protocol::words::RunStatus;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::{PaneCanvas, first_row, selection_style, truncate_spans, truncate_text};
use crate::text::paint::{DIM, PLAIN};
use crate::text::repo;
use crate::text::run::state_label;
use crate::text::status::describe_activity;
use crate::text::usage::render_short_cost;
use crate::watch::machines::repo_state;
use crate::watch::model::{Focus, Model};

/// Width of everything except the name: mark, state, leaves, cost, and spacing.
const OTHER_COLUMNS: usize = 2 + 12 + 8 + 8;
/// Maximum width of the name with the whole screen.
const NAME_COLUMNS: usize = 20;

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
    let name_columns = || model.repos.iter().map(|one| repo_name(model, one).width()).max().unwrap_or(0);
    let available = if model.shows_list() {
        name_columns().clamp(8, NAME_COLUMNS)
    } else {
        width.saturating_sub(OTHER_COLUMNS).max(8)
    };
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
        if model.shows_list() {
            caps.styled_span(if status.needs_you() { PLAIN } else { DIM }, &row_text(model, status))
        } else {
            caps.styled_span(DIM, &cost)
        },
    ];
    Line::from(truncate_spans(model, spans, width)).style(selection_style(is_selected && model.focus == Focus::Repos))
}

/// Returns why a repository needs a person or what it waits for, otherwise its goal.
fn row_text(model: &Model, status: &StatusView) -> String {
    let Some(run) = &status.run else {
        return status.repo.held.as_ref().map(|held| held.message.clone()).unwrap_or_default();
    };
    let question = (run.questions > 0).then(|| format!("asks {}", format_questions(run.questions)));
    let state = match (&status.repo.held, run.summary.state) {
        (Some(held), _) => Some(held.message.clone()),
        (None, RunStatus::Running | RunStatus::Queued | RunStatus::Completed) => None,
        (None, _) => Some(describe_activity(run, &model.caps.screen)).filter(|text| !text.is_empty()),
    };
    let parts: Vec<String> = [question, state.or_else(|| run.summary.goal.clone())].into_iter().flatten().collect();
    parts.join("; ")
}

fn format_questions(count: u32) -> String {
    if count == 1 { "a question".into() } else { format!("{count} questions") }
}

/// Returns the name of a repository: its folder, including the parent if another one has the same name; for a workspace
/// of an isolated run, listed below its repository, the goal, or the run if that has none.
fn repo_name(model: &Model, status: &StatusView) -> String {
    match repo::isolated_run_id(status) {
        Some(run) if repo::is_nested(status, &model.repos) => {
            let goal = status.run.as_ref().and_then(|run| run.summary.goal.clone());
            return format!("{}{}", model.caps.pick_symbol("└ ", "+ "), goal.unwrap_or(run));
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
    match (repo_state(status), &status.run) {
        (None, _) => model.caps.styled_span(DIM, "- idle"),
        (Some(RunStatus::Waiting), Some(run)) if run.summary.needs_you => {
            let (word, style) = state_label(&run.summary);
            model.caps.styled_span(style, &format!("{} {word}", model.caps.pick_symbol("◇", "?")))
        }
        (Some(state), _) => model.caps.state_span(state),
    }
}
