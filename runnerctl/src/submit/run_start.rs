//! Has `runnerd` itself publish the start of a run: the job that continues it needs only its id.

use std::ffi::OsString;
use std::path::Path;

use protocol::error::ExitStatus;

use crate::failure::Failure;
use crate::program::{CommandOutput, LaunchError, ProgramCall, run_program};

/// Longest wait for a remote while the user is waiting.
const MAX_WAIT_OPTION: &str = "--max-wait=10s";

/// The run to start, and where.
#[derive(Debug)]
pub(crate) struct RunStart<'a> {
    /// Path of the program.
    pub(crate) runnerd: &'a Path,
    /// A local repository, or the URL of a remote.
    pub(crate) repository: &'a str,
    /// The remote of a local repository.
    pub(crate) remote: &'a str,
    /// The run.
    pub(crate) run: &'a str,
    /// The goal of a new run.
    pub(crate) goal: Option<&'a str>,
}

impl RunStart<'_> {
    /// Returns the URL of the remote, without contacting it.
    pub(crate) async fn remote_address(&self, folder: &Path) -> Result<String, Failure> {
        let not_found = || format!("the remote {} cannot be found", self.remote);
        Ok(self.run_drive(&["--dry-run"], folder, not_found).await?.trim_end().to_owned())
    }

    /// Publishes the run if the remote does not have it yet.
    pub(crate) async fn publish(&self, folder: &Path) -> Result<(), Failure> {
        self.run_drive(&[], folder, || format!("run {} is not begun", self.run)).await.map(drop)
    }

    async fn run_drive(
        &self,
        options: &[&str],
        folder: &Path,
        message: impl FnOnce() -> String,
    ) -> Result<String, Failure> {
        let mut argv: Vec<OsString> = vec![self.runnerd.into()];
        argv.extend(["drive", "--yes", "--start-only", MAX_WAIT_OPTION].map(OsString::from));
        argv.extend([format!("--run={}", self.run), format!("--remote={}", self.remote)].map(OsString::from));
        argv.extend(self.goal.map(|goal| OsString::from(format!("--message={goal}"))));
        argv.extend(options.iter().chain(&["--", self.repository]).map(OsString::from));
        let output = run_program(ProgramCall { argv, folder, env: &[], input: Vec::new(), tail: None }).await;
        let output = output.map_err(|error| match error {
            LaunchError::Failed(failure) => failure,
            LaunchError::Missing => {
                let message = format!("there is no {}", self.runnerd.display());
                Failure::new(ExitStatus::Error, "missing_command", message)
                    .hint("install runnerd beside runnerctl, or in a directory of PATH")
            }
        })?;
        if output.status.success() { Ok(output.stdout) } else { Err(to_failure(&output, message())) }
    }
}

/// Returns the failure, with the message of `runnerd`.
fn to_failure(output: &CommandOutput, message: String) -> Failure {
    let status = match output.status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code) if code == ExitStatus::Usage.code() => ExitStatus::Usage,
        Some(code) if code == ExitStatus::Refused.code() => ExitStatus::Refused,
        _ => ExitStatus::Error,
    };
    let mut failure = Failure::new(status, "beginning", message);
    let mut hint = None;
    for line in output.stderr.lines().filter(|line| !line.trim().is_empty()) {
        match line.split_once(": ") {
            Some(("hint", text)) => hint = Some(text.to_owned()),
            Some(("error" | "runnerd", text)) => failure = failure.caused_by(text),
            _ => failure = failure.caused_by(line),
        }
    }
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
