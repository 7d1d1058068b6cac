//! What landed, and what was skipped and why; and the audit of a branch's landed commits.

use std::fmt::Write as _;

use protocol::landing::{LandOutcome, LandReply, LandedCheck, LandedReport, LandedState, RunLanding};
use protocol::shell;

use super::checkout::back_command;
use super::measure::short_id;
use super::paint::{BAD, DIM, GOOD, HEADING, HINT, WARN, paint};
use super::sanitize::{sanitize, sanitize_lines};

/// Returns the result for each run that was to land.
pub(crate) fn render_landing(reply: &LandReply) -> String {
    let mut text = String::new();
    for run in &reply.runs {
        text.push_str(&render_run_landing(reply, run));
    }
    let is_moved = reply.before.as_deref() != Some(&reply.after);
    let onto = paint(HEADING, &sanitize(&reply.onto));
    let _ = match (&reply.before, is_moved) {
        (Some(before), true) if reply.preview => {
            writeln!(text, "{onto} would go from {} to {}; nothing was moved", short_id(before), short_id(&reply.after))
        }
        (Some(before), true) => writeln!(text, "{onto} went from {} to {}", short_id(before), short_id(&reply.after)),
        (None, _) if reply.preview => {
            writeln!(text, "{onto} would be made at {}; nothing was moved", short_id(&reply.after))
        }
        (None, _) => writeln!(text, "{onto} was made at {}", short_id(&reply.after)),
        (Some(before), false) => writeln!(text, "{onto} stays at {}", short_id(before)),
    };
    if let Some(tree) = reply.work_tree.as_ref().filter(|_| !reply.preview) {
        let _ = writeln!(text, "working tree updated: {}", sanitize(&tree.as_path().display().to_string()));
    }
    text
}

fn render_run_landing(reply: &LandReply, run: &RunLanding) -> String {
    let name = paint(HEADING, &sanitize(&run.run));
    let mut text = match run.outcome {
        LandOutcome::Landed if reply.preview => format!("run {name}: {}\n", paint(GOOD, "would land")),
        LandOutcome::Landed => format!("run {name}: {}\n", paint(GOOD, "landed")),
        LandOutcome::AlreadyLanded => match run.commits.last() {
            Some(newest) => format!("run {name}: already landed as {}\n", short_id(&newest.commit)),
            None => format!("run {name}: already landed completely\n"),
        },
        LandOutcome::LeftOut => format!("run {name}: {}\n", paint(BAD, "left out")),
    };
    if run.outcome == LandOutcome::Landed {
        for commit in &run.commits {
            let _ = writeln!(text, "  {} {}", paint(DIM, short_id(&commit.commit)), sanitize(&commit.subject));
        }
    }
    for note in &run.notes {
        let _ = writeln!(text, "  {} {}", paint(WARN, "note:"), sanitize(note));
    }
    if let Some(refusal) = &run.refusal {
        let _ = writeln!(text, "  {}", sanitize_lines(&refusal.message).replace('\n', "\n    "));
        for command in refusal.hint.iter().flat_map(|hint| hint.lines()) {
            let _ = writeln!(text, "  {} {}", paint(HINT, "hint:"), sanitize(command));
        }
    }
    text
}

/// Says that the working tree has left the branch of a run, or is on it, and how to go back.
pub(crate) fn describe_checkout(reply: &LandReply) -> Option<String> {
    // A preview moves nothing: the way back is to where the run would land.
    let back = reply.back.as_ref().or_else(|| reply.preview.then_some(&reply.onto));
    match (&reply.on_run, &reply.left) {
        (Some(branch), _) => {
            let command = |back: &String| format!("; back: {}", back_command(back, &reply.uncommitted));
            Some(format!("this working tree is on {branch}{}", back.map(command).unwrap_or_default()))
        }
        (None, Some(branch)) => {
            Some(format!("this working tree went from {branch} to {}", back.unwrap_or(&reply.onto)))
        }
        (None, None) => None,
    }
}

/// Says what follows a run that resolves conflicts.
pub(crate) fn render_resolve_hint(run: &str) -> String {
    format!("\nWhen it is completed, land it: {}\n", paint(HINT, &format!("runnerctl land {}", sanitize(run))))
}

/// Says that the settings of a run are not on the branch that it landed on, and how to keep them there.
pub(crate) fn render_settings_hint(branch: &str, reply: &LandReply) -> String {
    let onto = &reply.onto;
    let back = reply.on_run.as_ref().map(|_| format!("{} && ", back_command(onto, &reply.uncommitted)));
    let back = back.unwrap_or_default();
    let command = format!("{back}git checkout {} -- .runner/state/config.toml", shell::quote(branch));
    format!(
        "the settings of {branch} are not on {onto}; to keep them there:\n  {} && git commit -m Settings\n",
        paint(HINT, &sanitize(&command)),
        branch = sanitize(branch),
        onto = sanitize(onto)
    )
}

/// Returns the result of auditing a branch's landed commits.
pub(crate) fn render_landed_report(report: &LandedReport) -> String {
    let mut text =
        format!("{} {}, at {}\n\n", paint(HEADING, "branch"), sanitize(&report.branch), short_id(&report.tip));
    for check in &report.commits {
        text.push_str(&render_check(check));
    }
    let count = |state: LandedState| report.commits.iter().filter(|check| check.state == state).count();
    let same = count(LandedState::Same);
    let differs = count(LandedState::Differs);
    let unproven = count(LandedState::Unproven);
    let unknown = count(LandedState::Unknown);
    let style = if differs + unproven > 0 {
        BAD
    } else if unknown > 0 || same == 0 {
        WARN
    } else {
        GOOD
    };
    let verdict =
        format!("{same} as merged, {differs} changed since, {unproven} of runs not proven, {unknown} not checked");
    let _ = writeln!(text, "{}", paint(style, &verdict));
    text
}

fn render_check(check: &LandedCheck) -> String {
    let (style, state) = match check.state {
        LandedState::Same => (GOOD, "as merged"),
        LandedState::Differs => (BAD, "changed since"),
        LandedState::Unproven => (BAD, "not proven"),
        LandedState::Unknown => (WARN, "not checked"),
    };
    let landed = &check.landed;
    let mut text = format!(
        "  {} {}  {} ({} of run {})\n",
        paint(DIM, short_id(&landed.commit)),
        paint(style, state),
        sanitize(&landed.subject),
        sanitize(&landed.node),
        sanitize(&check.run)
    );
    for line in check.note.iter().chain(&check.differs) {
        let _ = writeln!(text, "      {}", sanitize(line));
    }
    text
}
