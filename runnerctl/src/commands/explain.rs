//! `explain`: explains why a leaf is next, and what each outcome of its session would lead to.

use clap::Args;
use protocol::api::TreeApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::AtRun;

use crate::args::RunTarget;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::explain::render_explanation;

const EXAMPLES: &str = "Examples:
  runnerctl explain                 of the first run in the queue, else HEAD
  runnerctl explain --run tidy-1    of a run's branch, wherever HEAD is
  runnerctl explain --json          with the commit subject of each outcome";

/// Explain why a leaf is next, and what each outcome would do
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    target: RunTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ExplainArgs) -> Result<ExitStatus, Failure> {
    let path = invocation.daemon_path(args.target.repo.path())?;
    let reply = invocation.connect().await?.client().explain(AtRun { path, run: args.target.run }).await?;
    invocation.ui.print_answer("explain", &reply, |screen| render_explanation(&reply, screen))?;
    Ok(ExitStatus::Success)
}
