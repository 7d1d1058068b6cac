//! The phases of the iteration in a row, and below it the used part of its budget.

use protocol::view::{PhaseView, RunView};
use protocol::words::PhaseName;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::{PaneCanvas, truncate_spans};
use crate::text::measure::{format_duration, format_seconds, millis_between};
use crate::text::paint::{BAD, DIM, GOOD, LIVE, PLAIN, WARN, verdict_style};
use crate::text::usage::render_short_cost;
use crate::watch::model::Model;
use crate::watch::timeline::{PhaseState, PhaseTimeline};

/// Width of the bar that shows the budget.
const BAR_WIDTH: usize = 20;
/// Shorter phases are shown without their time if there is little space.
const SHORT_MS: u64 = 1000;

/// Draws both rows.
pub(super) fn draw_phases(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let Some((run, timeline)) = model.run().zip(model.activity().map(|live| &live.timeline)) else { return };
    let width = usize::from(area.width);
    if let Some(phase) = run.phase.as_ref().filter(|phase| phase.baseline) {
        let rows = baseline_rows(model, phase).map(|spans| Line::from(truncate_spans(model, spans, width)));
        return canvas.draw_lines(rows.into(), area);
    }
    let full = phase_spans(model, run, timeline, 0);
    let used_width: usize = full.iter().map(|span| span.content.width()).sum();
    let first = if used_width > width { phase_spans(model, run, timeline, SHORT_MS) } else { full };
    let is_live = run.phase.is_some() && run.iteration == timeline.iteration();
    let rows = [first, if is_live { budget_spans(model, run, timeline) } else { last_iteration_spans(model, run) }];
    canvas.draw_lines(rows.map(|spans| Line::from(truncate_spans(model, spans, width))).into(), area);
}

fn phase_spans(model: &Model, run: &RunView, timeline: &PhaseTimeline, least_ms: u64) -> Vec<Span<'static>> {
    let is_live = run.phase.is_some() && run.iteration == timeline.iteration();
    let mut spans = Vec::new();
    for (phase, stage) in timeline.phase_states(model.now()) {
        if !spans.is_empty() {
            spans.push(Span::raw("  "));
        }
        spans.push(match stage {
            // Between two iterations the last observed phase is not running.
            PhaseState::Active(_) if !is_live => phase_span(model, phase, PhaseState::Done(None)),
            PhaseState::Done(Some(ms)) if ms < least_ms => {
                model.caps.styled_span(GOOD, &format!("{} {phase}", done_symbol(model)))
            }
            stage => phase_span(model, phase, stage),
        });
    }
    spans
}

/// Returns both rows while the guard runs on the base, before the first iteration.
fn baseline_rows(model: &Model, phase: &PhaseView) -> [Vec<Span<'static>>; 2] {
    let elapsed = millis_between(phase.since, model.now());
    let text = format!("{} the guard on the base, before the first iteration", model.caps.pick_symbol("●", ">"));
    [vec![model.caps.styled_span(LIVE, &text)], budget_bar(model, elapsed, phase.budget_ms)]
}

fn done_symbol(model: &Model) -> &'static str {
    model.caps.pick_symbol("✔", "+")
}

fn phase_span(model: &Model, phase: PhaseName, stage: PhaseState) -> Span<'static> {
    let caps = model.caps;
    match stage {
        PhaseState::Done(Some(ms)) => {
            caps.styled_span(GOOD, &format!("{} {phase} {}", done_symbol(model), format_duration(ms)))
        }
        PhaseState::Done(None) => caps.styled_span(DIM, &format!("{} {phase}", caps.pick_symbol("·", "."))),
        PhaseState::Active(ms) => {
            caps.styled_span(LIVE, &format!("{} {phase} {}", caps.pick_symbol("●", ">"), format_seconds(ms)))
        }
        PhaseState::Pending => caps.styled_span(DIM, &format!("{} {phase}", caps.pick_symbol("○", "o"))),
    }
}

/// Returns the result of the last iteration: between two of them, and after the last one.
fn last_iteration_spans(model: &Model, run: &RunView) -> Vec<Span<'static>> {
    let Some(view) = run.recent.first() else { return Vec::new() };
    let duration = view.duration_ms.map(|ms| format!(", took {}", format_duration(ms))).unwrap_or_default();
    let cost = view.usage.as_ref().map(render_short_cost).filter(|cost| !cost.is_empty());
    let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
    vec![
        model.caps.styled_span(DIM, &format!("last {:04} ", view.iter)),
        model.caps.styled_span(verdict_style(view.verdict), view.verdict.label()),
        model.caps.styled_span(DIM, &format!(" {}, guard={}{duration}{cost}", view.node, view.guard)),
    ]
}

fn budget_spans(model: &Model, run: &RunView, timeline: &PhaseTimeline) -> Vec<Span<'static>> {
    let caps = model.caps;
    let elapsed = timeline.elapsed_ms(model.now()).unwrap_or_default();
    let Some(phase) = &run.phase else { return Vec::new() };
    let mut spans = vec![caps.styled_span(PLAIN, &format!("{:04} ", run.iteration))];
    spans.extend(budget_bar(model, elapsed, phase.budget_ms));
    if let Some(node) = &run.node {
        let role = node.role.map(|role| format!("{role} on ")).unwrap_or_default();
        spans.push(
            caps.styled_span(
                PLAIN,
                &format!("  {role}{}, attempt {}/{}", node.id, node.attempts + 1, node.max_attempts),
            ),
        );
    }
    if let Some(agent) = &phase.agent {
        spans.push(caps.styled_span(DIM, &format!("  {agent}")));
    }
    spans
}

/// Returns the used part of a budget, as a bar and in words.
fn budget_bar(model: &Model, elapsed: u64, budget_ms: u64) -> Vec<Span<'static>> {
    let caps = model.caps;
    let (full, empty) = caps.split_bar(if model.size.0 < 100 { BAR_WIDTH / 2 } else { BAR_WIDTH }, elapsed, budget_ms);
    let style = if elapsed * 10 > budget_ms * 9 {
        BAD
    } else if elapsed * 4 > budget_ms * 3 {
        WARN
    } else {
        LIVE
    };
    let text = format!(" {} of {}", format_seconds(elapsed), format_duration(budget_ms));
    vec![caps.styled_span(style, &full), caps.styled_span(DIM, &empty), caps.styled_span(PLAIN, &text)]
}
