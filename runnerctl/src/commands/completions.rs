//! `completions`: prints the script through which a shell asks this program for completions.

use std::env;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use protocol::error::ExitStatus;

use crate::args::Cli;
use crate::failure::Failure;
use crate::ui::Ui;

/// The environment variable by which a shell requests completions; it is a convention shared by such programs.
const VARIABLE: &str = "COMPLETE";

const EXAMPLES: &str = "Examples:
  runnerctl completions bash

Source it when the shell starts, so that it fits the installed version:
  bash         source <(runnerctl completions bash)          ~/.bashrc
  zsh          source <(runnerctl completions zsh)           ~/.zshrc
  fish         runnerctl completions fish | source           config.fish
  elvish       eval (runnerctl completions elvish | slurp)   rc.elv
  powershell   runnerctl completions powershell | Out-String | iex";

/// Print a shell's completion script
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: CompletionShell,
}

/// A shell that can ask.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

impl CompletionShell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
            Self::Elvish => &Elvish,
            Self::Powershell => &Powershell,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitStatus, Failure> {
    let command = Cli::command();
    let name = command.get_name();
    // A name that the shell finds in `PATH` stays valid when the program is updated; a path is used as typed.
    let typed = env::args_os().next().map_or_else(|| PathBuf::from(name), PathBuf::from);
    let program = if typed.components().count() > 1 { std::path::absolute(&typed).unwrap_or(typed) } else { typed };
    let mut script = Vec::new();
    args.shell
        .completer()
        .write_registration(VARIABLE, name, name, &program.to_string_lossy(), &mut script)
        .map_err(|error| Failure::io("writing the script", &error))?;
    Ui::print_verbatim(&String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Success)
}
