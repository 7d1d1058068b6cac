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
  runnerctl approve                  the task that `status` names
  runnerctl approve /home/me/proj    in another repository
  runnerctl approve tidy-1           of one run of several";

/// Approve the task awaiting your review
///
/// With `by = "human"` under `[review]`, a run waits for you whenever an agent says that a task is done and the guard
/// passes. Approving it is a commit of its own, and the run continues. If files have changed since, the guard runs again
/// first. With `sign = true` your review is signed with the SSH key that git's runner.reviewKey names, or else the one that
/// your git signs with.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    target: RunTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ApproveArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = args.target.resolve(invocation, connection.client()).await?;
    let decision = ReviewDecision { at: &at, verdict: ReviewVerdict::Accept, reason: "" };
    let request = async |signature| connection.client().approve(ApproveParams { at: at.clone(), signature }).await;
    let reply = sign_review::send_decision(invocation.ui, &connection, decision, request).await?;
    invocation.ui.print_answer("review", &reply, |_| render_review(&reply))?;
    Ok(ExitStatus::Success)
}
