//! `runner-eval`: runs declarative cases through the real daemon, each in its own home, and reports the results.
//!
//! It is a client: it knows the protocol, and runs daemon and client as programs. `case` reads cases, which `import`
//! may have written from a list; `plan` and `sandbox` prepare them, `trial` and `batch` run them, `checks` and
//! `outcome` judge them, `results` stores them, and `report` summarizes them.

mod args;
mod batch;
mod case;
mod checks;
mod commands;
mod digest;
mod drive;
mod dry_run;
mod error;
mod import;
mod outcome;
mod plan;
mod process;
mod progress;
mod prompts;
mod record;
mod report;
mod results;
mod sandbox;
mod schema;
mod trial;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::error::EvalError;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(word) if word == process::SUPERVISOR_COMMAND => return process::supervisor_main(),
        Some(word) if word == process::INIT_COMMAND => return process::init_main(),
        _ => {}
    }
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report_usage(&error),
    };
    let wants_json = cli.global.json;
    let result = build_runtime().and_then(|runtime| runtime.block_on(commands::run(cli)));
    let status = result.unwrap_or_else(|fault| report_fault(&fault, wants_json));
    ExitCode::from(status.code())
}

fn build_runtime() -> Result<tokio::runtime::Runtime, EvalError> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    built.map_err(|error| EvalError::new("starting the runtime").caused_by(&error))
}

/// Prints a fault to standard error and returns the exit code.
fn report_fault(fault: &EvalError, as_json: bool) -> protocol::error::ExitStatus {
    let text = if as_json { fault.to_json() } else { fault.to_text() };
    // Standard error may be closed; there is no one to report that to.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
    fault.status()
}

/// Prints an argument error, as JSON if requested.
fn report_usage(error: &clap::Error) -> ExitCode {
    let is_error = error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_error && std::env::args_os().any(|word| word == "--json") {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        return ExitCode::from(report_fault(&EvalError::usage(first), true).code());
    }
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}
