//! Runs a program of the user's for its words, within a time. Nothing of the environment is told.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Time that a program has.
pub(crate) const LIMIT: Duration = Duration::from_secs(5);

/// What came of running a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// It ended well, and printed this.
    Fine(String),
    /// It ended otherwise, and complained so.
    Failed(String),
    /// There is no such program.
    Missing,
    /// It did not end in time.
    TimedOut,
}

/// Runs a program in a folder.
pub(crate) async fn run<A: AsRef<OsStr>>(program: &str, args: &[A], folder: &Path) -> Said {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    match timeout(LIMIT, command.output()).await {
        Err(_) => Said::TimedOut,
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Said::Missing,
        Ok(Err(error)) => Said::Failed(error.to_string()),
        Ok(Ok(output)) if output.status.success() => Said::Fine(first_line(&output.stdout)),
        Ok(Ok(output)) => Said::Failed(first_line(&output.stderr)),
    }
}

fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}
