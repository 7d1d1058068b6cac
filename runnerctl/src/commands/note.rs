//! `note`: leaves a note for the next session.

use std::path::PathBuf;

use clap::Args;
use protocol::api::NoteApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::NoteParams;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::change::render_change;

const EXAMPLES: &str = "Examples:
  runnerctl note \"Use sqlx\"                   for the next session
  runnerctl note -m Careful /home/me/proj    in another repository";

/// Leave a note for the next session
///
/// The note is committed, immediately or when the current session ends. It is in every prompt until a session returns a
/// result; the receipt of that session names it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NoteArgs {
    /// The note, at most 8 KiB; with `--message`, RUN or PATH instead
    #[arg(value_name = "TEXT", required_unless_present = "message")]
    text: Option<String>,
    #[command(flatten)]
    target: RunTarget,
    /// The note
    #[arg(short, long, value_name = "TEXT", conflicts_with = "target")]
    message: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: NoteArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let (text, target) = match (args.message, args.text) {
        (Some(message), word) => (message, RunTarget { target: word.map(PathBuf::from), ..args.target }),
        (None, text) => {
            let text = text.unwrap_or_default();
            args.target.refuse_run_as_text(invocation, connection.client(), &text).await?;
            (text, args.target)
        }
    };
    let at = target.resolve_one(invocation, connection.client()).await?;
    let reply = connection.client().add_note(NoteParams { at, text }).await?;
    invocation.ui.print_answer("note", &reply, |_| render_change(&reply))?;
    Ok(ExitStatus::Success)
}
