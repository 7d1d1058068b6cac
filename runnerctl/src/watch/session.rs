//! The loop: news to the model, requests to the link, frames to the terminal.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use nix::libc::{SIGCONT, SIGTSTP};
use protocol::client::{ConnectOptions, Connection};
use protocol::error::ExitStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::{Instant, sleep_until};

use super::link::{Link, News};
use super::message::{Message, Request};
use super::model::Model;
use super::terminal::{FullScreen, listen};

/// News that may wait to be taken.
const INBOX: usize = 1024;
/// Shortest time between two frames: what happens in between is drawn together.
const FRAME: Duration = Duration::from_millis(40);
/// How often times that are shown go on.
const SECOND: Duration = Duration::from_secs(1);

/// A view under way.
struct Session {
    model: Model,
    link: Link,
    screen: FullScreen,
    is_dirty: bool,
}

/// Signals that end the view or take the terminal from it.
struct Signals {
    end: Signal,
    interrupt: Signal,
    hangup: Signal,
    stop: Signal,
    go_on: Signal,
}

/// What a signal asks for.
enum Told {
    End,
    Stop,
    GoOn,
}

/// Shows the view until somebody leaves it.
pub(super) async fn run(model: Model, options: ConnectOptions, connection: Connection) -> io::Result<ExitStatus> {
    let (to, inbox) = mpsc::channel(INBOX);
    let signals = Signals::listen()?;
    let screen = FullScreen::take()?;
    listen(to.clone())?;
    let link = Link::keep(options, connection, to);
    Session { model, link, screen, is_dirty: true }.run(inbox, signals).await
}

impl Session {
    async fn run(mut self, mut inbox: Receiver<News>, mut signals: Signals) -> io::Result<ExitStatus> {
        let (mut frame, mut tick) = (Instant::now(), Instant::now() + SECOND);
        loop {
            tokio::select! {
                biased;
                told = signals.next() => match told {
                    Told::End => return Ok(ExitStatus::Interrupted),
                    Told::Stop => self.suspend(false)?,
                    Told::GoOn => self.resume()?,
                },
                () = sleep_until(frame), if self.is_dirty => {
                    self.screen.draw(&self.model)?;
                    self.is_dirty = false;
                    frame = Instant::now() + FRAME;
                }
                () = sleep_until(tick), if self.model.needs_clock() => {
                    tick = Instant::now() + SECOND;
                    self.take(Message::Clock)?;
                }
                news = inbox.recv() => match news {
                    None | Some(News::Hangup) => return Ok(ExitStatus::Interrupted),
                    Some(News::Connected(connection)) => {
                        self.link.connected(connection);
                        self.take(Message::Linked)?;
                    }
                    Some(News::Message(message)) => if self.take(message)? {
                        return Ok(ExitStatus::Fine);
                    }
                },
            }
        }
    }

    /// Takes a message and does what is asked for then; returns whether that was to leave.
    fn take(&mut self, message: Message) -> io::Result<bool> {
        if matches!(message, Message::Lost(_)) {
            self.link.lost();
        }
        self.is_dirty = true;
        for request in self.model.update(Timestamp::now(), message) {
            match request {
                Request::Quit => return Ok(true),
                Request::Suspend => self.suspend(true)?,
                Request::Redraw => self.screen.forget()?,
                request => self.link.perform(request),
            }
        }
        Ok(false)
    }

    fn suspend(&mut self, group: bool) -> io::Result<()> {
        self.is_dirty = true;
        self.screen.suspend(group)
    }

    fn resume(&mut self) -> io::Result<()> {
        self.is_dirty = true;
        self.screen.resume()
    }
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            end: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            stop: signal(SignalKind::from_raw(SIGTSTP))?,
            go_on: signal(SignalKind::from_raw(SIGCONT))?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.end.recv() => Told::End,
            _ = self.interrupt.recv() => Told::End,
            _ = self.hangup.recv() => Told::End,
            _ = self.stop.recv() => Told::Stop,
            _ = self.go_on.recv() => Told::GoOn,
        }
    }
}
