//! `pause`: stops a run after its current iteration, or at once.

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::PauseParams;

use crate::args::RunTarget;
use crate::failure::Failure;
use crate::invocation::Invocation;
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
    let path = invocation.daemon_path(args.target.repo.path())?;
    let params = PauseParams { path, run: args.target.run, now: args.now };
    let reply = invocation.connect().await?.client().pause(params).await?;
    let pending = if args.now { "pauses when its session has ended" } else { "pauses after this iteration" };
    invocation.ui.print_answer("pause", &reply, |screen| render_control(&reply, pending, screen))?;
    Ok(ExitStatus::Success)
}
