//! The loop: news to the model, requests to the link, frames to the terminal.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use nix::libc::{SIGCONT, SIGTSTP};
use protocol::error::ExitStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::{Instant, sleep_until};

use super::WatchedDaemon;
use super::daemon_link::{DaemonLink, InputSource, SessionInput};
use super::machines::{MachineSummary, turned};
use super::message::{Message, Request};
use super::model::Model;
use super::terminal::{FullScreen, listen};

/// News that may wait to be taken.
const INBOX: usize = 1024;
/// Shortest time between two frames: what happens in between is drawn together.
const FRAME: Duration = Duration::from_millis(40);
/// How often times that are shown go on.
const SECOND: Duration = Duration::from_secs(1);

/// A view under way: of each daemon what is known, whichever is shown.
struct WatchSession {
    views: Vec<DaemonState>,
    shown: usize,
    screen: FullScreen,
    is_dirty: bool,
}

/// What is known of one daemon.
struct DaemonState {
    name: String,
    model: Model,
    link: DaemonLink,
}

/// Signals that end the view or take the terminal from it.
struct WatchSignals {
    end: Signal,
    interrupt: Signal,
    hangup: Signal,
    stop: Signal,
    go_on: Signal,
}

/// What a signal asks for.
enum SignalAction {
    End,
    Stop,
    GoOn,
}

/// Shows the view until somebody leaves it.
pub(super) async fn run(openings: Vec<WatchedDaemon>, size: (u16, u16)) -> io::Result<ExitStatus> {
    let (to, inbox) = mpsc::channel(INBOX);
    let signals = WatchSignals::listen()?;
    let screen = FullScreen::take()?;
    listen(to.clone())?;
    let view = |(at, opening): (usize, WatchedDaemon)| DaemonState {
        model: Model::new(opening.look, size, opening.selected),
        link: DaemonLink::keep((opening.options, opening.connection), at, to.clone()),
        name: opening.name,
    };
    let views = openings.into_iter().enumerate().map(view).collect();
    WatchSession { views, shown: 0, screen, is_dirty: true }.run(inbox, signals).await
}

impl WatchSession {
    async fn run(
        mut self,
        mut inbox: Receiver<(InputSource, SessionInput)>,
        mut signals: WatchSignals,
    ) -> io::Result<ExitStatus> {
        let (mut frame, mut tick) = (Instant::now(), Instant::now() + SECOND);
        loop {
            tokio::select! {
                biased;
                told = signals.next() => match told {
                    SignalAction::End => return Ok(ExitStatus::Interrupted),
                    SignalAction::Stop => self.suspend(false)?,
                    SignalAction::GoOn => self.resume()?,
                },
                () = sleep_until(frame), if self.is_dirty => {
                    self.draw()?;
                    frame = Instant::now() + FRAME;
                }
                () = sleep_until(tick), if self.views[self.shown].model.needs_clock() => {
                    tick = Instant::now() + SECOND;
                    self.take(self.shown, Message::Clock)?;
                }
                news = inbox.recv() => match news {
                    None | Some((_, SessionInput::Hangup)) => return Ok(ExitStatus::Interrupted),
                    Some((from, news)) => if self.hear(from, news)? {
                        return Ok(ExitStatus::Fine);
                    }
                },
            }
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        if self.views.len() > 1 {
            let told =
                |(at, view): (usize, &DaemonState)| MachineSummary::of(&view.name, &view.model, at == self.shown);
            let machines = self.views.iter().enumerate().map(told).collect();
            self.views[self.shown].model.machines = machines;
        }
        self.is_dirty = false;
        self.screen.draw(&self.views[self.shown].model)
    }

    /// Takes what has come; returns whether somebody leaves.
    fn hear(&mut self, from: InputSource, news: SessionInput) -> io::Result<bool> {
        match (from, news) {
            (InputSource::Daemon(at), SessionInput::Connected(connection)) => {
                self.views[at].link.connected(connection);
                self.take(at, Message::Linked)
            }
            (InputSource::Daemon(at), SessionInput::Message(message)) => self.take(at, message),
            (InputSource::Terminal, SessionInput::Message(Message::Size(columns, rows))) => {
                for at in 0..self.views.len() {
                    self.take(at, Message::Size(columns, rows))?;
                }
                Ok(false)
            }
            (InputSource::Terminal, SessionInput::Message(message)) => self.take(self.shown, message),
            (InputSource::Terminal, SessionInput::Connected(_)) | (_, SessionInput::Hangup) => Ok(false),
        }
    }

    /// Has a daemon's view take a message and does what is asked for then; returns whether that was to leave.
    fn take(&mut self, at: usize, message: Message) -> io::Result<bool> {
        self.is_dirty = true;
        let view = &mut self.views[at];
        if matches!(message, Message::Lost(_)) {
            view.link.lost();
        }
        for request in view.model.update(Timestamp::now(), message) {
            match request {
                Request::Quit => return Ok(true),
                Request::Suspend => self.suspend(true)?,
                Request::Redraw => self.screen.forget()?,
                Request::Machine(by) => self.turn(by)?,
                request => self.views[at].link.perform(request),
            }
        }
        Ok(false)
    }

    /// Shows another machine, as of now.
    fn turn(&mut self, by: isize) -> io::Result<()> {
        self.shown = turned(self.shown, by, self.views.len());
        self.take(self.shown, Message::Clock).map(drop)
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

impl WatchSignals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            end: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            stop: signal(SignalKind::from_raw(SIGTSTP))?,
            go_on: signal(SignalKind::from_raw(SIGCONT))?,
        })
    }

    async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.end.recv() => SignalAction::End,
            _ = self.interrupt.recv() => SignalAction::End,
            _ = self.hangup.recv() => SignalAction::End,
            _ = self.stop.recv() => SignalAction::Stop,
            _ = self.go_on.recv() => SignalAction::GoOn,
        }
    }
}
