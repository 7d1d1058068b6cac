//! What lies over the panes: questions, the note that is typed, the help, and results that are too long for a row.

use protocol::view::QuestionView;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use unicode_width::UnicodeWidthStr as _;

use super::status_lines::fits;
use super::{PaneCanvas, first_row, fit, marked};
use crate::text::paint::{BAD, DIM, GOOD, HEAD, LIVE, PLAIN};
use crate::watch::keys::KEYS;
use crate::watch::model::{Draft, DraftPurpose, Mode, Model};
use crate::watch::wrap;

/// Widest box.
const WIDTH: u16 = 76;

/// Draws what is to be over the panes, if anything.
pub(super) fn draw(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    match &model.mode {
        Mode::Help => help(canvas, area),
        Mode::Ask(question) => {
            let mut rows = wrapped(model, PLAIN, &question.text, area);
            // The answer is always in view.
            rows.truncate(usize::from(area.height).saturating_sub(5));
            rows.push(Line::default());
            rows.push(Line::from(model.look.span(HEAD, "y yes   n no")));
            over(canvas, "Sure?", rows, area);
        }
        Mode::Type(draft) => typed(canvas, draft, area),
        Mode::Questions { list, cursor } => questions(canvas, list.as_deref(), *cursor, area),
        Mode::Normal | Mode::Read(_) => {
            if let Some(notice) = model.notice.as_ref().filter(|notice| !fits(model, &notice.text, area.width)) {
                let style = if notice.is_bad { BAD } else { GOOD };
                let rows = wrapped(model, style, &notice.text, area);
                over(canvas, "press any key", rows, area);
            }
        }
    }
}

fn help(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let rows = KEYS.iter().map(|(key, does)| {
        Line::from(vec![model.look.span(HEAD, &format!("{key:>10}  ")), model.look.span(PLAIN, does)])
    });
    over(canvas, "Keys", rows.collect(), area);
}

fn typed(canvas: &mut PaneCanvas<'_, '_>, draft: &Draft, area: Rect) {
    let model = canvas.model;
    let most = usize::from(area.height).saturating_sub(4);
    let (title, mut rows) = match &draft.purpose {
        DraftPurpose::Note => ("Note to the next session: Enter sends, Escape discards", Vec::new()),
        DraftPurpose::Reject => ("Why it is rejected: Enter sends, Escape discards", Vec::new()),
        DraftPurpose::Answer(question) => {
            let mut asked = wrapped(model, DIM, &question.text, area);
            asked.truncate(most / 2);
            ("Your answer: Enter sends, Escape discards", asked)
        }
    };
    let typed = wrapped(model, PLAIN, &draft.text, area);
    let hidden = (rows.len() + typed.len()).saturating_sub(most).min(typed.len().saturating_sub(1));
    rows.extend(typed.into_iter().skip(hidden));
    let (last, column) = (rows.len().saturating_sub(1), rows.last().map_or(0, Line::width));
    let inner = over(canvas, title, rows, area);
    let (x, y) = (u16::try_from(column).unwrap_or(0), u16::try_from(last).unwrap_or(0));
    let place = Position::new((inner.x + x).min(inner.right().saturating_sub(1)), inner.y + y);
    canvas.frame.set_cursor_position(place);
}

fn questions(canvas: &mut PaneCanvas<'_, '_>, list: Option<&[QuestionView]>, cursor: usize, area: Rect) {
    let model = canvas.model;
    let width = usize::from(inner_width(area));
    let shown = list.unwrap_or_default();
    let height = usize::from(area.height).saturating_sub(4);
    let first = first_row(cursor, shown.len(), height);
    let row = |(at, question): (usize, &QuestionView)| {
        let text = format!("{}  {}", question.id, question.text);
        Line::from(fit(model, &model.look.text(&text), width)).style(marked(at == cursor))
    };
    let mut rows: Vec<Line<'static>> = shown.iter().enumerate().skip(first).take(height).map(row).collect();
    if list.is_none() {
        rows.push(Line::from(model.look.span(DIM, "reading the questions")));
    }
    over(canvas, "Questions: Enter answers, Escape leaves", rows, area);
}

fn wrapped(model: &Model, style: anstyle::Style, text: &str, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(inner_width(area));
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let line = model.look.line(line);
        let parts = wrap::rows(&line, width).into_iter();
        rows.extend(parts.map(|part| Line::styled(line[part].to_owned(), model.look.style(style))));
    }
    rows
}

fn inner_width(area: Rect) -> u16 {
    area.width.saturating_sub(4).min(WIDTH)
}

/// Draws a box in the middle and returns what is inside.
fn over(canvas: &mut PaneCanvas<'_, '_>, title: &str, rows: Vec<Line<'static>>, area: Rect) -> Rect {
    let model = canvas.model;
    let wide = rows.iter().map(Line::width).max().unwrap_or(0).max(title.width() + 2);
    let width = u16::try_from(wide).unwrap_or(u16::MAX).min(inner_width(area)) + 2;
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let place = Rect::new(area.x + (area.width - width) / 2, area.y + (area.height - height) / 2, width, height);
    let style = model.look.style(LIVE);
    let block = Block::bordered()
        .border_set(model.look.border(true))
        .border_style(style)
        .title(Span::styled(format!(" {title} "), style));
    let inner = block.inner(place);
    canvas.frame.render_widget(Clear, place);
    canvas.frame.render_widget(Paragraph::new(rows).block(block), place);
    inner
}
