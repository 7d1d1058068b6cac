//! A run in a few words: its state, why it stopped, and how to continue.

use std::fmt::Write as _;

use protocol::path::WirePath;
use protocol::reply::ControlReply;
use protocol::view::{RunSummary, StopReason};
use protocol::words::RunStatus;

use anstream::adapter::strip_str;
use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::paint::{HINT, WARN, paint, state_style};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::table::TableCell;
use super::wrap::wrap_text;

/// Indentation of a sentence below the headline.
const INDENT: usize = 2;

/// Returns the word for a run's state, and its style: a run that waits for a review differs from one that waits for a
/// service.
pub(crate) fn state_label(run: &RunSummary) -> (&'static str, Style) {
    match run.state {
        RunStatus::Waiting if run.needs_you => ("review", WARN),
        state => (state.as_str(), state_style(state)),
    }
}

/// Returns a run's state in a table.
pub(crate) fn state_cell(run: &RunSummary) -> TableCell {
    let (word, style) = state_label(run);
    TableCell::styled(style, word)
}

/// Returns the line `run <id> <state> on branch <branch>`, or two lines if that is wider than the screen.
pub(crate) fn render_headline(run: &RunSummary, screen: &Screen) -> String {
    let (word, style) = state_label(run);
    let state = paint(style, word);
    join_within(&format!("run {} {state}", sanitize(&run.id)), &format!("on branch {}", sanitize(&run.branch)), screen)
}

/// Joins two parts of a line, on two lines if that is wider than the screen.
pub(crate) fn join_within(first: &str, second: &str, screen: &Screen) -> String {
    let width = [first, second].map(|part| strip_str(part).to_string().width() + 1).iter().sum::<usize>() - 1;
    let gap = if screen.width.is_some_and(|limit| width > limit) { "\n  " } else { " " };
    format!("{first}{gap}{second}\n")
}

/// Returns the lines that say why a run in a work tree stopped and how to continue: a command to copy, or a sentence
/// followed by each of its commands on its own line.
pub(crate) fn render_stop_reason(reason: Option<&StopReason>, work_tree: &WirePath, screen: &Screen) -> String {
    let Some(reason) = reason else { return String::new() };
    let width = screen.width.map_or(usize::MAX, |width| width.saturating_sub(INDENT));
    let mut text = format!("  {}\n", wrap_text(&sanitize(&reason.message), width, INDENT));
    let Some(first) = continue_command(reason, work_tree, screen) else { return text };
    let _ = writeln!(text, "  to continue: {}", paint(HINT, &sanitize(&first)));
    let commands = reason.commands.iter().map(|command| screen.command_line(command, work_tree.as_path()));
    for command in commands.filter(|command| !first.ends_with(command)) {
        let _ = writeln!(text, "    {}", paint(HINT, &sanitize(&command)));
    }
    text
}

/// Returns how to continue: the only command as typed from the reader's folder, otherwise the sentence.
pub(crate) fn continue_command(reason: &StopReason, work_tree: &WirePath, screen: &Screen) -> Option<String> {
    match reason.commands.as_slice() {
        [only] if reason.command.as_deref() == Some(&only.to_shell()) => {
            Some(screen.command_line(only, work_tree.as_path()))
        }
        _ => reason.command.as_deref().map(|sentence| screen.with_host_in_text(sentence).into_owned()),
    }
}

/// Returns why a run is not running, in one line for a table.
pub(crate) fn reason_text(run: &RunSummary) -> String {
    run.reason.as_ref().map(|reason| reason.message.clone()).unwrap_or_default()
}

/// Returns what a request to pause, resume or cancel did; `pending` says what happens later.
pub(crate) fn render_control(reply: &ControlReply, pending: &str, screen: &Screen) -> String {
    let already = if reply.already { "already " } else { "" };
    if reply.pending {
        let state = paint(state_style(reply.run.state), reply.run.state.as_str());
        return format!("run {} {state}, {already}{pending}\n", sanitize(&reply.run.id));
    }
    if reply.already {
        let (verb, state) = reply.run.state.predicate().split_once(' ').expect("BUG: a predicate is one word");
        return format!("run {} {verb} already {state}\n", sanitize(&reply.run.id));
    }
    render_headline(&reply.run, screen) + &render_stop_reason(reply.run.reason.as_ref(), &reply.run.path, screen)
}

#[cfg(test)]
mod tests {
    use protocol::words::RunStatus;

    use super::*;
    use crate::text::samples;

    #[test]
    fn a_stopped_run_names_the_command_that_continues_it() {
        let run = samples::stuck().summary;
        let reply = ControlReply { run, pending: false, already: false };
        insta::assert_snapshot!(strip_str(&render_control(&reply, "", &Screen::fixed())), @r"
        run run-1a2b3c4d stuck on branch runner/run-1a2b3c4d
          parser.lex has used all of its 3 attempts
          to continue: runnerctl resume
        ");
    }

    #[test]
    fn a_headline_with_a_long_id_is_within_the_screen() {
        let id = "port-the-storage-layer-to-postgres-and";
        let run = RunSummary { id: id.into(), branch: format!("runner/{id}"), ..samples::summary() };
        let screen = Screen { width: Some(80), ..Screen::fixed() };
        insta::assert_snapshot!(strip_str(&render_headline(&run, &screen)), @r"
        run port-the-storage-layer-to-postgres-and running
          on branch runner/port-the-storage-layer-to-postgres-and
        ");
    }

    #[test]
    fn a_request_that_was_made_before_says_so() {
        let mut reply = ControlReply { run: samples::summary(), pending: true, already: true };
        insta::assert_snapshot!(strip_str(&render_control(&reply, "ending", &Screen::fixed())), @"run run-1a2b3c4d running, already ending");
        (reply.pending, reply.run.state) = (false, RunStatus::Cancelled);
        insta::assert_snapshot!(strip_str(&render_control(&reply, "ending", &Screen::fixed())), @"run run-1a2b3c4d is already cancelled");
    }

    #[test]
    fn a_request_that_waits_for_the_iteration_says_so() {
        let reply = ControlReply { run: samples::summary(), pending: true, already: false };
        insta::assert_snapshot!(strip_str(&render_control(&reply, "pauses after this iteration", &Screen::fixed())), @"run run-1a2b3c4d running, pauses after this iteration");
    }
}
