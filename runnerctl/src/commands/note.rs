//! `note`: leaves a note for the next session.

use std::path::PathBuf;

use clap::Args;
use protocol::api::NoteApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::{AtRun, NoteParams};

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::change::render_change;

const EXAMPLES: &str = "Examples:
  runnerctl note \"Use sqlx\"                   for the next session
  runnerctl note -m Careful /home/me/proj    in another repository";

/// Leave a note for the next session
///
/// The note is committed, immediately or when the current session ends. It is part of every prompt until a session has
/// answered, whose receipt names it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NoteArgs {
    /// The note, at most 8 KiB; with `--message`, PATH instead
    #[arg(value_name = "TEXT", required_unless_present = "message")]
    text: Option<String>,
    /// Any path in the repository [default: the current directory]
    #[arg(value_name = "PATH", conflicts_with = "message")]
    path: Option<PathBuf>,
    /// The note
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Id of the run, or its unambiguous beginning [default: the first in the queue, else the last]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: NoteArgs) -> Result<ExitStatus, Failure> {
    let (text, path) = match (args.message, args.text) {
        (Some(message), path) => (message, path.map(PathBuf::from)),
        (None, text) => (text.unwrap_or_default(), args.path),
    };
    let at = AtRun { path: invocation.daemon_path(path.as_deref())?, run: args.run };
    let reply = invocation.connect().await?.client().add_note(NoteParams { at, text }).await?;
    invocation.ui.print_answer("note", &reply, |_| render_change(&reply))?;
    Ok(ExitStatus::Success)
}
