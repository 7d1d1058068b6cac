//! kill -9 of the daemon: in Work and Guard at a chosen moment, everywhere else at random.
//!
//! `RUNS` sets how many random runs there are, `SEED` with which they begin.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use protocol::words::RunStatus;
use runner_testkit::{Config, Home, Random, Repo};

use runner_testkit::witness::{assert_consistent, assert_work_kept, note, splitting, verdicts};

/// Kills of one random run; after them it may come to its end.
const KILLS: u32 = 12;
/// Commands of a step that kill the daemon.
const KILL_DAEMON: &str = "kill -9 \"$(cat \"$kit/files/pid\")\"; sleep 600";

#[test]
fn a_session_that_outlived_its_daemon_is_ended_and_its_work_is_committed_as_interrupted() {
    let home = Home::new();
    let repo = home.scripted("one");
    repo.script().step(1, &format!("echo half > half.txt; {KILL_DAEMON}"));
    killed_by_a_step(&home, &repo);
    assert_eq!(verdicts(&repo), ["Interrupted", "Accepted"]);
    assert_eq!(repo.show("HEAD~1", "half.txt"), "half");
    assert_eq!(repo.node("root").attempts, 0, "a death costs no attempt");
    assert_consistent(&repo);
}

#[test]
fn a_guard_that_outlived_its_daemon_is_run_again_and_the_session_is_not() {
    let home = Home::new();
    let repo = home.scripted("one");
    repo.script().step(1, "echo done > result.txt; answer done 'It is done.'");
    repo.script().guard_step(1, &format!("echo half > guard.txt; {KILL_DAEMON}"));
    killed_by_a_step(&home, &repo);
    assert_eq!(repo.script().sessions(), 1);
    assert_eq!(verdicts(&repo), ["Accepted"]);
    assert_eq!(repo.show("HEAD", "guard.txt"), "half");
    assert_consistent(&repo);
}

#[test]
fn a_baseline_that_outlived_its_daemon_is_run_again() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.configure(&Config::new(&[&repo.script().agent()], &[&repo.script().checker()]));
    repo.script().step(1, "echo done > result.txt; answer done 'It is done.'");
    repo.script().guard_step(1, &format!("echo half > guard.txt; {KILL_DAEMON}"));
    killed_by_a_step(&home, &repo);
    assert_eq!(repo.show("HEAD", "guard.txt"), "half");
    assert_consistent(&repo);
}

#[test]
fn whenever_the_daemon_is_killed_the_task_tree_ends_the_same() {
    let number = |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (expected, took) = undisturbed();
    // Half the time of a run at the most: the first kill never comes too late, on machines of any speed.
    let longest_life = took / 2;
    let (mut kills, first) = (0, number("SEED", 1));
    for seed in first..first + number("RUNS", 1) {
        kills += disturbed(seed, longest_life, &expected);
    }
    assert!(kills > 0, "nothing was killed");
}

/// Starts a run whose step kills the daemon, and lets the next daemon bring it to its end.
fn killed_by_a_step(home: &Home, repo: &Repo) {
    // From inside a namespace a step cannot see the daemon.
    home.contain_at_most("walk");
    let daemon = home.daemon();
    repo.script().file("pid", &daemon.pid().to_string());
    home.ctl_in(repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    daemon.killed();
    let _next = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Completed);
}

/// Returns the task tree of a run that nothing happens to, and how long it took.
fn undisturbed() -> (String, Duration) {
    let home = Home::new();
    let repo = splitting(&home, "one");
    let _daemon = home.daemon();
    let began = Instant::now();
    home.run(&repo, &["--id", "same", "-m", "Do it"]).exits(0);
    let took = began.elapsed();
    assert_consistent(&repo);
    (repo.show("HEAD", ".runner/state/tree.json"), took)
}

/// Kills the daemon again and again during a run, and returns how often.
fn disturbed(seed: u64, longest_life: Duration, expected: &str) -> u32 {
    let home = Home::new();
    let repo = splitting(&home, "one");
    let mut random = Random::new(seed);
    let mut daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", "same", "-m", "Do it"]).exits(0);
    let mut kills = 0;
    while kills < KILLS {
        let longest_ms = u64::try_from(longest_life.as_millis()).expect("a short run");
        thread::sleep(Duration::from_millis(random.below(longest_ms)));
        let run = home.client().status(repo.path()).run;
        let is_over = run.is_some_and(|run| run.summary.state.is_terminal());
        let killed_at = Instant::now();
        daemon.kill();
        if is_over {
            daemon = home.daemon();
            break;
        }
        kills += 1;
        home.all_gone_within(Duration::from_secs(5));
        note(&format!("seed {seed}: kill {kills}, nothing alive after {:?}", killed_at.elapsed()));
        daemon = home.daemon();
    }
    let run = home.client().wait_until(repo.path(), |run| run.summary.state.is_terminal());
    assert_eq!(run.summary.state, RunStatus::Completed, "seed {seed}: {run:#?}");
    drop(daemon);
    assert_eq!(repo.show("HEAD", ".runner/state/tree.json"), expected, "seed {seed}");
    assert_consistent(&repo);
    assert_work_kept(&repo);
    note(&format!("seed {seed}: {kills} kills, {} iterations", repo.receipts().len()));
    kills
}
