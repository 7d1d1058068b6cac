//! What landed, what was left out and why; and the landed commits of a branch, looked at again.

use std::fmt::Write as _;

use protocol::landing::{LandOutcome, LandReply, LandedCheck, LandedReport, LandedState, RunLanding};

use super::measure::short;
use super::paint::{BAD, DIM, GOOD, HEAD, HINT, LOOK, paint};
use super::sanitize::{safe, safe_lines};

/// Returns what became of the runs that were to land.
pub(crate) fn reply(reply: &LandReply) -> String {
    let mut text = String::new();
    for run in &reply.runs {
        text.push_str(&of_run(reply, run));
    }
    let moves = reply.before.as_deref() != Some(&reply.after);
    let onto = paint(HEAD, &safe(&reply.onto));
    let _ = match (&reply.before, moves) {
        (Some(before), true) if reply.preview => {
            writeln!(text, "{onto} would go from {} to {}; nothing was moved", short(before), short(&reply.after))
        }
        (Some(before), true) => writeln!(text, "{onto} went from {} to {}", short(before), short(&reply.after)),
        (None, _) if reply.preview => {
            writeln!(text, "{onto} would be made at {}; nothing was moved", short(&reply.after))
        }
        (None, _) => writeln!(text, "{onto} was made at {}", short(&reply.after)),
        (Some(before), false) => writeln!(text, "{onto} stays at {}", short(before)),
    };
    if let Some(tree) = reply.work_tree.as_ref().filter(|_| !reply.preview) {
        let _ = writeln!(text, "work tree updated: {}", safe(&tree.as_path().display().to_string()));
    }
    text
}

fn of_run(reply: &LandReply, run: &RunLanding) -> String {
    let name = paint(HEAD, &safe(&run.run));
    let mut text = match run.outcome {
        LandOutcome::Landed if reply.preview => format!("run {name}: {}\n", paint(GOOD, "would land")),
        LandOutcome::Landed => format!("run {name}: {}\n", paint(GOOD, "landed")),
        LandOutcome::AlreadyLanded => match run.commits.last() {
            Some(newest) => format!("run {name}: already landed as {}\n", short(&newest.commit)),
            None => format!("run {name}: all of it is there already\n"),
        },
        LandOutcome::LeftOut => format!("run {name}: {}\n", paint(BAD, "left out")),
    };
    if run.outcome == LandOutcome::Landed {
        for commit in &run.commits {
            let _ = writeln!(text, "  {} {}", paint(DIM, short(&commit.commit)), safe(&commit.subject));
        }
    }
    for note in &run.notes {
        let _ = writeln!(text, "  {} {}", paint(LOOK, "note:"), safe(note));
    }
    if let Some(refusal) = &run.refusal {
        let _ = writeln!(text, "  {}", safe_lines(&refusal.message).replace('\n', "\n    "));
        for command in refusal.hint.iter().flat_map(|hint| hint.lines()) {
            let _ = writeln!(text, "  {} {}", paint(HINT, "hint:"), safe(command));
        }
    }
    text
}

/// Says what comes after a run that settles conflicts.
pub(crate) fn after_resolving(run: &str) -> String {
    format!("\nWhen it is completed, land it: {}\n", paint(HINT, &format!("runnerctl land {}", safe(run))))
}

/// Returns what a look at the landed commits of a branch has found.
pub(crate) fn report(report: &LandedReport) -> String {
    let mut text = format!("{} {}, at {}\n\n", paint(HEAD, "branch"), safe(&report.branch), short(&report.tip));
    for check in &report.commits {
        text.push_str(&of_check(check));
    }
    let count = |state: LandedState| report.commits.iter().filter(|check| check.state == state).count();
    let (same, differs) = (count(LandedState::Same), count(LandedState::Differs));
    let (unproven, unknown) = (count(LandedState::Unproven), count(LandedState::Unknown));
    let style = if differs + unproven > 0 {
        BAD
    } else if unknown > 0 || same == 0 {
        LOOK
    } else {
        GOOD
    };
    let verdict =
        format!("{same} as merged, {differs} changed since, {unproven} of runs not proven, {unknown} not checked");
    let _ = writeln!(text, "{}", paint(style, &verdict));
    text
}

fn of_check(check: &LandedCheck) -> String {
    let (style, state) = match check.state {
        LandedState::Same => (GOOD, "as merged"),
        LandedState::Differs => (BAD, "changed since"),
        LandedState::Unproven => (BAD, "not proven"),
        LandedState::Unknown => (LOOK, "not checked"),
    };
    let landed = &check.landed;
    let mut text = format!(
        "  {} {}  {} ({} of run {})\n",
        paint(DIM, short(&landed.commit)),
        paint(style, state),
        safe(&landed.subject),
        safe(&landed.node),
        safe(&check.run)
    );
    for line in check.note.iter().chain(&check.differs) {
        let _ = writeln!(text, "      {}", safe(line));
    }
    text
}
