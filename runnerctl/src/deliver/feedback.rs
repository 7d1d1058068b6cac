//! The course of feedback: what was told of a request is read, and the run is told what of it is new.

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

/// What a person wants to hear, and where it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeedbackCommand {
    /// A leaf for it, and not a note.
    pub(crate) add: bool,
    /// People without a say in the repository are heard too.
    pub(crate) anyone: bool,
    /// Only look.
    pub(crate) dry_run: bool,
}

/// Reads what was told of a run's request, and tells the run; returns how many comments were left out too.
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
    // The newest count: what was told before is known.
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
    /// Says how a run that is over hears of it: as the goal of the next one.
    fn hint_instead(self, run: &str) -> Self {
        let is_over = matches!(&self, Self::Report(report) if report.status == ExitStatus::Refused);
        let hint =
            format!("runnerctl deliver {run} --feedback --dry-run > feedback.md\nrunnerctl start --goal feedback.md");
        if is_over { self.or_hint(&hint) } else { self }
    }
}
