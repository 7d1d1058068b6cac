//! Reads the feedback on a run's pull request, and passes on what is new to the run.

use protocol::api::DeliveryApiClient as _;
use protocol::client::Connection;
use protocol::delivery::{DescribeReply, FeedbackParams, FeedbackReply, MAX_FEEDBACK_ITEMS};
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::request::AtRun;
use protocol::shell;

use super::checkout::GitCheckout;
use super::delivery::Delivery;
use super::forge::{Forge, ForgeFeedback, PrState};
use super::forge_cli::ForgeCli;
use crate::failure::Failure;

/// Options of `deliver --feedback`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeedbackCommand {
    /// Add a leaf instead of a note.
    pub(crate) add: bool,
    /// Include people without write access to the repository.
    pub(crate) anyone: bool,
    /// Only show the feedback.
    pub(crate) dry_run: bool,
}

/// Reads the feedback on a run's pull request and passes it to the run; also returns the number of omitted comments.
pub(crate) async fn send_feedback(
    connection: &Connection,
    path: WirePath,
    description: &DescribeReply,
    command: FeedbackCommand,
) -> Result<(FeedbackReply, u32), Failure> {
    Delivery::refuse_at_work(description)?;
    let checkout = GitCheckout { folder: path.as_path().to_owned(), can_ask: false };
    let remote = checkout.find_remote(&description.remote).await?;
    let cli = ForgeCli::create()?;
    let forge = Forge::find(&cli, &remote.address, &description.command).await?;
    if let Forge::Custom(_) | Forge::Manual { .. } = forge {
        let message = "feedback can be read from GitHub and GitLab alone, by gh and glab";
        let hint = format!("runnerctl note --run {} TEXT", description.run);
        return Err(Failure::new(ExitStatus::Refused, "forge", message).hint(hint));
    }
    let PrState::Open(pr) = forge.find_pr(&cli, &description.branch).await? else {
        let message = format!("there is no open {} of {}", forge.request_noun(), description.branch);
        let hint = format!("runnerctl deliver {}", description.run);
        return Err(Failure::new(ExitStatus::Refused, "not_found", message).hint(hint));
    };
    let ForgeFeedback { mut items, skipped } = forge.read_feedback(&cli, &pr, command.anyone).await?;
    // Keep the newest: earlier feedback is known already.
    items.drain(..items.len().saturating_sub(MAX_FEEDBACK_ITEMS));
    let params = FeedbackParams {
        at: AtRun { path, run: Some(description.run.clone()) },
        request: format!("{} {}, {}", forge.request_noun(), pr.number, pr.url),
        items,
        add: command.add,
        dry_run: command.dry_run,
    };
    let reply = connection.client().feedback(params).await;
    reply.map(|reply| (reply, skipped)).map_err(|error| Failure::from(error).or_feedback_hint(&description.run))
}

impl Failure {
    /// Suggests what to do with feedback for a run that is over: it becomes the goal of the next one.
    fn or_feedback_hint(self, run: &str) -> Self {
        let is_over = matches!(&self, Self::Report(report) if report.status == ExitStatus::Refused);
        let hint = shell::join_args(["runnerctl", "deliver", run, "--feedback", "--start"]);
        if is_over { self.or_hint(&hint) } else { self }
    }
}
