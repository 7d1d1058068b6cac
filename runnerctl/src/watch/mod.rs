//! `watch`: the live full-screen view.
//!
//! A pure model ([`model`]) takes messages ([`message`]) and says what is to be done ([`update`], [`keys`]); a pure
//! [`view`] draws it; [`session`] is the loop that connects both with the daemon ([`link`], [`requests`]) and the
//! terminal ([`terminal`]). It knows what the daemon tells and no rule of a run.

mod entries;
mod flight;
mod forest;
mod keys;
mod link;
mod look;
mod message;
mod model;
mod reader;
mod requests;
mod scroll;
mod session;
#[cfg(test)]
mod stage;
mod steer;
mod steps;
mod tail;
mod terminal;
mod timeline;
mod update;
mod view;
mod wrap;

use protocol::client::{ConnectOptions, Connection};
use protocol::error::ExitStatus;

use self::look::Look;
use self::model::Model;
use crate::failure::Failure;

/// Shows the view on the terminal, beginning with a repository, until somebody leaves it.
pub(crate) async fn show(
    options: ConnectOptions,
    connection: Connection,
    selected: Option<String>,
    look: Look,
) -> Result<ExitStatus, Failure> {
    let failed = |error| Failure::io("drawing on the terminal", &error);
    let size = crossterm::terminal::size().map_err(failed)?;
    session::run(Model::new(look, size, selected), options, connection).await.map_err(failed)
}

/// Returns what the terminal can show.
pub(crate) fn look(screen: crate::text::screen::Screen) -> Look {
    let color = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    Look { color, screen }
}
