//! Keeps the machine from going to sleep on its own while it is held awake (`inhibit_sleep`).
//!
//! A system program does it as long as its child is running, and that child is a `cat` whose standard input the daemon
//! holds: when the daemon ends, in whatever way, the machine may sleep again. A missing program is not an error.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// Programs that keep a machine awake while the command in their arguments runs; the first one found is used.
const PROGRAMS: [(&str, &[&str]); 2] = [
    (
        "systemd-inhibit",
        &["--what=idle:sleep", "--who=runnerd", "--why=a run of a coding agent is active", "--mode=block"],
    ),
    ("caffeinate", &["-i"]),
];
/// Time limit for the program to end after its child.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Number of bytes kept of the program's messages.
const MAX_ERROR_BYTES: u64 = 400;

/// Whether the machine may go to sleep on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SleepState {
    /// It may: the feature is off.
    NotManaged,
    /// It may: nothing holds it awake.
    Allowed,
    /// It is held awake.
    Inhibited,
    /// It may, although it should be held awake.
    Failed {
        /// Why it cannot be held awake.
        why: String,
    },
}

/// Holds the machine awake for any number of holders.
#[derive(Debug, Clone)]
pub struct Inhibitor {
    holders: watch::Sender<usize>,
    state: watch::Receiver<SleepState>,
}

/// Holds the machine awake until it is dropped.
#[derive(Debug)]
pub struct SleepInhibition {
    holders: watch::Sender<usize>,
}

impl Inhibitor {
    /// Creates an inhibitor; does nothing if `is_on` is false. Needs a runtime, with which it ends.
    pub fn new(is_on: bool) -> Self {
        let (holders, holder_count) = watch::channel(0);
        let (state_sender, state) = watch::channel(if is_on { SleepState::Allowed } else { SleepState::NotManaged });
        if is_on {
            tokio::spawn(run_inhibitor(holder_count, state_sender));
        }
        Self { holders, state }
    }

    /// Holds the machine awake until the returned value is dropped.
    pub fn hold(&self) -> SleepInhibition {
        self.holders.send_modify(|holders| *holders += 1);
        SleepInhibition { holders: self.holders.clone() }
    }

    /// Whether the machine may go to sleep on its own.
    pub fn state(&self) -> SleepState {
        self.state.borrow().clone()
    }
}

impl Drop for SleepInhibition {
    fn drop(&mut self) {
        self.holders.send_modify(|holders| *holders -= 1);
    }
}

/// Starts the program for the first holder and ends it after the last one, repeatedly.
async fn run_inhibitor(mut holder_count: watch::Receiver<usize>, state_sender: watch::Sender<SleepState>) {
    // An error means that all inhibitors are gone.
    while holder_count.wait_for(|holders| *holders > 0).await.is_ok() {
        let why = match start_program() {
            Ok(child) => {
                state_sender.send_replace(SleepState::Inhibited);
                hold_until_released(child, &mut holder_count).await
            }
            Err(why) => Some(why.to_string()),
        };
        if let Some(why) = why {
            tracing::info!(why, "the machine may go to sleep");
            state_sender.send_replace(SleepState::Failed { why });
            wait_until_released(&mut holder_count).await;
        }
        state_sender.send_replace(SleepState::Allowed);
    }
}

/// Waits until there are no holders and ends the program; returns why if it ended before.
async fn hold_until_released(mut child: Child, holder_count: &mut watch::Receiver<usize>) -> Option<String> {
    // Waiting for a child closes its standard input, unless it was taken out.
    let stdin = child.stdin.take();
    tokio::select! {
        () = wait_until_released(holder_count) => {}
        _ = child.wait() => return Some(read_error_output(child).await),
    }
    drop(stdin);
    if timeout(END_LIMIT, child.wait()).await.is_err() {
        // If it cannot be killed either, nothing can be done.
        let _ = child.kill().await;
    }
    None
}

/// Waits until there are no holders, or no inhibitors.
async fn wait_until_released(holder_count: &mut watch::Receiver<usize>) {
    let _ = holder_count.wait_for(|holders| *holders == 0).await;
}

async fn read_error_output(mut child: Child) -> String {
    let mut text = Vec::new();
    if let Some(errors) = child.stderr.take() {
        // A process that it has left behind may keep the pipe open.
        let _ = timeout(Duration::from_secs(1), errors.take(MAX_ERROR_BYTES).read_to_end(&mut text)).await;
    }
    let text = String::from_utf8_lossy(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { "the program for it has exited".to_owned() } else { text }
}

/// Why no program keeps the machine awake.
#[derive(Debug, thiserror::Error)]
enum InhibitError {
    /// None of the programs is installed.
    #[error("there is no {} in the daemon's PATH", PROGRAMS.map(|(name, _)| name).join(" and no "))]
    NoProgram,
    /// The system could not start the program.
    #[error("starting {}: {error}", program.display())]
    Spawn { program: PathBuf, error: std::io::Error },
}

fn start_program() -> Result<Child, InhibitError> {
    let found = PROGRAMS.iter().find_map(|(name, arguments)| Some((find_program(name)?, arguments)));
    let (program, arguments) = found.ok_or(InhibitError::NoProgram)?;
    let mut command = Command::new(&program);
    command.args(*arguments).arg("cat").env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| InhibitError::Spawn { program, error })
}

/// Finds a program in the daemon's own `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut candidates =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    candidates.find(|place| super::program::check_executable(place).is_ok())
}
