//! The panes that grow at their end: what the agent does, what the guard prints, what happens.

use protocol::request::LogStream;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{PaneCanvas, fit};
use crate::text::paint::{DIM, PLAIN};
use crate::watch::model::{Focus, Model, RepoActivity};
use crate::watch::scroll::ScrollPosition;
use crate::watch::steps::{AgentStep, divider};
use crate::watch::tail::LogTail;
use crate::watch::wrap;

/// A line before it is cut into rows; made safe already.
type StyledLine = (anstyle::Style, String);

/// Draws what the agent does, or what it prints.
pub(super) fn agent(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let (model, scroll) = (canvas.model, canvas.model.scrolls.agent);
    let is_steps = model.shows_steps();
    let is_review = model.file(LogStream::Agent).is_some_and(|key| key.stream == LogStream::Review);
    let title = title(model, if is_review { "Reviewer" } else { "Agent" }, LogStream::Agent)
        + if is_steps { "" } else { ", as printed" }
        + back(scroll);
    let inner = canvas.pane(Focus::Agent, &title, area);
    match model.live().filter(|_| is_steps) {
        Some(live) => draw(canvas, steps_before(model, live, scroll.end(live.steps.range())), inner),
        None => tail(canvas, &model.agent, scroll, inner),
    }
}

/// Draws what the guard prints.
pub(super) fn guard(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let (model, scroll) = (canvas.model, canvas.model.scrolls.guard);
    let name =
        if model.is_on_base() { "Guard on the base".to_owned() } else { title(model, "Guard", LogStream::Guard) };
    let title = name + back(scroll);
    let inner = canvas.pane(Focus::Guard, &title, area);
    tail(canvas, &model.guard, scroll, inner);
}

/// Draws what has happened.
pub(super) fn events(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let inner = canvas.pane(Focus::Events, &format!("Events{}", back(model.scrolls.events)), area);
    let Some(live) = model.live() else { return };
    let (first, _) = live.entries.range();
    let end = model.scrolls.events.end(live.entries.range());
    let room = usize::from(inner.width).saturating_sub(9);
    let before = live.entries.kept().iter().take(end - first).rev().map(|entry| {
        let time = model.look.screen.clock(entry.time).strftime("%H:%M:%S").to_string();
        let text = fit(model, &model.look.text(&entry.text), room);
        vec![(entry.style, format!("{time} {text}"))]
    });
    draw(canvas, before, inner);
}

fn title(model: &Model, name: &str, stream: LogStream) -> String {
    let iter = model.file(stream).map(|key| format!(" {:04}", key.iter)).unwrap_or_default();
    format!("{name}{iter}")
}

fn back(scroll: ScrollPosition) -> &'static str {
    if scroll.is_following() { "" } else { ", scrolled back" }
}

/// Returns the steps before one, the last first, with a line where an iteration begins.
fn steps_before<'a>(
    model: &'a Model,
    live: &'a RepoActivity,
    end: usize,
) -> impl Iterator<Item = Vec<StyledLine>> + 'a {
    let (first, _) = live.steps.range();
    let steps = live.steps.kept();
    let is_first_of = move |at: usize| at == 0 || steps[at - 1].iter != steps[at].iter;
    (0..end - first).rev().map(move |at| {
        let step: &AgentStep = &steps[at];
        let begin = is_first_of(at).then(|| divider(step.iter));
        let lines = begin.into_iter().chain(step.lines(model.look.screen.unicode));
        lines.map(|(style, line)| (style, model.look.line(&line))).collect()
    })
}

fn tail(canvas: &mut PaneCanvas<'_, '_>, tail: &LogTail, scroll: ScrollPosition, area: Rect) {
    if tail.lines().is_empty() {
        let text = match (tail.trouble(), tail.key()) {
            (Some(trouble), _) => trouble.message.as_str(),
            (None, None) => "not reached yet",
            (None, Some(_)) if tail.is_complete() => "it printed nothing",
            (None, Some(_)) => "nothing is printed yet",
        };
        return canvas.lines(vec![Line::from(canvas.model.look.span(DIM, text))], area);
    }
    let (first, _) = tail.range();
    let kept = tail.lines().iter().take(scroll.end(tail.range()) - first);
    draw(canvas, kept.rev().map(|line| vec![(PLAIN, line.clone())]), area);
}

/// Draws as many lines as fit, from the bottom up; `before` yields them last first.
fn draw(canvas: &mut PaneCanvas<'_, '_>, before: impl Iterator<Item = Vec<StyledLine>>, area: Rect) {
    let model = canvas.model;
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut rows: Vec<Line<'static>> = Vec::new();
    for (style, line) in before.flat_map(|lines| lines.into_iter().rev()) {
        if rows.len() >= height {
            break;
        }
        let style = model.look.style(style);
        let parts = wrap::rows(&line, width).into_iter().rev();
        rows.extend(parts.map(|part| Line::styled(line[part].to_owned(), style)));
    }
    rows.truncate(height);
    rows.reverse();
    canvas.lines(rows, area);
}
