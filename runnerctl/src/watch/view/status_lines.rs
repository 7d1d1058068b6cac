//! The lines above and below the panes: the run, the reason for its state, the command to type, and the available keys.

use protocol::path::WirePath;
use protocol::view::{PendingControl, RunView, StopReason};
use protocol::words::RunStatus;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::repos::state_span;
use super::{PaneCanvas, truncate_spans};
use crate::text::measure::{format_ago, format_until};
use crate::text::paint::{BAD, DIM, GOOD, HEADING, HINT, PLAIN, WARN, state_style};
use crate::text::repo;
use crate::text::run::continue_command;
use crate::text::titles;
use crate::text::usage::render_short_cost;
use crate::watch::model::Model;

/// The keys that are always shown.
const LAST_HINTS: &str = "?:help q:quit";
/// The keys of the panes, the most important first.
const PANE_HINTS: [&str; 10] =
    ["Tab", "Esc:list", "p:pause", "r:resume", "l:log", "n:note", "c:cancel", "s:step", "f:follow", "v:raw"];
/// The keys of the list.
const LIST_HINTS: [&str; 6] = ["Enter:open", "r:resume", "p:pause", "n:note", "l:log", "c:cancel"];

/// Draws the summary of each of several machines, and which one is shown.
pub(super) fn draw_machines(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let caps = canvas.model.caps;
    let mut spans = Vec::new();
    for machine in &canvas.model.machines {
        let name = if machine.is_shown { format!("[{}]", machine.name) } else { machine.name.clone() };
        spans.push(caps.styled_span(if machine.is_shown { HEADING } else { PLAIN }, &name));
        match &machine.runs {
            _ if machine.is_lost => spans.push(caps.styled_span(BAD, " no answer")),
            None => spans.push(caps.styled_span(DIM, " connecting")),
            Some(runs) if runs.is_empty() => spans.push(caps.styled_span(DIM, " no run")),
            Some(runs) => {
                let counts = runs
                    .iter()
                    .map(|(state, count)| caps.styled_span(state_style(*state), &format!(" {count} {state}")));
                spans.extend(counts);
            }
        }
        spans.push(caps.styled_span(PLAIN, "   "));
    }
    canvas.draw_both_ends(
        spans,
        caps.styled_span(DIM, if canvas.model.machines.is_empty() { "" } else { "< >" }),
        area,
    );
}

/// Draws which repository is shown, and whether the display is up to date.
pub(super) fn draw_header(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let caps = model.caps;
    let mut spans = Vec::new();
    match (model.status(), model.selected_index()) {
        (Some(status), Some(at)) => {
            spans.push(caps.styled_span(DIM, &format!("{}/{} ", at + 1, model.repos.len())));
            spans.push(state_span(model, status));
            if let Some(run) = &status.run {
                let cost = render_short_cost(&run.usage);
                spans.push(
                    caps.styled_span(PLAIN, &format!("  {}/{} tasks  {cost}", run.leaves_passed, run.leaves_total)),
                );
            }
            spans.push(caps.styled_span(HEADING, &format!("  {}", repo::display_name(status))));
            if let Some(goal) = status.run.as_ref().and_then(|run| run.summary.goal.as_ref()) {
                spans.push(caps.styled_span(DIM, &format!("  {goal}")));
            }
        }
        _ => spans.push(caps.styled_span(HEADING, "runnerctl watch")),
    }
    canvas.draw_both_ends(spans, connection_span(model), area);
}

/// Returns whether the daemon responds, or else the age of the displayed state.
fn connection_span(model: &Model) -> Span<'static> {
    match (&model.lost, model.read_at) {
        (None, Some(_)) => model.caps.styled_span(DIM, "live"),
        (None, None) => model.caps.styled_span(DIM, "connecting"),
        (Some(_), Some(read)) => {
            model.caps.styled_span(BAD, &format!("reconnecting; as of {}", format_ago(read, model.now())))
        }
        (Some(_), None) => model.caps.styled_span(BAD, "reconnecting"),
    }
}

/// Draws what the run is doing or why it is idle, and below it the command to type.
pub(super) fn draw_reason(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let (first, second) = reason_lines(model);
    let rows = [first, second].map(|spans| Line::from(truncate_spans(model, spans, area.width.into())));
    canvas.draw_lines(rows.into(), area);
}

type StyledSpans = Vec<Span<'static>>;

fn reason_lines(model: &Model) -> (StyledSpans, StyledSpans) {
    let caps = model.caps;
    if let Some(lost) = &model.lost {
        let hint = vec![
            caps.styled_span(DIM, "retrying; to start it: "),
            caps.styled_span(HINT, &caps.screen.with_host_in_text("runnerctl status")),
        ];
        return (vec![caps.styled_span(BAD, &lost.why)], hint);
    }
    let Some(status) = model.status() else {
        let is_read = model.read_at.is_some();
        let hint = if is_read { command_hint(model, "runnerctl start PATH") } else { StyledSpans::new() };
        return (vec![caps.styled_span(PLAIN, if is_read { "no repositories yet" } else { "" })], hint);
    };
    if let Some(held) = &status.repo.held {
        return stopped_lines(model, RunStatus::Held, held, &status.repo.path);
    }
    match &status.run {
        None => (vec![caps.styled_span(PLAIN, "no run")], command_hint(model, "runnerctl start")),
        Some(run) => run_lines(model, run),
    }
}

fn stopped_lines(
    model: &Model,
    state: RunStatus,
    reason: &StopReason,
    work_tree: &WirePath,
) -> (StyledSpans, StyledSpans) {
    let first = vec![
        model.caps.styled_span(state_style(state), &format!("{state}: ")),
        model.caps.styled_span(PLAIN, &reason.message),
    ];
    let command = continue_command(reason, work_tree, &model.caps.screen);
    (first, command.map(|command| command_hint(model, &command)).unwrap_or_default())
}

fn command_hint(model: &Model, command: &str) -> StyledSpans {
    let command = model.caps.screen.with_host_in_text(command);
    vec![model.caps.styled_span(DIM, "to continue: "), model.caps.styled_span(HINT, &command)]
}

fn run_lines(model: &Model, run: &RunView) -> (StyledSpans, StyledSpans) {
    let caps = model.caps;
    let state = run.summary.state;
    let (mut first, mut second) = match titles::titled_reason(run) {
        Some(reason) => stopped_lines(model, state, &reason, &run.summary.path),
        None => (
            vec![
                caps.styled_span(state_style(state), &format!("{state}: ")),
                caps.styled_span(PLAIN, &describe_run(run)),
            ],
            Vec::new(),
        ),
    };
    if let Some(time) = run.wait_until {
        first.insert(1, caps.styled_span(WARN, &format!("until {}: ", format_until(time, &caps.screen))));
    }
    if model.iteration_under_review().is_some() {
        second = vec![caps.styled_span(DIM, "y approves, x rejects; l then 4 shows the diff")];
    }
    if second.is_empty() {
        second = run_remarks(model, run);
    }
    (first, second)
}

fn describe_run(run: &RunView) -> String {
    match (&run.node, run.summary.state) {
        (Some(node), state) if !state.is_terminal() => format!("{}  {}", node.path.join("/"), node.title),
        _ => format!("{}/{} tasks pass, branch {}", run.leaves_passed, run.leaves_total, run.summary.branch),
    }
}

/// Returns a warning about an active run.
fn run_remarks(model: &Model, run: &RunView) -> StyledSpans {
    let mut remarks: Vec<(anstyle::Style, String)> = Vec::new();
    match run.pending {
        Some(PendingControl::Pause) => remarks.push((WARN, "pauses after this iteration".into())),
        Some(PendingControl::Cancel) => remarks.push((WARN, "ends after this session".into())),
        None => {}
    }
    if let Some(obstacle) = run.phase.as_ref().and_then(|phase| phase.obstacle.as_ref()) {
        remarks.push((BAD, format!("tried again: {obstacle}")));
    }
    for outage in &run.outages {
        remarks
            .push((WARN, format!("{} is out until {}", outage.agent, format_until(outage.until, &model.caps.screen))));
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
        remarks.push((WARN, format!("held back: {}", run.held_back.join(", "))));
    }
    remarks.extend(run.notices.iter().map(|notice| (WARN, notice.clone())));
    let mut spans = Vec::new();
    for (style, text) in remarks {
        if !spans.is_empty() {
            spans.push(model.caps.styled_span(DIM, "; "));
        }
        spans.push(model.caps.styled_span(style, &text));
    }
    spans
}

/// Returns as many keys as fit: those that answer what the run waits for first, help and quit always.
fn key_hints(model: &Model, width: usize) -> String {
    let review: &[&str] =
        if model.iteration_under_review().is_some() { &["y:approve", "x:reject", "l:log"] } else { &[] };
    let answer: &[&str] = if model.run().is_some_and(|run| run.questions > 0) { &["a:answer"] } else { &[] };
    let (first, rest): (_, &[&str]) =
        if model.shows_list() { (&LIST_HINTS[..1], &LIST_HINTS[1..]) } else { (&PANE_HINTS[..2], &PANE_HINTS[2..]) };
    let mut hints = String::new();
    let mut shown: Vec<&str> = Vec::new();
    for hint in first.iter().chain(review).chain(answer).chain(rest) {
        if !shown.contains(hint) && hints.len() + hint.len() + 1 + LAST_HINTS.len() <= width {
            shown.push(hint);
            hints += hint;
            hints.push(' ');
        }
    }
    hints + LAST_HINTS
}

/// Draws the result of the last command, otherwise the keys.
pub(super) fn draw_footer(canvas: &mut PaneCanvas<'_, '_>, area: Rect) {
    let model = canvas.model;
    let span = match &model.notice {
        Some(notice) if fits_footer(model, &notice.text, area.width) => {
            model.caps.styled_span(if notice.is_error { BAD } else { GOOD }, &notice.text)
        }
        _ => model.caps.styled_span(DIM, &key_hints(model, area.width.into())),
    };
    canvas.frame.render_widget(Line::from(span), area);
}

/// Whether a text fits in the footer; a longer one is shown in a dialog.
pub(super) fn fits_footer(model: &Model, text: &str, width: u16) -> bool {
    !text.contains('\n') && model.caps.safe_text(text).width() <= width.into()
}
