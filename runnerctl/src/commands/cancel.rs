//! `cancel`: ends a run; its branch and commits are kept.

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::run::render_control;

const EXAMPLES: &str = "Examples:
  runnerctl cancel           the one run that has not ended
  runnerctl cancel tidy-2    one of several";

/// Cancel a run; its branch and commits are kept
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    target: RunTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: CancelArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = args.target.resolve_one(invocation, connection.client()).await?;
    let reply = connection.client().cancel(at).await?;
    let pending = if reply.already { "ending" } else { "ends when its session has ended" };
    invocation.ui.print_answer("cancel", &reply, |screen| render_control(&reply, pending, screen))?;
    Ok(ExitStatus::Success)
}
