//! `help`: the program, a command, or the exit codes.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Args, Command};
use protocol::error::ExitStatus;
use serde::Serialize;

use crate::args;
use crate::failure::Failure;
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  runnerctl help
  runnerctl help start
  runnerctl help exit-codes";

/// Explain the program, a command, or the exit codes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HelpArgs {
    /// A command, or `exit-codes`
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

#[derive(Serialize)]
struct ExitCodes {
    exit_codes: Vec<ExitCode>,
}

#[derive(Serialize)]
struct ExitCode {
    code: u8,
    meaning: &'static str,
    next: &'static str,
}

/// Runs the command.
pub(crate) fn run(ui: &Ui, args: &HelpArgs) -> Result<ExitStatus, Failure> {
    if args.topic == ["exit-codes"] {
        let codes = ExitStatus::TABLE.iter().map(|&(status, meaning)| ExitCode {
            code: status.code(),
            meaning,
            next: next(status),
        });
        ui.answer("exit_codes", &ExitCodes { exit_codes: codes.collect() }, |_| exit_codes())?;
        return Ok(ExitStatus::Fine);
    }
    let mut command = args::command();
    for name in &args.topic {
        let found = command.find_subcommand(name).filter(|found| !found.is_hide_set()).cloned();
        command = found.ok_or_else(|| Failure::usage(format!("no command `{name}`")).hint("runnerctl help"))?;
    }
    ui.text(&page(command).ansi().to_string())?;
    Ok(ExitStatus::Fine)
}

/// Returns what `--help` of a command says.
pub(crate) fn page(mut command: Command) -> StyledStr {
    if command.get_long_about().is_some() { command.render_long_help() } else { command.render_help() }
}

fn exit_codes() -> String {
    ExitStatus::TABLE.iter().fold(String::new(), |mut text, (status, meaning)| {
        let _ = writeln!(text, "{:>3}  {meaning:<43}  {}", status.code(), next(*status));
        text
    })
}

/// Returns what to do about an exit code, in at most 32 columns.
pub(crate) fn next(status: ExitStatus) -> &'static str {
    match status {
        ExitStatus::Fine | ExitStatus::Complete => "nothing",
        ExitStatus::Error => "runnerctl doctor",
        ExitStatus::Usage => "runnerctl help COMMAND",
        ExitStatus::Stuck => "retry, edit or add; then resume",
        ExitStatus::Limit => "runnerctl resume --more N",
        ExitStatus::NoDaemon => "runnerctl doctor",
        ExitStatus::Refused => "as the hint says",
        ExitStatus::ProtocolMismatch => "update the older one",
        ExitStatus::RunEnded => "runnerctl log; then resume",
        ExitStatus::Violation => "look at the commit it names",
        ExitStatus::Interrupted => "runnerctl status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_explained() {
        insta::assert_snapshot!(exit_codes(), @r"
          0  fine, or the run is completed                nothing
          1  an error                                     runnerctl doctor
          2  the command line is wrong                    runnerctl help COMMAND
          3  the run is stuck                             retry, edit or add; then resume
          4  the run reached a limit or timed out         runnerctl resume --more N
          5  no daemon answers                            runnerctl doctor
          6  refused, or held until somebody looks        as the hint says
          7  `select` on a tree that is complete          nothing
          8  client and daemon speak different versions   update the older one
          9  the run failed or was cancelled              runnerctl log; then resume
         10  `verify` found a violation                   look at the commit it names
        130  interrupted                                  runnerctl status
        ");
    }
}
