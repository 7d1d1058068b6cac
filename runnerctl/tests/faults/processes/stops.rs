//! Ends from outside: a person's stop, an orderly shutdown of the daemon, and kill -9. Rows 33 to 35.
//!
//! A gate holds the session or the guard when the stop arrives; the other phases are hit at random, in `slow`.

use protocol::words::RunStatus;
use runner_testkit::{Daemon, PATIENCE, SessionGate};

use crate::stage::FaultStage;

/// A phase in which the iteration is held, and its end if it is stopped there.
struct HeldPhase {
    /// The first session.
    session: &'static str,
    /// The first run of the guard.
    guard: &'static str,
    /// The verdict of an iteration that a person stopped there.
    stopped: &'static str,
    /// The verdict of an iteration whose daemon ended there, after the next daemon has started.
    resumed: &'static [&'static str],
}

const SESSION: HeldPhase = HeldPhase {
    session: "echo mine > mine.txt; misbehave daemonizes scrub; gate held",
    guard: "exit 0",
    stopped: "Interrupted",
    resumed: &["Interrupted", "Accepted"],
};

/// The leader has exited, and the remaining output of its child is read.
const DRAIN: HeldPhase = HeldPhase {
    session: "echo mine > mine.txt; misbehave chatters-after \"$kit/gates/held.in\"; answer retry 'Not yet.'",
    guard: "exit 0",
    stopped: "Interrupted",
    resumed: &["Interrupted", "Accepted"],
};

const GUARD: HeldPhase = HeldPhase {
    session: "echo mine > mine.txt; answer done 'It is done.'",
    guard: "misbehave daemonizes scrub; gate held",
    stopped: "Interrupted",
    resumed: &["Accepted"],
};

impl HeldPhase {
    /// Starts a run that is held in its first iteration while the gate is closed.
    fn begin(&self) -> (FaultStage, SessionGate) {
        let stage = FaultStage::new();
        let gate = stage.script().gate("held");
        stage.script().step(1, self.session).guard_step(1, self.guard);
        stage.script().always("echo more > more.txt; answer done 'It is done.'");
        stage.start_run();
        gate.wait_reached();
        (stage, gate)
    }

    /// Stops the run with a command, which must end all processes, and then lets it complete.
    fn assert_stopped_by(&self, command: &[&str], then: RunStatus, again: &[&str]) {
        let (stage, _gate) = self.begin();
        stage.ctl(command).exits(0);
        stage.wait_for_state(then);
        stage.assert_ended_as(&[self.stopped], &["mine\n"]);
        assert_eq!(stage.repo.node("root").attempts, 0, "no attempt is charged");
        stage.ctl(again).exits(0);
        stage.wait_for_state(RunStatus::Completed);
        stage.assert_ended_as(&[self.stopped, "Accepted"], &["mine\n", "more\n"]);
    }

    /// Ends the daemon, after which no process may be alive; the next daemon completes the run.
    fn assert_survives(&self, end: impl FnOnce(Daemon)) {
        let (mut stage, _gate) = self.begin();
        let script = stage.script().clone();
        stage.restart(|daemon| {
            assert!(script.is_any_alive(), "there is nothing to end");
            end(daemon);
            assert!(script.wait_all_gone(PATIENCE), "something outlives the daemon");
        });
        stage.wait_for_state(RunStatus::Completed);
        stage.assert_ended_as(self.resumed, &["mine\n"]);
    }
}

const PAUSE: &[&str] = &["pause", "--now"];
const CANCEL: &[&str] = &["cancel"];
const RESUME: &[&str] = &["resume", "--wait"];

#[test]
fn row_33_pause_ends_a_session_with_all_that_it_started() {
    SESSION.assert_stopped_by(PAUSE, RunStatus::Paused, RESUME);
}

#[test]
fn row_33_pause_ends_the_drain_after_a_session() {
    DRAIN.assert_stopped_by(PAUSE, RunStatus::Paused, RESUME);
}

#[test]
fn row_33_pause_ends_a_guard_with_all_that_it_started() {
    GUARD.assert_stopped_by(PAUSE, RunStatus::Paused, RESUME);
}

#[test]
fn row_33_cancel_ends_a_session_with_all_that_it_started() {
    SESSION.assert_stopped_by(CANCEL, RunStatus::Cancelled, &["start", "--wait", "--yes"]);
}

#[test]
fn row_33_cancel_ends_a_guard_with_all_that_it_started() {
    GUARD.assert_stopped_by(CANCEL, RunStatus::Cancelled, &["start", "--wait", "--yes"]);
}

#[test]
fn row_34_sigterm_ends_a_session_in_order() {
    SESSION.assert_survives(|daemon| assert!(daemon.stop().success()));
}

#[test]
fn row_34_sigterm_ends_a_guard_in_order() {
    GUARD.assert_survives(|daemon| assert!(daemon.stop().success()));
}

#[test]
fn row_34_second_sigterm_does_not_wait_for_a_session() {
    let deaf = HeldPhase {
        session: "echo mine > mine.txt; trap '' TERM; misbehave daemonizes; gate held; sleep 60",
        ..SESSION
    };
    deaf.assert_survives(Daemon::signal_twice);
}

#[test]
fn row_35_kill_leaves_nothing_of_a_session() {
    SESSION.assert_survives(Daemon::kill);
}

#[test]
fn row_35_kill_leaves_nothing_of_a_session_that_is_drained() {
    DRAIN.assert_survives(Daemon::kill);
}

#[test]
fn row_35_kill_leaves_nothing_of_a_guard() {
    GUARD.assert_survives(Daemon::kill);
}
