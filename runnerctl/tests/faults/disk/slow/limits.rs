//! System limits: file size, number of file descriptors, and logs without space.

use std::fs;

use protocol::words::RunStatus;
use runner_testkit::{Config, TmpfsDisk};

use crate::checks::{assert_explains, assert_survived};
use crate::disk::course::FaultCourse;

#[test]
fn row_42_log_of_the_daemon_without_room_stops_nothing() {
    let course = FaultCourse::new();
    let logs = course.home.state().join("logs");
    fs::create_dir(&logs).unwrap();
    let disk = TmpfsDisk::mount_over(&logs, "size=64k");
    disk.fill_except(0);
    let daemon = course.home.daemon();
    course.run().exits(0);
    assert!(daemon.stop().success());
    course.assert_undisturbed("no room for the daemon's log");
}

#[test]
fn row_42_agent_whose_log_has_no_room_is_read_to_its_end() {
    let course = FaultCourse::new();
    let records = course.repo.path().join(".runner/iterations");
    fs::create_dir_all(&records).unwrap();
    let _disk = TmpfsDisk::mount_over(&records, "size=192k");
    let flood = "echo kept > kept.txt; answer done 'It is done.'; head -c 4000000 /dev/zero | tr '\\0' x; echo read >> kept.txt";
    course.repo.script().always(flood);
    let _daemon = course.home.daemon();
    course.run().exits(0);
    assert_eq!(course.repo.script().log(), ["begin 1", "end 1"]);
    assert_eq!(course.repo.show("HEAD", "kept.txt"), "kept\nread");
    assert_eq!(course.repo.receipts().len(), 1, "nothing is counted twice");
    assert_survived(&course.home, &course.repo, &["kept\nread\n"]);
}

#[test]
fn row_43_file_that_may_not_grow_is_an_error_and_no_death() {
    let course = FaultCourse::new();
    course.queued();
    let daemon = course.home.daemon_with_limits("ulimit -f 1");
    let other = course.home.repo("other");
    other.commit_config(&Config::new(&[&other.script().agent_program()], &["true"]));
    let long = "Do it. ".repeat(1000);
    let state = course.home.state().display().to_string();
    assert_explains(&course.home.ctl_in(&other, &["start", "--yes", "-m", &long]), &["File too large", &state]);
    course.home.ctl_in(&course.repo, &["status"]).exits(0);
    assert!(daemon.stop().success(), "it lives until it is asked to end");
    let _daemon = course.home.daemon();
    course.home.ctl_in(&course.repo, &["resume", "--wait"]).exits(0);
    course.assert_undisturbed("files that may not grow");
}

#[test]
fn row_60_daemon_without_handles_waits_and_continues_when_there_are_some() {
    let course = FaultCourse::new();
    let gate = course.repo.script().gate("session");
    course
        .repo
        .script()
        .step(1, "echo session 1 >> log.txt; gate session; decompose 'Split in three.' first second third");
    let daemon = course.home.daemon();
    course.home.ctl_in(&course.repo, &["start", "--yes", "--id", "same", "-m", "Do it"]).exits(0);
    let client = course.home.client();
    gate.wait_reached();
    daemon.limit_handles(Some(daemon.handles()));
    gate.open();
    let run = client.wait_until(course.repo.path(), |run| run.summary.state == RunStatus::Waiting);
    let why = run.summary.reason.expect("it says why").message;
    assert!(why.contains("Too many open files"), "{why}");
    let mut status = course.home.command("runnerctl");
    let mut status_process = status.args(["--no-spawn", "status"]).current_dir(course.repo.path()).spawn().unwrap();
    daemon.limit_handles(None);
    assert!(status_process.wait().unwrap().success(), "a request made meanwhile is answered");
    client.wait_for(course.repo.path(), RunStatus::Completed);
    drop(daemon);
    course.assert_undisturbed("no handles");
}
