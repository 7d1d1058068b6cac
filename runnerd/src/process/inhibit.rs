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
const MAX_SAID: u64 = 400;

/// Whether the machine may go to sleep by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sleep {
    /// It may: the settings say so.
    Unminded,
    /// It may: nobody holds it awake.
    Allowed,
    /// It is held awake.
    Inhibited,
    /// It may, though somebody wants it awake.
    Unable {
        /// Why.
        why: String,
    },
}

/// Holds the machine awake on behalf of many.
#[derive(Debug, Clone)]
pub struct Inhibitor {
    holders: watch::Sender<usize>,
    sleep: watch::Receiver<Sleep>,
}

/// Holds the machine awake until it is dropped.
#[derive(Debug)]
pub struct Awake {
    holders: watch::Sender<usize>,
}

impl Inhibitor {
    /// Makes an inhibitor; one that is off does nothing. Needs a runtime, with which it ends.
    pub fn new(is_on: bool) -> Self {
        let (holders, wanted) = watch::channel(0);
        let (said, sleep) = watch::channel(if is_on { Sleep::Allowed } else { Sleep::Unminded });
        if is_on {
            tokio::spawn(mind(wanted, said));
        }
        Self { holders, sleep }
    }

    /// Wants the machine awake.
    pub fn hold(&self) -> Awake {
        self.holders.send_modify(|holders| *holders += 1);
        Awake { holders: self.holders.clone() }
    }

    /// Returns whether the machine may go to sleep by itself.
    pub fn sleep(&self) -> Sleep {
        self.sleep.borrow().clone()
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.holders.send_modify(|holders| *holders -= 1);
    }
}

/// Starts the program for the first holder and ends it after the last one, again and again.
async fn mind(mut wanted: watch::Receiver<usize>, said: watch::Sender<Sleep>) {
    // An error means that nobody can want anything any more.
    while wanted.wait_for(|holders| *holders > 0).await.is_ok() {
        let why = match start() {
            Ok(child) => {
                said.send_replace(Sleep::Inhibited);
                inhibit(child, &mut wanted).await
            }
            Err(why) => Some(why.to_string()),
        };
        if let Some(why) = why {
            tracing::info!(why, "the machine is not kept awake");
            said.send_replace(Sleep::Unable { why });
            unwanted(&mut wanted).await;
        }
        said.send_replace(Sleep::Allowed);
    }
}

/// Waits until nobody wants the machine awake, and ends the program; returns why it has ended before.
async fn inhibit(mut child: Child, wanted: &mut watch::Receiver<usize>) -> Option<String> {
    // To wait for a child closes its standard input, if that is still its own.
    let line = child.stdin.take();
    tokio::select! {
        () = unwanted(wanted) => {}
        _ = child.wait() => return Some(last_words(child).await),
    }
    drop(line);
    if timeout(END_LIMIT, child.wait()).await.is_err() {
        // What cannot be killed either is the system's.
        let _ = child.kill().await;
    }
    None
}

/// Waits until nobody wants the machine awake, or nobody can any more.
async fn unwanted(wanted: &mut watch::Receiver<usize>) {
    let _ = wanted.wait_for(|holders| *holders == 0).await;
}

async fn last_words(mut child: Child) -> String {
    let mut text = Vec::new();
    if let Some(errors) = child.stderr.take() {
        // A process that it has left behind may keep the pipe open.
        let _ = timeout(Duration::from_secs(1), errors.take(MAX_SAID).read_to_end(&mut text)).await;
    }
    let text = String::from_utf8_lossy(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { "the program for it has ended by itself".to_owned() } else { text }
}

/// Why no program keeps the machine awake.
#[derive(Debug, thiserror::Error)]
enum StartError {
    /// Neither is there.
    #[error("there is no {} in the daemon's PATH", PROGRAMS.map(|(name, _)| name).join(" and no "))]
    NoProgram,
    /// The system refused.
    #[error("starting {}: {error}", program.display())]
    Spawn { program: PathBuf, error: std::io::Error },
}

fn start() -> Result<Child, StartError> {
    let found = PROGRAMS.iter().find_map(|(name, arguments)| Some((find(name)?, arguments)));
    let (program, arguments) = found.ok_or(StartError::NoProgram)?;
    let mut command = Command::new(&program);
    command.args(*arguments).arg("cat").env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| StartError::Spawn { program, error })
}

/// Finds a program in the daemon's own `PATH`.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    places.find(|place| super::program::check(place).is_ok())
}
