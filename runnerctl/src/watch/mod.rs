//! `watch`: the live full-screen view.
//!
//! A pure model ([`model`]) handles messages ([`message`]) and returns commands ([`update`], [`keys`]); a pure [`view`]
//! draws it; [`session`] is the loop that connects both with the daemon ([`daemon_link`], [`requests`]) and the
//! terminal ([`terminal`]). It shows what the daemon reports, and knows no rule of a run.

mod capabilities;
mod daemon_link;
mod entries;
#[cfg(test)]
mod fixtures;
mod keys;
mod machines;
mod message;
mod model;
mod reader;
mod requests;
mod scroll;
mod session;
mod single_flight;
mod steer;
mod steps;
mod tail;
mod terminal;
mod timeline;
mod tree_view;
mod update;
mod view;
mod wrap;

use protocol::client::{ConnectOptions, Connection};
use protocol::error::ExitStatus;

use self::capabilities::TermCapabilities;
use crate::failure::Failure;

/// A daemon whose repositories can be shown.
pub(crate) struct WatchedDaemon {
    /// The name of its machine, if there are several.
    pub(crate) name: String,
    /// How to connect to it.
    pub(crate) options: ConnectOptions,
    /// An existing connection, if there is one.
    pub(crate) connection: Option<Connection>,
    /// The repository to show first.
    pub(crate) selected: Option<String>,
    /// What the terminal can show.
    pub(crate) caps: TermCapabilities,
}

/// Shows the view on the terminal, beginning with the first daemon, until the user leaves it.
pub(crate) async fn run(daemons: Vec<WatchedDaemon>) -> Result<ExitStatus, Failure> {
    let failed = |error| Failure::io("drawing on the terminal", &error);
    let size = crossterm::terminal::size().map_err(failed)?;
    session::run(daemons, size).await.map_err(failed)
}

/// Returns what the terminal can show.
pub(crate) fn look(screen: crate::text::screen::Screen) -> TermCapabilities {
    let color = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    TermCapabilities { color, screen }
}
