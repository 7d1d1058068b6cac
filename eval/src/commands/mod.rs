//! The commands, one file each, and what they share: answers as text or as one JSON object.

mod clean;
mod list;
mod report;
mod run;

pub(crate) use self::clean::Cleaned;
pub(crate) use self::list::Cases;
pub(crate) use self::report::write_page;
pub(crate) use self::run::{Ran, digests, watch_signals};

use std::io::{self, Write as _};

use protocol::error::ExitStatus;
use protocol::safe::safe_json;
use serde::Serialize;

use crate::args::{Cli, Command, Global};
use crate::case::find::Places;
use crate::fault::Fault;

/// Runs a command.
pub(crate) async fn run(cli: Cli) -> Result<ExitStatus, Fault> {
    let Cli { global, command } = cli;
    if let Command::Schemas { folder } = command {
        return crate::schema::write(&folder).map(|()| ExitStatus::Fine);
    }
    let places = Places::find(global.cases.clone(), global.results.clone())?;
    match command {
        Command::List => list::run(&global, &places).await,
        Command::Run(args) => run::run(&global, &places, args).await,
        Command::Report(args) => report::report(&global, &places, &args),
        Command::Compare(args) => report::compare(&global, &places, &args),
        Command::Clean { case } => clean::run(&global, &places, &case),
        Command::Import(args) => crate::import::run(&global, &args).await,
        Command::Prompts(args) => crate::prompts::run(&global, &places, args).await,
        Command::Schemas { .. } => Ok(ExitStatus::Fine),
    }
}

/// Answers with text, or with an object that names its schema.
pub(crate) fn answer(global: &Global, object: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Fault> {
    if global.json {
        let line = serde_json::to_string(object).expect("BUG: an answer is plain data");
        print(&(safe_json(&line) + "\n"))
    } else {
        print(&text())
    }
}

/// Prints to standard output; whoever has stopped to read wants no more.
fn print(text: &str) -> Result<(), Fault> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fault::new("writing the answer").caused_by(&error))
        }
        _ => Ok(()),
    }
}
