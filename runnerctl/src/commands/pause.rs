//! `pause`: stops a run after its current iteration, or at once.

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::{AtRun, PauseParams};

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::run::render_control;

const EXAMPLES: &str = "Examples:
  runnerctl pause          after the current iteration
  runnerctl pause --now    end the session; its work is committed";

/// Pause a run after its current iteration
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    target: RunTarget,
    /// End the session now and commit its work
    #[arg(long)]
    now: bool,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: PauseArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let AtRun { path, run } = args.target.resolve_one(invocation, connection.client()).await?;
    let reply = connection.client().pause(PauseParams { path, run, now: args.now }).await?;
    let pending = if args.now { "pauses when its session has ended" } else { "pauses after this iteration" };
    invocation.ui.print_answer("pause", &reply, |screen| render_control(&reply, pending, screen))?;
    Ok(ExitStatus::Success)
}
