//! Runs a program of the user's with their environment, never through a shell; its output is limited in size.

use std::borrow::Cow;
use std::convert::Infallible;
use std::ffi::OsString;
use std::future::pending;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus as Ended, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{AccessFlags, Pid, access};

use protocol::error::ExitStatus;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::failure::Failure;

/// Maximum size of an answer in bytes; the rest is read and dropped, and the answer rejected.
const MAX_OUTPUT: usize = 16 << 20;
/// Variables that tell git which repository to use, as listed by `git rev-parse --local-env-vars`.
const GIT_LOCAL_VARIABLES: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];
/// How long to read output after a program has exited. A process it left running, such as a persistent `ssh`
/// connection, may hold the streams open indefinitely.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// A git command that has not exited after this is reported.
const REPORT_DELAY: Duration = Duration::from_secs(10);
/// Number of lines of an error message that are shown.
const ERROR_LINES: usize = 20;

/// Arguments for starting a program.
#[derive(Debug)]
pub(crate) struct ProgramCall<'a> {
    /// The program and its arguments.
    pub(crate) argv: Vec<OsString>,
    /// Working directory.
    pub(crate) folder: &'a Path,
    /// Additional environment variables.
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// Standard input.
    pub(crate) input: Vec<u8>,
    /// If set, only the last bytes of the output are kept, this many: for output too large to keep completely.
    pub(crate) tail: Option<usize>,
}

/// Result of a program.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// How it ended.
    pub(crate) status: Ended,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// Why a program has no result.
#[derive(Debug)]
pub(crate) enum LaunchError {
    /// There is no such program.
    Missing,
    /// Another system error.
    Failed(Failure),
}

impl CommandOutput {
    /// Returns the output if the program succeeded; otherwise a failure that names what was being done.
    pub(crate) fn require_success(self, kind: &'static str, doing: &str) -> Result<String, Failure> {
        if self.status.success() { Ok(self.stdout) } else { Err(self.to_failure(kind, doing)) }
    }

    /// Returns the output on exit code 0 (yes), `None` on exit code 1 (no). Any other end is a failure.
    pub(crate) fn optional_output(self, kind: &'static str, doing: &str) -> Result<Option<String>, Failure> {
        match self.status.code() {
            Some(1) => Ok(None),
            _ => self.require_success(kind, doing).map(Some),
        }
    }

    /// Returns the failure of a program that has reported an error.
    pub(crate) fn to_failure(&self, kind: &'static str, doing: &str) -> Failure {
        let lines: Vec<&str> = self.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let text = lines[lines.len().saturating_sub(ERROR_LINES)..].join("\n");
        let cause = if text.is_empty() { format!("it ended with {}", self.status) } else { text };
        Failure::new(ExitStatus::Error, kind, doing).caused_by(cause)
    }
}

/// Runs a program to completion.
pub(crate) async fn run_program(call: ProgramCall<'_>) -> Result<CommandOutput, LaunchError> {
    let name = call.argv.first().cloned().unwrap_or_default();
    let failed = |error: io::Error| {
        LaunchError::Failed(Failure::io(format!("running {} in {}", name.display(), call.folder.display()), &error))
    };
    let mut command = Command::new(&name);
    command.args(call.argv.iter().skip(1)).current_dir(call.folder).envs(call.env.iter().copied());
    // A caller within git, such as a hook, has another repository in mind.
    for variable in GIT_LOCAL_VARIABLES {
        command.env_remove(variable);
    }
    command.stdin(if call.input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    kill_with_parent(&mut command);
    let mut child_guard = match command.spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(LaunchError::Missing),
        child => RunningChild(child.map_err(failed)?),
    };
    let child = &mut child_guard.0;
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input is not in error.
            let _ = stdin.write_all(&call.input).await;
        }
    };
    let mut stdout_capture = StreamCapture::with_tail(call.tail);
    let mut stderr_capture = StreamCapture::with_tail(None);
    let end = async {
        let mut reading = pin!(async { tokio::join!(write, stdout_capture.read(stdout), stderr_capture.read(stderr)) });
        tokio::select! {
            _ = &mut reading => child.wait().await,
            ended = child.wait() => {
                let _ = timeout(DRAIN_TIMEOUT, reading).await;
                ended
            }
        }
    };
    let status = tokio::select! {
        status = end => status,
        never = report_wait(&call.argv) => match never {},
    };
    let ended = status.map_err(failed)?;
    Ok(CommandOutput {
        status: ended,
        stdout: stdout_capture.into_text().map_err(failed)?,
        stderr: stderr_capture.into_text().unwrap_or_else(|error| error.to_string()),
    })
}

/// Says after a while that git has not answered: it may be waiting for another program that never does.
async fn report_wait(argv: &[OsString]) -> Infallible {
    if argv.first().is_some_and(|program| program == "git") {
        sleep(REPORT_DELAY).await;
        let command = git_subcommand(argv);
        let secs = REPORT_DELAY.as_secs();
        // Nothing depends on it.
        let _ = writeln!(io::stderr(), "git {command} has given no answer for {secs} s; Ctrl-C ends it");
    }
    pending().await
}

/// Returns the name of a git command, such as `fetch`, without the settings before it.
fn git_subcommand(argv: &[OsString]) -> Cow<'_, str> {
    let mut words = argv.iter().skip(1);
    let mut word = words.next();
    while word.is_some_and(|word| word == "-c") {
        word = words.nth(1);
    }
    word.map_or(Cow::Borrowed("command"), |word| word.to_string_lossy())
}

/// A running program. On drop it is asked to end, so that it can end its own children, as git does with the `ssh` of a
/// push; after a moment it is killed.
struct RunningChild(Child);

impl Drop for RunningChild {
    fn drop(&mut self) {
        // A child that was waited for no longer has a process id.
        let Some(pid) = self.0.id().and_then(|pid| i32::try_from(pid).ok()) else { return };
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        let started = Instant::now();
        while started.elapsed() < DRAIN_TIMEOUT && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Has the kernel signal the program if this one is killed and cannot do so itself. The thread that starts programs is
/// the runtime's only one, and lives as long as this program.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the death signal is set between fork and exec")]
fn kill_with_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    // SAFETY: it makes two system calls, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
            // The parent may have died before that call.
            if nix::unistd::getppid() == parent { Ok(()) } else { Err(nix::errno::Errno::ESRCH.into()) }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_with_parent(_command: &mut Command) {}

/// What was read from a stream.
#[derive(Debug, Default)]
struct StreamCapture {
    bytes: Vec<u8>,
    tail: Option<usize>,
    failure: Option<io::Error>,
}

impl StreamCapture {
    /// Creates an empty capture; if `tail` is set, only that many bytes from the end are kept.
    fn with_tail(tail: Option<usize>) -> Self {
        Self { tail, ..Self::default() }
    }

    /// Reads a stream to its end.
    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => return,
                Ok(read) => self.push(&buffer[..read]),
                Err(error) => {
                    self.failure = Some(error);
                    return;
                }
            }
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        match self.tail {
            None if self.bytes.len() + chunk.len() > MAX_OUTPUT => {
                self.failure = Some(io::Error::other(format!("it said more than {MAX_OUTPUT} bytes")));
            }
            _ => self.bytes.extend_from_slice(chunk),
        }
        // Not for every chunk, because the move is as large as what is kept.
        if let Some(tail) = self.tail.filter(|tail| self.bytes.len() > 2 * tail + chunk.len()) {
            self.trim(tail);
        }
    }

    fn trim(&mut self, tail: usize) {
        self.bytes.drain(..self.bytes.len().saturating_sub(tail));
    }

    fn into_text(mut self) -> io::Result<String> {
        if let Some(tail) = self.tail {
            self.trim(tail);
        }
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(String::from_utf8_lossy(&self.bytes).into_owned()),
        }
    }
}

/// Whether the program of a command exists, as looked up by a shell in a folder.
pub(crate) fn has_program(command: &[String], folder: &Path) -> bool {
    let Some(program) = command.first() else { return false };
    let is_program = |path: PathBuf| path.is_file() && access(&path, AccessFlags::X_OK).is_ok();
    if program.contains('/') {
        return is_program(folder.join(program));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_program(folder.join(program)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::OpenOptionsExt as _;

    use nix::sys::stat::Mode;

    use super::*;

    async fn run_sh(script: &str, folder: &Path, tail: Option<usize>) -> CommandOutput {
        let argv = ["sh", "-c", script].map(OsString::from).to_vec();
        run_program(ProgramCall { argv, folder, env: &[], input: Vec::new(), tail }).await.expect("sh runs")
    }

    #[tokio::test]
    async fn what_a_program_leaves_running_holds_nobody_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let gate = folder.path().join("gate");
        nix::unistd::mkfifo(&gate, Mode::S_IRWXU).expect("a pipe");
        // The background process holds both streams until the pipe is opened.
        let output =
            run_sh("(read -r line < gate) & echo said; echo complained >&2; exit 3", folder.path(), None).await;
        assert_eq!(
            (output.status.code(), output.stdout.as_str(), output.stderr.as_str()),
            (Some(3), "said\n", "complained\n")
        );
        let opened = fs::OpenOptions::new().write(true).custom_flags(nix::libc::O_NONBLOCK).open(&gate);
        opened.expect("it is running still, and ends now");
    }

    #[tokio::test]
    async fn of_a_long_answer_the_end_is_kept_where_that_will_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = run_sh("yes | head -c 300000; echo last", folder.path(), Some(10)).await;
        assert_eq!(output.stdout, "\ny\ny\nlast\n");
        assert_eq!(run_sh("echo short", folder.path(), Some(10)).await.stdout, "short\n");
    }
}
