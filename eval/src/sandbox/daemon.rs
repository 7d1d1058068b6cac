//! The daemon of a sandbox, and the programs that a sandbox runs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use protocol::api::DaemonApiClient as _;
use protocol::client::{ConnectOptions, Connection};
use protocol::startup::{FAILED, FLAG, READY};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{HostEnv, Sandbox};
use crate::error::EvalError;
use crate::process::{CapturedOutput, ManagedProcess, ProcessEnd, ProcessSpec};

const READY_LIMIT: Duration = Duration::from_secs(20);
/// Time limit of an orderly stop; then everything is killed.
const GRACE: Duration = Duration::from_secs(15);
/// Bytes from the end of the daemon's output that are kept as evidence.
const TAIL_BYTES: usize = 2000;

/// The programs under evaluation.
#[derive(Debug, Clone)]
pub(crate) struct TestedPrograms {
    pub(crate) daemon: PathBuf,
    pub(crate) client: PathBuf,
}

impl TestedPrograms {
    /// Finds them: in the given folder, else next to this program, else in `PATH`.
    pub(crate) fn find(requested: Option<&Path>, host_env: &HostEnv) -> Result<Self, EvalError> {
        let own = std::env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
        let find = |name: &str| {
            let beside = requested.map(Path::to_owned).or(own.clone()).map(|folder| folder.join(name));
            let by_path = || if requested.is_none() { host_env.find_program(name) } else { None };
            let found = beside.filter(|path| path.is_file()).or_else(by_path);
            let found = found.and_then(|path| path.canonicalize().ok());
            let missing = || EvalError::usage(format!("the program {name} is not found beside this one or in PATH"));
            found.ok_or_else(|| missing().hint("cargo build --workspace, or name its directory with --bin-dir"))
        };
        Ok(Self { daemon: find("runnerd")?, client: find("runnerctl")? })
    }
}

/// A daemon running in a sandbox.
#[derive(Debug)]
pub(crate) struct SandboxDaemon {
    process: ManagedProcess,
    connection: Connection,
    log: PathBuf,
}

impl SandboxDaemon {
    /// Starts it and connects to it.
    pub(crate) async fn start(
        sandbox: &Sandbox,
        programs: &TestedPrograms,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, EvalError> {
        let log = sandbox.path("logs/runnerd.stderr");
        let file = File::create(&log).map_err(|error| EvalError::file("making", &log, &error))?;
        let spec = ProcessSpec {
            program: programs.daemon.clone().into(),
            arguments: vec![FLAG.into()],
            folder: sandbox.folder(),
            env,
            grace: GRACE,
            isolated: false,
        };
        let mut process = ManagedProcess::start_with(&spec, Stdio::piped(), Stdio::from(file))?;
        wait_ready(&mut process, &log).await?;
        let options = ConnectOptions {
            socket: Some(sandbox.socket()),
            client_name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..ConnectOptions::default()
        };
        let connection = Connection::open(&options).await?;
        Ok(Self { process, connection, log })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Waits for its unexpected exit and returns what is known about it.
    pub(crate) async fn wait_for_death(&mut self) -> String {
        let end = self.process.wait().await;
        if end == ProcessEnd::SupervisorLost {
            ManagedProcess::kill_directly(self.connection.daemon().pid);
        }
        let description = match end {
            ProcessEnd::Exited(code @ 129..=192) => format!("by signal {}", code - 128),
            ProcessEnd::Exited(code) => format!("with exit code {code}"),
            ProcessEnd::TimedOut | ProcessEnd::Stopped | ProcessEnd::SupervisorLost => "with its keeper".into(),
        };
        let words = log_tail(&self.log);
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        format!("the daemon ended {description}{words}")
    }

    /// Stops it and everything it drives.
    pub(crate) async fn stop(mut self) {
        let _ = timeout(GRACE, self.connection.client().shutdown()).await;
        if timeout(GRACE, self.process.wait()).await.is_err() {
            self.process.end();
            self.process.wait().await;
        }
    }
}

async fn wait_ready(process: &mut ManagedProcess, log: &Path) -> Result<(), EvalError> {
    let Some(output) = process.take_stdout() else { return Ok(()) };
    let mut lines = BufReader::new(output).lines();
    let reason = match timeout(READY_LIMIT, lines.next_line()).await {
        Ok(Ok(Some(line))) if line == READY => return Ok(()),
        Ok(Ok(Some(line))) => line.trim_start_matches(FAILED).to_owned(),
        Ok(_) => format!("it ended: {}", log_tail(log)),
        Err(_) => format!("it was not ready within {} s", READY_LIMIT.as_secs()),
    };
    Err(EvalError::new(format!("the daemon did not start: {reason}")))
}

fn log_tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let from = bytes.len().saturating_sub(TAIL_BYTES);
    String::from_utf8_lossy(&bytes[from..]).trim().to_owned()
}

/// Runs the client in a sandbox and returns its standard output; a refusal keeps its own message.
pub(super) async fn run_client(options: &CallOptions<'_>, arguments: &[&str]) -> Result<String, EvalError> {
    let output = run_program(options, options.programs.client.as_path(), arguments).await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.ended {
        ProcessEnd::Exited(0) => Ok(text(&output.stdout)),
        ProcessEnd::Stopped => Err(EvalError::interrupted()),
        _ => {
            let command = arguments.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
            Err(EvalError::new(format!("runnerctl {command}: {}", text(&output.stderr).trim_start_matches("error: "))))
        }
    }
}

/// Where and how long a program runs.
pub(crate) struct CallOptions<'a> {
    pub(crate) programs: &'a TestedPrograms,
    pub(crate) folder: &'a Path,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) stop: &'a CancellationToken,
}

/// A client or git command that takes longer hangs.
const CALL_LIMIT: Duration = Duration::from_mins(5);

/// Runs one of the harness's own programs in a sandbox.
pub(super) async fn run_program(
    options: &CallOptions<'_>,
    program: &Path,
    arguments: &[&str],
) -> Result<CapturedOutput, EvalError> {
    let spec = ProcessSpec {
        program: program.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        folder: options.folder,
        env: options.env,
        grace: Duration::ZERO,
        isolated: false,
    };
    Ok(ManagedProcess::start(&spec)?.capture_output(CALL_LIMIT, options.stop).await)
}
