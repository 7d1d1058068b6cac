//! `help`: the program, a command, or the exit codes.

use std::fmt::Write as _;

use clap::{Args, CommandFactory as _};
use protocol::error::ExitStatus;
use serde::Serialize;

use crate::args::Cli;
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
}

/// Runs the command.
pub(crate) fn run(ui: &Ui, args: &HelpArgs) -> Result<ExitStatus, Failure> {
    if args.topic == ["exit-codes"] {
        let codes = ExitStatus::TABLE.iter().map(|&(status, meaning)| ExitCode { code: status.code(), meaning });
        ui.answer("exit_codes", &ExitCodes { exit_codes: codes.collect() }, |_| exit_codes())?;
        return Ok(ExitStatus::Fine);
    }
    let mut command = Cli::command();
    command.build();
    for name in &args.topic {
        let found = command.find_subcommand(name).filter(|found| !found.is_hide_set()).cloned();
        command = found.ok_or_else(|| Failure::usage(format!("no command `{name}`")).hint("runnerctl help"))?;
    }
    Ui::text(&command.render_long_help().ansi().to_string())?;
    Ok(ExitStatus::Fine)
}

fn exit_codes() -> String {
    ExitStatus::TABLE.iter().fold(String::new(), |mut text, (status, meaning)| {
        let _ = writeln!(text, "{:>3}  {meaning}", status.code());
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_explained() {
        insta::assert_snapshot!(exit_codes(), @r"
          0  fine, or the run is completed
          1  an error
          2  the command line is wrong
          3  the run is stuck
          4  the run reached a limit or timed out
          5  no daemon answers
          6  refused, or held until somebody looks
          7  `select` on a tree that is complete
          8  client and daemon speak different versions
          9  the run failed or was cancelled
         10  `verify` found a violation
        130  interrupted
        ");
    }
}
