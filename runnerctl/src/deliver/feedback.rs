//! Reads the feedback on a run's pull request, and passes on what is new to the run.

use protocol::api::DeliveryApiClient as _;
use protocol::client::Connection;
use protocol::delivery::{DescribeReply, FeedbackParams, FeedbackReply, MAX_FEEDBACK_ITEMS};
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::request::AtRun;

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
pub(crate) async fn hear(
    connection: &Connection,
    (path, described): (WirePath, &DescribeReply),
    hearing: FeedbackCommand,
) -> Result<(FeedbackReply, u32), Failure> {
    Delivery::refuse_at_work(described)?;
    let checkout = GitCheckout { folder: path.as_path().to_owned(), can_ask: false };
    let remote = checkout.remote(&described.remote).await?;
    let desk = ForgeCli::make()?;
    let forge = Forge::find(&desk, &remote.address, &described.command).await?;
    if let Forge::Own(_) | Forge::ByHand { .. } = forge {
        let message = "feedback can be read from GitHub and GitLab alone, by gh and glab";
        let hint = format!("runnerctl note --run {} TEXT", described.run);
        return Err(Failure::new(ExitStatus::Refused, "forge", message).hint(hint));
    }
    let PrState::Open(open) = forge.standing(&desk, &described.branch).await? else {
        let message = format!("there is no open {} of {}", forge.noun(), described.branch);
        let hint = format!("runnerctl deliver {}", described.run);
        return Err(Failure::new(ExitStatus::Refused, "not_found", message).hint(hint));
    };
    let ForgeFeedback { mut items, left_out } = forge.hear(&desk, &open, hearing.anyone).await?;
    // Keep the newest: earlier feedback is known already.
    items.drain(..items.len().saturating_sub(MAX_FEEDBACK_ITEMS));
    let params = FeedbackParams {
        at: AtRun { path, run: Some(described.run.clone()) },
        request: format!("{} {}, {}", forge.noun(), open.number, open.url),
        items,
        add: hearing.add,
        dry_run: hearing.dry_run,
    };
    let told = connection.client().feedback(params).await;
    told.map(|reply| (reply, left_out)).map_err(|error| Failure::from(error).hint_instead(&described.run))
}

impl Failure {
    /// Suggests how to use feedback for a run that is over: as the goal of the next one.
    fn hint_instead(self, run: &str) -> Self {
        let is_over = matches!(&self, Self::Report(report) if report.status == ExitStatus::Refused);
        let hint =
            format!("runnerctl deliver {run} --feedback --dry-run > feedback.md\nrunnerctl start --goal feedback.md");
        if is_over { self.or_hint(&hint) } else { self }
    }
}
