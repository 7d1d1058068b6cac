//! What to run, and what became of it: plain values.

use std::{ffi::OsString, io, path::PathBuf, time::Duration};

use protocol::words::Containment;
use runner_core::redact::Secrets;
use tokio::sync::mpsc;

use super::{StopPolicy, Mark, StillAlive};

/// Follows a program while it runs.
pub trait OutputFollower: Send + Sync {
    /// Takes the next bytes of a stream, secrets included; called only where the streams are kept apart.
    fn on_output(&mut self, stream: OutputStream, bytes: &[u8]);

    /// Says whether the answer that the program is to give is there; asked about twice a second, so it must be cheap.
    fn has_answered(&mut self) -> bool;
}

impl<T: OutputFollower + ?Sized> OutputFollower for &mut T {
    fn on_output(&mut self, stream: OutputStream, bytes: &[u8]) {
        (**self).on_output(stream, bytes);
    }

    fn has_answered(&mut self) -> bool {
        (**self).has_answered()
    }
}

/// One of the two streams that a program prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// One program to run.
pub struct ProgramSpec<'a> {
    /// Program and arguments. A program without `/` is searched in the `PATH` of [`env`](Self::env).
    pub argv: Vec<OsString>,
    /// Folder that it starts in.
    pub cwd: PathBuf,
    /// Its whole environment, but for the [`Mark`]: nothing is inherited from the daemon.
    pub env: Vec<(OsString, OsString)>,
    /// Bytes that it finds on its standard input, followed by the end. It need not read them.
    pub stdin: Vec<u8>,
    /// By which it and its descendants are found again after the daemon died; unique to this process.
    pub mark: Mark,
    /// File that the shim keeps locked as long as it lives.
    pub lock: PathBuf,
    /// Time that it has.
    pub limits: TimeLimits,
    /// Where its output goes.
    pub log: LogFile,
    /// Hears it; ends a program that stays after its answer is there ([`Ended::Lingered`]).
    pub follower: Option<Box<dyn OutputFollower + 'a>>,
    /// Takes standard output through a pipe of its own, so that nothing of standard error can get between its bytes. In
    /// the log both stand in the order in which they were read, which may differ from the order of writing.
    pub separates_output: bool,
    /// How it is asked to end.
    pub stop_policy: StopPolicy,
    /// Receives the output as it comes. A piece that finds the channel full is left out.
    pub output: Option<mpsc::Sender<OutputPiece>>,
    /// Denies privileges beyond the user's own, for good (`no_new_privs`): no `sudo`, and no rootless `podman`, whose
    /// helpers need them. Without it the program is in no user namespace either, which would deny them as well.
    pub no_new_privs: bool,
}

/// How long a program may take. All of it is measured in time since boot, so a machine's sleep counts.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// From the call to the kill. It is asked to end [`grace`](Self::grace) earlier.
    pub budget: Duration,
    /// Silence that ends it.
    pub idle: Option<Duration>,
    /// From the request to end to SIGKILL, inside the budget and at most half of it.
    pub grace: Duration,
}

/// A piece of output as it came, secrets included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    /// At most 8 KiB.
    pub bytes: Vec<u8>,
    /// Whether something between it and the piece before was left out.
    pub after_gap: bool,
}

/// A file that takes the output: all of it, or its beginning and its end with one line between that counts the rest.
#[derive(Debug, Clone)]
pub struct LogFile {
    /// Made anew; a file that is there is replaced.
    pub path: PathBuf,
    /// Bytes of output that it holds at most; a marker in the place of a secret may be longer than the secret.
    pub cap_bytes: u64,
    /// What must not be in it.
    pub secrets: Secrets,
}

/// Why a program is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal, which nobody here sent.
    Signaled(i32),
    /// The budget ran out.
    TimedOut,
    /// It printed nothing for too long.
    Silent,
    /// The caller wanted it stopped.
    Stopped,
    /// It had answered and stayed.
    Lingered,
    /// Its shim was killed; what was left was found by its mark and ended.
    SupervisorLost,
}

/// What became of a program.
#[derive(Debug)]
pub struct ProgramReport {
    /// Why it is over.
    pub end: ProgramEnd,
    /// Time from the call to the end of the last process, a machine's sleep included.
    pub elapsed: Duration,
    /// Time from the call until its answer was seen, if it was.
    pub answered: Option<Duration>,
    /// Bytes of output in the log.
    pub captured_bytes: u64,
    /// Bytes of output that the log leaves out.
    pub dropped_bytes: u64,
    /// Why the log is not complete, if the disk refused a part of it. The program was not held up.
    pub log_fault: Option<io::Error>,
    /// Processes, besides the program itself, that were left and had to be killed.
    pub survivors: u32,
    /// What could not be ended, so that nothing else may be started in its place.
    pub still_alive: Option<StillAlive>,
    /// Containment that was in force.
    pub containment: Containment,
}

impl TimeLimits {
    /// A grace as long as the budget would end a program as soon as it starts.
    pub(super) fn with_bounded_grace(self) -> Self {
        Self { grace: self.grace.min(self.budget / 2), ..self }
    }
}

impl ProgramReport {
    pub(super) fn not_started(end: ProgramEnd) -> Self {
        Self {
            end,
            elapsed: Duration::ZERO,
            answered: None,
            captured_bytes: 0,
            dropped_bytes: 0,
            log_fault: None,
            survivors: 0,
            still_alive: None,
            containment: Containment::Walk,
        }
    }
}
