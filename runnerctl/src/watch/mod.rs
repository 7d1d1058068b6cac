//! `watch`: the live full-screen view.
//!
//! A pure model ([`model`]) takes messages ([`message`]) and says what is to be done ([`update`], [`keys`]); a pure
//! [`view`] draws it; [`session`] is the loop that connects both with the daemon ([`daemon_link`], [`requests`]) and the
//! terminal ([`terminal`]). It knows what the daemon tells and no rule of a run.

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
    /// What its machine is called, where there are several.
    pub(crate) name: String,
    /// How it is reached.
    pub(crate) options: ConnectOptions,
    /// The connection, where one was made already.
    pub(crate) connection: Option<Connection>,
    /// The repository to begin with.
    pub(crate) selected: Option<String>,
    /// What the terminal can show.
    pub(crate) caps: TermCapabilities,
}

/// Shows the view on the terminal, beginning with the first daemon, until somebody leaves it.
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
