//! `retry`: gives an exhausted node more attempts.

use clap::Args;
use protocol::api::TreeApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::{AtRun, RetryParams};

use crate::args::Target;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::change::changed;

const EXAMPLES: &str = "Examples:
  runnerctl retry root.2              as many as a new task has; then: resume
  runnerctl retry root.2 ~/proj       in another repository";

/// Give a stuck task a new set of attempts
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetryArgs {
    /// Node id, or a unique prefix
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    target: Target,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: RetryArgs) -> Result<ExitStatus, Failure> {
    let at = AtRun { path: invocation.place(args.target.place.path())?, run: args.target.run };
    let connection = invocation.connect().await?;
    let reply = connection.client().retry(RetryParams { at, node: args.node }).await;
    let reply = reply.map_err(|error| Failure::from(error).or_hint("runnerctl tree"))?;
    invocation.ui.answer("retry", &reply, |_| changed(&reply))?;
    Ok(ExitStatus::Fine)
}
