//! Renders the model as a frame: pure, so that equal models give equal frames.

mod dialogs;
mod layout;
mod phases;
mod reader;
mod repos;
mod status_lines;
mod streams;
#[cfg(test)]
mod tests;
mod tree;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use unicode_width::UnicodeWidthStr as _;

use self::layout::{MIN_SIZE, ScreenAreas};
use super::model::{Focus, Model};
use crate::text::paint::{DIM, LIVE};
use crate::text::table::truncate;

/// The model to draw, and the frame.
struct PaneCanvas<'a, 'b> {
    model: &'a Model,
    frame: &'a mut Frame<'b>,
}

/// Draws everything.
pub(crate) fn draw_view(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        return draw_too_small(area, frame);
    }
    let mut canvas = PaneCanvas { model, frame };
    match model.reader() {
        Some(reader) => reader::draw_reader(&mut canvas, reader, area),
        None => draw_panes(&mut canvas, &layout::split_screen(area, model)),
    }
    dialogs::draw_dialog(&mut canvas, area);
}

fn draw_panes(canvas: &mut PaneCanvas<'_, '_>, areas: &ScreenAreas) {
    status_lines::draw_machines(canvas, areas.machines);
    status_lines::draw_header(canvas, areas.header);
    phases::draw_phases(canvas, areas.phases);
    if let Some(area) = areas.repos {
        repos::draw_repos(canvas, area);
    }
    if let Some(area) = areas.tree {
        tree::draw_tree(canvas, area);
    }
    if let Some(area) = areas.agent {
        streams::draw_agent(canvas, area);
    }
    if let Some(area) = areas.guard {
        streams::draw_guard(canvas, area);
    }
    if let Some(area) = areas.events {
        streams::draw_events(canvas, area);
    }
    status_lines::draw_reason(canvas, areas.why);
    status_lines::draw_footer(canvas, areas.footer);
}

fn draw_too_small(area: Rect, frame: &mut Frame<'_>) {
    let text =
        format!("too small: {}x{}\nwatch needs {}x{}\nq leaves", area.width, area.height, MIN_SIZE.0, MIN_SIZE.1);
    frame.render_widget(Paragraph::new(text), area);
}

impl PaneCanvas<'_, '_> {
    /// Draws the border of a pane and returns its inner area.
    fn draw_pane(&mut self, focus: Focus, title: &str, area: Rect) -> Rect {
        let model = self.model;
        let caps = self.model.caps;
        let has_keys = model.focus == focus;
        let style = caps.to_style(if has_keys { LIVE } else { DIM });
        let available = usize::from(area.width.saturating_sub(4));
        let title = Span::styled(format!(" {} ", truncate_text(model, &caps.safe_text(title), available)), style);
        let block = Block::bordered().border_set(caps.border_set(has_keys)).border_style(style).title(title);
        let inner = block.inner(area);
        self.frame.render_widget(block, area);
        inner
    }

    /// Draws lines, starting at the top.
    fn draw_lines(&mut self, lines: Vec<Line<'static>>, area: Rect) {
        self.frame.render_widget(Paragraph::new(lines), area);
    }

    /// Draws one text at the left and one at the right; the left one is cut if necessary.
    fn draw_both_ends(&mut self, left: Vec<Span<'static>>, right: Span<'static>, area: Rect) {
        let taken = u16::try_from(right.content.width()).unwrap_or(u16::MAX).min(area.width);
        let available = area.width.saturating_sub(taken + u16::from(taken > 0));
        let left = truncate_spans(self.model, left, available.into());
        self.frame.render_widget(Line::from(left), Rect { width: available, ..area });
        self.frame.render_widget(Line::from(right), Rect { x: area.right() - taken, width: taken, ..area });
    }
}

/// Cuts a text to a width, with a mark.
fn truncate_text(model: &Model, text: &str, width: usize) -> String {
    truncate(text, width, &model.caps.screen)
}

/// Cuts a row of texts to a width, the last one with a mark.
fn truncate_spans(model: &Model, spans: Vec<Span<'static>>, width: usize) -> Vec<Span<'static>> {
    let mut available = width;
    let mut truncated = Vec::new();
    for span in spans {
        let text = truncate_text(model, &span.content, available);
        let is_cut = text.width() < span.content.width();
        available -= text.width().min(available);
        truncated.push(Span::styled(text, span.style));
        if is_cut {
            break;
        }
    }
    truncated
}

/// Returns the style of the selection.
fn selection_style(has_keys: bool) -> Style {
    if has_keys { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() }
}

/// Returns the first visible row of a list, so that a given row is visible.
fn first_row(cursor: usize, count: usize, height: usize) -> usize {
    cursor.saturating_sub(height / 2).min(count.saturating_sub(height))
}
