//! Runs the guard, the project's own checks, as configured, and turns its result into facts.

mod reports;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::words::GuardOutcome;
use runner_config::{GuardConfig, Patterns};
use runner_core::feedback::{list_failing_names, read_test_results, reduce};
use runner_core::iteration::transition::MAX_FAILURE;
use runner_core::iteration::{GuardEnd, GuardEndKind};
use runner_core::message::NameList;
use runner_core::text::digest::Digest;
use runner_core::text::redact::Secrets;
use runner_process::{
    Launcher, LogFile, Mark, OutputPiece, ProgramEnd, ProgramReport, ProgramSpec, SpawnError, StopPolicy, TimeLimits,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::reports::ReportWatch;
use crate::repo::durable;

/// The name of the guard itself in messages.
pub const GUARD_NAME: &str = "the guard";
/// Time between the request to exit and the kill.
const GRACE: Duration = Duration::from_secs(5);

/// What a guard is given.
#[derive(Debug)]
pub struct GuardCall<'a> {
    /// Its name in the message if it cannot be started.
    pub display_name: &'static str,
    /// The command, and how much of its output is kept.
    pub config: &'a GuardConfig,
    /// The reports from which its tests are read; `None` if its tests do not matter.
    pub reports: Option<&'a Patterns>,
    /// Root of the work tree.
    pub folder: &'a Path,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
    /// The file for its output.
    pub log: PathBuf,
    /// Receives its output as it is printed.
    pub output: Option<mpsc::Sender<OutputPiece>>,
    /// Secrets that must not get from it into a record or a commit.
    pub secrets: Secrets,
    /// The remaining budget.
    pub budget: Duration,
    /// The mark by which its processes are found.
    pub mark: Mark,
    /// Lock of its shim.
    pub lock: PathBuf,
}

/// Runs the guard to its end; its changes to the repository are not checked here.
///
/// A missing program is an end like others; an error is something that may work later.
pub async fn run_guard(
    guard: GuardCall<'_>,
    launcher: &Launcher,
    stop: &CancellationToken,
) -> Result<GuardEnd, SpawnError> {
    let log = guard.log.clone();
    let mark = guard.mark.clone();
    let lock = guard.lock.clone();
    let display_name = guard.display_name;
    let watch = tokio::task::block_in_place(|| guard.reports.and_then(|globs| ReportWatch::begin(guard.folder, globs)));
    match runner_process::run_program(launcher, program_spec(guard), stop).await {
        Ok(mut report) => {
            runner_process::wait_until_gone(&mark, &lock, report.still_alive.take()).await;
            // A check may have put something else in the place of the log: that does not count as output.
            Ok(tokio::task::block_in_place(|| {
                let end = guard_end(&report, &durable::read(&log).ok().flatten().unwrap_or_default());
                match watch {
                    Some(watch) => with_reports(end, &watch),
                    None => end,
                }
            }))
        }
        Err(error) if error.is_misconfigured() => {
            Ok(GuardEnd::new(GuardEndKind::Missing { what: format!("{display_name} cannot be started: {error}") }))
        }
        Err(error) => Err(error),
    }
}

fn program_spec(guard: GuardCall<'_>) -> ProgramSpec<'static> {
    ProgramSpec {
        argv: guard.config.command.iter().map(OsString::from).collect(),
        cwd: guard.folder.to_owned(),
        env: guard.env,
        stdin: Vec::new(),
        mark: guard.mark,
        lock: guard.lock,
        limits: TimeLimits { budget: guard.budget, idle: None, grace: GRACE },
        log: LogFile { path: guard.log, cap_bytes: guard.config.output_limit_bytes, secrets: guard.secrets },
        follower: None,
        separates_output: false,
        stop_policy: StopPolicy::Terminate,
        output: guard.output,
        no_new_privs: true,
    }
}

fn guard_end(report: &ProgramReport, output: &[u8]) -> GuardEnd {
    let how = match report.end {
        ProgramEnd::Exited(code) => GuardEndKind::Exited(code),
        ProgramEnd::Signaled(signal) => GuardEndKind::Signaled(signal),
        ProgramEnd::TimedOut | ProgramEnd::Silent => GuardEndKind::TimedOut,
        ProgramEnd::Stopped => GuardEndKind::Cut,
        // Without an exit code there is no proof that it passed.
        ProgramEnd::Lingered | ProgramEnd::SupervisorLost => GuardEndKind::Lost,
    };
    // A test that is named in what was left out must not count as lost.
    let is_whole = report.dropped_bytes == 0 && report.log_fault.is_none();
    GuardEnd {
        digest: Some(Digest::compute(output).to_string()),
        output: reduce(output, MAX_FAILURE),
        tests: is_whole.then(|| read_test_results(output)).flatten(),
        failing: NameList::new(list_failing_names(output)),
        elapsed_ms: u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
        survivors: report.survivors,
        log_fault: report.log_fault.as_ref().map(ToString::to_string),
        containment: Some(report.containment),
        ..GuardEnd::new(how)
    }
}

/// Returns the end with the tests that the reports name, or why they are unknown.
fn with_reports(end: GuardEnd, watch: &ReportWatch) -> GuardEnd {
    match watch.read_results() {
        Ok(results) => GuardEnd { tests: Some(results), ..end },
        // A guard that fails before its tests writes no reports.
        Err(_) if end.outcome() != GuardOutcome::Pass => GuardEnd { tests: None, ..end },
        Err(fault) => GuardEnd { tests: None, report_fault: Some(fault), ..end },
    }
}

#[cfg(test)]
mod tests {
    use protocol::words::Containment;

    use super::*;
    use runner_core::guard::test_results::TestOutcome;

    #[test]
    fn log_that_the_disk_has_refused_is_told() {
        let report = ProgramReport {
            end: ProgramEnd::Exited(0),
            elapsed: Duration::ZERO,
            answered: None,
            captured_bytes: 0,
            dropped_bytes: 5,
            log_fault: Some(std::io::ErrorKind::StorageFull.into()),
            survivors: 0,
            still_alive: None,
            containment: Containment::Cgroup,
        };
        assert_eq!(guard_end(&report, b"").log_fault.as_deref(), Some("no storage space"));
        assert_eq!(guard_end(&report, b"").containment, Some(Containment::Cgroup));
    }

    #[test]
    fn tests_are_known_only_from_a_whole_log() {
        let whole = ProgramReport {
            end: ProgramEnd::Exited(0),
            elapsed: Duration::ZERO,
            answered: None,
            captured_bytes: 20,
            dropped_bytes: 0,
            log_fault: None,
            survivors: 0,
            still_alive: None,
            containment: Containment::Cgroup,
        };
        let passed = guard_end(&whole, b"test a ... ok\n").tests.expect("a whole log");
        assert_eq!(passed.names(TestOutcome::Passed), ["a"]);
        assert_eq!(guard_end(&ProgramReport { dropped_bytes: 5, ..whole }, b"test a ... ok\n").tests, None);
    }
}
