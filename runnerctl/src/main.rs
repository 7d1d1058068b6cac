//! `runnerctl`, the client of `runnerd`: every command is one or a few requests.
//!
//! It knows the conversation and nothing else: no file of the daemon's, no rule of a run.

mod args;
mod commands;
mod complete;
mod confirm;
mod deliver;
mod doctor;
#[cfg(test)]
mod documents;
mod editor;
mod failure;
mod feed;
mod invocation;
mod making;
mod pager;
mod progress;
mod record;
mod text;
mod ui;
mod wait;
mod watch;

use std::io;
use std::process::ExitCode;

use protocol::error::ExitStatus;

use crate::args::Cli;
use crate::failure::Failure;
use crate::ui::Ui;

fn main() -> ExitCode {
    match complete::answer() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return ExitCode::from(args::complain(&error).code()),
    }
    let status = match args::parse() {
        Ok(cli) => {
            let ui = Ui::from_terminal(&cli.global);
            run(&ui, cli).unwrap_or_else(|failure| ui.fail(&failure))
        }
        Err(error) => args::complain(&error),
    };
    ExitCode::from(status.code())
}

fn run(ui: &Ui, cli: Cli) -> Result<ExitStatus, Failure> {
    let runtime = runtime().map_err(|error| Failure::io("starting the client", &error))?;
    runtime.block_on(commands::run(ui, cli))
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
