//! `retry`: gives an exhausted node more attempts.

use clap::Args;
use protocol::api::TreeApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::RetryParams;

use super::resume::{self, ResumeArgs};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::change::render_change;

const EXAMPLES: &str = "Examples:
  runnerctl retry root.2              then: runnerctl resume
  runnerctl retry root.2 --resume     both in one step
  runnerctl retry root.2 ~/proj       in another repository";

/// Give a stuck task a new set of attempts
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetryArgs {
    /// Id of the task, or a unique prefix
    #[arg(value_name = "TASK")]
    node: String,
    #[command(flatten)]
    target: RunTarget,
    /// Also resume the run
    #[arg(long)]
    resume: bool,
    /// Confirm the commands in the repository's configuration
    #[arg(short, long, requires = "resume")]
    yes: bool,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: RetryArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = args.target.clone().resolve_one(invocation, connection.client()).await?;
    let reply = connection.client().retry(RetryParams { at, node: args.node }).await;
    let reply = reply.map_err(|error| Failure::from(error).or_hint("runnerctl tree"))?;
    invocation.ui.print_answer("retry", &reply, |_| render_change(&reply))?;
    if !args.resume {
        return Ok(ExitStatus::Success);
    }
    resume::run(invocation, ResumeArgs::for_target(args.target, args.yes)).await
}
