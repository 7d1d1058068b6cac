//! Orderly shutdowns of the daemon, what survives them, and many clients at once.

use std::thread;
use std::time::{Duration, Instant};

use protocol::api::DaemonApiClient as _;
use protocol::startup::EXIT_OCCUPIED;
use protocol::words::RunStatus;
use runner_testkit::{Home, PATIENCE};

use runner_testkit::invariants::{assert_consistent, list_verdicts, splitting_repo};

#[test]
fn end_during_a_session_commits_its_work_and_the_run_continues_at_the_next_start() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "echo half > half.txt; gate session; answer retry 'Not yet.'");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    assert!(daemon.stop().success());
    assert_eq!(list_verdicts(&repo), ["Interrupted"]);
    assert_eq!(repo.show("HEAD", "half.txt"), "half");
    let _daemon = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_consistent(&repo);
}

#[test]
fn end_during_a_guard_has_it_run_again_at_the_next_start() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("guard");
    repo.script().step(1, "echo done > done.txt; answer done 'It is done.'").guard_step(1, "gate guard");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    assert!(daemon.stop().success());
    assert_eq!(repo.receipts().len(), 0);
    let _daemon = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_eq!(repo.script().session_count(), 1);
    assert_consistent(&repo);
}

#[test]
fn second_signal_ends_the_daemon_at_once() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "echo half > half.txt; trap '' TERM; gate session; sleep 600");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    let began = Instant::now();
    daemon.signal_twice();
    assert!(began.elapsed() < Duration::from_secs(8), "the grace of the session is not waited for");
    home.wait_all_gone(PATIENCE);
    let _daemon = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_eq!(repo.receipts()[0].verdict(), "Interrupted");
    assert_consistent(&repo);
}

#[test]
fn drain_waits_for_the_iteration_and_answers_meanwhile() {
    let home = Home::new();
    let repo = splitting_repo(&home, "one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "gate session; decompose 'Split.' first second");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    let client = home.client();
    client.wait(client.rpc().drain()).unwrap();
    assert_eq!(client.run(repo.path()).summary.state, RunStatus::Running, "what comes to its end can be looked at");
    gate.open();
    daemon.wait_killed();
    assert_eq!(repo.receipts().len(), 1, "nothing new is begun");
    let _daemon = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_consistent(&repo);
}

#[test]
fn paused_run_stays_paused_through_stop_and_kill() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    daemon.stop();
    let daemon = home.daemon();
    assert_eq!(home.client().run(repo.path()).summary.state, RunStatus::Paused);
    daemon.kill();
    let _daemon = home.daemon();
    assert_eq!(home.client().run(repo.path()).summary.state, RunStatus::Paused);
    assert_eq!(repo.script().session_count(), 0);
}

#[test]
fn second_daemon_is_refused_and_the_first_one_stays() {
    let home = Home::new();
    let daemon = home.daemon();
    let second = home.command("runnerd").output().unwrap();
    assert_eq!(second.status.code(), Some(EXIT_OCCUPIED.into()));
    let stderr = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(stderr.contains(&daemon.pid().to_string()), "it names the holder: {stderr}");
    home.client();
}

#[test]
fn twenty_clients_at_once_are_all_answered() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| home.ctl_in(&repo, &["status"]).exits(0).clone());
        }
    });
}
