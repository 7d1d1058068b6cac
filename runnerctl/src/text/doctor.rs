//! The results of `doctor`: one line per check, followed by details and commands.

use std::fmt::Write as _;

use super::paint::{BAD, DIM, GOOD, HEADING, HINT, WARN, paint};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::wrap::{is_command, wrap_commands, wrap_indented};
use crate::doctor::{CheckLevel, DoctorCheck};

/// Width of the column before the result.
const INDENT: usize = 21;
/// Width if the output is not a terminal.
const WIDTH: usize = 100;

/// Maximum number of details of a successful check; `--json` has all.
const MAX_DETAILS: usize = 8;

/// Returns the checks by group, and the number of failed ones.
pub(crate) fn render_checks(groups: &[(&str, &[DoctorCheck])], screen: &Screen) -> String {
    let width = screen.width.unwrap_or(WIDTH);
    let mut text = String::new();
    for (heading, checks) in groups {
        let _ = writeln!(text, "{}", paint(HEADING, heading));
        for check in *checks {
            text += &render_check(check, width);
        }
        text.push('\n');
    }
    let count = |level| groups.iter().flat_map(|(_, checks)| *checks).filter(|check| check.level == level).count();
    let summary = match (count(CheckLevel::Fail), count(CheckLevel::Warn)) {
        (0, 0) => "nothing to do".to_owned(),
        (failed, warned) => format!("{}, {}", count_noun(failed, "error"), count_noun(warned, "warning")),
    };
    text + &summary + "\n"
}

fn count_noun(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn render_check(check: &DoctorCheck, width: usize) -> String {
    let (style, label) = match check.level {
        CheckLevel::Ok => (GOOD, "ok"),
        CheckLevel::Skipped => (DIM, "skip"),
        CheckLevel::Warn => (WARN, "warn"),
        CheckLevel::Fail => (BAD, "fail"),
    };
    let gap = " ".repeat(4 - label.len());
    let head = format!("  {}{gap}  {:<12} ", paint(style, label), sanitize(&check.name));
    let mut text = head + wrap_indented(INDENT, width, &sanitize(&check.found)).trim_start();
    let shows_details = check.level != CheckLevel::Ok || check.details.len() <= MAX_DETAILS;
    for detail in check.details.iter().filter(|_| shows_details) {
        let detail = sanitize(detail);
        let width = if is_command(&detail) { usize::MAX } else { width };
        text += &wrap_indented(INDENT + 2, width, &detail);
    }
    if let Some(fix) = &check.fix {
        let fix = wrap_commands(&format!("fix: {}", sanitize(fix)), width.saturating_sub(INDENT + 1), INDENT + 2);
        let _ = writeln!(text, "{:INDENT$}{}", "", paint(HINT, &fix));
    }
    text
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn what_is_fine_is_told_in_short() {
        let lines = |count: usize| (0..count).map(|line| format!("line {line}")).collect();
        let line_count = |level, count| {
            render_check(&DoctorCheck::new(level, "config", "valid").with_details(lines(count)), 80).lines().count()
        };
        assert_eq!(
            [line_count(CheckLevel::Ok, 8), line_count(CheckLevel::Ok, 9), line_count(CheckLevel::Warn, 9)],
            [9, 1, 10]
        );
    }

    #[test]
    fn each_check_says_how_it_is_and_what_to_do_within_the_terminal() {
        let missing = "cgroup not: /sys/fs/cgroup/user.slice is not writable for this user".to_owned();
        let machine = [
            DoctorCheck::ok("git", "git version 2.43.0"),
            DoctorCheck::warn(
                "containment",
                "walk",
                "start the daemon with: systemd-run --user --scope -p Delegate=yes runnerd",
            )
            .with_details(vec![missing]),
            DoctorCheck::skipped("service", "this machine has no systemd"),
        ];
        let repository = [DoctorCheck::fail(
            "agent",
            "[executor] cannot find \u{1b}[2Jcodex",
            "npm install -g @openai/codex@latest",
        )];
        let screen = Screen { width: Some(80), ..Screen::fixed() };
        insta::assert_snapshot!(strip_str(&render_checks(&[("Machine", &machine), ("Repository", &repository)], &screen)), @r"
        Machine
          ok    git          git version 2.43.0
          warn  containment  walk
                               cgroup not: /sys/fs/cgroup/user.slice is not writable
                                 for this user
                             fix: start the daemon with:
                               systemd-run --user --scope -p Delegate=yes runnerd
          skip  service      this machine has no systemd

        Repository
          fail  agent        [executor] cannot find ␛[2Jcodex
                             fix: npm install -g @openai/codex@latest

        1 error, 1 warning
        ");
    }
}
