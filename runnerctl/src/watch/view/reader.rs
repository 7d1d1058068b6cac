//! The full-screen reader: iteration, file, text, and keys.

use protocol::request::LogStream;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{PaneCanvas, truncate_spans};
use crate::text::paint::{BAD, DIM, GOOD, HEADING, HINT, LIVE, PLAIN, WARN, verdict_style};
use crate::watch::model::Model;
use crate::watch::reader::{LogViewer, STREAMS, TextRow, find_matches};

const HINTS: &str = "j k scroll  [ ] iteration  Tab file  / search  n N next  f follow  q close";

/// Draws the reader.
pub(super) fn draw_reader(canvas: &mut PaneCanvas<'_, '_>, reader: &LogViewer, area: Rect) {
    let model = canvas.model;
    let rows = [Constraint::Length(1), Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)];
    let [title, tabs, text, footer] = Layout::vertical(rows).areas(area);
    let (visible, top, count) = reader.view();
    let range = if count == 0 { String::new() } else { format!("{}-{} of {count}", top + 1, top + visible.len()) };
    canvas.draw_both_ends(heading_spans(model, reader), model.caps.styled_span(DIM, &range), title);
    canvas.frame.render_widget(Line::from(truncate_spans(model, stream_tabs(model, reader), tabs.width.into())), tabs);
    draw_body(canvas, reader, visible, text);
    draw_status(canvas, reader, footer);
}

fn heading_spans(model: &Model, reader: &LogViewer) -> Vec<Span<'static>> {
    let caps = model.caps;
    let key = reader.key();
    let wait = key.wait.map(|wait| format!(".w{wait}")).unwrap_or_default();
    let mut spans = vec![caps.styled_span(HEADING, &format!("{:04}{wait}  ", key.iter))];
    let is_open = |view: &&protocol::view::IterationView| (view.iter, view.wait) == (key.iter, key.wait);
    match model.iterations.iter().find(is_open).filter(|_| model.shown_run.as_ref() == Some(reader.target())) {
        Some(view) => {
            spans.push(caps.styled_span(verdict_style(view.verdict), view.verdict.label()));
            spans.push(caps.styled_span(PLAIN, &format!("  {}  guard={}  ", view.node, view.guard)));
            spans.push(caps.styled_span(DIM, view.summary.as_deref().unwrap_or_default()));
        }
        None => spans.push(caps.styled_span(LIVE, "in progress")),
    }
    spans
}

fn stream_tabs(model: &Model, reader: &LogViewer) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (at, (stream, name)) in STREAMS.iter().enumerate() {
        let is_open = reader.key().stream == *stream;
        let text = format!(" {} {name}{}", at + 1, if is_open { " " } else { "" });
        let style = if is_open { Style::new().add_modifier(Modifier::REVERSED) } else { model.caps.to_style(DIM) };
        spans.push(Span::styled(text, style));
    }
    if reader.is_following() && !reader.tail().is_complete() {
        spans.push(model.caps.styled_span(LIVE, "  following"));
    }
    spans
}

fn draw_body(canvas: &mut PaneCanvas<'_, '_>, reader: &LogViewer, visible: &[TextRow], area: Rect) {
    let model = canvas.model;
    let tail = reader.tail();
    if tail.lines().is_empty() {
        let text = match tail.error() {
            Some(error) => error.message.as_str(),
            None if tail.is_complete() => "it is empty",
            None => "nothing is printed yet",
        };
        return canvas.draw_lines(vec![Line::from(model.caps.styled_span(DIM, text))], area);
    }
    let is_diff = reader.key().stream == LogStream::Diff;
    let rows = visible.iter().filter_map(|row| {
        let line = tail.lines().get(row.line)?;
        let style = if is_diff { diff_style(line) } else { PLAIN };
        Some(highlight(&line[row.part.clone()], reader.search().0, model.caps.to_style(style)))
    });
    canvas.draw_lines(rows.collect(), area);
}

fn diff_style(line: &str) -> anstyle::Style {
    match line.as_bytes().first() {
        Some(b'+') => GOOD,
        Some(b'-') => BAD,
        Some(b'@') => HINT,
        _ => PLAIN,
    }
}

/// Returns a row with the search text highlighted.
fn highlight(text: &str, needle: &str, style: Style) -> Line<'static> {
    let mut spans = Vec::new();
    let mut from = 0;
    for found in find_matches(text, needle) {
        spans.push(Span::styled(text[from..found.start].to_owned(), style));
        spans.push(Span::styled(text[found.clone()].to_owned(), style.add_modifier(Modifier::REVERSED)));
        from = found.end;
    }
    spans.push(Span::styled(text[from..].to_owned(), style));
    Line::from(spans)
}

fn draw_status(canvas: &mut PaneCanvas<'_, '_>, reader: &LogViewer, area: Rect) {
    let model = canvas.model;
    let (needle, is_typing) = reader.search();
    let caps = model.caps;
    let spans = if is_typing {
        vec![caps.styled_span(PLAIN, &format!("/{needle}")), Span::raw(caps.pick_symbol("▏", "_"))]
    } else if reader.is_not_found() {
        vec![caps.styled_span(WARN, &format!("not found: {needle}"))]
    } else if reader.tail().is_full() {
        let command = format!("runnerctl log {}", reader.key().iter);
        vec![caps.styled_span(WARN, "the rest is left out here: "), caps.styled_span(HINT, &command)]
    } else {
        vec![caps.styled_span(DIM, HINTS)]
    };
    canvas.draw_both_ends(spans, connection_span(model), area);
}

fn connection_span(model: &Model) -> Span<'static> {
    if model.lost.is_some() { model.caps.styled_span(BAD, "reconnecting") } else { Span::raw("") }
}
