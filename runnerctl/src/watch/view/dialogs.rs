//! Dialogs over the panes: questions, the input for a note, the help, and results that are too long for a row.

use protocol::view::QuestionView;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use unicode_width::UnicodeWidthStr as _;

use super::status_lines::fits_footer;
use super::{PaneCanvas, first_row, selection_style, truncate_text};
use crate::text::paint::{BAD, DIM, GOOD, HEADING, LIVE, PLAIN};
use crate::watch::keys::KEYS;
use crate::watch::model::{Draft, DraftPurpose, Mode, Model};
use crate::watch::wrap;

/// Maximum width of a dialog.
const MAX_WIDTH: u16 = 76;

/// Draws the current dialog, if any.
pub(super) fn draw_dialog(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    match &model.mode {
        Mode::Help => draw_help(canvas, area),
        Mode::Ask(question) => {
            let mut rows = wrap_lines(model, PLAIN, &question.text, area);
            // The input is always visible.
            rows.truncate(usize::from(area.height).saturating_sub(5));
            rows.push(Line::default());
            rows.push(Line::from(model.caps.styled_span(HEADING, "y yes   n no")));
            draw_box(canvas, "Sure?", rows, area);
        }
        Mode::Type(draft) => draw_draft(canvas, draft, area),
        Mode::Questions { list, cursor } => draw_questions(canvas, list.as_deref(), *cursor, area),
        Mode::Normal | Mode::Read(_) => {
            if let Some(notice) = model.notice.as_ref().filter(|notice| !fits_footer(model, &notice.text, area.width)) {
                let style = if notice.is_error { BAD } else { GOOD };
                let rows = wrap_lines(model, style, &notice.text, area);
                draw_box(canvas, "press any key", rows, area);
            }
        }
    }
}

fn draw_help(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let rows = KEYS.iter().map(|(key, does)| {
        Line::from(vec![model.caps.styled_span(HEADING, &format!("{key:>10}  ")), model.caps.styled_span(PLAIN, does)])
    });
    draw_box(canvas, "Keys", rows.collect(), area);
}

fn draw_draft(canvas: &mut PaneCanvas<'_, '_>, draft: &Draft, area: Rect) {
    let model = canvas.model;
    let max_rows = usize::from(area.height).saturating_sub(4);
    let (title, mut rows) = match &draft.purpose {
        DraftPurpose::Note => ("Note to the next session: Enter sends, Escape discards", Vec::new()),
        DraftPurpose::Reject { .. } => ("Why it is rejected: Enter sends, Escape discards", Vec::new()),
        DraftPurpose::Answer(question) => {
            let mut question_rows = wrap_lines(model, DIM, &question.text, area);
            question_rows.truncate(max_rows / 2);
            ("Your answer: Enter sends, Escape discards", question_rows)
        }
    };
    let draft_rows = wrap_lines(model, PLAIN, &draft.text, area);
    let hidden = (rows.len() + draft_rows.len()).saturating_sub(max_rows).min(draft_rows.len().saturating_sub(1));
    rows.extend(draft_rows.into_iter().skip(hidden));
    let last = rows.len().saturating_sub(1);
    let column = rows.last().map_or(0, Line::width);
    let inner = draw_box(canvas, title, rows, area);
    let x = u16::try_from(column).unwrap_or(0);
    let y = u16::try_from(last).unwrap_or(0);
    let cursor = Position::new((inner.x + x).min(inner.right().saturating_sub(1)), inner.y + y);
    canvas.frame.set_cursor_position(cursor);
}

fn draw_questions(canvas: &mut PaneCanvas<'_, '_>, list: Option<&[QuestionView]>, cursor: usize, area: Rect) {
    let model = canvas.model;
    let width = usize::from(inner_width(area));
    let questions = list.unwrap_or_default();
    let height = usize::from(area.height).saturating_sub(4);
    let first = first_row(cursor, questions.len(), height);
    let row = |(at, question): (usize, &QuestionView)| {
        let text = format!("{}  {}", question.id, question.text);
        Line::from(truncate_text(model, &model.caps.safe_text(&text), width)).style(selection_style(at == cursor))
    };
    let mut rows: Vec<Line<'static>> = questions.iter().enumerate().skip(first).take(height).map(row).collect();
    if list.is_none() {
        rows.push(Line::from(model.caps.styled_span(DIM, "reading the questions")));
    }
    draw_box(canvas, "Questions: Enter answers, Escape leaves", rows, area);
}

fn wrap_lines(model: &Model, style: anstyle::Style, text: &str, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(inner_width(area));
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let line = model.caps.safe_line(line);
        let parts = wrap::wrap_ranges(&line, width).into_iter();
        rows.extend(parts.map(|part| Line::styled(line[part].to_owned(), model.caps.to_style(style))));
    }
    rows
}

fn inner_width(area: Rect) -> u16 {
    area.width.saturating_sub(4).min(MAX_WIDTH)
}

/// Draws a box in the middle and returns its inner area.
fn draw_box(canvas: &mut PaneCanvas<'_, '_>, title: &str, rows: Vec<Line<'static>>, area: Rect) -> Rect {
    let model = canvas.model;
    let wide = rows.iter().map(Line::width).max().unwrap_or(0).max(title.width() + 2);
    let width = u16::try_from(wide).unwrap_or(u16::MAX).min(inner_width(area)) + 2;
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let box_area = Rect::new(area.x + (area.width - width) / 2, area.y + (area.height - height) / 2, width, height);
    let style = model.caps.to_style(LIVE);
    let block = Block::bordered()
        .border_set(model.caps.border_set(true))
        .border_style(style)
        .title(Span::styled(format!(" {title} "), style));
    let inner = block.inner(box_area);
    canvas.frame.render_widget(Clear, box_area);
    canvas.frame.render_widget(Paragraph::new(rows).block(block), box_area);
    inner
}
