//! Programs that try to survive their end. Each has a control which shows that a weaker kill would leave something.

use std::{
    fs::{self, File},
    path::PathBuf,
    time::Duration,
};

use runner_process::ProgramEnd;

use crate::{
    bare::BareProgram,
    kit::{PATIENCE, RunningProgram, TestFolder, assert_all_dead, run_to_end},
};

/// Stops a program when `count` of its processes are ready, and asserts that all are dead when the report arrives.
async fn assert_stop_ends_all(call: &str, count: usize) {
    let bench = TestFolder::new();
    let mut running = RunningProgram::start(bench.agent(call));
    let processes = running.lines.processes(count).await;
    running.stop.cancel();
    let report = running.report().await;
    assert_all_dead(&processes);
    assert_eq!(report.end, ProgramEnd::Stopped);
    assert!(report.still_alive.is_none());
}

/// Lets a program exit, and asserts that the process it left is dead when the report arrives.
async fn assert_end_ends_all(call: &str) {
    let bench = TestFolder::new();
    let mut running = RunningProgram::start(bench.agent(call));
    let processes = running.lines.processes(1).await;
    let report = running.report().await;
    assert_all_dead(&processes);
    assert_eq!((report.end, report.survivors), (ProgramEnd::Exited(0), 1));
}

#[tokio::test]
async fn program_that_ignores_sigterm_is_killed_after_the_grace() {
    assert_stop_ends_all("ignores-term", 1).await;
}

#[tokio::test]
async fn survivor_of_a_double_fork_is_ended() {
    assert_end_ends_all("daemonizes").await;
    assert_eq!(BareProgram::start("daemonizes", 1).left_after_end(), 1);
}

#[tokio::test]
async fn survivor_without_an_environment_is_ended() {
    assert_end_ends_all("daemonizes scrub").await;
    assert_eq!(BareProgram::start("daemonizes scrub", 1).left_after_end(), 1);
}

#[tokio::test]
async fn survivor_that_hides_itself_is_ended() {
    assert_end_ends_all("daemonizes nondump").await;
    assert_eq!(BareProgram::start("daemonizes nondump", 1).left_after_end(), 1);
}

#[tokio::test]
async fn survivor_that_holds_the_output_is_ended() {
    assert_end_ends_all("daemonizes keepfds").await;
    assert_eq!(BareProgram::start("daemonizes keepfds", 1).left_after_end(), 1);
}

#[tokio::test]
async fn daemon_beside_a_program_that_is_stopped_is_ended() {
    assert_stop_ends_all("hides scrub nondump", 2).await;
    assert_eq!(BareProgram::start("hides scrub", 2).left_after_kill(), 1);
}

#[tokio::test]
async fn processes_in_groups_of_their_own_are_ended() {
    assert_stop_ends_all("own-groups", 6).await;
    assert_eq!(BareProgram::start("own-groups", 6).left_after_kill(), 5);
}

#[tokio::test]
async fn orphans_of_a_nested_subreaper_are_ended() {
    assert_stop_ends_all("nested-subreaper", 3).await;
    assert_eq!(BareProgram::start("nested-subreaper", 3).left_after_kill(), 2);
}

#[tokio::test]
async fn stopped_process_is_woken_to_be_ended() {
    assert_stop_ends_all("stopped", 2).await;
    assert_eq!(BareProgram::start("stopped", 2).left_after_kill(), 1);
}

#[tokio::test]
async fn processes_that_replace_themselves_all_the_time_are_ended() {
    let bench = TestFolder::new();
    let (path, call) = comet(&bench);
    let all_hold = File::create(&path).unwrap();
    let mut spec = bench.agent(&call);
    spec.limits.grace = Duration::from_millis(100);
    let mut running = RunningProgram::start(spec);
    running.lines.processes(1).await;
    running.stop.cancel();
    let report = running.report().await;
    assert!(all_hold.try_lock().is_ok(), "a process still holds the lock");
    assert_eq!(report.end, ProgramEnd::Stopped);
    assert!(report.still_alive.is_none());
}

#[test]
fn processes_that_replace_themselves_all_the_time_survive_a_lesser_kill() {
    let bench = TestFolder::new();
    let (path, call) = comet(&bench);
    let all_hold = File::create(&path).unwrap();
    BareProgram::start(&call, 1).left_after_kill();
    assert!(all_hold.try_lock().is_err(), "the control leaves nothing either");
    fs::remove_file(&path).unwrap();
    all_hold.lock().unwrap();
}

fn comet(bench: &TestFolder) -> (PathBuf, String) {
    let path = bench.path("comet");
    let call = format!("comet 20 {}", path.display());
    (path, call)
}

#[tokio::test]
async fn dropping_the_run_kills() {
    let bench = TestFolder::new();
    let mut running = RunningProgram::start(bench.agent("hides scrub"));
    let processes = running.lines.processes(2).await;
    running.abort().await;
    for process in &processes {
        assert!(process.dies_within(PATIENCE));
    }
}

#[tokio::test]
async fn shim_that_is_killed_leaves_nothing() {
    let bench = TestFolder::new();
    let mut running = RunningProgram::start(bench.agent("kills-shim scrub"));
    let processes = running.lines.processes(2).await;
    let report = running.report().await;
    assert_all_dead(&processes);
    assert_eq!(report.end, ProgramEnd::SupervisorLost);
    assert_eq!(BareProgram::start("hides scrub", 2).left_after_kill(), 1);
}

#[tokio::test]
async fn shim_that_is_stopped_does_not_extend_the_budget() {
    let bench = TestFolder::new();
    let mut spec = bench.agent("stops-shim");
    // It must start within this time, next to processes that keep the machine busy.
    spec.limits.budget = Duration::from_secs(4);
    spec.limits.grace = Duration::ZERO;
    let mut running = RunningProgram::start(spec);
    let processes = running.lines.processes(2).await;
    let report = running.report().await;
    assert_all_dead(&processes);
    assert_eq!(report.end, ProgramEnd::TimedOut);
}

#[tokio::test]
async fn background_job_of_a_shell_is_ended_with_it() {
    let bench = TestFolder::new();
    let report = run_to_end(bench.sh("sleep 1000 & exit 4")).await;
    assert_eq!((report.end, report.survivors), (ProgramEnd::Exited(4), 1));
}
