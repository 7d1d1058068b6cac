//! `runnerctl`, the client of `runnerd`: every command is one or a few requests.
//!
//! It knows the conversation and nothing else: no file of the daemon's, no rule of a run.

mod args;
mod bisect;
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
mod reach;
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
            run(ui, cli)
        }
        Err(error) => args::complain(&error),
    };
    ExitCode::from(status.code())
}

fn run(ui: Ui, mut cli: Cli) -> ExitStatus {
    let host = match reach::host_of(&cli) {
        Ok(host) => host,
        Err(failure) => return ui.fail(&failure),
    };
    let ui = ui.about(host.as_ref());
    cli.global.host = host;
    let done = runtime().map_err(|error| Failure::io("starting the client", &error));
    let done = done.and_then(|runtime| runtime.block_on(commands::run(&ui, cli)));
    done.unwrap_or_else(|failure| ui.fail(&failure))
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
