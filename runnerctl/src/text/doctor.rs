//! The results of `doctor`: one line per check, followed by details and commands.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use super::paint::{BAD, DIM, GOOD, HEADING, HINT, WARN, paint};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::wrap::wrap_indented;
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
        text += &if is_command(&detail) {
            format!("{:INDENT$}  {detail}\n", "")
        } else {
            wrap_indented(INDENT + 2, width, &detail)
        };
    }
    if let Some(fix) = &check.fix {
        let _ = writeln!(text, "{}", paint(HINT, render_fix(&sanitize(fix), width).trim_end()));
    }
    text
}

/// Returns what to do: on one line, or each command whole on its own line, so that it can be copied.
fn render_fix(fix: &str, width: usize) -> String {
    let line = format!("{:INDENT$}fix: {fix}\n", "");
    if line.trim_end().width() < width {
        return line;
    }
    let mut text = String::new();
    for part in split_commands(fix) {
        let part = if text.is_empty() { format!("fix: {part}") } else { part };
        text += &if is_command(part.trim_start_matches("fix: ")) {
            format!("{:INDENT$}{part}\n", "")
        } else {
            wrap_indented(INDENT, width, &part)
        };
    }
    text
}

/// Splits what to do into commands and the words between them, at the punctuation outside quotes.
fn split_commands(fix: &str) -> Vec<String> {
    let mut is_quoted = false;
    let ends = fix.char_indices().filter(|(at, char)| {
        is_quoted ^= *char == '\'';
        !is_quoted && matches!(char, ',' | ';' | ':') && fix[at + 1..].starts_with(' ')
    });
    let mut parts: Vec<String> = Vec::new();
    let mut start = 0;
    for end in ends.map(|(at, _)| at + 1).chain([fix.len()]).collect::<Vec<_>>() {
        let part = fix[start..end].trim_start();
        start = end;
        match parts.last_mut() {
            Some(words) if !is_command(words) && !is_command(part) => *words += &format!(" {part}"),
            _ if is_command(part) => parts.push(part.trim_end_matches([',', ';']).to_owned()),
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

/// Whether a text is a command, by its first word.
fn is_command(text: &str) -> bool {
    const PROGRAMS: [&str; 13] = [
        "chmod",
        "df",
        "export",
        "git",
        "kill",
        "loginctl",
        "mv",
        "npm",
        "rm",
        "runnerctl",
        "sudo",
        "systemd-run",
        "timedatectl",
    ];
    text.split(' ').next().is_some_and(|word| PROGRAMS.contains(&word))
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
    fn a_command_is_on_a_line_of_its_own_and_whole() {
        let fix = "install just; or: runnerctl init && runnerctl config set guard.command 'a, b' test; or kill 3, and then: rm x";
        assert_eq!(
            split_commands(fix),
            [
                "install just; or:",
                "runnerctl init && runnerctl config set guard.command 'a, b' test",
                "or kill 3, and then:",
                "rm x"
            ]
        );
        assert_eq!(split_commands("git --version, to see why"), ["git --version", "to see why"]);
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
