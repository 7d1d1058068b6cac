//! The pane of the task tree.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::{PaneCanvas, first_row, selection_style, truncate_spans};
use crate::text::paint::{DIM, LIVE, PLAIN, WARN};
use crate::text::tree::NodeStatus;
use crate::watch::model::{Focus, Model};
use crate::watch::tree_view::TreeRow;

/// Draws the pane.
pub(super) fn draw_tree(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let rows = model.tree_view.rows();
    let title =
        rows.first().map_or_else(|| "Tree".to_owned(), |root| format!("Tree {}/{}", root.leaves.0, root.leaves.1));
    let inner = canvas.draw_pane(Focus::Tree, &title, area);
    let cursor = model.tree_view.cursor();
    let height = usize::from(inner.height);
    let first = first_row(cursor, rows.len(), height);
    let visible = rows.iter().enumerate().skip(first).take(height);
    let lines = visible.map(|(at, row)| {
        let has_keys = at == cursor && model.focus == Focus::Tree;
        tree_line(model, row, inner.width.into()).style(selection_style(has_keys))
    });
    canvas.draw_lines(lines.collect(), inner);
}

fn tree_line(model: &Model, row: &TreeRow, width: usize) -> Line<'static> {
    let caps = model.caps;
    let (symbol, style) = if is_under_review(model, row) {
        (caps.pick_symbol("◇", "?"), WARN)
    } else {
        let (symbol, style, _) = row.status.appearance(caps.screen);
        (symbol, style)
    };
    let end_span = row_end_span(model, row);
    let title_style = if row.status == NodeStatus::Passed { DIM } else { PLAIN };
    let left = vec![
        caps.styled_span(DIM, &guide_lines(model, &row.trunk)),
        Span::styled(symbol, caps.to_style(style)),
        caps.styled_span(
            DIM,
            row.folded.map_or(" ", |folded| {
                if folded { caps.pick_symbol(" ▸ ", " + ") } else { caps.pick_symbol(" ▾ ", " - ") }
            }),
        ),
        caps.styled_span(style, &row.id),
        caps.styled_span(title_style, &format!("  {}", row.title)),
    ];
    let available = width.saturating_sub(end_span.content.width() + 1);
    let mut spans = truncate_spans(model, left, available);
    let used: usize = spans.iter().map(|span| span.content.width()).sum();
    spans.push(Span::raw(" ".repeat((width - end_span.content.width().min(width)).saturating_sub(used))));
    spans.push(end_span);
    Line::from(spans)
}

/// Returns the text at the end of a row: the live phase, the attempts of a leaf that used any, the leaves below a
/// branch.
fn row_end_span(model: &Model, row: &TreeRow) -> Span<'static> {
    let run = model.run();
    let is_live = run.and_then(|run| run.node.as_ref()).is_some_and(|node| node.id == row.id);
    let phase = run.and_then(|run| run.phase.as_ref()).filter(|_| is_live);
    let attempts = format!("{}/{}", row.attempts.0, row.attempts.1);
    match (phase, row.folded) {
        (None, _) if is_under_review(model, row) => model.caps.styled_span(WARN, "review"),
        (Some(phase), _) => model.caps.styled_span(LIVE, &format!("{} {attempts}", phase.name)),
        (None, Some(_)) => model.caps.styled_span(DIM, &format!("{}/{}", row.leaves.0, row.leaves.1)),
        (None, None) if row.attempts.0 == 0 => Span::raw(""),
        (None, None) => model.caps.styled_span(DIM, &attempts),
    }
}

/// Whether a task is done and awaits a person's review.
fn is_under_review(model: &Model, row: &TreeRow) -> bool {
    model.iteration_under_review().is_some_and(|view| view.node == row.id)
}

fn guide_lines(model: &Model, trunk: &[bool]) -> String {
    let Some((last, ancestors)) = trunk.split_last() else { return String::new() };
    let mut guides: String =
        ancestors.iter().map(|goes_on| if *goes_on { model.caps.pick_symbol("│ ", "| ") } else { "  " }).collect();
    guides += if *last { model.caps.pick_symbol("├─", "|-") } else { model.caps.pick_symbol("└─", "`-") };
    guides
}
