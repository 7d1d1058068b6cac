//! What to run, and its result: plain values.

use std::{ffi::OsString, io, path::PathBuf, time::Duration};

use protocol::words::Containment;
use runner_core::text::redact::Secrets;
use tokio::sync::mpsc;

use super::{Mark, StillAlive, StopPolicy};

/// Follows the output of a program while it runs.
pub trait OutputFollower: Send + Sync {
    /// Takes the next bytes of a stream, secrets included; called only if the streams are split.
    fn on_output(&mut self, stream: OutputStream, bytes: &[u8]);

    /// Whether the program has given its answer; called about twice a second, so it must be cheap.
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
    /// The folder in which it starts.
    pub cwd: PathBuf,
    /// Its whole environment, except for the [`Mark`]: nothing is inherited from the daemon.
    pub env: Vec<(OsString, OsString)>,
    /// The content of its standard input. The program need not read it.
    pub stdin: Vec<u8>,
    /// The mark by which it and its descendants are found if the daemon dies; unique to this process.
    pub mark: Mark,
    /// File that the shim keeps locked while it is running.
    pub lock: PathBuf,
    /// Its time limits.
    pub limits: TimeLimits,
    /// Where its output goes.
    pub log: LogFile,
    /// Follows its output; ends a program that keeps running after its answer ([`ProgramEnd::Lingered`]).
    pub follower: Option<Box<dyn OutputFollower + 'a>>,
    /// Reads standard output through a separate pipe, so that standard error cannot get between its bytes. The log has
    /// both in the order in which they were read, which may differ from the order of writing.
    pub separates_output: bool,
    /// How it is asked to exit.
    pub stop_policy: StopPolicy,
    /// Receives the output as it is printed. A piece is dropped if the channel is full.
    pub output: Option<mpsc::Sender<OutputPiece>>,
    /// Denies privileges beyond the user's own, for good (`no_new_privs`): no `sudo`, and no rootless `podman`, whose
    /// helpers need them. If false, the program is not put in a user namespace either, which would deny them as well.
    pub no_new_privs: bool,
}

/// How long a program may take. All of it is measured in time since boot, so a machine's sleep counts.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// Time from the call to the kill. The program is asked to exit [`grace`](Self::grace) earlier.
    pub budget: Duration,
    /// The longest silence before it is ended; `None` for no limit.
    pub idle: Option<Duration>,
    /// Time from the request to exit to SIGKILL, within the budget and at most half of it.
    pub grace: Duration,
}

/// A piece of output as printed, secrets included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    /// At most 8 KiB.
    pub bytes: Vec<u8>,
    /// Whether output was dropped between the previous piece and this one.
    pub after_gap: bool,
}

/// A log file: all of the output, or its beginning and its end with one line between them that counts the rest.
#[derive(Debug, Clone)]
pub struct LogFile {
    /// Its path; an existing file is replaced.
    pub path: PathBuf,
    /// Limit on the bytes of output in it; a marker in the place of a secret may be longer than the secret.
    pub cap_bytes: u64,
    /// Secrets to redact.
    pub secrets: Secrets,
}

/// Why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal, which was not sent from here.
    Signaled(i32),
    /// The budget ran out.
    TimedOut,
    /// It printed nothing for too long.
    Silent,
    /// The caller cancelled it.
    Stopped,
    /// It kept running after its answer.
    Lingered,
    /// Its shim was killed; what was left was found by its mark and killed.
    SupervisorLost,
}

/// The result of running a program.
#[derive(Debug)]
pub struct ProgramReport {
    /// Why it ended.
    pub end: ProgramEnd,
    /// Time from the call to the end of the last process, including a machine's sleep.
    pub elapsed: Duration,
    /// Time from the call until its answer was seen; `None` if it gave none.
    pub answered: Option<Duration>,
    /// Bytes of output in the log.
    pub captured_bytes: u64,
    /// Bytes of output that the log leaves out.
    pub dropped_bytes: u64,
    /// Why the log is incomplete, if the disk refused a part of it. The program was not blocked.
    pub log_fault: Option<io::Error>,
    /// Number of processes, in addition to the program itself, that were left and had to be killed.
    pub survivors: u32,
    /// What could not be killed; until it is gone, no other program may be started in its place.
    pub still_alive: Option<StillAlive>,
    /// The containment that was in force.
    pub containment: Containment,
}

impl TimeLimits {
    /// Limits the grace to half the budget: one as long as the budget would end a program as soon as it starts.
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
