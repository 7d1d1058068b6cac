//! `help`: shows help for the program, a command or a topic.

pub(crate) mod topics;

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Args, Command};
use protocol::error::ExitStatus;
use serde::Serialize;

use crate::args;
use crate::failure::Failure;
use crate::ui::Ui;

/// Text below the program's own help.
pub(crate) const FIRST: &str = "Start with `runnerctl demo`, then `runnerctl help start`.
Topics: `runnerctl help states`, `environment` or `exit-codes`.";

const EXAMPLES: &str = "Examples:
  runnerctl help
  runnerctl help start
  runnerctl help states         what each state means, and what to do
  runnerctl help environment    the variables it reads
  runnerctl help exit-codes     how commands end";

/// Show help for a command or a topic
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HelpArgs {
    /// A command, or `states`, `environment`, `exit-codes`
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

#[derive(Serialize)]
struct ExitCodesReport {
    exit_codes: Vec<ExitCodeHelp>,
}

#[derive(Serialize)]
struct ExitCodeHelp {
    code: u8,
    meaning: &'static str,
    next: &'static str,
}

/// Runs the command.
pub(crate) fn run(ui: &Ui, args: &HelpArgs) -> Result<ExitStatus, Failure> {
    match args.topic.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["exit-codes"] => ui.print_answer("exit_codes", &list_exit_codes(), |_| render_exit_codes())?,
        ["states"] => ui.print_answer("states", &topics::list_states(), |_| topics::render_states())?,
        ["environment"] => ui.print_answer("environment", &topics::list_variables(), |_| topics::render_variables())?,
        _ => print_command_help(ui, &args.topic)?,
    }
    Ok(ExitStatus::Success)
}

fn print_command_help(ui: &Ui, topic: &[String]) -> Result<(), Failure> {
    let mut command = args::build_parser();
    for name in topic {
        let found = command.find_subcommand(name).filter(|found| !found.is_hide_set()).cloned();
        command =
            found.ok_or_else(|| Failure::usage(format!("no command or topic `{name}`")).hint("runnerctl help"))?;
    }
    ui.print_text(&render_command_help(command).ansi().to_string())
}

fn list_exit_codes() -> ExitCodesReport {
    let code = |&(status, meaning): &(ExitStatus, &'static str)| ExitCodeHelp {
        code: status.code(),
        meaning,
        next: next_step_for(status),
    };
    ExitCodesReport { exit_codes: ExitStatus::TABLE.iter().map(code).collect() }
}

/// Returns the `--help` text of a command.
pub(crate) fn render_command_help(mut command: Command) -> StyledStr {
    if command.get_long_about().is_some() { command.render_long_help() } else { command.render_help() }
}

fn render_exit_codes() -> String {
    ExitStatus::TABLE.iter().fold(String::new(), |mut text, (status, meaning)| {
        let _ = writeln!(text, "{:>3}  {meaning:<43}  {}", status.code(), next_step_for(*status));
        text
    })
}

/// Returns what to do about an exit code, in at most 32 columns.
pub(crate) fn next_step_for(status: ExitStatus) -> &'static str {
    match status {
        ExitStatus::Success | ExitStatus::Complete => "nothing",
        ExitStatus::Error => "runnerctl doctor",
        ExitStatus::Usage => "runnerctl help COMMAND",
        ExitStatus::Stuck => "retry or edit, then resume",
        ExitStatus::Limit => "runnerctl resume --more N",
        ExitStatus::NoDaemon => "runnerctl doctor",
        ExitStatus::Refused => "follow the hint",
        ExitStatus::ProtocolMismatch => "update the older one",
        ExitStatus::RunEnded => "runnerctl log; then resume",
        ExitStatus::Violation => "look at the commit it names",
        ExitStatus::Superseded => "nothing: it has the work",
        ExitStatus::RetryLater => "run the same command again",
        ExitStatus::Interrupted => "runnerctl status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_explained() {
        insta::assert_snapshot!(render_exit_codes(), @r"
          0  success, or the run is completed             nothing
          1  an error                                     runnerctl doctor
          2  invalid command line                         runnerctl help COMMAND
          3  the run is stuck                             retry or edit, then resume
          4  the run reached a limit or timed out         runnerctl resume --more N
          5  no daemon answers                            runnerctl doctor
          6  refused, or a run needs your attention       follow the hint
          7  `select`: the tree is complete               nothing
          8  client and daemon versions do not match      update the older one
          9  the run failed or was cancelled              runnerctl log; then resume
         10  `verify` found a violation                   look at the commit it names
         11  another driver continues the run             nothing: it has the work
         75  the job should be run again                  run the same command again
        130  interrupted                                  runnerctl status
        ");
    }
}
