//! A record's file on the whole screen: which iteration, which file, the text, and the keys.

use protocol::request::LogStream;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{PaneCanvas, squeeze};
use crate::text::paint::{BAD, DIM, GOOD, HEAD, HINT, LIVE, LOOK, PLAIN, of_verdict};
use crate::watch::model::Model;
use crate::watch::reader::{LogViewer, STREAMS, TextRow, finds};

const HINTS: &str = "j k scroll  [ ] iteration  Tab file  / search  n N next  f follow  q close";

/// Draws the reader.
pub(super) fn draw(canvas: &mut PaneCanvas<'_, '_>, reader: &LogViewer, area: Rect) {
    let model = canvas.model;
    let rows = [Constraint::Length(1), Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)];
    let [title, tabs, text, footer] = Layout::vertical(rows).areas(area);
    let (shown, top, count) = reader.view();
    let place = if count == 0 { String::new() } else { format!("{}-{} of {count}", top + 1, top + shown.len()) };
    canvas.ends(heading(model, reader), model.look.span(DIM, &place), title);
    canvas.frame.render_widget(Line::from(squeeze(model, choices(model, reader), tabs.width.into())), tabs);
    body(canvas, reader, shown, text);
    status(canvas, reader, footer);
}

fn heading(model: &Model, reader: &LogViewer) -> Vec<Span<'static>> {
    let (look, key) = (model.look, reader.key());
    let wait = key.wait.map(|wait| format!(".w{wait}")).unwrap_or_default();
    let mut spans = vec![look.span(HEAD, &format!("{:04}{wait}  ", key.iter))];
    let same = |view: &&protocol::view::IterationView| (view.iter, view.wait) == (key.iter, key.wait);
    match model.iterations.iter().find(same).filter(|_| model.shown.as_ref() == Some(reader.target())) {
        Some(view) => {
            spans.push(look.span(of_verdict(view.verdict), view.verdict.plain()));
            spans.push(look.span(PLAIN, &format!("  {}  guard={}  ", view.node, view.guard)));
            spans.push(look.span(DIM, view.summary.as_deref().unwrap_or_default()));
        }
        None => spans.push(look.span(LIVE, "in progress")),
    }
    spans
}

fn choices(model: &Model, reader: &LogViewer) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (at, (stream, name)) in STREAMS.iter().enumerate() {
        let text = format!(" {} {name} ", at + 1);
        let is_open = reader.key().stream == *stream;
        let style = if is_open { Style::new().add_modifier(Modifier::REVERSED) } else { model.look.style(DIM) };
        spans.push(Span::styled(text, style));
    }
    if reader.is_following() && !reader.tail().is_complete() {
        spans.push(model.look.span(LIVE, "  following"));
    }
    spans
}

fn body(canvas: &mut PaneCanvas<'_, '_>, reader: &LogViewer, shown: &[TextRow], area: Rect) {
    let model = canvas.model;
    let tail = reader.tail();
    if tail.lines().is_empty() {
        let text = match tail.trouble() {
            Some(trouble) => trouble.message.as_str(),
            None if tail.is_complete() => "it is empty",
            None => "nothing is printed yet",
        };
        return canvas.lines(vec![Line::from(model.look.span(DIM, text))], area);
    }
    let is_diff = reader.key().stream == LogStream::Diff;
    let drawn = shown.iter().filter_map(|row| {
        let line = tail.lines().get(row.line)?;
        let style = if is_diff { of_diff(line) } else { PLAIN };
        Some(highlighted(&line[row.part.clone()], reader.search().0, model.look.style(style)))
    });
    canvas.lines(drawn.collect(), area);
}

fn of_diff(line: &str) -> anstyle::Style {
    match line.as_bytes().first() {
        Some(b'+') => GOOD,
        Some(b'-') => BAD,
        Some(b'@') => HINT,
        _ => PLAIN,
    }
}

/// Returns a row in which what is searched for stands out.
fn highlighted(text: &str, needle: &str, style: Style) -> Line<'static> {
    let (mut spans, mut from) = (Vec::new(), 0);
    for found in finds(text, needle) {
        spans.push(Span::styled(text[from..found.start].to_owned(), style));
        spans.push(Span::styled(text[found.clone()].to_owned(), style.add_modifier(Modifier::REVERSED)));
        from = found.end;
    }
    spans.push(Span::styled(text[from..].to_owned(), style));
    Line::from(spans)
}

fn status(canvas: &mut PaneCanvas<'_, '_>, reader: &LogViewer, area: Rect) {
    let model = canvas.model;
    let (needle, is_typing) = reader.search();
    let look = model.look;
    let spans = if is_typing {
        vec![look.span(PLAIN, &format!("/{needle}")), Span::raw(look.pick("▏", "_"))]
    } else if reader.has_missed() {
        vec![look.span(LOOK, &format!("not found: {needle}"))]
    } else if reader.tail().is_full() {
        let command = format!("runnerctl log {}", reader.key().iter);
        vec![look.span(LOOK, "the rest is left out here: "), look.span(HINT, &command)]
    } else {
        vec![look.span(DIM, HINTS)]
    };
    canvas.ends(spans, lost(model), area);
}

fn lost(model: &Model) -> Span<'static> {
    if model.lost.is_some() { model.look.span(BAD, "reconnecting") } else { Span::raw("") }
}
