//! Disks that are full, out of inodes, or read-only.

use protocol::words::RunStatus;
use runner_testkit::invariants::print_figure;
use runner_testkit::{Home, TmpfsDisk};

use crate::checks::assert_explains;
use crate::disk::course::{FaultCourse, sampled};

const PAGE: u64 = 4096;

#[test]
fn row_56_state_folder_that_fills_up_is_waited_for() {
    let every = sampled(3, 12);
    for pages in (0..every.limit).step_by(every.step) {
        let course = FaultCourse::new();
        let state = TmpfsDisk::mount_over(&course.home.state(), "size=2m");
        fills_up(&course, &state, pages);
    }
}

#[test]
fn row_56_repository_that_fills_up_is_waited_for() {
    let every = sampled(12, 96);
    for pages in (0..every.limit).step_by(every.step) {
        let course = FaultCourse::on_small_disk();
        fills_up(&course, course.disk(), pages);
    }
}

/// Leaves some pages free, runs until the disk is full, and frees the space: the run continues automatically.
fn fills_up(course: &FaultCourse, disk: &TmpfsDisk, pages: u32) {
    course.queued();
    let daemon = course.home.daemon();
    disk.fill_except(u64::from(pages) * PAGE);
    let resumed = course.home.ctl_in(&course.repo, &["resume"]);
    if resumed.code == 0 {
        let is_in_the_way = |run: &protocol::view::RunView| {
            run.summary.state != RunStatus::Running && run.summary.state != RunStatus::Queued
        };
        let run = course.home.client().wait_until(course.repo.path(), is_in_the_way);
        print_figure(&format!("{pages} pages: {}: {:?}", run.summary.state, run.summary.reason));
        assert!([RunStatus::Waiting, RunStatus::Completed].contains(&run.summary.state), "{run:#?}");
    } else {
        print_figure(&format!("{pages} pages: {}", resumed.stderr));
        assert_explains(&resumed, &["No space left on device"]);
    }
    disk.clear();
    if resumed.code != 0 {
        course.home.ctl_in(&course.repo, &["resume"]).exits(0);
    }
    course.home.client().wait_for(course.repo.path(), RunStatus::Completed);
    drop(daemon);
    course.assert_undisturbed(&format!("{pages} pages"));
}

#[test]
fn row_56_disk_that_a_guard_fills_before_it_is_ended_is_waited_for() {
    let course = FaultCourse::on_small_disk();
    let gate = course.repo.script().gate("full");
    // The guard itself fills the disk, outside of the committed files, until nothing more can be written.
    course.repo.script().guard_step(2, "cat /dev/zero > .git/filler 2> /dev/null; gate full");
    let _daemon = course.home.daemon();
    course.home.ctl_in(&course.repo, &["start", "--yes", "--id", "same", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    course.home.ctl_in(&course.repo, &["pause", "--now"]).exits(0);
    let client = course.home.client();
    let run = client.wait_for(course.repo.path(), RunStatus::Waiting);
    let reason = run.summary.reason.expect("it says why");
    assert!(reason.command.is_some_and(|command| command.starts_with("make room on the disk of ")));
    assert!(!course.repo.script().is_any_alive(), "the guard is alive");
    std::fs::remove_file(course.repo.path().join(".git/filler")).expect("the filler can be removed");
    client.wait_for(course.repo.path(), RunStatus::Paused);
    course.repo.script().guard_step(2, "exit 0");
    course.home.ctl_in(&course.repo, &["resume", "--wait"]).exits(0);
    course.assert_undisturbed("a guard that filled the disk");
}

#[test]
fn row_56_disk_that_is_full_when_the_daemon_dies_is_waited_for_by_the_next_one() {
    let course = FaultCourse::on_small_disk();
    let disk = course.disk();
    course.queued();
    let waits = || course.home.client().wait_for(course.repo.path(), RunStatus::Waiting);
    let daemon = course.home.daemon();
    disk.fill_except(48 * PAGE);
    course.home.ctl_in(&course.repo, &["resume"]).exits(0);
    waits();
    daemon.kill();
    let daemon = course.home.daemon();
    waits();
    for view in ["status", "queue", "repos"] {
        let seen = course.home.ctl_in(&course.repo, &[view]);
        assert!(seen.exits(0).stdout.contains("waiting"), "{view}: {}", seen.stdout);
    }
    disk.clear();
    course.home.client().wait_for(course.repo.path(), RunStatus::Completed);
    drop(daemon);
    course.assert_undisturbed("full, and dead");
}

#[test]
fn row_61_state_folder_that_is_read_only_at_the_start_is_named() {
    let home = Home::new();
    let state = TmpfsDisk::mount_over(&home.state(), "size=2m");
    state.remount("ro");
    let mut command = home.command("runnerd");
    let output = command.arg("--log-stderr").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(
        stderr.contains("Read-only file system") && stderr.contains(&home.state().display().to_string()),
        "{stderr}"
    );
}

#[test]
fn row_61_repository_that_is_read_only_is_waited_for() {
    let course = FaultCourse::on_small_disk();
    let disk = course.disk();
    course.queued();
    let daemon = course.home.daemon();
    disk.remount("ro");
    course.home.ctl_in(&course.repo, &["resume"]).exits(0);
    let run = course.home.client().wait_until(course.repo.path(), |run| run.summary.state == RunStatus::Waiting);
    let why = run.summary.reason.expect("it says why").message;
    assert!(why.contains("Read-only file system"), "{why}");
    disk.remount("rw");
    course.home.client().wait_for(course.repo.path(), RunStatus::Completed);
    drop(daemon);
    course.assert_undisturbed("read-only");
}

#[test]
fn row_62_state_folder_without_inodes_is_waited_for() {
    let course = FaultCourse::new();
    let state = TmpfsDisk::mount_over(&course.home.state(), "size=2m,nr_inodes=1000");
    course.queued();
    let _daemon = course.home.daemon();
    state.exhaust_inodes();
    let refused = course.home.ctl_in(&course.repo, &["resume"]);
    assert_explains(&refused, &["No space left on device", &course.home.state().display().to_string()]);
    state.clear();
    course.home.ctl_in(&course.repo, &["resume", "--wait"]).exits(0);
    course.assert_undisturbed("no inodes");
}
