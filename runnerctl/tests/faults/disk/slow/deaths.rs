//! The daemon dies at a call.

use runner_testkit::SystemFault;
use runner_testkit::invariants::print_figure;

use crate::disk::course::{FaultCourse, at_each, sampled};

const KILL: &str = "signal=KILL:when={at}";

#[test]
fn row_49_daemon_that_dies_at_a_write_loses_nothing() {
    at_each("write,pwrite64,writev", KILL, sampled(23, 120));
}

#[test]
fn row_50_daemon_that_dies_at_a_flush_loses_nothing() {
    at_each("fsync,fdatasync", KILL, sampled(9, 60));
}

#[test]
fn row_51_daemon_that_dies_at_a_rename_loses_nothing() {
    at_each("rename,renameat,renameat2", KILL, sampled(12, 60));
}

#[test]
fn row_52_daemon_that_dies_at_a_folder_a_link_or_a_removal_loses_nothing() {
    at_each("mkdir,mkdirat,unlink,unlinkat,link,linkat", KILL, sampled(12, 60));
}

#[test]
fn row_53_daemon_that_dies_while_it_starts_or_awaits_a_program_loses_nothing() {
    at_each("clone,clone3,vfork,wait4,waitid", KILL, sampled(5, 40));
}

#[test]
fn row_54_daemon_that_dies_again_and_again_while_it_recovers_loses_nothing() {
    let every = sampled(8, 16);
    for at in (every.from..every.from + every.limit).step_by(every.step) {
        let course = FaultCourse::new();
        assert!(
            course.run_with_fault(&SystemFault::kill_at("fsync,fdatasync", 12)) > 0,
            "the run is not begun when the daemon dies"
        );
        let deaths = [1, 2].map(|_| course.run_with_fault(&SystemFault::kill_at("openat", at * 20)));
        print_figure(&format!("recovery at openat {}: {deaths:?}", at * 20));
        course.finish(&format!("recovery at {at}"));
    }
}
