//! Clocks that jump, machines that sleep, stopped daemons. Rows 45 to 47.

use std::time::Instant;

use protocol::words::RunStatus;
use runner_testkit::invariants::{SPLIT_AND_DO, assert_work_kept};
use runner_testkit::{Daemon, FakeClock, Home, Repo};

use crate::checks::assert_survived;
use crate::stage::{AT_ONCE, HOUR};

const DAY: i64 = 24 * HOUR;
/// Ignores the request to end; its budget is half an hour.
const DEAF: &str = "echo mine > mine.txt; trap '' TERM; gate held; sleep 600";

/// A run with clocks controlled by the test.
struct ClockedRun {
    daemon: Daemon,
    clock: FakeClock,
    repo: Repo,
    home: Home,
}

impl ClockedRun {
    fn begin_run(session: &str) -> Self {
        let home = Home::new();
        let clock = FakeClock::new(&home);
        let repo = home.scripted_repo("one");
        repo.script().always(session);
        let daemon = clock.daemon(&home);
        Self { daemon, clock, repo, home }
    }

    fn start(&self) {
        self.home.ctl_in(&self.repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    }

    fn assert_times_out(&self) {
        let began = Instant::now();
        let run = self.home.client().wait_for(self.repo.path(), RunStatus::TimedOut);
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
        assert!(run.summary.reason.expect("it says why").message.contains("budget"));
        assert!(self.repo.run_state("HEAD").elapsed_ms >= 3_600_000, "the hour is counted");
        assert_survived(&self.home, &self.repo, &["mine\n"]);
    }
}

#[test]
fn row_45_sleep_of_the_machine_counts_against_the_budget() {
    let run = ClockedRun::begin_run(DEAF);
    let gate = run.repo.script().gate("held");
    run.start();
    gate.wait_reached();
    run.clock.set(HOUR, 0);
    run.assert_times_out();
}

#[test]
fn row_46_time_in_which_daemon_and_shim_were_stopped_counts_against_the_budget() {
    let run = ClockedRun::begin_run(DEAF);
    let gate = run.repo.script().gate("held");
    run.start();
    gate.wait_reached();
    run.daemon.suspend();
    let shims = run.home.suspend_shims();
    assert!(!shims.is_empty(), "there is nothing to stop");
    run.clock.set(HOUR, 0);
    run.daemon.continue_running();
    drop(shims);
    run.assert_times_out();
}

#[test]
fn row_47_clock_that_is_set_by_a_day_changes_nothing() {
    for day in [DAY, -DAY] {
        let run = ClockedRun::begin_run(&format!("{SPLIT_AND_DO}\n[ \"$n\" != 2 ] || gate held"));
        let gate = run.repo.script().gate("held");
        run.start();
        gate.wait_reached();
        run.clock.set(0, day);
        gate.open();
        run.home.client().wait_for(run.repo.path(), RunStatus::Completed);
        assert_eq!(run.repo.script().session_count(), 4, "a decomposition and three leaves");
        assert!(run.repo.run_state("HEAD").elapsed_ms < 60_000, "{}", run.repo.run_state("HEAD").elapsed_ms);
        assert_survived(&run.home, &run.repo, &[]);
        assert_work_kept(&run.repo);
    }
}

#[test]
fn wait_for_the_service_that_ended_while_the_machine_slept_is_over_when_it_wakes() {
    let run = ClockedRun::begin_run("echo mine > mine.txt; answer done 'It is done.'");
    run.repo
        .script()
        .step(1, "answer_json '{\"error\":{\"class\":\"unavailable\",\"message\":\"usage limit reached\"}}'");
    run.start();
    let client = run.home.client();
    client.wait_for(run.repo.path(), RunStatus::Waiting);
    run.clock.set(HOUR, 0);
    // A request wakes a waiting worker; without one, a timer that was stopped meanwhile does so within a minute.
    client.list(run.repo.path());
    client.wait_for(run.repo.path(), RunStatus::Completed);
    assert_survived(&run.home, &run.repo, &["mine\n"]);
}

#[test]
fn wait_for_the_service_that_ended_while_no_daemon_ran_is_over_at_its_next_start() {
    let ClockedRun { daemon, clock, repo, home } =
        ClockedRun::begin_run("echo mine > mine.txt; answer done 'It is done.'");
    repo.script().step(1, "answer_json '{\"error\":{\"class\":\"unavailable\",\"message\":\"usage limit reached\"}}'");
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    home.client().wait_for(repo.path(), RunStatus::Waiting);
    daemon.kill();
    clock.set(0, HOUR);
    let _daemon = clock.daemon(&home);
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_survived(&home, &repo, &["mine\n"]);
}
