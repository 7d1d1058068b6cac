//! Runs a program of the user's for its output, within a time limit. Never reports environment variables.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

/// Time limit of a program.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Result of running a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProbeResult {
    /// It succeeded with this output.
    Success(String),
    /// It failed with this message.
    Failed(String),
    /// There is no such program.
    Missing,
    /// It did not end in time.
    TimedOut,
}

/// Runs a program in a folder. The program has ended when this returns.
pub(crate) async fn run_probe<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: &[A], folder: &Path) -> ProbeResult {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.kill_on_drop(true).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return ProbeResult::Missing,
        Err(error) => return ProbeResult::Failed(error.to_string()),
    };
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let output = async { tokio::try_join!(child.wait(), read_all(stdout), read_all(stderr)) };
    match timeout(PROBE_TIMEOUT, output).await {
        Err(_) => {
            // A process that cannot be killed is not waited for.
            let _ = timeout(PROBE_TIMEOUT, child.kill()).await;
            ProbeResult::TimedOut
        }
        Ok(Err(error)) => ProbeResult::Failed(error.to_string()),
        Ok(Ok((status, stdout, _))) if status.success() => ProbeResult::Success(first_text_line(&stdout)),
        Ok(Ok((_, _, stderr))) => ProbeResult::Failed(first_text_line(&stderr)),
    }
}

async fn read_all(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn first_text_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}
