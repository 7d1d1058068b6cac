//! Runs a program on its own terminal: its output is interpreted as a terminal would, and keys are typed into it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::{PATIENCE, processes};

/// A program and the terminal it runs on. It is killed on drop.
pub struct Tty {
    child: Child,
    terminal: File,
    /// The program's side, kept open: its modes are checked after the program has ended.
    program_side: OwnedFd,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl Tty {
    /// Starts a program with a controlling terminal of the given columns and rows.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be started.
    pub fn start(program: &Command, size: (u16, u16)) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let terminal = terminal.expect("a terminal can be made");
        grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("a terminal can be unlocked");
        let name = ptsname(&terminal, Vec::new()).expect("a terminal has a name");
        let name = name.into_string().expect("the name of a terminal is text");
        let program_side = File::options().read(true).write(true).open(&name).expect("a terminal can be opened");
        set_size(&terminal, size.0, size.1);
        let child = tty_command(&program_side, program).spawn().expect("the program can be started");
        let terminal = File::from(terminal);
        let output = spawn_reader(terminal.try_clone().expect("a terminal can be read"));
        let parser = vt100::Parser::new(nonzero_cells(size.1), nonzero_cells(size.0), 0);
        Self { child, terminal, program_side: program_side.into(), output, parser, bytes: Vec::new() }
    }

    /// Returns the process id.
    ///
    /// # Panics
    ///
    /// Panics if the process id does not fit an `i32`.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("BUG: a process id is an i32")
    }

    /// Types keys.
    ///
    /// # Panics
    ///
    /// Panics if the terminal does not accept them.
    pub fn keys(&mut self, keys: &str) -> &mut Self {
        self.terminal.write_all(keys.as_bytes()).expect("a terminal can be typed into");
        self
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, size: (u16, u16)) {
        self.parser.screen_mut().set_size(nonzero_cells(size.1), nonzero_cells(size.0));
        set_size(&self.terminal, size.0, size.1);
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        processes::send_signal(self.pid(), signal);
    }

    /// Returns the current content of the screen.
    pub fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// Returns all bytes written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub fn wait_for_text(&mut self, text: &str) -> String {
        self.wait_until_screen(text, |screen| screen.contains(text))
    }

    /// Waits until a text has disappeared from the screen.
    #[track_caller]
    pub fn wait_for_absence(&mut self, text: &str) -> String {
        self.wait_until_screen(text, |screen| !screen.contains(text))
    }

    /// Waits until the screen satisfies a condition, and returns it.
    ///
    /// # Panics
    ///
    /// Panics if it does not within [`PATIENCE`].
    #[track_caller]
    pub fn wait_until_screen(&mut self, description: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_wanted(&screen) {
                return screen;
            }
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.feed(&bytes),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("the screen does not become as wanted ({description}):\n{screen}")
                }
            }
        }
    }

    /// Whether the terminal is restored for a shell: line editing and echo are on, and the alternate screen is off.
    pub fn is_restored(&self) -> bool {
        let modes = tcgetattr(&self.program_side).expect("a terminal has modes").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO) && !self.parser.screen().alternate_screen()
    }

    /// Waits until the program has stopped itself.
    ///
    /// # Panics
    ///
    /// Panics if it ends instead.
    pub fn wait_stopped(&mut self) {
        let status = waitpid(Pid::from_raw(self.pid()), Some(WaitPidFlag::WUNTRACED)).expect("a child can be awaited");
        assert!(matches!(status, WaitStatus::Stopped(..)), "the program is not stopped: {status:?}");
        self.drain();
    }

    /// Waits for the program to end and returns its exit code; -1 if a signal ended it.
    ///
    /// # Panics
    ///
    /// Panics if it does not end within [`PATIENCE`].
    pub fn wait_exit(&mut self) -> i32 {
        assert!(processes::wait_gone(self.pid(), PATIENCE), "it is still running:\n{}", self.screen());
        let status = self.child.wait().expect("the program can be waited for");
        self.drain();
        status.code().unwrap_or(-1)
    }

    /// Processes everything that was written before this call.
    fn drain(&mut self) {
        // The marker travels the same way as the program's output, behind it.
        const MARK: &[u8] = b"\x1b]0;drained\x07";
        rustix::io::write(self.program_side.as_fd(), MARK).expect("a terminal can be written to");
        let ends = |bytes: &[u8]| bytes.windows(MARK.len()).any(|window| window == MARK);
        while !ends(&self.bytes[self.bytes.len().saturating_sub(64 * 1024)..]) {
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.feed(&bytes),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("the terminal says nothing any more"),
            }
        }
        self.bytes.truncate(self.bytes.len() - MARK.len());
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
        self.bytes.extend_from_slice(bytes);
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            processes::send_signal(self.pid(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// Returns a command that becomes `program` in a session whose controlling terminal is `program_side`.
fn tty_command(program_side: &File, program: &Command) -> Command {
    let handle = || program_side.try_clone().expect("a terminal can be shared");
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(program.get_program()).args(program.get_args()).env_clear();
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = program.get_current_dir() {
        command.current_dir(folder);
    }
    command.stdin(handle()).stdout(handle()).stderr(handle());
    command
}

fn nonzero_cells(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).expect("BUG: a terminal without cells")
}

fn set_size(terminal: impl std::os::fd::AsFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal can be sized");
}

/// Forwards everything written to the terminal, as it comes.
fn spawn_reader(mut terminal: File) -> Receiver<Vec<u8>> {
    let (sender, output) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(length @ 1..) = terminal.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    output
}
