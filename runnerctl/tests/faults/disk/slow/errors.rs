//! A system call of the daemon fails, once or as long as the daemon runs.

use std::thread;

use protocol::words::RunStatus;
use runner_testkit::{FaultyDaemon, SystemFault};

use crate::checks::assert_explains;
use crate::disk::course::{FaultCourse, at_each, sampled};

#[test]
fn row_57_flush_for_which_there_is_no_room_is_tried_again() {
    at_each("fsync,fdatasync", "error=ENOSPC:when={at}", sampled(13, 40));
}

#[test]
fn row_57_rename_for_which_there_is_no_room_is_tried_again() {
    at_each("rename,renameat,renameat2", "error=ENOSPC:when={at}", sampled(9, 20));
}

#[test]
fn row_58_flush_that_fails_is_done_again_with_a_new_file() {
    at_each("fsync,fdatasync", "error=EIO:when={at}", sampled(13, 40));
}

#[test]
fn row_58_run_waits_while_every_flush_fails_and_a_new_daemon_brings_it_to_its_end() {
    let course = FaultCourse::new();
    let journal = course.queued();
    let daemon =
        FaultyDaemon::start(&course.home, &SystemFault::new("fsync,fdatasync", "error=EIO").for_path(&journal));
    course.home.ctl_in(&course.repo, &["resume"]).exits(0);
    let run = course.home.client().wait_until(course.repo.path(), |run| run.summary.state == RunStatus::Waiting);
    let why = run.summary.reason.expect("it says why").message;
    assert!(why.contains("journal.jsonl") && why.contains("Input/output error"), "{why}");
    assert_eq!(course.repo.script().session_count(), 0, "an event that is not stored has no effect");
    assert!(daemon.stop() > 0);
    course.finish("every flush fails");
}

#[test]
fn row_59_interrupted_write_is_not_seen() {
    let course = FaultCourse::new();
    let journal = course.queued();
    let daemon =
        FaultyDaemon::start(&course.home, &SystemFault::new("write", "error=EINTR:when=1+2").for_path(&journal));
    course.home.ctl_in(&course.repo, &["resume", "--wait"]).exits(0);
    assert!(daemon.stop() > 0);
    course.assert_undisturbed("interrupted writes");
}

#[test]
fn row_63_quota_that_is_used_up_is_waited_for() {
    let course = FaultCourse::new();
    let journal = course.queued();
    let daemon = FaultyDaemon::start(&course.home, &SystemFault::new("write", "error=EDQUOT").for_path(&journal));
    course.home.ctl_in(&course.repo, &["resume"]).exits(0);
    let run = course.home.client().wait_until(course.repo.path(), |run| run.summary.state == RunStatus::Waiting);
    let why = run.summary.reason.expect("it says why").message;
    assert!(why.contains("quota"), "{why}");
    daemon.stop_faults();
    course.home.client().wait_for(course.repo.path(), RunStatus::Completed);
    assert!(daemon.stop() > 0);
    course.assert_undisturbed("quota");
}

#[test]
fn row_48_while_flushes_are_slow_other_requests_are_answered() {
    let course = FaultCourse::new();
    course.queued();
    let other = course.home.scripted_repo("other");
    let daemon = FaultyDaemon::start(&course.home, &SystemFault::new("fsync,fdatasync", "delay_exit=500000"));
    let mut answered = 0;
    thread::scope(|scope| {
        let slow = scope.spawn(|| course.home.ctl_in(&other, &["start", "--yes", "--queue-only", "-m", "Later"]));
        let client = course.home.client();
        while !slow.is_finished() {
            client.status(course.repo.path());
            answered += 1;
        }
        slow.join().expect("the request is made").exits(0);
    });
    daemon.stop_faults();
    assert!(answered > 100, "{answered} answers while one request was slow");
    course.home.ctl_in(&course.repo, &["resume", "--wait"]).exits(0);
    let orders = course.home.client().list(other.path()).expect("it is registered");
    assert_eq!(orders.len(), 1, "the order is not lost");
    assert!(daemon.stop() > 1);
    course.assert_undisturbed("slow flushes");
}

#[test]
fn client_whose_call_fails_says_what_happened() {
    let course = FaultCourse::new();
    course.queued();
    let _daemon = course.home.daemon();
    let faults = [
        ("clone,clone3", "error=EAGAIN", "Resource temporarily unavailable"),
        ("epoll_create1", "error=EMFILE", "Too many open files"),
        ("socket", "error=EMFILE", "Too many open files"),
        ("connect", "error=EACCES", "Permission denied"),
        ("sendto", "error=EPIPE", "no daemon"),
        ("recvfrom", "error=EIO", "Input/output error"),
        ("recvfrom", "error=ECONNRESET:when=2+", "the daemon is gone"),
    ];
    for (calls, what, words) in faults {
        let failed = course.home.ctl_with_fault(&SystemFault::new(calls, what), &["repos"]);
        assert_explains(&failed, &["error:", words]);
    }
    course.home.ctl_in(&course.repo, &["resume", "--wait"]).exits(0);
    course.assert_undisturbed("calls of the client fail");
}
