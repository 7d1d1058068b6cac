//! `status`: how far a repository's run is, or one line for every repository; once, or whenever it changes.

mod live;
mod shown;

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::client::CallError;
use protocol::error::{ErrorKind, ExitStatus};
use protocol::request::AtRun;

use self::shown::Shown;
use crate::args::Target;
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;

const EXAMPLES: &str = "Examples:
  runnerctl status              the repository around here, else all
  runnerctl status ~/proj --json
  runnerctl status --all        one line per repository
  runnerctl status --watch      in the same place, whenever something changes
  runnerctl status --all --watch --json    an object per change, on a line";

/// Tell how far a run is, and why it stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    target: Target,
    /// One line per repository
    #[arg(long, conflicts_with_all = ["path", "run"])]
    all: bool,
    /// Stay, and show it again whenever it changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: StatusArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let client = connection.client();
    let anywhere = args.target.place.path.is_none() && args.target.run.is_none();
    let one = if args.all {
        None
    } else {
        let at = AtRun { path: invocation.place(args.target.place.path())?, run: args.target.run };
        match client.status(at.clone()).await.map_err(CallError::from) {
            Ok(status) => Some((at, status)),
            Err(error) if anywhere && is_refusal(&error, ErrorKind::NotARepository) => None,
            Err(error) => return Err(error.into()),
        }
    };
    match (one, args.watch) {
        (one, true) => live::follow(invocation, one.map(|(at, _)| at)).await,
        (Some((_, status)), false) => shown::answer(invocation.ui, &Shown::One(Box::new(status))),
        (None, false) => shown::answer(invocation.ui, &Shown::All(client.status_all().await?)),
    }
}
