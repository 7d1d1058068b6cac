//! The lines above and below the panes: which run, why it does what it does, what to type, which keys there are.

use protocol::path::WirePath;
use protocol::view::{PendingControl, RunView, StopReason};
use protocol::words::RunStatus;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::repos::state;
use super::{PaneCanvas, squeeze};
use crate::text::measure::{ago, until};
use crate::text::paint::{BAD, DIM, GOOD, HEAD, HINT, LOOK, PLAIN, of_state};
use crate::text::repo;
use crate::text::run::typed;
use crate::text::titles;
use crate::text::usage::short_cost;
use crate::watch::model::Model;

const HINTS: &str = "Tab p:pause r:resume s:step c:cancel n:note l:log f:follow v:raw ?:help q:quit";

/// Draws what there is on each of several machines, and which is shown.
pub(super) fn machines(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let look = canvas.model.look;
    let mut spans = Vec::new();
    for machine in &canvas.model.machines {
        let name = if machine.is_shown { format!("[{}]", machine.name) } else { machine.name.clone() };
        spans.push(look.span(if machine.is_shown { HEAD } else { PLAIN }, &name));
        match &machine.runs {
            _ if machine.is_lost => spans.push(look.span(BAD, " no answer")),
            None => spans.push(look.span(DIM, " connecting")),
            Some(runs) if runs.is_empty() => spans.push(look.span(DIM, " no run")),
            Some(runs) => {
                let told = runs.iter().map(|(state, count)| look.span(of_state(*state), &format!(" {count} {state}")));
                spans.extend(told);
            }
        }
        spans.push(look.span(PLAIN, "   "));
    }
    canvas.ends(spans, look.span(DIM, if canvas.model.machines.is_empty() { "" } else { "< >" }), area);
}

/// Draws which repository is shown, and whether what is shown is up to date.
pub(super) fn header(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let look = model.look;
    let mut left = Vec::new();
    match (model.status(), model.position()) {
        (Some(status), Some(at)) => {
            left.push(look.span(DIM, &format!("{}/{} ", at + 1, model.repos.len())));
            left.push(state(model, status));
            if let Some(run) = &status.run {
                let cost = short_cost(&run.usage);
                left.push(look.span(PLAIN, &format!("  {}/{} leaves  {cost}", run.leaves_passed, run.leaves_total)));
            }
            left.push(look.span(HEAD, &format!("  {}", repo::place(status))));
            if let Some(goal) = status.run.as_ref().and_then(|run| run.summary.goal.as_ref()) {
                left.push(look.span(DIM, &format!("  {goal}")));
            }
        }
        _ => left.push(look.span(HEAD, "runnerctl watch")),
    }
    canvas.ends(left, link(model), area);
}

/// Returns whether the daemon answers, and else how old is what is shown.
fn link(model: &Model) -> Span<'static> {
    match (&model.lost, model.read_at) {
        (None, Some(_)) => model.look.span(DIM, "live"),
        (None, None) => model.look.span(DIM, "connecting"),
        (Some(_), Some(read)) => model.look.span(BAD, &format!("reconnecting; as of {}", ago(read, model.now()))),
        (Some(_), None) => model.look.span(BAD, "reconnecting"),
    }
}

/// Draws what the run does or why it does nothing, and below it what to type.
pub(super) fn why(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let (first, second) = sentences(model);
    let rows = [first, second].map(|spans| Line::from(squeeze(model, spans, area.width.into())));
    canvas.lines(rows.into(), area);
}

type StyledSpans = Vec<Span<'static>>;

fn sentences(model: &Model) -> (StyledSpans, StyledSpans) {
    let look = model.look;
    if let Some(lost) = &model.lost {
        let hint =
            vec![look.span(DIM, "retrying; to start it: "), look.span(HINT, &look.screen.told("runnerctl status"))];
        return (vec![look.span(BAD, &lost.why)], hint);
    }
    let Some(status) = model.status() else {
        let is_read = model.read_at.is_some();
        let hint = if is_read { to_type(model, "runnerctl start PATH") } else { StyledSpans::new() };
        return (vec![look.span(PLAIN, if is_read { "no repositories yet" } else { "" })], hint);
    };
    if let Some(held) = &status.repo.held {
        return stopped(model, RunStatus::Held, (held, &status.repo.path));
    }
    match &status.run {
        None => (vec![look.span(PLAIN, "no run")], to_type(model, "runnerctl start")),
        Some(run) => of_run(model, run),
    }
}

fn stopped(model: &Model, state: RunStatus, (reason, place): (&StopReason, &WirePath)) -> (StyledSpans, StyledSpans) {
    let first = vec![model.look.span(of_state(state), &format!("{state}: ")), model.look.span(PLAIN, &reason.message)];
    let command = typed(reason, place, &model.look.screen);
    (first, command.map(|command| to_type(model, &command)).unwrap_or_default())
}

fn to_type(model: &Model, command: &str) -> StyledSpans {
    let command = model.look.screen.told(command);
    vec![model.look.span(DIM, "to continue: "), model.look.span(HINT, &command)]
}

fn of_run(model: &Model, run: &RunView) -> (StyledSpans, StyledSpans) {
    let look = model.look;
    let state = run.summary.state;
    let (mut first, mut second) = match titles::reason(run) {
        Some(reason) => stopped(model, state, (&reason, &run.summary.path)),
        None => (vec![look.span(of_state(state), &format!("{state}: ")), look.span(PLAIN, &doing(run))], Vec::new()),
    };
    if let Some(time) = run.wait_until {
        first.insert(1, look.span(LOOK, &format!("until {}: ", until(time, &look.screen))));
    }
    if model.under_review().is_some() {
        second = vec![look.span(DIM, "y approves, x rejects; l then 4 shows the diff")];
    }
    if second.is_empty() {
        second = remarks(model, run);
    }
    (first, second)
}

fn doing(run: &RunView) -> String {
    match (&run.node, run.summary.state) {
        (Some(node), state) if !state.is_terminal() => format!("{}  {}", node.path.join("/"), node.title),
        _ => format!("{}/{} leaves pass, branch {}", run.leaves_passed, run.leaves_total, run.summary.branch),
    }
}

/// Returns what somebody should know of a run that goes on.
fn remarks(model: &Model, run: &RunView) -> StyledSpans {
    let mut remarks: Vec<(anstyle::Style, String)> = Vec::new();
    match run.pending {
        Some(PendingControl::Pause) => remarks.push((LOOK, "pauses after this iteration".into())),
        Some(PendingControl::Cancel) => remarks.push((LOOK, "ends after this session".into())),
        None => {}
    }
    if let Some(obstacle) = run.phase.as_ref().and_then(|phase| phase.obstacle.as_ref()) {
        remarks.push((BAD, format!("tried again: {obstacle}")));
    }
    for outage in &run.outages {
        remarks.push((LOOK, format!("{} is out until {}", outage.agent, until(outage.until, &model.look.screen))));
    }
    match run.questions {
        0 => {}
        1 => remarks.push((HINT, "1 question is open: a answers".into())),
        n => remarks.push((HINT, format!("{n} questions are open: a answers"))),
    }
    if !run.notes.is_empty() {
        remarks.push((HINT, format!("notes for the next session: {}", run.notes.len())));
    }
    if !run.changes.is_empty() {
        remarks.push((HINT, format!("requests to be committed: {}", run.changes.len())));
    }
    if !run.held_back.is_empty() {
        remarks.push((LOOK, format!("held back: {}", run.held_back.join(", "))));
    }
    remarks.extend(run.notices.iter().map(|notice| (LOOK, notice.clone())));
    let mut spans = Vec::new();
    for (style, text) in remarks {
        if !spans.is_empty() {
            spans.push(model.look.span(DIM, "; "));
        }
        spans.push(model.look.span(style, &text));
    }
    spans
}

/// Draws what came of the last command, else the keys.
pub(super) fn footer(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let span = match &model.notice {
        Some(notice) if fits(model, &notice.text, area.width) => {
            model.look.span(if notice.is_bad { BAD } else { GOOD }, &notice.text)
        }
        _ => model.look.span(DIM, HINTS),
    };
    canvas.frame.render_widget(Line::from(span), area);
}

/// Whether a text can be shown in the footer; a longer one has a box of its own.
pub(super) fn fits(model: &Model, text: &str, width: u16) -> bool {
    !text.contains('\n') && model.look.text(text).width() <= width.into()
}
