//! The commands, one file each, and what they share: printing answers as text or as one JSON object.

mod clean;
mod list;
mod report;
mod run;

pub(crate) use self::clean::CleanReply;
pub(crate) use self::list::ListReply;
pub(crate) use self::report::write_page;
pub(crate) use self::run::{RunReply, digest_programs, watch_signals};

use std::io::{self, Write as _};

use protocol::error::ExitStatus;
use protocol::sanitize::escape_json;
use serde::Serialize;

use crate::args::{Cli, EvalCommand, GlobalOptions};
use crate::case::find::EvalDirs;
use crate::error::EvalError;

/// Runs a command.
pub(crate) async fn run(cli: Cli) -> Result<ExitStatus, EvalError> {
    let Cli { global, command } = cli;
    if let EvalCommand::Schemas { folder } = command {
        return crate::schema::write_schemas(&folder).map(|()| ExitStatus::Success);
    }
    let places = EvalDirs::find(global.cases.clone(), global.results.clone())?;
    match command {
        EvalCommand::List => list::run(&global, &places).await,
        EvalCommand::Run(args) => run::run(&global, &places, args).await,
        EvalCommand::Report(args) => report::run_report(&global, &places, &args),
        EvalCommand::Compare(args) => report::run_compare(&global, &places, &args),
        EvalCommand::Clean { case } => clean::run(&global, &places, &case),
        EvalCommand::Import(args) => crate::import::run(&global, &args).await,
        EvalCommand::Prompts(args) => crate::prompts::run(&global, &places, args).await,
        EvalCommand::Schemas { .. } => Ok(ExitStatus::Success),
    }
}

/// Prints the answer as text, or as an object that names its schema.
pub(crate) fn print_answer(
    global: &GlobalOptions,
    object: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), EvalError> {
    if global.json {
        let line = serde_json::to_string(object).expect("BUG: an answer is plain data");
        print_text(&(escape_json(&line) + "\n"))
    } else {
        print_text(&text())
    }
}

/// Prints to standard output; a closed pipe is not an error.
fn print_text(text: &str) -> Result<(), EvalError> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(EvalError::new("writing the answer").caused_by(&error))
        }
        _ => Ok(()),
    }
}
