//! kill -9 of the daemon: in Work and Guard at a chosen moment, everywhere else at random.

use std::time::Instant;

use protocol::words::RunStatus;
use runner_testkit::invariants::{assert_consistent, list_verdicts, print_figure, splitting_repo};
use runner_testkit::{Config, Home, InterruptedRun, PATIENCE, Repo, assert_same_end};

/// Commands of a step that kill the daemon.
const KILL_DAEMON: &str = "kill -9 \"$(cat \"$kit/files/pid\")\"; sleep 600";

#[test]
fn a_session_that_outlived_its_daemon_is_ended_and_its_work_is_committed_as_interrupted() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.script().step(1, &format!("echo half > half.txt; {KILL_DAEMON}"));
    assert_killed_by_step(&home, &repo);
    assert_eq!(list_verdicts(&repo), ["Interrupted", "Accepted"]);
    assert_eq!(repo.show("HEAD~1", "half.txt"), "half");
    assert_eq!(repo.node("root").attempts, 0, "a death costs no attempt");
    assert_consistent(&repo);
}

#[test]
fn a_guard_that_outlived_its_daemon_is_run_again_and_the_session_is_not() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.script().step(1, "echo done > result.txt; answer done 'It is done.'");
    repo.script().guard_step(1, &format!("echo half > guard.txt; {KILL_DAEMON}"));
    assert_killed_by_step(&home, &repo);
    assert_eq!(repo.script().session_count(), 1);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_eq!(repo.show("HEAD", "guard.txt"), "half");
    let message = repo.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("Runner-Guard-Wrote: guard.txt"), "what the guard wrote before is the guard's: {message}");
    assert_consistent(&repo);
}

#[test]
fn a_baseline_that_outlived_its_daemon_is_run_again() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&Config::new(&[&repo.script().agent_program()], &[&repo.script().guard_program()]));
    repo.script().step(1, "echo done > result.txt; answer done 'It is done.'");
    repo.script().guard_step(1, &format!("echo half > guard.txt; {KILL_DAEMON}"));
    assert_killed_by_step(&home, &repo);
    assert_eq!(repo.show("HEAD", "guard.txt"), "half");
    assert_consistent(&repo);
}

#[test]
fn whenever_the_daemon_is_killed_the_task_tree_ends_the_same() {
    let prepare = || {
        let home = Home::new();
        let repo = splitting_repo(&home, "one");
        InterruptedRun::new(home, repo)
    };
    assert_same_end(prepare, |ordeal| {
        ordeal.restart(|daemon, ordeal| {
            daemon.kill();
            let killed = Instant::now();
            ordeal.home.wait_all_gone(PATIENCE);
            print_figure(&format!("nothing alive after {:?}", killed.elapsed()));
        });
    });
}

/// Starts a run with a step that kills the daemon; the next daemon completes the run.
fn assert_killed_by_step(home: &Home, repo: &Repo) {
    // From inside a namespace a step cannot see the daemon.
    home.limit_containment("walk");
    let daemon = home.daemon();
    repo.script().file("pid", &daemon.pid().to_string());
    home.ctl_in(repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    daemon.wait_killed();
    let _next = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Completed);
}
