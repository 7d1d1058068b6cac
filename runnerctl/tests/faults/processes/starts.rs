//! Obstacles to a start: locks, programs that cannot be executed, and other daemons. Rows 24, 25, 28 and 29.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use protocol::paths::{SOCKET_VARIABLE, STATE_VARIABLE};
use protocol::startup::EXIT_OCCUPIED;
use protocol::words::RunStatus;
use runner_testkit::{Client, Config, Home, Repo};

use crate::checks::{assert_explains, assert_survived};
use crate::stage::FaultStage;

/// A repository whose agent is a file in the work tree.
fn with_agent_file(home: &Home, make: impl FnOnce(&Repo)) -> Repo {
    let repo = home.repo("one");
    make(&repo);
    repo.commit_config(
        &Config::new(&["./tool"], &["true"]).guard("baseline = false").top("max_consecutive_faults = 1"),
    );
    repo
}

/// Starts a run whose agent cannot be executed: it is refused with the reason.
fn assert_refused(make: impl FnOnce(&Repo), why: &str) {
    let home = Home::new();
    let repo = with_agent_file(&home, make);
    let _daemon = home.daemon();
    assert_explains(&home.run(&repo, &["-m", "Do it"]), &["./tool", why, "hint:"]);
    assert!(repo.refs("refs/heads/runner").is_empty(), "something was begun");
}

#[test]
fn row_24_locks_of_the_runner_cannot_be_taken_by_an_agent_nor_are_they_handed_to_it() {
    let stage = FaultStage::new();
    stage.script().step(
        1,
        r#"
        find "$HOME/state" "$HOME/run" -name '*lock*' > locks.txt
        while read -r lock; do flock -n "$lock" true && echo "$lock" >> taken.txt; done < locks.txt
        ls -l /proc/self/fd > descriptors.txt
        answer done 'It is done.'
        "#,
    );
    stage.run().exits(0);
    let locks = stage.repo.read("locks.txt");
    assert!(locks.lines().count() >= 2, "socket and state: {locks}");
    assert!(!stage.repo.path().join("taken.txt").exists(), "taken: {}", stage.repo.read("taken.txt"));
    assert!(!stage.repo.read("descriptors.txt").contains("/state/"), "a descriptor was handed on");
    stage.assert_ended_as(&["Accepted"], &[]);
}

#[test]
fn row_24_lock_that_another_process_holds_is_named_and_waited_for() {
    let stage = FaultStage::new();
    stage.script().step(1, "echo mine > mine.txt; answer done 'It is done.'");
    stage.ctl(&["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    let mut repositories = fs::read_dir(stage.home.private().join("repos")).unwrap();
    let live: PathBuf = repositories.next().unwrap().unwrap().path().join("live");
    fs::create_dir_all(&live).unwrap();
    let lock = File::create(live.join("shim.lock")).unwrap();
    lock.lock().unwrap();
    stage.ctl(&["resume"]).exits(0);
    let waiting = stage.client().wait_for(stage.repo.path(), RunStatus::Waiting);
    let reason = waiting.summary.reason.expect("it says why").message;
    assert!(reason.contains("shim.lock"), "{reason}");
    lock.unlock().unwrap();
    stage.wait_for_state(RunStatus::Completed);
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}

#[test]
fn row_25_agent_that_cannot_be_found_is_refused_before_anything_begins() {
    assert_refused(|_| {}, "cannot find");
}

#[test]
fn row_25_agent_that_is_not_executable_is_refused_before_anything_begins() {
    assert_refused(
        |repo| {
            repo.write("tool", "#!/bin/sh\n");
        },
        "not executable",
    );
}

#[test]
fn row_25_agent_that_is_a_folder_is_refused_before_anything_begins() {
    assert_refused(
        |repo| {
            repo.write("tool/file", "");
        },
        "a directory",
    );
}

#[test]
fn row_25_agent_that_goes_away_between_iterations_fails_the_run_and_is_not_tried_again() {
    let home = Home::new();
    let repo = with_agent_file(&home, |repo| {
        let answer = r#"{"status":"retry","summary":"Not yet.","children":null}"#;
        repo.write(
            "tool",
            &format!("#!/bin/sh\necho mine > mine.txt; echo '{answer}' > \"$RUNNER_OUTPUT\"; rm tool\n"),
        );
        fs::set_permissions(repo.path().join("tool"), Permissions::from_mode(0o755)).unwrap();
    });
    let _daemon = home.daemon();
    assert_explains(home.run(&repo, &["-m", "Do it"]).exits(9), &["./tool", "runnerctl resume"]);
    assert_eq!(repo.receipts().len(), 1, "no number is used up");
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_28_second_daemon_on_the_same_state_is_refused_by_whatever_path_it_comes() {
    let stage = FaultStage::new();
    let elsewhere = stage.home.path().join("elsewhere");
    symlink(stage.home.path(), &elsewhere).unwrap();
    let mut second = stage.home.command("runnerd");
    second.env(STATE_VARIABLE, elsewhere.join("state")).env(SOCKET_VARIABLE, stage.home.path().join("run/other"));
    let second = second.output().unwrap();
    assert_eq!(second.status.code(), Some(EXIT_OCCUPIED.into()));
    let stderr = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(stderr.contains(&stage.daemon().pid().to_string()), "it names the holder: {stderr}");
    stage.ctl(&["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
}

#[test]
fn row_29_lock_and_socket_of_a_dead_daemon_are_in_nobodys_way() {
    let mut stage = FaultStage::new();
    stage.script().step(1, "echo mine > mine.txt; answer done 'It is done.'");
    let socket = stage.home.socket();
    stage.restart(|daemon| {
        daemon.kill();
        assert!(socket.exists(), "there is nothing in the way");
    });
    stage.run().exits(0);
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}

#[test]
fn row_28_repository_that_another_daemon_drives_is_waited_for() {
    let stage = FaultStage::new();
    let gate = stage.script().gate("held");
    stage.script().step(1, "gate held; echo mine > mine.txt; answer done 'It is done.'");
    stage.start_run();
    gate.wait_reached();
    let socket = stage.home.path().join("run/other");
    let mut second = stage.home.command("runnerd");
    second.env(STATE_VARIABLE, stage.home.path().join("other-state")).env(SOCKET_VARIABLE, &socket);
    let _second = stage.home.daemon_from_command(second);
    let ctl = |args: &[&str]| stage.ctl(&[&["--socket", &socket.display().to_string()], args].concat());
    // The changes there are the work of the other daemon's session.
    stage.repo.write("theirs.txt", "theirs\n");
    ctl(&["start", "--yes"]).exits(0);
    let waiting = Client::connect(&socket).wait_for(stage.repo.path(), RunStatus::Waiting);
    let reason = waiting.summary.reason.expect("it says why");
    assert!(reason.message.contains(&format!("(pid {})", stage.daemon().pid())), "{reason:?}");
    assert_eq!(reason.command.as_deref(), Some("end the run of the other daemon, and it continues automatically"));
    assert_eq!(stage.script().session_count(), 1);
    ctl(&["cancel"]).exits(0);
    gate.open();
    stage.wait_for_state(RunStatus::Completed);
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}
