//! Attacks by a program on its supervisors, shim and daemon. Rows 19 to 22 and 27.
//!
//! All of them have the same user, so only a namespace can prevent this; these rows run without one.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::words::RunStatus;
use runner_testkit::{BystanderProcess, PATIENCE};

use crate::checks::assert_explains;
use crate::stage::FaultStage;

#[test]
fn row_19_what_outlives_a_killed_shim_is_ended_and_the_session_is_a_fault() {
    for how in ["kills-shim", "kills-shim scrub", "kills-shim nondump"] {
        let stage = FaultStage::without_sandbox(|config| config);
        stage.script().step(1, &format!("echo mine > mine.txt; become {how}"));
        stage.assert_fails_with("its supervisor was killed");
        stage.assert_ended_as(&["Fault"], &["mine\n"]);
    }
}

#[test]
fn row_19_guard_that_kills_its_shim_is_not_green() {
    let stage = FaultStage::without_sandbox(|config| config);
    stage.script().step(1, "echo mine > mine.txt; answer done 'It is done.'").guard_always("become kills-shim");
    let expected = ["the guard's supervisor was killed twice", "`runnerctl log --guard`", "runnerctl resume"];
    assert_explains(stage.run().exits(9), &expected);
    assert!(!stage.repo.node("root").passes);
    stage.assert_ended_as(&["Fault"], &["mine\n"]);
}

#[test]
fn row_19_guard_whose_shim_is_killed_from_outside_is_run_again_and_costs_nothing() {
    let stage = FaultStage::without_sandbox(|config| config);
    let script = stage.script();
    script.step(1, "echo mine > mine.txt; answer done 'It is done.'");
    script.guard_step(1, "echo $PPID > \"$kit/shim\"; gate guarding");
    let guarding = script.gate("guarding");
    stage.start_run();
    guarding.wait_reached();
    let shim = fs::read_to_string(script.folder().join("shim")).unwrap();
    kill(Pid::from_raw(shim.trim().parse().unwrap()), Signal::SIGKILL).expect("the shim can be killed");
    stage.wait_for_state(RunStatus::Completed);
    assert_eq!(stage.repo.node("root").attempts, 0, "an attempt was charged");
    assert_eq!(script.session_count(), 1, "the session is not repeated");
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}

#[test]
fn row_20_what_outlives_shim_and_daemon_is_ended_at_the_next_start() {
    for how in ["kills-both", "kills-both scrub", "kills-both nondump"] {
        let mut stage = FaultStage::without_sandbox(|config| config);
        stage.script().step(1, &format!("echo mine > mine.txt; become {how}"));
        stage.script().always("echo more > more.txt; answer done 'It is done.'");
        stage.start_run();
        let script = stage.script().clone();
        stage.restart(|daemon| {
            daemon.wait_killed();
            assert!(script.is_any_alive(), "there is nothing to end");
        });
        stage.wait_for_state(RunStatus::Completed);
        stage.assert_ended_as(&["Interrupted", "Accepted"], &["mine\n", "more\n"]);
    }
}

#[test]
fn row_20_guard_that_kills_shim_and_daemon_is_run_again() {
    let mut stage = FaultStage::without_sandbox(|config| config);
    stage.script().step(1, "echo mine > mine.txt; answer done 'It is done.'").guard_step(1, "become kills-both scrub");
    stage.start_run();
    let script = stage.script().clone();
    stage.restart(|daemon| {
        daemon.wait_killed();
        assert!(script.is_any_alive(), "there is nothing to end");
    });
    stage.wait_for_state(RunStatus::Completed);
    assert_eq!(stage.script().session_count(), 1, "the session is not repeated");
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}

#[test]
fn row_20_program_that_kills_the_daemon_alone_is_ended_by_its_shim() {
    let mut stage = FaultStage::without_sandbox(|config| config);
    stage.script().step(1, "echo mine > mine.txt; become kills-daemon");
    stage.script().always("echo more > more.txt; answer done 'It is done.'").guard_step(1, "become kills-daemon");
    stage.start_run();
    let script = stage.script().clone();
    for _ in ["session", "guard"] {
        stage.restart(|daemon| {
            daemon.wait_killed();
            assert!(script.wait_all_gone(PATIENCE), "the shim leaves something alive");
        });
    }
    stage.wait_for_state(RunStatus::Completed);
    stage.assert_ended_as(&["Interrupted", "Accepted"], &["mine\n", "more\n"]);
}

#[test]
fn row_22_shim_keeps_to_the_budget_while_the_daemon_is_stopped() {
    // It continues after being asked to end at half of its budget, so it has the whole budget to start in.
    let stage = FaultStage::without_sandbox(|config| config.top("iteration_timeout_secs = 8"));
    stage.script().step(1, "echo mine > mine.txt; trap '' TERM; become stops-daemon");
    stage.start_run();
    stage.daemon().wait_stopped();
    assert!(stage.script().wait_all_gone(PATIENCE), "something is alive after the budget");
    assert!(stage.daemon().is_stopped(), "the daemon had a part in it");
    stage.daemon().continue_running();
    stage.wait_for_state(RunStatus::TimedOut);
    stage.assert_ended_as(&["Timeout"], &["mine\n"]);
}

#[test]
fn row_27_bystander_that_got_the_number_of_a_dead_shim_is_left_alone() {
    BystanderProcess::become_subreaper();
    let mut stage = FaultStage::without_sandbox(|config| config);
    stage.script().step(1, "echo mine > mine.txt; echo $PPID > \"$kit/shim\"; become kills-both scrub");
    stage.script().always("echo more > more.txt; answer done 'It is done.'");
    stage.start_run();
    let script = stage.script().clone();
    let mut bystander = None;
    stage.restart(|daemon| {
        daemon.wait_killed();
        assert!(script.is_any_alive(), "there is nothing to end");
        let shim = fs::read_to_string(script.folder().join("shim")).unwrap();
        bystander = Some(BystanderProcess::with_pid(shim.trim().parse().unwrap()));
    });
    stage.wait_for_state(RunStatus::Completed);
    assert!(bystander.as_mut().is_some_and(BystanderProcess::is_alive), "a bystander was hit");
    stage.assert_ended_as(&["Interrupted", "Accepted"], &["mine\n", "more\n"]);
}
