//! The phases of the iteration in a row, and below it how much of its budget is used.

use protocol::view::{PhaseView, RunView};
use protocol::words::PhaseName;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::{PaneCanvas, squeeze};
use crate::text::measure::{between, seconds, span};
use crate::text::paint::{BAD, DIM, GOOD, LIVE, LOOK, PLAIN, of_verdict};
use crate::text::usage::short_cost;
use crate::watch::model::Model;
use crate::watch::timeline::{PhaseState, PhaseTimeline};

/// Columns of the bar that shows the budget.
const BAR: usize = 20;
/// Shorter ones are shown without their time where there is little room.
const SHORT_MS: u64 = 1000;

/// Draws both rows.
pub(super) fn draw(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let Some((run, timeline)) = model.run().zip(model.live().map(|live| &live.timeline)) else { return };
    let width = usize::from(area.width);
    if let Some(phase) = run.phase.as_ref().filter(|phase| phase.baseline) {
        let rows = on_base(model, phase).map(|spans| Line::from(squeeze(model, spans, width)));
        return canvas.lines(rows.into(), area);
    }
    let full = stages(model, run, timeline, 0);
    let taken: usize = full.iter().map(|span| span.content.width()).sum();
    let first = if taken > width { stages(model, run, timeline, SHORT_MS) } else { full };
    let is_live = run.phase.is_some() && run.iteration == timeline.number();
    let rows = [first, if is_live { budget(model, run, timeline) } else { last(model, run) }];
    canvas.lines(rows.map(|spans| Line::from(squeeze(model, spans, width))).into(), area);
}

fn stages(model: &Model, run: &RunView, timeline: &PhaseTimeline, least_ms: u64) -> Vec<Span<'static>> {
    let is_live = run.phase.is_some() && run.iteration == timeline.number();
    let mut spans = Vec::new();
    for (phase, stage) in timeline.stages(model.now()) {
        if !spans.is_empty() {
            spans.push(Span::raw("  "));
        }
        spans.push(match stage {
            // Between two iterations the last phase that was seen is not under way.
            PhaseState::Now(_) if !is_live => one(model, phase, PhaseState::Past(None)),
            PhaseState::Past(Some(ms)) if ms < least_ms => model.look.span(GOOD, &format!("{} {phase}", done(model))),
            stage => one(model, phase, stage),
        });
    }
    spans
}

/// Returns both rows while the guard runs on the base, before there is an iteration.
fn on_base(model: &Model, phase: &PhaseView) -> [Vec<Span<'static>>; 2] {
    let elapsed = between(phase.since, model.now());
    let told = format!("{} the guard on the base, before the first iteration", model.look.pick("●", ">"));
    [vec![model.look.span(LIVE, &told)], spent(model, elapsed, phase.budget_ms)]
}

fn done(model: &Model) -> &'static str {
    model.look.pick("✔", "+")
}

fn one(model: &Model, phase: PhaseName, stage: PhaseState) -> Span<'static> {
    let look = model.look;
    match stage {
        PhaseState::Past(Some(ms)) => look.span(GOOD, &format!("{} {phase} {}", done(model), span(ms))),
        PhaseState::Past(None) => look.span(DIM, &format!("{} {phase}", look.pick("·", "."))),
        PhaseState::Now(ms) => look.span(LIVE, &format!("{} {phase} {}", look.pick("●", ">"), seconds(ms))),
        PhaseState::Ahead => look.span(DIM, &format!("{} {phase}", look.pick("○", "o"))),
    }
}

/// Returns what the last iteration came to: between two of them, and after the last one.
fn last(model: &Model, run: &RunView) -> Vec<Span<'static>> {
    let Some(view) = run.recent.first() else { return Vec::new() };
    let took = view.duration_ms.map(|ms| format!(", took {}", span(ms))).unwrap_or_default();
    let cost = view.usage.as_ref().map(short_cost).filter(|cost| !cost.is_empty());
    let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
    vec![
        model.look.span(DIM, &format!("last {:04} ", view.iter)),
        model.look.span(of_verdict(view.verdict), view.verdict.plain()),
        model.look.span(DIM, &format!(" {}, guard={}{took}{cost}", view.node, view.guard)),
    ]
}

fn budget(model: &Model, run: &RunView, timeline: &PhaseTimeline) -> Vec<Span<'static>> {
    let look = model.look;
    let elapsed = timeline.elapsed(model.now()).unwrap_or_default();
    let Some(phase) = &run.phase else { return Vec::new() };
    let mut spans = vec![look.span(PLAIN, &format!("{:04} ", run.iteration))];
    spans.extend(spent(model, elapsed, phase.budget_ms));
    if let Some(node) = &run.node {
        let role = node.role.map(|role| format!("{role} on ")).unwrap_or_default();
        spans.push(
            look.span(PLAIN, &format!("  {role}{}, attempt {}/{}", node.id, node.attempts + 1, node.max_attempts)),
        );
    }
    if let Some(agent) = &phase.agent {
        spans.push(look.span(DIM, &format!("  {agent}")));
    }
    spans
}

/// Returns how much of a budget is used, as a bar and in words.
fn spent(model: &Model, elapsed: u64, budget_ms: u64) -> Vec<Span<'static>> {
    let look = model.look;
    let (full, empty) = look.bar(if model.size.0 < 100 { BAR / 2 } else { BAR }, elapsed, budget_ms);
    let style = if elapsed * 10 > budget_ms * 9 {
        BAD
    } else if elapsed * 4 > budget_ms * 3 {
        LOOK
    } else {
        LIVE
    };
    let told = format!(" {} of {}", seconds(elapsed), span(budget_ms));
    vec![look.span(style, &full), look.span(DIM, &empty), look.span(PLAIN, &told)]
}
