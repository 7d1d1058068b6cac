//! Keeps the machine from going to sleep by itself while somebody holds it awake (`inhibit_sleep`).
//!
//! A program of the system does it for as long as its child lives, and that child is a `cat` whose standard input the
//! daemon holds: with the daemon, however it ends, the machine may sleep again. A missing program is no error.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// Programs that keep a machine awake while what stands behind their arguments runs; the first that is there is taken.
const PROGRAMS: [(&str, &[&str]); 2] = [
    (
        "systemd-inhibit",
        &["--what=idle:sleep", "--who=runnerd", "--why=a run of a coding agent is active", "--mode=block"],
    ),
    ("caffeinate", &["-i"]),
];
/// Time in which the program ends once its child has.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Most bytes of what the program says that are kept.
const MAX_ERROR_BYTES: u64 = 400;

/// Whether the machine may go to sleep by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SleepState {
    /// It may: the settings say so.
    NotManaged,
    /// It may: nobody holds it awake.
    Allowed,
    /// It is held awake.
    Inhibited,
    /// It may, though somebody wants it awake.
    Failed {
        /// Why.
        why: String,
    },
}

/// Holds the machine awake on behalf of many.
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
    /// Makes an inhibitor; one that is off does nothing. Needs a runtime, with which it ends.
    pub fn new(is_on: bool) -> Self {
        let (holders, holder_count) = watch::channel(0);
        let (state_sender, state) = watch::channel(if is_on { SleepState::Allowed } else { SleepState::NotManaged });
        if is_on {
            tokio::spawn(run_inhibitor(holder_count, state_sender));
        }
        Self { holders, state }
    }

    /// Wants the machine awake.
    pub fn hold(&self) -> SleepInhibition {
        self.holders.send_modify(|holders| *holders += 1);
        SleepInhibition { holders: self.holders.clone() }
    }

    /// Returns whether the machine may go to sleep by itself.
    pub fn state(&self) -> SleepState {
        self.state.borrow().clone()
    }
}

impl Drop for SleepInhibition {
    fn drop(&mut self) {
        self.holders.send_modify(|holders| *holders -= 1);
    }
}

/// Starts the program for the first holder and ends it after the last one, again and again.
async fn run_inhibitor(mut holder_count: watch::Receiver<usize>, state_sender: watch::Sender<SleepState>) {
    // An error means that nobody can want anything any more.
    while holder_count.wait_for(|holders| *holders > 0).await.is_ok() {
        let why = match start_program() {
            Ok(child) => {
                state_sender.send_replace(SleepState::Inhibited);
                hold_until_released(child, &mut holder_count).await
            }
            Err(why) => Some(why.to_string()),
        };
        if let Some(why) = why {
            tracing::info!(why, "the machine is not kept awake");
            state_sender.send_replace(SleepState::Failed { why });
            wait_until_released(&mut holder_count).await;
        }
        state_sender.send_replace(SleepState::Allowed);
    }
}

/// Waits until nobody wants the machine awake, and ends the program; returns why it has ended before.
async fn hold_until_released(mut child: Child, holder_count: &mut watch::Receiver<usize>) -> Option<String> {
    // To wait for a child closes its standard input, if that is still its own.
    let stdin = child.stdin.take();
    tokio::select! {
        () = wait_until_released(holder_count) => {}
        _ = child.wait() => return Some(read_error_output(child).await),
    }
    drop(stdin);
    if timeout(END_LIMIT, child.wait()).await.is_err() {
        // What cannot be killed either is the system's.
        let _ = child.kill().await;
    }
    None
}

/// Waits until nobody wants the machine awake, or nobody can any more.
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
    if text.is_empty() { "the program for it has ended by itself".to_owned() } else { text }
}

/// Why no program keeps the machine awake.
#[derive(Debug, thiserror::Error)]
enum InhibitError {
    /// Neither is there.
    #[error("there is no {} in the daemon's PATH", PROGRAMS.map(|(name, _)| name).join(" and no "))]
    NoProgram,
    /// The system refused.
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
    let mut candidates = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    candidates.find(|place| super::program::check_executable(place).is_ok())
}
