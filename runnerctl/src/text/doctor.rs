//! What `doctor` found: a line per check, below it what there is to say and to do.

use std::fmt::Write as _;

use super::paint::{BAD, DIM, GOOD, HEAD, HINT, LOOK, paint};
use super::sanitize::safe;
use super::screen::Screen;
use super::wrap::flowed;
use crate::doctor::{CheckLevel, DoctorCheck};

/// Columns before what was found.
const INDENT: usize = 21;
/// Columns where the reader is no terminal.
const WIDTH: usize = 100;

/// Details of what is as it should be; more of them are left to `--json`.
const MOST_DETAILS: usize = 8;

/// Returns the checks by their groups, and how many are not as they should be.
pub(crate) fn render(groups: &[(&str, &[DoctorCheck])], screen: &Screen) -> String {
    let width = screen.width.unwrap_or(WIDTH);
    let mut text = String::new();
    for (heading, checks) in groups {
        let _ = writeln!(text, "{}", paint(HEAD, heading));
        for check in *checks {
            text += &row(check, width);
        }
        text.push('\n');
    }
    let count = |level| groups.iter().flat_map(|(_, checks)| *checks).filter(|check| check.level == level).count();
    let sum = match (count(CheckLevel::Fail), count(CheckLevel::Warn)) {
        (0, 0) => "nothing to do".to_owned(),
        (failed, warned) => format!("{}, {}", counted(failed, "error"), counted(warned, "warning")),
    };
    text + &sum + "\n"
}

fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn row(check: &DoctorCheck, width: usize) -> String {
    let (style, word) = match check.level {
        CheckLevel::Ok => (GOOD, "ok"),
        CheckLevel::Skipped => (DIM, "skip"),
        CheckLevel::Warn => (LOOK, "warn"),
        CheckLevel::Fail => (BAD, "fail"),
    };
    let gap = " ".repeat(4 - word.len());
    let head = format!("  {}{gap}  {:<12} ", paint(style, word), safe(&check.name));
    let mut text = head + flowed(INDENT, width, &safe(&check.found)).trim_start();
    let is_told = check.level != CheckLevel::Ok || check.details.len() <= MOST_DETAILS;
    for detail in check.details.iter().filter(|_| is_told) {
        text += &flowed(INDENT + 2, width, &safe(detail));
    }
    if let Some(fix) = &check.fix {
        let fix = flowed(INDENT, width, &format!("fix: {}", safe(fix)));
        let _ = writeln!(text, "{}", paint(HINT, fix.trim_end()));
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
        let told = |level, count| {
            row(&DoctorCheck::new(level, "config", "valid").with_details(lines(count)), 80).lines().count()
        };
        assert_eq!([told(CheckLevel::Ok, 8), told(CheckLevel::Ok, 9), told(CheckLevel::Warn, 9)], [9, 1, 10]);
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
        insta::assert_snapshot!(strip_str(&render(&[("Machine", &machine), ("Repository", &repository)], &screen)), @r"
        Machine
          ok    git          git version 2.43.0
          warn  containment  walk
                               cgroup not: /sys/fs/cgroup/user.slice is not writable
                                 for this user
                             fix: start the daemon with: systemd-run --user --scope
                               -p Delegate=yes runnerd
          skip  service      this machine has no systemd

        Repository
          fail  agent        [executor] cannot find ␛[2Jcodex
                             fix: npm install -g @openai/codex@latest

        1 error, 1 warning
        ");
    }
}
