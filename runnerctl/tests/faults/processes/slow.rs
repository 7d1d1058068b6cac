//! Rows that take seconds, and the seeded loops that meet the phases which no gate can hold. Rows 16,
//! 21, 26 and 33 to 35.
//!
//! `SEED` sets with which random number the loops begin, `RUNS` how many there are.

use std::env;
use std::fs::{self, File};
use std::thread;
use std::time::{Duration, Instant};

use protocol::words::RunStatus;
use runner_testkit::witness::{SPLIT_AND_DO, assert_work_kept, note};
use runner_testkit::{Bare, Random};

use crate::checks::assert_survived;
use crate::refusal::Refusal;
use crate::stage::Stage;

/// Interruptions of one random run; after them it may come to its end.
const INTERRUPTIONS: u32 = 12;

#[test]
fn row_16_processes_that_replace_themselves_all_the_time_are_ended() {
    let stage = Stage::hurried(4);
    let end = stage.home.path().join("tmp/comet");
    File::create(&end).unwrap();
    let mut bare = Bare::start(&format!("comet 60 {}", end.display()), 1);
    assert!(bare.leaks_after_kill(), "there is nothing to end");
    fs::remove_file(&end).unwrap();
    drop(bare);
    File::create(&end).unwrap();
    stage.script().step(1, &format!("echo mine > mine.txt; become comet 60 {}", end.display()));
    stage.run().exits(4);
    note(&format!("ended {} after {:?}", stage.repo.meta(1).survivors_ended, stage.spent()));
    assert!(stage.spent() < Duration::from_secs(10), "{:?}", stage.spent());
    stage.ended_as(&["Timeout"], &["mine\n"]);
    fs::remove_file(&end).unwrap();
}

#[test]
fn row_21_shim_that_a_program_stopped_is_given_up_after_the_budget() {
    let stage = Stage::exposed(|config| config.top("iteration_timeout_secs = 2"));
    stage.script().step(1, "echo mine > mine.txt; become stops-shim");
    stage.run().exits(4);
    assert!(stage.spent() >= Duration::from_secs(2), "{:?}", stage.spent());
    assert!(stage.spent() < Duration::from_secs(20), "{:?}", stage.spent());
    stage.ended_as(&["Timeout"], &["mine\n"]);
}

#[test]
fn row_21_run_whose_shim_is_stopped_can_be_cancelled() {
    for (session, guard) in [("gate held", "exit 0"), ("answer done 'It is done.'", "gate held")] {
        let stage = Stage::new();
        let gate = stage.script().gate("held");
        stage.script().step(1, &format!("echo mine > mine.txt; {session}")).guard_always(guard);
        stage.begin();
        gate.reached();
        let shims = stage.home.suspend_shims();
        assert!(!shims.is_empty(), "there is nothing to stop");
        stage.ctl(&["cancel"]).exits(0);
        stage.comes_to(RunStatus::Cancelled);
        stage.ended_as(&["Interrupted"], &["mine\n"]);
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
        let stage = Stage::exposed(|config| config);
        let gate = stage.script().gate("held");
        stage
            .script()
            .step(1, "echo mine > mine.txt; echo $PPID > \"$kit/shim\"; misbehave daemonizes scrub; gate held");
        stage.begin();
        gate.reached();
        let shim = fs::read_to_string(stage.script().folder().join("shim")).expect("the session noted its shim");
        let refusal = Refusal::to(shim.trim().parse().expect("a number"), calls, what);
        let began = Instant::now();
        stage.ctl(&["pause", "--now"]).exits(0);
        stage.comes_to(RunStatus::Paused);
        note(&format!("{calls}, {what}: paused after {:?}", began.elapsed()));
        assert!(!stage.script().is_any_alive(), "{calls}, {what}: something is alive");
        drop(refusal);
        stage.ended_as(&["Interrupted"], &["mine\n"]);
    }
}

#[test]
fn row_33_whenever_a_person_stops_the_run_the_task_tree_ends_the_same() {
    for_each_seed(|stage| {
        stage.ctl(&["pause", "--now"]);
        let over = |state: RunStatus| state.is_terminal() || state == RunStatus::Paused;
        stage.client().wait_until(stage.repo.path(), |run| over(run.summary.state));
        assert!(!stage.script().is_any_alive(), "something outlives the stop");
        stage.ctl(&["resume"]);
    });
}

#[test]
fn row_34_whenever_the_daemon_is_ended_in_order_the_task_tree_ends_the_same() {
    for_each_seed(|stage| {
        let script = stage.script().clone();
        stage.restart(|daemon| {
            assert!(daemon.stop().success());
            assert!(!script.is_any_alive(), "something outlives the daemon");
        });
    });
}

#[test]
fn row_35_whenever_the_daemon_is_killed_the_task_tree_ends_the_same() {
    for_each_seed(|stage| {
        let script = stage.script().clone();
        stage.restart(|daemon| {
            daemon.kill();
            let killed = Instant::now();
            assert!(script.all_gone_within(Duration::from_secs(5)), "something outlives the daemon");
            note(&format!("nothing alive after {:?}", killed.elapsed()));
        });
    });
}

#[test]
fn row_26_fork_that_the_system_refuses_is_waited_for() {
    let stage = Stage::new();
    stage.script().step(1, "echo mine > mine.txt; answer done 'It is done.'");
    stage.ctl(&["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    // The last one makes the daemon's own threads too.
    let refusal = Refusal::start(&stage, "clone,fork,vfork,clone3", "EAGAIN");
    stage.ctl(&["resume"]).exits(0);
    let waiting = stage.client().wait_for(stage.repo.path(), RunStatus::Waiting);
    assert!(waiting.summary.reason.is_some_and(|reason| reason.message.contains("temporarily unavailable")));
    drop(refusal);
    stage.comes_to(RunStatus::Completed);
    assert_eq!(stage.script().sessions(), 1);
    stage.ended_as(&["Accepted"], &["mine\n"]);
}

/// A run of four sessions, in each of which something hides.
fn stage() -> Stage {
    let stage = Stage::with(|config| config.top("max_iterations = 1000"));
    stage.script().always(&format!("misbehave daemonizes scrub > /dev/null\n{SPLIT_AND_DO}"));
    stage.script().guard_always("misbehave daemonizes nondump > /dev/null");
    stage
}

/// Interrupts random runs again and again; they must end as one that nobody interrupted.
fn for_each_seed(interrupt: impl Fn(&mut Stage)) {
    let number = |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let undisturbed = stage();
    let began = Instant::now();
    undisturbed.run().exits(0);
    // Half the time of a run at the most: the first interruption never comes too late, on machines of any speed.
    let longest = u64::try_from(began.elapsed().as_millis() / 2).expect("a short run");
    let expected = undisturbed.repo.show("HEAD", ".runner/state/tree.json");
    let first = number("SEED", 1);
    for seed in first..first + number("RUNS", 1) {
        let (mut stage, mut random) = (stage(), Random::new(seed));
        stage.begin();
        for _ in 0..INTERRUPTIONS {
            thread::sleep(Duration::from_millis(random.below(longest)));
            if stage.client().run(stage.repo.path()).summary.state.is_terminal() {
                break;
            }
            interrupt(&mut stage);
        }
        let run = stage.client().wait_until(stage.repo.path(), |run| run.summary.state.is_terminal());
        assert_eq!(run.summary.state, RunStatus::Completed, "seed {seed}: {run:#?}");
        assert_eq!(stage.repo.show("HEAD", ".runner/state/tree.json"), expected, "seed {seed}");
        assert_survived(&stage.home, &stage.repo, &[]);
        assert_work_kept(&stage.repo);
        note(&format!("seed {seed}: {} iterations", stage.repo.receipts().len()));
    }
}
