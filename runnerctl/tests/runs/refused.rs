//! Every refusal in the table of `docs/run.md`, requested by a client for a run that was brought into that state
//! through a real daemon.

use protocol::words::RunStatus;

use crate::play::{RUN, RunPlay, leaf, node, sample};
use crate::review_by_person::waiting_play;

const START: &[&str] = &["start", "--yes"];
const RESUME: &[&str] = &["resume", "--yes"];
const NOW: &[&str] = &["resume", "--now", "--yes"];
const MORE: &[&str] = &["resume", "--more", "5", "--yes"];
const STEP: &[&str] = &["step", "--yes"];
const PAUSE: &[&str] = &["pause"];
const PAUSE_NOW: &[&str] = &["pause", "--now"];
const CANCEL: &[&str] = &["cancel"];
const APPROVE: &[&str] = &["approve", "--iter", "1"];
const NOTE: &[&str] = &["note", "Anything"];
const RETRY: &[&str] = &["retry", "b"];

/// Asserts that each request is refused with a message that contains this, and changes nothing.
#[track_caller]
fn assert_refuses(play: &RunPlay, state: RunStatus, cells: &[(&[&[&str]], &str)]) {
    play.client().wait_for(play.repo.path(), state);
    let head = play.repo.head();
    for (requests, says) in cells {
        for request in *requests {
            let output = play.home.ctl_in(&play.repo, request);
            assert_eq!(output.code, 6, "{state}: {request:?}: {}{}", output.stdout, output.stderr);
            assert!(output.stderr.contains(says), "{state}: {request:?}: {}", output.stderr);
            assert_eq!(play.client().run(play.repo.path()).summary.state, state, "{request:?}");
        }
    }
    assert_eq!(play.repo.head(), head);
}

#[test]
fn a_completed_run_is_not_begun_stepped_resumed_stopped_or_changed() {
    let mut tree = sample();
    tree.root.children = vec![leaf("b", 1)];
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 3"));
    play.script().always("echo done > done.txt; answer done 'It is done.'");
    play.run().exits(0);
    let start: &[&str] = &["start", "--yes", "--id", RUN];
    assert_refuses(
        &play,
        RunStatus::Completed,
        &[
            (&[START, start, STEP, RESUME, NOW, MORE], "is completed\n\nhint: runnerctl start -m"),
            (&[PAUSE, PAUSE_NOW, CANCEL], "has ended already (completed)"),
            (&[APPROVE], "nothing awaits your review"),
            (&[NOTE, RETRY], "the run is completed"),
        ],
    );
}

#[test]
fn a_stuck_run_is_not_begun_stepped_resumed_or_stopped_until_it_has_attempts() {
    let mut tree = sample();
    node(&mut tree, "b").max_attempts = 1;
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 9"));
    play.script().step(1, "answer retry 'Too hard.'");
    play.script().always("echo $n > \"$n.txt\"; answer done 'It is done.'");
    play.run().exits(3);
    assert_refuses(
        &play,
        RunStatus::Stuck,
        &[
            (
                &[START, STEP, RESUME, NOW, MORE],
                "is still stuck: task b has used its only attempt; iteration 1 asked for another session: Too hard.\n\nhint: \
                 runnerctl retry b",
            ),
            (&[PAUSE, PAUSE_NOW, CANCEL], "has ended already (stuck)"),
            (&[APPROVE], "nothing awaits your review"),
        ],
    );
    play.home.ctl_in(&play.repo, &["retry", "b"]).exits(0);
    let reason = play.client().run(play.repo.path()).summary.reason.expect("it says how it stands");
    assert_eq!(reason.message, "the reason why it stopped has changed since, and it can continue");
    assert_eq!(reason.command.as_deref(), Some("runnerctl resume"));
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(0);
}

#[test]
fn a_retry_continues_the_run_if_asked_to() {
    let mut tree = sample();
    node(&mut tree, "b").max_attempts = 1;
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 9"));
    play.script().step(1, "answer retry 'Too hard.'");
    play.script().always("echo $n > \"$n.txt\"; answer done 'It is done.'");
    play.run().exits(3);
    play.home.ctl_in(&play.repo, &["retry", "b", "--resume"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Completed);
}

#[test]
fn a_run_at_its_limit_is_not_begun_stepped_resumed_or_stopped_until_it_is_raised() {
    let play = RunPlay::new();
    play.script().always("answer retry \"Not yet, $n.\"");
    play.run().exits(4);
    assert_refuses(
        &play,
        RunStatus::Limit,
        &[
            (
                &[START, STEP, RESUME, NOW],
                "is still at its limit: the only iteration is used up\n\nhint: runnerctl resume --more 20",
            ),
            (&[PAUSE, PAUSE_NOW, CANCEL], "has ended already (limit)"),
            (&[APPROVE], "nothing awaits your review"),
        ],
    );
    play.home.ctl_in(&play.repo, &["config", "set", "max_iterations", "2"]).exits(0);
    let reason = play.client().run(play.repo.path()).summary.reason.expect("it says how it stands");
    assert_eq!(reason.command.as_deref(), Some("runnerctl resume"));
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(4);
    play.iteration_at(2);
    play.home.ctl_in(&play.repo, &["resume", "--more", "1"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Stuck);
    play.iteration_at(3);
}

#[test]
fn a_cancelled_run_is_not_stepped_resumed_stopped_or_reviewed() {
    let play = RunPlay::new();
    play.home.ctl_in(&play.repo, &["start", "--yes", "--id", RUN, "--queue-only"]).exits(0);
    play.home.ctl_in(&play.repo, CANCEL).exits(0);
    assert_refuses(
        &play,
        RunStatus::Cancelled,
        &[
            (&[STEP, RESUME, NOW, MORE, APPROVE], "is cancelled\n\nhint: runnerctl start --id play"),
            (&[PAUSE, PAUSE_NOW], "has ended already (cancelled)"),
            (&[NOTE], "the run is cancelled"),
        ],
    );
}

#[test]
fn a_failed_run_is_not_stopped() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_consecutive_faults = 1"));
    play.script().always("exit 3");
    play.run().exits(9);
    assert_refuses(&play, RunStatus::Failed, &[(&[PAUSE, PAUSE_NOW, CANCEL], "has ended already (failed)")]);
}

#[test]
fn a_run_that_waits_for_a_review_is_not_stepped_or_resumed() {
    let play = waiting_play(3);
    let says = "is waiting for your review of task b\n\nhint: runnerctl approve";
    assert_refuses(&play, RunStatus::Waiting, &[(&[STEP, RESUME, NOW, MORE], says)]);
}

#[test]
fn a_run_at_work_is_not_stepped_resumed_or_reviewed() {
    let play = RunPlay::new();
    let gate = play.script().gate("session");
    play.script().step(1, "gate session; answer retry 'Not yet.'");
    play.start_run();
    gate.wait_reached();
    assert_refuses(
        &play,
        RunStatus::Running,
        &[(&[STEP, RESUME, NOW], "run play is running\n\nhint: runnerctl"), (&[APPROVE], "run play is running")],
    );
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
}

#[test]
fn a_receipt_that_was_tampered_with_holds_the_run_and_is_nobodys_own_commit() {
    type ConfigChange = fn(&str) -> String;
    let changes: [ConfigChange; 3] = [
        |message| message.replace("Runner-Mode", "Runner-Mood"),
        |message| message.replace("Runner-Commit:", "runner-commit :"),
        |message| message.replace('\n', "\r\n"),
    ];
    for change in changes {
        let mut play = RunPlay::new();
        play.home.expect_forgery();
        play.script().always("echo $n > \"file$n\"; answer done 'Done.'");
        play.run().exits(4);
        let tampered = change(&play.repo.git(&["log", "-1", "--format=%B"]));
        play.repo.git(&["commit", "-q", "--amend", "--cleanup=verbatim", "-m", &tampered]);
        let tip = play.repo.head();
        let output = play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]);
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(text.contains(&format!("commit {tip} was tampered with")), "{text}");
        assert!(text.contains("runnerctl start --id NEW"), "{text}");
        assert_eq!((play.repo.head(), play.script().session_count()), (tip, 1), "no run continues from it");
    }
}
