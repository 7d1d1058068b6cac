//! `explain`: explains why a leaf is next, and what each outcome of its session would lead to.

use clap::Args;
use protocol::api::TreeApiClient as _;
use protocol::error::ExitStatus;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::explain::render_explanation;

const EXAMPLES: &str = "Examples:
  runnerctl explain           of the one run that has not ended, else HEAD
  runnerctl explain tidy-1    of a run's branch, wherever HEAD is
  runnerctl explain --json    with the commit subject of each outcome";

/// Explain why a task is next, and the effect of each outcome
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    target: RunTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ExplainArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = args.target.resolve_one(invocation, connection.client()).await?;
    let reply = connection.client().explain(at).await?;
    invocation.ui.print_answer("explain", &reply, |screen| render_explanation(&reply, screen))?;
    Ok(ExitStatus::Success)
}
