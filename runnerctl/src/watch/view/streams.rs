//! The panes that grow at the end: the agent's steps, the guard's output, the events.

use protocol::request::LogStream;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{PaneCanvas, truncate_text};
use crate::text::paint::{DIM, PLAIN};
use crate::watch::model::{Focus, Model, RepoActivity};
use crate::watch::scroll::ScrollPosition;
use crate::watch::steps::{AgentStep, iteration_divider};
use crate::watch::tail::LogTail;
use crate::watch::wrap;

/// A sanitized line before it is cut into rows.
type StyledLine = (anstyle::Style, String);

/// Draws the agent's steps, or its output.
pub(super) fn draw_agent(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let scroll = canvas.model.scrolls.agent;
    let is_steps = model.shows_steps();
    let is_review = model.pane_log(LogStream::Agent).is_some_and(|key| key.stream == LogStream::Review);
    let title = pane_title(model, if is_review { "Reviewer" } else { "Agent" }, LogStream::Agent)
        + if is_steps { "" } else { ", as printed" }
        + scroll_suffix(scroll);
    let inner = canvas.draw_pane(Focus::Agent, &title, area);
    match model.activity().filter(|_| is_steps) {
        Some(live) => draw_from_bottom(canvas, steps_up_to(model, live, scroll.end(live.steps.range())), inner),
        None => draw_tail(canvas, &model.agent, scroll, inner),
    }
}

/// Draws the guard's output.
pub(super) fn draw_guard(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let scroll = canvas.model.scrolls.guard;
    let name =
        if model.is_baseline() { "Guard on the base".to_owned() } else { pane_title(model, "Guard", LogStream::Guard) };
    let title = name + scroll_suffix(scroll);
    let inner = canvas.draw_pane(Focus::Guard, &title, area);
    draw_tail(canvas, &model.guard, scroll, inner);
}

/// Draws the history.
pub(super) fn draw_events(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let inner = canvas.draw_pane(Focus::Events, &format!("Events{}", scroll_suffix(model.scrolls.events)), area);
    let Some(activity) = model.activity() else { return };
    let (first, _) = activity.entries.range();
    let end = model.scrolls.events.end(activity.entries.range());
    let available = usize::from(inner.width).saturating_sub(9);
    let newest_first = activity.entries.items().iter().take(end - first).rev().map(|entry| {
        let time = model.caps.screen.to_zoned(entry.time).strftime("%H:%M:%S").to_string();
        let text = truncate_text(model, &model.caps.safe_text(&entry.text), available);
        vec![(entry.style, format!("{time} {text}"))]
    });
    draw_from_bottom(canvas, newest_first, inner);
}

fn pane_title(model: &Model, name: &str, stream: LogStream) -> String {
    let iter = model.pane_log(stream).map(|key| format!(" {:04}", key.iter)).unwrap_or_default();
    format!("{name}{iter}")
}

fn scroll_suffix(scroll: ScrollPosition) -> &'static str {
    if scroll.is_following() { "" } else { ", scrolled back" }
}

/// Returns the steps before a given one in reverse order, with a line at the start of each iteration.
fn steps_up_to<'a>(
    model: &'a Model,
    activity: &'a RepoActivity,
    end: usize,
) -> impl Iterator<Item = Vec<StyledLine>> + 'a {
    let (first, _) = activity.steps.range();
    let steps = activity.steps.items();
    let is_first_of = move |at: usize| at == 0 || steps[at - 1].iter != steps[at].iter;
    (0..end - first).rev().map(move |at| {
        let step: &AgentStep = &steps[at];
        let divider = is_first_of(at).then(|| iteration_divider(step.iter));
        let lines = divider.into_iter().chain(step.render_lines(model.caps.screen.unicode));
        lines.map(|(style, line)| (style, model.caps.safe_line(&line))).collect()
    })
}

fn draw_tail(canvas: &mut PaneCanvas<'_, '_>, tail: &LogTail, scroll: ScrollPosition, area: Rect) {
    if tail.lines().is_empty() {
        let text = match (tail.error(), tail.key()) {
            (Some(error), _) => error.message.as_str(),
            (None, None) => "not reached yet",
            (None, Some(_)) if tail.is_complete() => "it printed nothing",
            (None, Some(_)) => "nothing is printed yet",
        };
        return canvas.draw_lines(vec![Line::from(canvas.model.caps.styled_span(DIM, text))], area);
    }
    let (first, _) = tail.range();
    let visible = tail.lines().iter().take(scroll.end(tail.range()) - first);
    draw_from_bottom(canvas, visible.rev().map(|line| vec![(PLAIN, line.clone())]), area);
}

/// Draws as many lines as fit, from the bottom up; `newest_first` yields them in reverse order.
fn draw_from_bottom(canvas: &mut PaneCanvas<'_, '_>, newest_first: impl Iterator<Item = Vec<StyledLine>>, area: Rect) {
    let model = canvas.model;
    let width = usize::from(area.width);
    let height = usize::from(area.height);
    let mut rows: Vec<Line<'static>> = Vec::new();
    for (style, line) in newest_first.flat_map(|lines| lines.into_iter().rev()) {
        if rows.len() >= height {
            break;
        }
        let style = model.caps.to_style(style);
        let parts = wrap::wrap_ranges(&line, width).into_iter().rev();
        rows.extend(parts.map(|part| Line::styled(line[part].to_owned(), style)));
    }
    rows.truncate(height);
    rows.reverse();
    canvas.draw_lines(rows, area);
}
