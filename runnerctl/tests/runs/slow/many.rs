//! Twenty repositories with one daemon: each completes, all are visible at once, and none is affected by the others.

use protocol::words::RunStatus;
use runner_testkit::{Home, Repo, Tty};

const COUNT: usize = 20;
/// The one that is paused during its session and resumed later.
const PAUSED: usize = 6;
/// The one that is cancelled during its session.
const CANCELLED: usize = 13;

fn repositories(home: &Home) -> Vec<Repo> {
    let repo = |n: usize| {
        let repo = home.scripted_repo(&format!("a-repository-with-quite-a-long-name-{n:02}"));
        repo.script().always("echo $n >> work.txt; answer done 'It is done.'");
        repo
    };
    (0..COUNT).map(repo).collect()
}

/// Returns the table of all repositories on a terminal of 80 columns, without its heading.
fn table(home: &Home, repo: &Repo) -> Vec<String> {
    let mut tty = Tty::start(&home.ctl_command(repo, &["status", "--all"]), (80, 30));
    assert_eq!(tty.wait_exit(), 0);
    tty.screen().lines().skip(1).map(str::to_owned).collect()
}

fn rows_with(table: &[String], word: &str) -> usize {
    table.iter().filter(|row| row.contains(word)).count()
}

#[test]
fn twenty_repositories_end_side_by_side_and_steering_one_disturbs_no_other() {
    let home = Home::new();
    home.allow_repositories(4);
    let repos = repositories(&home);
    let gates = [PAUSED, CANCELLED].map(|at| {
        let gate = repos[at].script().gate("session");
        repos[at].script().step(1, "gate session; answer retry 'Not yet.'");
        gate
    });
    let _daemon = home.daemon();
    for repo in &repos {
        home.ctl_in(repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    }
    gates.iter().for_each(runner_testkit::SessionGate::wait_reached);
    home.ctl_in(&repos[PAUSED], &["pause"]).exits(0);
    home.ctl_in(&repos[CANCELLED], &["cancel"]).exits(0);
    let client = home.client();
    client.wait_for(repos[CANCELLED].path(), RunStatus::Cancelled);
    for (at, repo) in repos.iter().enumerate().filter(|(at, _)| ![PAUSED, CANCELLED].contains(at)) {
        let run = client.wait_for(repo.path(), RunStatus::Completed);
        assert_eq!((run.leaves_passed, repo.script().session_count()), (1, 1), "repository {at}");
    }
    let seen = table(&home, &repos[0]);
    assert_eq!(seen.len(), COUNT, "a row each, and none is broken:\n{}", seen.join("\n"));
    assert!((0..COUNT).all(|n| seen[n].contains(&format!("-name-{n:02}  "))), "{}", seen.join("\n"));
    assert_eq!((rows_with(&seen, "completed"), rows_with(&seen, "cancelled"), rows_with(&seen, "running")), (18, 1, 1));
    gates[0].open();
    client.wait_for(repos[PAUSED].path(), RunStatus::Paused);
    home.ctl_in(&repos[PAUSED], &["resume", "--wait"]).exits(0);
    assert_eq!(rows_with(&table(&home, &repos[0]), "completed"), 19);
}
