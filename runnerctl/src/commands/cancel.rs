//! `cancel`: ends a run; its branch and commits are kept.

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::AtRun;

use crate::args::RunTarget;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::run::render_control;

const EXAMPLES: &str = "Examples:
  runnerctl cancel                 the first run in the queue
  runnerctl cancel --run tidy-2    one waiting behind it";

/// Cancel a run; its branch and commits are kept
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    target: RunTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: CancelArgs) -> Result<ExitStatus, Failure> {
    let path = invocation.daemon_path(args.target.repo.path())?;
    let reply = invocation.connect().await?.client().cancel(AtRun { path, run: args.target.run }).await?;
    invocation
        .ui
        .print_answer("cancel", &reply, |screen| render_control(&reply, "ends when its session has ended", screen))?;
    Ok(ExitStatus::Success)
}
