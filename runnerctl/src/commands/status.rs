//! `status`: how far a repository's run is, or one line for every repository.

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::client::{CallError, Connection};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::request::AtRun;
use protocol::view::StatusView;
use serde::Serialize;

use crate::args::Target;
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::text::status::{detail, overview};

const EXAMPLES: &str = "Examples:
  runnerctl status              the repository around here, else all
  runnerctl status ~/proj --json
  runnerctl status --all        one line per repository";

/// Tell how far a run is, and why it stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    target: Target,
    /// One line per repository
    #[arg(long, conflicts_with_all = ["path", "run"])]
    all: bool,
}

#[derive(Serialize)]
struct Statuses<'a> {
    repos: &'a [StatusView],
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: StatusArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    if args.all {
        return everywhere(invocation, &connection).await;
    }
    let anywhere = args.target.place.path.is_none() && args.target.run.is_none();
    let path = invocation.place(args.target.place.path())?;
    let reply = connection.client().status(AtRun { path, run: args.target.run }).await;
    match reply.map_err(CallError::from) {
        Err(error) if anywhere && is_refusal(&error, ErrorKind::NotARepository) => {
            everywhere(invocation, &connection).await
        }
        reply => {
            let status = reply?;
            invocation.ui.answer("status", &status, |screen| detail(&status, screen))?;
            Ok(ExitStatus::Fine)
        }
    }
}

async fn everywhere(invocation: &Invocation<'_>, connection: &Connection) -> Result<ExitStatus, Failure> {
    let all = connection.client().status_all().await?;
    invocation.ui.answer("statuses", &Statuses { repos: &all }, |screen| overview(&all, screen))?;
    if all.is_empty() {
        invocation.ui.note("No repositories. Add one: runnerctl start PATH\n");
    }
    Ok(ExitStatus::Fine)
}
