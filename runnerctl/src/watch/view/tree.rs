//! The pane of the task tree.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::{PaneCanvas, first_row, marked, squeeze};
use crate::text::paint::{DIM, LIVE, PLAIN};
use crate::text::tree::NodeStatus;
use crate::watch::model::{Focus, Model};
use crate::watch::tree_view::TreeRow;

/// Draws the pane.
pub(super) fn draw(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let rows = model.forest.rows();
    let title =
        rows.first().map_or_else(|| "Tree".to_owned(), |root| format!("Tree {}/{}", root.leaves.0, root.leaves.1));
    let inner = canvas.pane(Focus::Tree, &title, area);
    let (cursor, height) = (model.forest.cursor(), usize::from(inner.height));
    let first = first_row(cursor, rows.len(), height);
    let shown = rows.iter().enumerate().skip(first).take(height);
    let drawn = shown.map(|(at, row)| {
        let has_keys = at == cursor && model.focus == Focus::Tree;
        line(model, row, inner.width.into()).style(marked(has_keys))
    });
    canvas.lines(drawn.collect(), inner);
}

fn line(model: &Model, row: &TreeRow, width: usize) -> Line<'static> {
    let look = model.look;
    let (mark, style, _) = row.standing.look(look.screen);
    let end = end(model, row);
    let title_style = if row.standing == NodeStatus::Passed { DIM } else { PLAIN };
    let left = vec![
        look.span(DIM, &guides(model, &row.trunk)),
        Span::styled(mark, look.style(style)),
        look.span(
            DIM,
            row.folded.map_or(" ", |folded| if folded { look.pick(" ▸ ", " + ") } else { look.pick(" ▾ ", " - ") }),
        ),
        look.span(style, &row.id),
        look.span(title_style, &format!("  {}", row.title)),
    ];
    let room = width.saturating_sub(end.content.width() + 1);
    let mut spans = squeeze(model, left, room);
    let used: usize = spans.iter().map(|span| span.content.width()).sum();
    spans.push(Span::raw(" ".repeat((width - end.content.width().min(width)).saturating_sub(used))));
    spans.push(end);
    Line::from(spans)
}

/// Returns what stands at the end of a row: the live phase, attempts of a leaf that used some, leaves below a branch.
fn end(model: &Model, row: &TreeRow) -> Span<'static> {
    let run = model.run();
    let is_live = run.and_then(|run| run.node.as_ref()).is_some_and(|node| node.id == row.id);
    let phase = run.and_then(|run| run.phase.as_ref()).filter(|_| is_live);
    let attempts = format!("{}/{}", row.attempts.0, row.attempts.1);
    match (phase, row.folded) {
        (Some(phase), _) => model.look.span(LIVE, &format!("{} {attempts}", phase.name)),
        (None, Some(_)) => model.look.span(DIM, &format!("{}/{}", row.leaves.0, row.leaves.1)),
        (None, None) if row.attempts.0 == 0 => Span::raw(""),
        (None, None) => model.look.span(DIM, &attempts),
    }
}

fn guides(model: &Model, trunk: &[bool]) -> String {
    let Some((last, above)) = trunk.split_last() else { return String::new() };
    let mut guides: String =
        above.iter().map(|goes_on| if *goes_on { model.look.pick("│ ", "| ") } else { "  " }).collect();
    guides += if *last { model.look.pick("├─", "|-") } else { model.look.pick("└─", "`-") };
    guides
}
