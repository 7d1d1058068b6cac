//! The terminal: set up for the full-screen view, and restored in every case.

use std::io::{self, BufWriter, Stdout, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{execute, queue};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use tokio::sync::mpsc::Sender;

use super::daemon_link::{InputSource, SessionInput};
use super::message::{Key, Message};
use super::model::Model;
use super::view::draw_view;

/// Whether the terminal's settings differ from the shell's.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal in full-screen mode; it is restored on drop, and on any panic.
pub(crate) struct FullScreen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl FullScreen {
    /// Sets up the terminal.
    pub(crate) fn acquire() -> io::Result<Self> {
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())))?;
        let previous_hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore_terminal();
            previous_hook(info);
        }));
        let mut screen = Self { terminal };
        screen.activate()?;
        Ok(screen)
    }

    fn activate(&mut self) -> io::Result<()> {
        IS_TAKEN.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(self.terminal.backend_mut(), EnterAlternateScreen, EnableBracketedPaste)?;
        self.force_redraw()
    }

    /// Draws the changes, in one synchronized update if the terminal supports that.
    pub(crate) fn draw(&mut self, model: &Model) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| draw_view(model, frame))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Makes the next draw redraw everything.
    pub(crate) fn force_redraw(&mut self) -> io::Result<()> {
        // `clear` would query the cursor's position, and the reply would be mixed with the keys.
        self.terminal.resize(Rect::from(self.terminal.size()?))
    }

    /// Restores the terminal and stops, as Ctrl-Z does, until the shell continues this program.
    ///
    /// With `group`, all processes in the foreground group stop too, as they would for a Ctrl-Z that the terminal
    /// handles.
    pub(crate) fn suspend(&mut self, group: bool) -> io::Result<()> {
        restore_terminal();
        let whom = if group { Pid::from_raw(0) } else { Pid::this() };
        kill(whom, Signal::SIGSTOP)?;
        self.resume()
    }

    /// Sets up the terminal again: its settings may have been restored while this program was stopped.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        disable_raw_mode()?;
        self.activate()
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Restores the terminal; errors cannot be reported any more.
fn restore_terminal() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(out, DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = out.flush();
    }
}

/// Sends typed input from its own thread, because reading a terminal blocks.
pub(crate) fn spawn_input_thread(sender: Sender<(InputSource, SessionInput)>) -> io::Result<()> {
    let listen = move || {
        loop {
            let input = match crossterm::event::read() {
                Ok(event) => match to_message(event) {
                    Some(message) => SessionInput::Message(message),
                    None => continue,
                },
                Err(_) => SessionInput::Hangup,
            };
            let is_last = matches!(input, SessionInput::Hangup);
            if sender.blocking_send((InputSource::Terminal, input)).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".into()).spawn(listen).map(drop)
}

fn to_message(event: Event) -> Option<Message> {
    match event {
        Event::Resize(columns, rows) => Some(Message::Size(columns, rows)),
        Event::Paste(text) => Some(Message::Paste(text)),
        Event::Key(key) if key.kind != KeyEventKind::Release => to_key(key.code, key.modifiers).map(Message::Key),
        _ => None,
    }
}

fn to_key(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
    Some(match code {
        KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => Key::Ctrl(c),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}
