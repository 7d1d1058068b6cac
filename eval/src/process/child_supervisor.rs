//! The keeper: starts one program, waits until it exits or the line to the harness closes, and leaves nothing alive.
//!
//! It is this binary with another first argument. Standard input is the line: when it closes, because the harness wants
//! that or has died, the program is ended. Standard output and error are the program's. It exits with the program's
//! status.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::setsid;
use rustix::process::{Signal as Sent, WaitOptions, wait};
use supervisor::{table, walk};

/// First argument that makes this binary a keeper; the second is the grace period in milliseconds, followed by the
/// program.
pub(crate) const SUPERVISOR_COMMAND: &str = "__keep";
/// First argument that makes this binary the init process of a PID namespace, below a keeper.
pub(crate) const INIT_COMMAND: &str = "__keep-init";

/// Exit code of a keeper that could not start its program.
pub(super) const NOT_STARTED_EXIT: u8 = 126;
/// Time between two kill passes while killed processes are not yet gone.
const WALK_INTERVAL: Duration = Duration::from_millis(10);

enum SupervisorEvent {
    /// The program exited.
    Program(ExitStatus),
    /// No descendant of this process is left.
    AllGone,
    /// The line to the harness is closed.
    LifelineClosed,
}

/// `main` of a keeper.
pub(crate) fn supervisor_main() -> ExitCode {
    let mut words = env::args_os().skip(2);
    let grace = words.next().and_then(|word| word.to_str()?.parse().ok()).map(Duration::from_millis);
    let (Some(grace), Some(program)) = (grace, words.next()) else { return ExitCode::from(NOT_STARTED_EXIT) };
    match supervise(&program, words.collect(), grace) {
        Ok(status) => exit_code(status),
        Err(error) => report_start_failure(&program, &error),
    }
}

/// `main` of a namespace's init process: the kernel kills the other processes when it exits.
pub(crate) fn init_main() -> ExitCode {
    let mut words = env::args_os().skip(2);
    let Some(program) = words.next() else { return ExitCode::from(NOT_STARTED_EXIT) };
    let mut command = Command::new(&program);
    command.args(words).stdin(Stdio::null()).process_group(0);
    match command.spawn() {
        Ok(child) => exit_code(reap_until_exit(&child)),
        Err(error) => report_start_failure(&program, &error),
    }
}

fn supervise(program: &OsString, arguments: Vec<OsString>, grace: Duration) -> io::Result<ExitStatus> {
    // Ctrl-C on a terminal, and signals to the program's process group, must not reach the keeper.
    let _ = setsid();
    SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGPIPE]).thread_block()?;
    prctl::set_child_subreaper(true)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // A spawned program inherits this thread's signal mask, so start it from a thread without one.
    let child = thread::scope(|scope| {
        let start = scope.spawn(|| {
            SigSet::all().thread_unblock()?;
            command.spawn()
        });
        start.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked")))
    })?;
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    let (sender, events) = mpsc::channel();
    let lifeline = sender.clone();
    thread::spawn(move || watch_lifeline(&lifeline));
    thread::spawn(move || reap_children(pid, &sender));
    Ok(wait_until_empty(pid, &events, grace))
}

/// Waits for the first event, then until no process is left.
fn wait_until_empty(program: i32, events: &Receiver<SupervisorEvent>, grace: Duration) -> ExitStatus {
    let mut exit_status = None;
    match events.recv() {
        Ok(SupervisorEvent::Program(status)) => exit_status = Some(status),
        Ok(SupervisorEvent::LifelineClosed) if !grace.is_zero() => {
            if let Some(program) = table::entry(program) {
                walk::signal_process(&program, &[Sent::TERM]);
            }
            if let Ok(SupervisorEvent::Program(status)) = events.recv_timeout(grace) {
                exit_status = Some(status);
            }
        }
        _ => {}
    }
    loop {
        walk::kill_descendants();
        match events.recv_timeout(WALK_INTERVAL) {
            Ok(SupervisorEvent::Program(status)) => exit_status = Some(status),
            Ok(SupervisorEvent::AllGone) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Ok(SupervisorEvent::LifelineClosed) | Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
    exit_status.unwrap_or_else(|| ExitStatus::from_raw(Signal::SIGKILL as i32))
}

fn watch_lifeline(sender: &Sender<SupervisorEvent>) {
    let mut byte = [0];
    while matches!(io::stdin().read(&mut byte), Ok(1)) {}
    let _ = sender.send(SupervisorEvent::LifelineClosed);
}

/// Reaps every process that ends below this one: orphans become its children.
fn reap_children(program: i32, sender: &Sender<SupervisorEvent>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_pid() == program => {
                let _ = sender.send(SupervisorEvent::Program(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = sender.send(SupervisorEvent::AllGone);
}

/// Reaps orphans until the program exits.
fn reap_until_exit(child: &Child) -> ExitStatus {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if u32::try_from(pid.as_raw_pid()) == Ok(child.id()) => {
                return ExitStatus::from_raw(status.as_raw());
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return ExitStatus::from_raw(Signal::SIGKILL as i32),
        }
    }
}

/// Returns the exit code as shells report it, including signals.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

#[expect(clippy::print_stderr, reason = "standard error is the program's, which did not start")]
fn report_start_failure(program: &OsString, error: &io::Error) -> ExitCode {
    eprintln!("cannot be started: {}: {error}", program.display());
    ExitCode::from(NOT_STARTED_EXIT)
}
