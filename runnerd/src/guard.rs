//! The guard: the project's own checks, run as configured, and what they said as facts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_core::digest::Digest;
use runner_core::feedback::reduce;
use runner_core::iteration::{GuardEnd, GuardHow};
use runner_core::redact::Secrets;
use runner_core::transition::MAX_FAILURE;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::GuardConfig;
use crate::process::{self, Ended, Farewell, Launcher, Limits, LogFile, Mark, Piece, Report, SpawnError, Spec};
use crate::repo::durable;

/// What the guard itself is called.
pub const GUARD: &str = "the guard";
/// Time between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(5);

/// What a guard is given.
#[derive(Debug)]
pub struct Guard<'a> {
    /// What it is called where it cannot be started.
    pub called: &'static str,
    /// Which command, and how much of its output is kept.
    pub config: &'a GuardConfig,
    /// The work tree.
    pub folder: &'a Path,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where what it prints goes.
    pub log: PathBuf,
    /// Who sees what it prints as it comes.
    pub live: Option<mpsc::Sender<Piece>>,
    /// What must not get from it into a record or a commit.
    pub secrets: Secrets,
    /// What is left of the budget.
    pub budget: Duration,
    /// By which its processes are found.
    pub mark: Mark,
    /// Lock of its shim.
    pub lock: PathBuf,
}

/// Runs the guard to its end; what it did to the repository is not looked at here.
///
/// A program that is missing is an end like others; the error is what may work later.
pub async fn run(guard: Guard<'_>, launcher: &Launcher, stop: &CancellationToken) -> Result<GuardEnd, SpawnError> {
    let (log, mark, lock) = (guard.log.clone(), guard.mark.clone(), guard.lock.clone());
    let called = guard.called;
    match process::run(launcher, spec(guard), stop).await {
        Ok(mut report) => {
            process::until_gone(&mark, &lock, report.still_alive.take()).await;
            // A check may have put something else in the place of the log: that is no output.
            Ok(tokio::task::block_in_place(|| ended(&report, &durable::read(&log).ok().flatten().unwrap_or_default())))
        }
        Err(error) if error.is_misconfigured() => {
            Ok(GuardEnd::new(GuardHow::Missing { what: format!("{called} cannot be started: {error}") }))
        }
        Err(error) => Err(error),
    }
}

fn spec(guard: Guard<'_>) -> Spec<'static> {
    Spec {
        argv: guard.config.command.iter().map(OsString::from).collect(),
        cwd: guard.folder.to_owned(),
        env: guard.env,
        stdin: Vec::new(),
        mark: guard.mark,
        lock: guard.lock,
        limits: Limits { budget: guard.budget, idle: None, grace: GRACE },
        log: LogFile { path: guard.log, cap_bytes: guard.config.output_limit_bytes, secrets: guard.secrets },
        follower: None,
        splits_output: false,
        farewell: Farewell::Terminate,
        output: guard.live,
        no_new_privs: true,
    }
}

fn ended(report: &Report, output: &[u8]) -> GuardEnd {
    let how = match report.ended {
        Ended::Exited(code) => GuardHow::Exited(code),
        Ended::Signaled(signal) => GuardHow::Signaled(signal),
        Ended::TimedOut | Ended::Silent => GuardHow::TimedOut,
        Ended::Stopped => GuardHow::Cut,
        // Without an exit there is no proof of green.
        Ended::Lingered | Ended::SupervisorLost => GuardHow::Lost,
    };
    GuardEnd {
        digest: Some(Digest::of(output).to_string()),
        output: reduce(output, MAX_FAILURE),
        elapsed_ms: u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
        survivors: report.survivors,
        log_fault: report.log_fault.as_ref().map(ToString::to_string),
        containment: Some(report.containment),
        ..GuardEnd::new(how)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::words::Containment;

    #[test]
    fn log_that_the_disk_has_refused_is_told() {
        let report = Report {
            ended: Ended::Exited(0),
            elapsed: Duration::ZERO,
            answered: None,
            captured_bytes: 0,
            dropped_bytes: 5,
            log_fault: Some(std::io::ErrorKind::StorageFull.into()),
            survivors: 0,
            still_alive: None,
            containment: Containment::Cgroup,
        };
        assert_eq!(ended(&report, b"").log_fault.as_deref(), Some("no storage space"));
        assert_eq!(ended(&report, b"").containment, Some(Containment::Cgroup));
    }
}
