//! Rows that take seconds, and the seeded loops for phases in which no gate is possible. Rows 16, 21, 26 and 33 to 35.

use std::fs::{self, File};
use std::time::Instant;

use protocol::words::RunStatus;
use runner_testkit::invariants::{SPLIT_AND_DO, print_figure};
use runner_testkit::{Home, InterruptedRun, PATIENCE, UnsupervisedProgram, assert_same_end};

use crate::refusal::SyscallRefusal;
use crate::stage::FaultStage;

#[test]
fn row_16_processes_that_replace_themselves_all_the_time_are_ended() {
    let (stage, clock) = FaultStage::with_clock(Home::new());
    let end = stage.home.path().join("tmp/comet");
    File::create(&end).unwrap();
    let mut bare = UnsupervisedProgram::start(&format!("comet 60 {}", end.display()), 1);
    assert!(bare.leaks_after_kill(), "there is nothing to end");
    fs::remove_file(&end).unwrap();
    drop(bare);
    File::create(&end).unwrap();
    stage.script().step(1, &format!("echo mine > mine.txt; become comet 60 {}", end.display()));
    stage.run_over_budget(&clock, 1).exits(4);
    print_figure(&format!("ended {}", stage.repo.meta(1).survivors_ended));
    stage.assert_ended_as(&["Timeout"], &["mine\n"]);
    fs::remove_file(&end).unwrap();
}

#[test]
fn row_21_shim_that_a_program_stopped_is_given_up_after_the_budget() {
    let home = Home::new();
    home.limit_containment("walk");
    let (stage, clock) = FaultStage::with_clock(home);
    stage.script().step(1, "echo mine > mine.txt; become stops-shim");
    // The processes it leaves, and its own if the shim is stopped.
    stage.run_over_budget(&clock, 2).exits(4);
    stage.assert_ended_as(&["Timeout"], &["mine\n"]);
}

#[test]
fn row_21_run_whose_shim_is_stopped_can_be_cancelled() {
    for (session, guard) in [("gate held", "exit 0"), ("answer done 'It is done.'", "gate held")] {
        let stage = FaultStage::new();
        let gate = stage.script().gate("held");
        stage.script().step(1, &format!("echo mine > mine.txt; {session}")).guard_always(guard);
        stage.start_run();
        gate.wait_reached();
        let shims = stage.home.suspend_shims();
        assert!(!shims.is_empty(), "there is nothing to stop");
        stage.ctl(&["cancel"]).exits(0);
        stage.wait_for_state(RunStatus::Cancelled);
        stage.assert_ended_as(&["Interrupted"], &["mine\n"]);
    }
}

#[test]
fn row_21_shim_whose_calls_are_refused_leaves_nothing_alive() {
    let refusals = [
        ("kill,tkill,tgkill,pidfd_send_signal", "error=EPERM"),
        ("wait4,waitid", "error=EINTR"),
        ("poll,ppoll,read", "error=EIO"),
        ("poll,ppoll,read", "error=EINTR:when=1+2"),
        ("write", "error=EIO"),
        ("openat,getdents64", "error=EMFILE"),
    ];
    for (calls, what) in refusals {
        let stage = FaultStage::without_sandbox(|config| config);
        let gate = stage.script().gate("held");
        stage
            .script()
            .step(1, "echo mine > mine.txt; echo $PPID > \"$kit/shim\"; misbehave daemonizes scrub; gate held");
        stage.start_run();
        gate.wait_reached();
        let shim = fs::read_to_string(stage.script().folder().join("shim")).expect("the session noted its shim");
        let refusal = SyscallRefusal::attach(shim.trim().parse().expect("a number"), calls, what);
        let began = Instant::now();
        stage.ctl(&["pause", "--now"]).exits(0);
        stage.wait_for_state(RunStatus::Paused);
        print_figure(&format!("{calls}, {what}: paused after {:?}", began.elapsed()));
        assert!(!stage.script().is_any_alive(), "{calls}, {what}: something is alive");
        drop(refusal);
        stage.assert_ended_as(&["Interrupted"], &["mine\n"]);
    }
}

#[test]
fn row_33_whenever_a_person_stops_the_run_the_task_tree_ends_the_same() {
    assert_same_end(new_ordeal, |ordeal| {
        ordeal.home.ctl_in(&ordeal.repo, &["pause", "--now"]);
        let over = |state: RunStatus| state.is_terminal() || state == RunStatus::Paused;
        ordeal.home.client().wait_until(ordeal.repo.path(), |run| over(run.summary.state));
        assert!(!ordeal.repo.script().is_any_alive(), "something outlives the stop");
        ordeal.home.ctl_in(&ordeal.repo, &["resume"]);
    });
}

#[test]
fn row_34_whenever_the_daemon_is_ended_in_order_the_task_tree_ends_the_same() {
    assert_same_end(new_ordeal, |ordeal| {
        ordeal.restart(|daemon, ordeal| {
            assert!(daemon.stop().success());
            assert!(!ordeal.repo.script().is_any_alive(), "something outlives the daemon");
        });
    });
}

#[test]
fn row_35_whenever_the_daemon_is_killed_the_task_tree_ends_the_same() {
    assert_same_end(new_ordeal, |ordeal| {
        ordeal.restart(|daemon, ordeal| {
            daemon.kill();
            let killed = Instant::now();
            assert!(ordeal.repo.script().wait_all_gone(PATIENCE), "something outlives the daemon");
            print_figure(&format!("nothing alive after {:?}", killed.elapsed()));
        });
    });
}

#[test]
fn row_26_fork_that_the_system_refuses_is_waited_for() {
    let stage = FaultStage::new();
    stage.script().step(1, "echo mine > mine.txt; answer done 'It is done.'");
    stage.ctl(&["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    // `clone3` also creates the daemon's own threads.
    let refusal = SyscallRefusal::start(&stage, "clone,fork,vfork,clone3", "EAGAIN");
    stage.ctl(&["resume"]).exits(0);
    let waiting = stage.client().wait_for(stage.repo.path(), RunStatus::Waiting);
    assert!(waiting.summary.reason.is_some_and(|reason| reason.message.contains("temporarily unavailable")));
    drop(refusal);
    stage.wait_for_state(RunStatus::Completed);
    assert_eq!(stage.script().session_count(), 1);
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}

/// A run of four sessions, each of which hides something.
fn new_ordeal() -> InterruptedRun {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_iterations = 1000\nmax_consecutive_faults = 1"));
    repo.script().always(&format!("misbehave daemonizes scrub > /dev/null\n{SPLIT_AND_DO}"));
    repo.script().guard_always("misbehave daemonizes nondump > /dev/null");
    InterruptedRun::new(home, repo)
}
