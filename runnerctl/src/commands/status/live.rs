//! `status --watch`: prints a block or an object per change, one below the other.

use std::io::{self, IsTerminal as _};

use jsonrpsee::core::client::{Client, Error};
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::request::AtRun;
use tokio::signal::unix::{SignalKind, signal};

use super::snapshot::StatusSnapshot;
use crate::events::{DAEMON_AWAY, EventFeed, FeedSource, FeedUpdate};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::ui::Ui;

/// Hint for a user at a terminal that can show more.
const LIVE_HINT: &str = "Each change is printed below the previous one; full screen: runnerctl watch\n";

/// One run, or all repositories.
struct StatusSubject(Option<AtRun>);

impl FeedSource for StatusSubject {
    type View = StatusSnapshot;

    fn path(&self) -> Option<&WirePath> {
        self.0.as_ref().map(|at| &at.path)
    }

    async fn read(&self, client: &Client) -> Result<StatusSnapshot, Error> {
        match &self.0 {
            Some(at) => client.status(at.clone()).await.map(|status| StatusSnapshot::One(Box::new(status))),
            None => client.status_all().await.map(|all| StatusSnapshot::All(all, None)),
        }
    }
}

/// Prints the state whenever it changes, until Ctrl-C.
pub(super) async fn follow_status(invocation: &Invocation<'_>, at: Option<AtRun>) -> Result<ExitStatus, Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| Failure::io("listening for Ctrl-C", &error))?;
    let ui = invocation.ui;
    if io::stdout().is_terminal() && !ui.screen().is_plain {
        ui.print_note(LIVE_HINT);
    }
    let mut feed = EventFeed::open(invocation, StatusSubject(at)).await?;
    let mut last = None;
    loop {
        let update = tokio::select! {
            biased;
            _ = interrupt.recv() => return Ok(ExitStatus::Interrupted),
            news = feed.next() => news?,
        };
        match update {
            FeedUpdate::Event(_) => {}
            FeedUpdate::Lost => ui.print_note(&format!("{DAEMON_AWAY}\n")),
            FeedUpdate::Status(status) if last.as_ref() == Some(&*status) => {}
            FeedUpdate::Status(status) => {
                print_change(ui, &status, last.is_none())?;
                last = Some(*status);
            }
        }
    }
}

fn print_change(ui: &Ui, snapshot: &StatusSnapshot, is_first: bool) -> Result<(), Failure> {
    if ui.json {
        return snapshot.print_json();
    }
    let gap = if is_first { "" } else { "\n" };
    ui.print_text(&format!("{gap}{}", snapshot.render(&ui.screen())))
}
