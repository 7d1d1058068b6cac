//! The main loop: messages to the model, requests to the link, frames to the terminal.

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
use super::machines::{MachineSummary, rotate_index};
use super::message::{Message, Request};
use super::model::Model;
use super::terminal::{FullScreen, spawn_input_thread};

/// Capacity of the message queue.
const INBOX_CAPACITY: usize = 1024;
/// Minimum time between two frames: changes in between are drawn together.
const FRAME_TIME: Duration = Duration::from_millis(40);
/// How often displayed times are updated.
const SECOND: Duration = Duration::from_secs(1);

/// A running view, with the state of each daemon, shown or not.
struct WatchSession {
    daemons: Vec<DaemonState>,
    shown_index: usize,
    screen: FullScreen,
    is_dirty: bool,
}

/// The state of one daemon.
struct DaemonState {
    name: String,
    model: Model,
    link: DaemonLink,
}

/// Signals that end the view or suspend it.
struct WatchSignals {
    end: Signal,
    interrupt: Signal,
    hangup: Signal,
    stop: Signal,
    resume: Signal,
}

/// The effect of a signal.
enum SignalAction {
    Quit,
    Suspend,
    Resume,
}

/// Shows the view until the user leaves it.
pub(super) async fn run(daemons: Vec<WatchedDaemon>, size: (u16, u16)) -> io::Result<ExitStatus> {
    let (sender, inbox) = mpsc::channel(INBOX_CAPACITY);
    let signals = WatchSignals::listen()?;
    let screen = FullScreen::acquire()?;
    spawn_input_thread(sender.clone())?;
    let to_state = |(at, opening): (usize, WatchedDaemon)| DaemonState {
        model: Model::new(opening.caps, size, opening.selected),
        link: DaemonLink::spawn(opening.options, opening.connection, at, sender.clone()),
        name: opening.name,
    };
    let views = daemons.into_iter().enumerate().map(to_state).collect();
    WatchSession { daemons: views, shown_index: 0, screen, is_dirty: true }.run(inbox, signals).await
}

impl WatchSession {
    async fn run(
        mut self,
        mut inbox: Receiver<(InputSource, SessionInput)>,
        mut signals: WatchSignals,
    ) -> io::Result<ExitStatus> {
        let mut frame = Instant::now();
        let mut tick = Instant::now() + SECOND;
        loop {
            tokio::select! {
                biased;
                action = signals.recv() => match action {
                    SignalAction::Quit => return Ok(ExitStatus::Interrupted),
                    SignalAction::Suspend => self.suspend(false)?,
                    SignalAction::Resume => self.resume()?,
                },
                () = sleep_until(frame), if self.is_dirty => {
                    self.draw()?;
                    frame = Instant::now() + FRAME_TIME;
                }
                () = sleep_until(tick), if self.daemons[self.shown_index].model.needs_clock() => {
                    tick = Instant::now() + SECOND;
                    self.update_model(self.shown_index, Message::Tick)?;
                }
                input = inbox.recv() => match input {
                    None | Some((_, SessionInput::Hangup)) => return Ok(ExitStatus::Interrupted),
                    Some((from, news)) => if self.handle_input(from, news)? {
                        return Ok(ExitStatus::Success);
                    }
                },
            }
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        if self.daemons.len() > 1 {
            let summarize = |(at, view): (usize, &DaemonState)| {
                MachineSummary::from_model(&view.name, &view.model, at == self.shown_index)
            };
            let machines = self.daemons.iter().enumerate().map(summarize).collect();
            self.daemons[self.shown_index].model.machines = machines;
        }
        self.is_dirty = false;
        self.screen.draw(&self.daemons[self.shown_index].model)
    }

    /// Handles all received messages; returns whether the user leaves.
    fn handle_input(&mut self, from: InputSource, input: SessionInput) -> io::Result<bool> {
        match (from, input) {
            (InputSource::Daemon(at), SessionInput::Connected(connection)) => {
                self.daemons[at].link.set_connection(connection);
                self.update_model(at, Message::Connected)
            }
            (InputSource::Daemon(at), SessionInput::Message(message)) => self.update_model(at, message),
            (InputSource::Terminal, SessionInput::Message(Message::Size(columns, rows))) => {
                for at in 0..self.daemons.len() {
                    self.update_model(at, Message::Size(columns, rows))?;
                }
                Ok(false)
            }
            (InputSource::Terminal, SessionInput::Message(message)) => self.update_model(self.shown_index, message),
            (InputSource::Terminal, SessionInput::Connected(_)) | (_, SessionInput::Hangup) => Ok(false),
        }
    }

    /// Passes a message to a daemon's model and carries out its commands; returns whether one of them was to exit.
    fn update_model(&mut self, at: usize, message: Message) -> io::Result<bool> {
        self.is_dirty = true;
        let view = &mut self.daemons[at];
        if matches!(message, Message::Lost(_)) {
            view.link.clear_connection();
        }
        for request in view.model.update(Timestamp::now(), message) {
            match request {
                Request::Quit => return Ok(true),
                Request::Suspend => self.suspend(true)?,
                Request::Redraw => self.screen.force_redraw()?,
                Request::SwitchMachine(by) => self.switch_machine(by)?,
                request => self.daemons[at].link.send_request(request),
            }
        }
        Ok(false)
    }

    /// Shows another machine, with the current time.
    fn switch_machine(&mut self, by: isize) -> io::Result<()> {
        self.shown_index = rotate_index(self.shown_index, by, self.daemons.len());
        self.update_model(self.shown_index, Message::Tick).map(drop)
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
            resume: signal(SignalKind::from_raw(SIGCONT))?,
        })
    }

    async fn recv(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.end.recv() => SignalAction::Quit,
            _ = self.interrupt.recv() => SignalAction::Quit,
            _ = self.hangup.recv() => SignalAction::Quit,
            _ = self.stop.recv() => SignalAction::Suspend,
            _ = self.resume.recv() => SignalAction::Resume,
        }
    }
}
