//! `reject`: rejects the finished node that awaits a person's review.

use clap::Args;
use protocol::api::ReviewApiClient as _;
use protocol::error::ExitStatus;
use protocol::review::RejectParams;
use protocol::words::ReviewVerdict;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::sign_review::{self, ReviewDecision};
use crate::text::review::render_review;

const EXAMPLES: &str = "Examples:
  runnerctl reject \"Untested input\"             shows what awaits you, and asks
  runnerctl reject \"Untested\" --iter 7          the iteration named by `status`
  runnerctl reject \"Untested\" tidy-1 --iter 7";

/// Reject the task awaiting your review
///
/// The rejection costs the task one attempt. The next session on the task reads your reason.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RejectArgs {
    /// What is missing, and what you expect; at most 8 KiB
    #[arg(value_name = "REASON")]
    reason: String,
    #[command(flatten)]
    target: RunTarget,
    /// Number of the iteration to review, as `status` names it [default: on a terminal, shows the task and asks]
    #[arg(long, value_name = "ITER")]
    iter: Option<u32>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: RejectArgs) -> Result<ExitStatus, Failure> {
    let RejectArgs { reason, target, iter } = args;
    let connection = invocation.connect().await?;
    target.refuse_run_as_text(invocation, connection.client(), &reason).await?;
    let at = target.resolve_one(invocation, connection.client()).await?;
    let decision = ReviewDecision { at: &at, iter, verdict: ReviewVerdict::Reject, reason: &reason };
    let params = |iteration, signature| RejectParams { at: at.clone(), iteration, reason: reason.clone(), signature };
    let request = async |iteration, signature| connection.client().reject(params(iteration, signature)).await;
    let reply = sign_review::send_decision(invocation.ui, &connection, decision, request).await?;
    invocation.ui.print_answer("review", &reply, |_| render_review(&reply))?;
    Ok(ExitStatus::Success)
}
