//! The harness's side of a keeper: starts it, reads its streams within limits, and ends it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;
use supervisor::{table, walk};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{INIT_COMMAND, SUPERVISOR_COMMAND};
use crate::error::EvalError;

/// Bytes of a stream that are kept, half from the start and half from the end.
const MAX_STREAM_BYTES: usize = 50 * 1024;
/// Environment variable by which the processes of a killed keeper are found.
const MARK_VARIABLE: &str = "RUNNER_EVAL_MARK";
/// Maximum number of scans for processes of a killed keeper.
const MAX_WALKS: u32 = 100;
/// Consecutive scans that must find nothing: a process that is just executing another program shows no environment for
/// a moment.
const QUIET_WALKS: u32 = 3;
/// Time between two scans.
const WALK_INTERVAL: Duration = Duration::from_millis(10);
/// If a process holds a stream longer than this after the end, scan again for it, up to the maximum number of scans.
const STREAM_LIMIT: Duration = Duration::from_millis(200);
const MAX_STREAM_SWEEPS: u32 = 20;

/// A program to start.
#[derive(Debug)]
pub(crate) struct ProcessSpec<'a> {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) folder: &'a Path,
    /// Its whole environment.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// Time between SIGTERM and SIGKILL; zero kills at once.
    pub(crate) grace: Duration,
    /// Whether it gets a PID namespace, if the machine supports them.
    pub(crate) isolated: bool,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// It exited with this code; signals are 128 plus their number.
    Exited(i32),
    /// It ran out of time.
    TimedOut,
    /// The harness was interrupted.
    Stopped,
    /// Its keeper was killed; the remaining processes were found and killed.
    SupervisorLost,
}

/// Output of a program and how it ended.
#[derive(Debug)]
pub(crate) struct CapturedOutput {
    pub(crate) ended: ProcessEnd,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// A program under its keeper; on drop the program is ended.
#[derive(Debug)]
pub(crate) struct ManagedProcess {
    supervisor: Child,
    lifeline: Option<ChildStdin>,
    mark: String,
}

impl ManagedProcess {
    /// Starts a program with pipes for its streams.
    pub(crate) fn start(spec: &ProcessSpec<'_>) -> Result<Self, EvalError> {
        Self::start_with(spec, Stdio::piped(), Stdio::piped())
    }

    /// Starts a program whose output goes to this process's standard error.
    pub(crate) fn start_inherited(spec: &ProcessSpec<'_>) -> Result<Self, EvalError> {
        Self::start_with(spec, std::io::stderr().into(), Stdio::inherit())
    }

    /// Starts a program with the given streams.
    pub(crate) fn start_with(spec: &ProcessSpec<'_>, stdout: Stdio, stderr: Stdio) -> Result<Self, EvalError> {
        let failed = |error| EvalError::new(format!("starting {}", spec.program.display())).caused_by(&error);
        let own = this_program()?;
        let mark = unique_mark();
        let mut command = Command::new(&own);
        command.arg(SUPERVISOR_COMMAND).arg(spec.grace.as_millis().to_string());
        if spec.isolated
            && let Some(walls) = namespace_command()
        {
            command.args(walls).arg(&own).arg(INIT_COMMAND);
        }
        command.arg(&spec.program).args(&spec.arguments).current_dir(spec.folder);
        command.env_clear().envs(spec.env).env(MARK_VARIABLE, &mark);
        command.stdin(Stdio::piped()).stdout(stdout).stderr(stderr);
        let mut supervisor = command.spawn().map_err(failed)?;
        let lifeline = supervisor.stdin.take();
        Ok(Self { supervisor, lifeline, mark })
    }

    /// Takes the program's standard output; `None` after the first call.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.supervisor.stdout.take()
    }

    /// Ends the program by closing the line to its keeper.
    pub(crate) fn end(&mut self) {
        self.lifeline = None;
    }

    /// Waits until the program and everything it has started are gone; returns how the program ended.
    pub(crate) async fn wait(&mut self) -> ProcessEnd {
        let status = self.supervisor.wait().await;
        if let Ok(Some(code)) = status.map(|status| status.code()) {
            return ProcessEnd::Exited(code);
        }
        // Only the program itself, or a person, can have signaled the keeper.
        self.kill_leftovers().await;
        ProcessEnd::SupervisorLost
    }

    /// Kills the program if its keeper is gone and it hides its environment, so that it cannot be found by that.
    pub(crate) fn kill_directly(pid: u32) {
        if let Some(process) = i32::try_from(pid).ok().and_then(table::entry) {
            walk::signal_process(&process, &[Signal::KILL]);
        }
    }

    /// Waits for the end within a time limit while collecting the output.
    pub(crate) async fn capture_output(mut self, limit: Duration, stop: &CancellationToken) -> CapturedOutput {
        let deadline = Instant::now() + limit;
        let stdout = self.supervisor.stdout.take();
        let stderr = self.supervisor.stderr.take();
        let streams = tokio::spawn(async { tokio::join!(read_bounded(stdout), read_bounded(stderr)) });
        let mut end = tokio::select! {
            ended = timeout_at(deadline, self.supervisor.wait()) => match ended {
                Ok(_) => None,
                Err(_) => Some(ProcessEnd::TimedOut),
            },
            () = stop.cancelled() => Some(ProcessEnd::Stopped),
        };
        self.end();
        let last = self.wait().await;
        if end.is_none() || last == ProcessEnd::SupervisorLost {
            end = Some(last);
        }
        let (stdout, stderr) = self.collect_output(streams, last).await;
        CapturedOutput { ended: end.unwrap_or(last), stdout, stderr }
    }

    /// Returns the output. A process left by a killed keeper may hold a stream, so scans repeat until it is gone.
    async fn collect_output(&self, mut streams: JoinHandle<(Vec<u8>, Vec<u8>)>, end: ProcessEnd) -> (Vec<u8>, Vec<u8>) {
        if end != ProcessEnd::SupervisorLost {
            return streams.await.unwrap_or_default();
        }
        for _ in 0..MAX_STREAM_SWEEPS {
            if let Ok(printed) = timeout(STREAM_LIMIT, &mut streams).await {
                return printed.unwrap_or_default();
            }
            self.kill_leftovers().await;
        }
        streams.abort();
        (Vec::new(), Vec::new())
    }

    /// Kills what a killed keeper has left.
    async fn kill_leftovers(&self) {
        let mut quiet = 0;
        for _ in 0..MAX_WALKS {
            let mark = self.mark.clone();
            let found = tokio::task::spawn_blocking(move || kill_marked(&mark)).await.unwrap_or_default();
            quiet = if found == 0 { quiet + 1 } else { 0 };
            if quiet == QUIET_WALKS {
                return;
            }
            sleep(WALK_INTERVAL).await;
        }
    }
}

/// Kills every process that currently carries the mark, and returns their number.
fn kill_marked(mark: &str) -> usize {
    let is_marked = |process: &table::ProcessEntry| {
        table::variable(process.pid, MARK_VARIABLE).is_some_and(|value| value == mark.as_bytes())
    };
    let kill = |process: &table::ProcessEntry| walk::signal_process(process, &[Signal::KILL]);
    table::entries().into_iter().flatten().filter(is_marked).inspect(kill).count()
}

/// Reads a stream to its end and keeps its first and last part, with a line in between that counts the omitted bytes.
async fn read_bounded(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let Some(mut stream) = stream else { return Vec::new() };
    let mut buffer = BoundedBuffer::default();
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = stream.read(&mut piece).await {
        buffer.push(&piece[..length]);
    }
    buffer.finish()
}

#[derive(Default)]
struct BoundedBuffer {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: u64,
}

impl BoundedBuffer {
    fn push(&mut self, mut bytes: &[u8]) {
        let room = (MAX_STREAM_BYTES / 2).saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        bytes = &bytes[room..];
        self.tail.extend_from_slice(bytes);
        // Twice the size, so that bytes are rarely moved.
        if self.tail.len() > MAX_STREAM_BYTES {
            self.trim_tail();
        }
    }

    fn trim_tail(&mut self) {
        let surplus = self.tail.len().saturating_sub(MAX_STREAM_BYTES / 2);
        self.tail.drain(..surplus);
        self.dropped += surplus as u64;
    }

    fn finish(mut self) -> Vec<u8> {
        self.trim_tail();
        if self.dropped > 0 {
            self.head.extend_from_slice(format!("\n[… {} bytes left out …]\n", self.dropped).as_bytes());
        }
        self.head.append(&mut self.tail);
        self.head
    }
}

/// Returns the command prefix that creates a PID namespace, if this user may create one on this machine.
fn namespace_command() -> Option<&'static [&'static str]> {
    const PRIVILEGED: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"];
    const WITH_USER: &[&str] =
        &["unshare", "--user", "--map-current-user", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"];
    static WALLS: OnceLock<Option<&'static [&'static str]>> = OnceLock::new();
    *WALLS.get_or_init(|| {
        let works = |walls: &[&str]| {
            let mut probe = std::process::Command::new(walls[0]);
            probe.args(&walls[1..]).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        };
        [PRIVILEGED, WITH_USER].into_iter().find(|walls| works(walls))
    })
}

/// Returns how tightly checks are contained, for results.
pub(crate) fn containment_level() -> &'static str {
    if namespace_command().is_some() { "pidns" } else { "walk" }
}

/// Returns the running executable, even if its path was replaced meanwhile.
fn this_program() -> Result<PathBuf, EvalError> {
    std::env::current_exe().map_err(|error| EvalError::new("finding this program").caused_by(&error))
}

fn unique_mark() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let time = jiff::Timestamp::now().as_nanosecond();
    format!("{}-{time}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end() {
        let mut buffer = BoundedBuffer::default();
        buffer.push(b"begin");
        for _ in 0..100 {
            buffer.push(&[b'x'; 10_000]);
        }
        buffer.push(b"end");
        let text = String::from_utf8(buffer.finish()).expect("text");
        assert!(text.starts_with("begin") && text.ends_with("end") && text.contains("bytes left out"));
        assert!(text.len() < MAX_STREAM_BYTES + 100, "{}", text.len());
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        let mut buffer = BoundedBuffer::default();
        buffer.push(&vec![b'a'; MAX_STREAM_BYTES / 2 + 10]);
        assert_eq!(buffer.finish(), vec![b'a'; MAX_STREAM_BYTES / 2 + 10]);
    }
}
