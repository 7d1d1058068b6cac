//! From the model to a frame: pure, and the same for the same model.

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

use self::layout::{LEAST, ScreenAreas};
use super::model::{Focus, Model};
use crate::text::paint::{DIM, LIVE};
use crate::text::table::cut;

/// What is drawn, and on what.
struct PaneCanvas<'a, 'b> {
    model: &'a Model,
    frame: &'a mut Frame<'b>,
}

/// Draws everything.
pub(crate) fn view(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return too_small(area, frame);
    }
    let mut canvas = PaneCanvas { model, frame };
    match model.reader() {
        Some(reader) => reader::draw(&mut canvas, reader, area),
        None => panes(&mut canvas, &layout::areas(area, model)),
    }
    dialogs::draw(&mut canvas, area);
}

fn panes(canvas: &mut PaneCanvas<'_, '_>, areas: &ScreenAreas) {
    status_lines::machines(canvas, areas.machines);
    status_lines::header(canvas, areas.header);
    phases::draw(canvas, areas.phases);
    if let Some(area) = areas.repos {
        repos::draw(canvas, area);
    }
    tree::draw(canvas, areas.tree);
    if let Some(area) = areas.agent {
        streams::agent(canvas, area);
    }
    if let Some(area) = areas.guard {
        streams::guard(canvas, area);
    }
    streams::events(canvas, areas.events);
    status_lines::why(canvas, areas.why);
    status_lines::footer(canvas, areas.footer);
}

fn too_small(area: Rect, frame: &mut Frame<'_>) {
    let text = format!("too small: {}x{}\nwatch needs {}x{}\nq leaves", area.width, area.height, LEAST.0, LEAST.1);
    frame.render_widget(Paragraph::new(text), area);
}

impl PaneCanvas<'_, '_> {
    /// Draws the lines around a pane and returns what is inside.
    fn pane(&mut self, focus: Focus, title: &str, area: Rect) -> Rect {
        let (model, look) = (self.model, self.model.look);
        let has_keys = model.focus == focus;
        let style = look.style(if has_keys { LIVE } else { DIM });
        let room = usize::from(area.width.saturating_sub(4));
        let title = Span::styled(format!(" {} ", fit(model, &look.text(title), room)), style);
        let block = Block::bordered().border_set(look.border(has_keys)).border_style(style).title(title);
        let inner = block.inner(area);
        self.frame.render_widget(block, area);
        inner
    }

    /// Draws lines from the top.
    fn lines(&mut self, lines: Vec<Line<'static>>, area: Rect) {
        self.frame.render_widget(Paragraph::new(lines), area);
    }

    /// Draws one text at the left and one at the right; the left one gives way.
    fn ends(&mut self, left: Vec<Span<'static>>, right: Span<'static>, area: Rect) {
        let taken = u16::try_from(right.content.width()).unwrap_or(u16::MAX).min(area.width);
        let room = area.width.saturating_sub(taken + u16::from(taken > 0));
        let left = squeeze(self.model, left, room.into());
        self.frame.render_widget(Line::from(left), Rect { width: room, ..area });
        self.frame.render_widget(Line::from(right), Rect { x: area.right() - taken, width: taken, ..area });
    }
}

/// Cuts a text to a width, with a mark.
fn fit(model: &Model, text: &str, width: usize) -> String {
    cut(text, width, &model.look.screen)
}

/// Cuts a row of texts to a width, the last one with a mark.
fn squeeze(model: &Model, spans: Vec<Span<'static>>, width: usize) -> Vec<Span<'static>> {
    let mut left = width;
    let mut kept = Vec::new();
    for span in spans {
        let text = fit(model, &span.content, left);
        let is_cut = text.width() < span.content.width();
        left -= text.width().min(left);
        kept.push(Span::styled(text, span.style));
        if is_cut {
            break;
        }
    }
    kept
}

/// Returns the style of what the keys are about.
fn marked(has_keys: bool) -> Style {
    if has_keys { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() }
}

/// Returns the first row of a list of which a row is to be in view.
fn first_row(cursor: usize, count: usize, height: usize) -> usize {
    cursor.saturating_sub(height / 2).min(count.saturating_sub(height))
}
