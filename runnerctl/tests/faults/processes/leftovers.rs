//! Processes that a program leaves running when it ends or is stopped. Rows 6 to 17 and 30.
//!
//! Each row also shows that if only the leader of the same program ends, something stays alive.

use std::time::Duration;

use protocol::words::RunStatus;
use runner_testkit::invariants::print_figure;
use runner_testkit::{Home, UnsupervisedProgram};

use crate::stage::{AT_ONCE, FaultStage};

const ANSWER: &str = "echo mine > mine.txt; answer done 'It is done.'";

/// Lets a session exit after its answer, with one process left, and returns what became of that.
fn stage_with_leftover(how: &str) -> FaultStage {
    assert!(UnsupervisedProgram::start(how, 1).leaks_after_end(), "`{how}` leaves nothing to end");
    let stage = FaultStage::new();
    stage.script().step(1, &format!("{ANSWER}; misbehave {how}"));
    stage.run().exits(0);
    assert_eq!(stage.repo.meta(1).survivors_ended, 1);
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
    stage
}

/// Lets the budget of a session expire while `count` of its processes are running.
fn assert_all_end_with_the_budget(how: &str, count: usize) {
    assert!(UnsupervisedProgram::start(how, count).leaks_after_kill(), "`{how}` leaves nothing to end");
    let (stage, clock) = FaultStage::with_clock(Home::new());
    stage.script().step(1, &format!("echo mine > mine.txt; become {how}"));
    stage.run_over_budget(&clock, count).exits(4);
    assert_eq!(stage.repo.read_record(1, "executor.log").matches("PID ").count(), count, "not all was there");
    stage.assert_ended_as(&["Timeout"], &["mine\n"]);
}

/// Lets a session end whose child keeps the output open, and returns how long it took.
fn time_with_pipe_holder(how: &str) -> (FaultStage, Duration) {
    let stage = FaultStage::new();
    stage.script().step(1, &format!("{ANSWER}; misbehave {how}"));
    stage.run().exits(0);
    assert_eq!(stage.repo.meta(1).survivors_ended, 1);
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
    let spent = stage.time_spent();
    print_figure(&format!("{how}: {spent:?}"));
    (stage, spent)
}

#[test]
fn row_06_daemon_of_a_double_fork_is_ended_and_counted() {
    stage_with_leftover("daemonizes");
}

#[test]
fn row_07_daemon_without_an_environment_is_ended_and_counted() {
    stage_with_leftover("daemonizes scrub");
}

#[test]
fn row_08_daemon_that_hides_itself_is_ended_and_counted() {
    stage_with_leftover("daemonizes nondump");
}

#[test]
fn row_09_daemon_that_keeps_the_output_holds_nothing_up() {
    let stage = stage_with_leftover("daemonizes keepfds");
    assert!(stage.time_spent() < AT_ONCE, "{:?}", stage.time_spent());
    assert!(stage.repo.read_record(1, "executor.log").contains("PID "), "the output is complete");
}

#[test]
fn row_10_silent_holder_of_the_output_is_not_waited_for() {
    let (_stage, spent) = time_with_pipe_holder("holds-pipe");
    assert!(spent < AT_ONCE, "{spent:?}");
}

#[test]
fn row_11_chatty_holder_of_the_output_is_not_waited_for_until_it_is_silent() {
    let (_stage, spent) = time_with_pipe_holder("chatters");
    assert!(spent < AT_ONCE, "{spent:?}");
}

#[test]
fn row_12_last_line_of_a_late_writer_is_kept() {
    let (stage, _) = time_with_pipe_holder("writes-late");
    assert!(stage.repo.read_record(1, "executor.log").ends_with("LAST LINE\n"));
}

#[test]
fn row_13_stopped_process_is_woken_to_be_ended() {
    assert_all_end_with_the_budget("stopped", 2);
}

#[test]
fn row_14_processes_in_groups_of_their_own_are_ended() {
    assert_all_end_with_the_budget("own-groups", 6);
}

#[test]
fn row_15_orphans_of_a_nested_subreaper_are_ended() {
    assert_all_end_with_the_budget("nested-subreaper", 3);
}

#[test]
fn row_17_many_processes_with_all_descriptors_they_can_get_hold_up_nothing_of_the_daemons() {
    let stage = FaultStage::new();
    let gate = stage.script().gate("exhausted");
    stage
        .script()
        .step(1, "echo mine > mine.txt; ulimit -n 1024; misbehave exhausts 150; gate exhausted; answer done 'Done.'");
    stage.start_run();
    gate.wait_reached();
    stage.ctl(&["status"]).exits(0);
    gate.open();
    stage.client().wait_for(stage.repo.path(), RunStatus::Completed);
    assert_eq!(stage.repo.meta(1).survivors_ended, 150);
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}

#[test]
fn row_30_server_that_a_guard_leaves_is_ended_and_the_verdict_stays() {
    for (end, verdict) in [("exit 0", "Accepted"), ("exit 1", "RedGuard")] {
        let stage = FaultStage::with_config(|config| config.top("max_iterations = 1"));
        stage.script().step(1, ANSWER).guard_always(&format!("misbehave daemonizes scrub; {end}"));
        stage.run();
        assert_eq!(stage.repo.meta(1).survivors_ended, 1);
        stage.assert_ended_as(&[verdict], &["mine\n"]);
    }
}
