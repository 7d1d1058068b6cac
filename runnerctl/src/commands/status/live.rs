//! `status --watch`: a block or an object per change, one below the other.

use std::io::{self, IsTerminal as _};

use jsonrpsee::core::client::{Client, Error};
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::request::AtRun;
use tokio::signal::unix::{SignalKind, signal};

use super::shown::Shown;
use crate::failure::Failure;
use crate::feed::{AWAY, Feed, News, Subject};
use crate::invocation::Invocation;
use crate::ui::Ui;

/// What a person at a terminal that can show more is told.
const LIVE: &str = "Each change is told below the one before; on the whole screen: runnerctl watch\n";

/// One run, or all repositories.
struct Followed(Option<AtRun>);

impl Subject for Followed {
    type View = Shown;

    fn path(&self) -> Option<&WirePath> {
        self.0.as_ref().map(|at| &at.path)
    }

    async fn read(&self, client: &Client) -> Result<Shown, Error> {
        match &self.0 {
            Some(at) => client.status(at.clone()).await.map(|status| Shown::One(Box::new(status))),
            None => client.status_all().await.map(|all| Shown::All(all, None)),
        }
    }
}

/// Shows a state whenever it changes, until Ctrl-C.
pub(super) async fn follow(invocation: &Invocation<'_>, at: Option<AtRun>) -> Result<ExitStatus, Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| Failure::io("listening for Ctrl-C", &error))?;
    let ui = invocation.ui;
    if io::stdout().is_terminal() && !ui.screen().is_plain {
        ui.note(LIVE);
    }
    let mut feed = Feed::open(invocation, Followed(at)).await?;
    let mut shown = None;
    loop {
        let news = tokio::select! {
            biased;
            _ = interrupt.recv() => return Ok(ExitStatus::Interrupted),
            news = feed.next() => news?,
        };
        match news {
            News::Event(_) => {}
            News::Lost => ui.note(&format!("{AWAY}\n")),
            News::Status(now) if shown.as_ref() == Some(&*now) => {}
            News::Status(now) => {
                print(ui, &now, shown.is_none())?;
                shown = Some(*now);
            }
        }
    }
}

fn print(ui: &Ui, shown: &Shown, is_first: bool) -> Result<(), Failure> {
    if ui.json {
        return shown.object();
    }
    let gap = if is_first { "" } else { "\n" };
    ui.text(&format!("{gap}{}", shown.text(&ui.screen())))
}
