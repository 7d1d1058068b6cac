//! `approve`: passes the finished node that waits for a person.

use clap::Args;
use protocol::api::ReviewApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::AtRun;

use crate::args::Target;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::review::reviewed;

const EXAMPLES: &str = "Examples:
  runnerctl approve                  the node that `status` names passes
  runnerctl approve /home/me/proj    in another repository
  runnerctl approve --run tidy-1";

/// Pass the finished node that waits for you
///
/// With `by = "human"` under `[review]`, a run waits when a session has claimed a node and the guard has passed it. The
/// node passes in a commit of its own, and the run goes on. Where files have changed since, the guard runs once more first.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    target: Target,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ApproveArgs) -> Result<ExitStatus, Failure> {
    let Target { place, run } = args.target;
    let at = AtRun { path: invocation.place(place.path())?, run };
    let reply = invocation.connect().await?.client().approve(at).await?;
    invocation.ui.answer("review", &reply, |_| reviewed(&reply))?;
    Ok(ExitStatus::Fine)
}
