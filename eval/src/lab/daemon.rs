//! The daemon of a lab, and the programs that a lab is run with.

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

use super::{Lab, Surroundings};
use crate::fault::Fault;
use crate::hold::{Captured, Ended, Held, Wanted};

const READY_WITHIN: Duration = Duration::from_secs(20);
/// Time of an orderly stop; afterwards everything is killed.
const GRACE: Duration = Duration::from_secs(15);
/// Bytes of the daemon's last words that are evidence.
const TAIL_BYTES: usize = 2000;

/// The programs that are measured.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) daemon: PathBuf,
    pub(crate) client: PathBuf,
}

impl Programs {
    /// Finds them: in a folder that was named, else beside this program, else by `PATH`.
    pub(crate) fn find(named: Option<&Path>, around: &Surroundings) -> Result<Self, Fault> {
        let own = std::env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
        let find = |name: &str| {
            let beside = named.map(Path::to_owned).or(own.clone()).map(|folder| folder.join(name));
            let by_path = || if named.is_none() { around.program(name) } else { None };
            let found = beside.filter(|path| path.is_file()).or_else(by_path);
            let found = found.and_then(|path| path.canonicalize().ok());
            let missing = || Fault::usage(format!("the program {name} is not found beside this one or in PATH"));
            found.ok_or_else(|| missing().hint("cargo build --workspace, or name its folder with --bin-dir"))
        };
        Ok(Self { daemon: find("runnerd")?, client: find("runnerctl")? })
    }
}

/// A daemon that lives in a lab.
#[derive(Debug)]
pub(crate) struct Daemon {
    held: Held,
    connection: Connection,
    log: PathBuf,
}

impl Daemon {
    /// Starts it and connects to it.
    pub(crate) async fn start(lab: &Lab, programs: &Programs, env: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let log = lab.at("logs/runnerd.stderr");
        let file = File::create(&log).map_err(|error| Fault::file("making", &log, &error))?;
        let wanted = Wanted {
            program: programs.daemon.clone().into(),
            arguments: vec![FLAG.into()],
            folder: lab.folder(),
            env,
            grace: GRACE,
            walled: false,
        };
        let mut held = Held::start_with(&wanted, Stdio::piped(), Stdio::from(file))?;
        ready(&mut held, &log).await?;
        let options = ConnectOptions {
            socket: Some(lab.socket()),
            client_name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..ConnectOptions::default()
        };
        let connection = Connection::open(&options).await?;
        Ok(Self { held, connection, log })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Waits for its end, which nobody wanted, and returns what is known of it.
    pub(crate) async fn died(&mut self) -> String {
        let ended = self.held.wait().await;
        if ended == Ended::KeeperLost {
            Held::kill_without_keeper(self.connection.daemon().pid);
        }
        let how = match ended {
            Ended::Exited(code @ 129..=192) => format!("by signal {}", code - 128),
            Ended::Exited(code) => format!("with exit code {code}"),
            Ended::TimedOut | Ended::Stopped | Ended::KeeperLost => "with its keeper".into(),
        };
        let words = tail(&self.log);
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        format!("the daemon ended {how}{words}")
    }

    /// Ends it, and whatever it drives.
    pub(crate) async fn stop(mut self) {
        let _ = timeout(GRACE, self.connection.client().shutdown()).await;
        if timeout(GRACE, self.held.wait()).await.is_err() {
            self.held.cut();
            self.held.wait().await;
        }
    }
}

async fn ready(held: &mut Held, log: &Path) -> Result<(), Fault> {
    let Some(output) = held.take_stdout() else { return Ok(()) };
    let mut lines = BufReader::new(output).lines();
    let reason = match timeout(READY_WITHIN, lines.next_line()).await {
        Ok(Ok(Some(line))) if line == READY => return Ok(()),
        Ok(Ok(Some(line))) => line.trim_start_matches(FAILED).to_owned(),
        Ok(_) => format!("it ended: {}", tail(log)),
        Err(_) => format!("it was not ready within {} s", READY_WITHIN.as_secs()),
    };
    Err(Fault::new(format!("the daemon did not start: {reason}")))
}

fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let from = bytes.len().saturating_sub(TAIL_BYTES);
    String::from_utf8_lossy(&bytes[from..]).trim().to_owned()
}

/// Runs the client in a lab and returns what it printed on standard output; a refusal is told in its own words.
pub(super) async fn client(call: &Call<'_>, arguments: &[&str]) -> Result<String, Fault> {
    let captured = run(call, call.programs.client.as_path(), arguments).await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match captured.ended {
        Ended::Exited(0) => Ok(text(&captured.stdout)),
        Ended::Stopped => Err(Fault::interrupted()),
        _ => {
            let command = arguments.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
            Err(Fault::new(format!("runnerctl {command}: {}", text(&captured.stderr).trim_start_matches("error: "))))
        }
    }
}

/// In which lab a program is run, for how long.
pub(crate) struct Call<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) folder: &'a Path,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) stop: &'a CancellationToken,
}

/// A client or git that takes longer is hung.
const CALL_LIMIT: Duration = Duration::from_mins(5);

/// Runs a program of the harness's own in a lab.
pub(super) async fn run(call: &Call<'_>, program: &Path, arguments: &[&str]) -> Result<Captured, Fault> {
    let wanted = Wanted {
        program: program.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        folder: call.folder,
        env: call.env,
        grace: Duration::ZERO,
        walled: false,
    };
    Ok(Held::start(&wanted)?.capture(CALL_LIMIT, call.stop).await)
}
