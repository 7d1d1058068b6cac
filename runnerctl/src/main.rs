//! `runnerctl`, the client of `runnerd`: every command is one or a few requests.
//!
//! It knows the protocol and nothing else: no file of the daemon, no rule of a run.

mod args;
mod bisect;
mod commands;
mod complete;
mod confirm;
mod deliver;
mod detection;
#[cfg(test)]
mod doc_tests;
mod doctor;
mod editor;
mod events;
mod failure;
mod installation;
mod interrupts;
mod invocation;
mod mcp;
mod multi_host;
mod pager;
mod program;
mod progress;
mod record_selector;
mod remote_status;
mod run_target;
mod settings;
mod sign_review;
mod submit;
mod target_host;
mod temp_daemon;
mod text;
mod text_file;
mod ui;
mod wait;
mod watch;
mod workspace_progress;

use std::io;
use std::process::ExitCode;

use protocol::error::ExitStatus;

use crate::args::Cli;
use crate::failure::Failure;
use crate::ui::Ui;

fn main() -> ExitCode {
    match complete::run_completion() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return ExitCode::from(args::report_parse_error(&error).code()),
    }
    let status = match args::parse() {
        Ok(cli) => {
            let ui = Ui::from_terminal(&cli.global);
            run(ui, cli)
        }
        Err(error) => args::report_parse_error(&error),
    };
    ExitCode::from(status.code())
}

fn run(ui: Ui, cli: Cli) -> ExitStatus {
    let hosts = match target_host::resolve_hosts(&cli) {
        Ok(hosts) => hosts,
        Err(failure) => return ui.report_failure(&failure),
    };
    let ui = ui.for_host(hosts.first().filter(|_| hosts.len() == 1 && !cli.global.all_hosts));
    let result = build_runtime().map_err(|error| Failure::io("starting the client", &error));
    let result = result.and_then(|runtime| runtime.block_on(commands::run(&ui, cli, hosts)));
    result.unwrap_or_else(|failure| ui.report_failure(&failure))
}

fn build_runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
