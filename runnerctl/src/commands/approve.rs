//! `approve`: approves the finished node that awaits a person's review.

use clap::Args;
use protocol::api::ReviewApiClient as _;
use protocol::error::ExitStatus;
use protocol::review::ApproveParams;
use protocol::words::ReviewVerdict;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::sign_review::{self, ReviewDecision};
use crate::text::review::render_review;

const EXAMPLES: &str = "Examples:
  runnerctl approve                    shows what awaits you, and asks
  runnerctl approve --iter 7           the iteration that `status` names
  runnerctl approve tidy-1 --iter 7    one run of several";

/// Approve the task awaiting your review
///
/// With `by = "human"` under `[review]`, a run waits for you whenever an agent reports a task as done and the guard
/// passes. Your approval is a separate commit, and the run continues. If files have changed since, the guard runs again
/// first. With `sign = true`, your review is signed with the SSH key in git's `runner.reviewKey`, else with the key
/// that signs your commits.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    target: RunTarget,
    /// Number of the iteration to review, as `status` names it [default: on a terminal, shows the task and asks]
    #[arg(long, value_name = "ITER")]
    iter: Option<u32>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ApproveArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = args.target.resolve_one(invocation, connection.client()).await?;
    let decision = ReviewDecision { at: &at, iter: args.iter, verdict: ReviewVerdict::Accept, reason: "" };
    let params = |iteration, signature| ApproveParams { at: at.clone(), iteration, signature };
    let request = async |iteration, signature| connection.client().approve(params(iteration, signature)).await;
    let reply = sign_review::send_decision(invocation.ui, &connection, decision, request).await?;
    invocation.ui.print_answer("review", &reply, |_| render_review(&reply))?;
    Ok(ExitStatus::Success)
}
