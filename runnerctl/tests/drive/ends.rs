//! One driver after the other: each ends, or is ended, and the next goes on from what is published.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;

use crate::kit::{Remote, WRITES};

#[test]
fn a_run_is_driven_to_its_end_and_a_second_driver_of_it_has_nothing_to_do() {
    let remote = Remote::new();
    remote.repo.script().always(WRITES);
    remote.start(("7", 0)).exits(0);
    let subjects = remote.subjects();
    assert_eq!(subjects.first().map(String::as_str), Some("start run x"));
    assert_eq!(subjects.last().map(String::as_str), Some("release run x"));
    assert_eq!(remote.git(&["show", "runner/x:work.txt"]), "work");
    assert!(remote.git(&["log", "-1", "--format=%b", "runner/x"]).contains("Runner-Driver: slurm/7.0@"));
    let tip = remote.git(&["rev-parse", "runner/x"]);
    remote.start(("8", 0)).exits(0);
    assert_eq!(remote.git(&["rev-parse", "runner/x"]), tip, "it is not even claimed");
    remote.is_swept();
    remote.is_sound();
}

#[test]
fn a_driver_that_is_told_to_end_commits_and_releases_and_another_one_goes_on() {
    let remote = Remote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "echo half > half.txt; gate work").always(WRITES);
    let driver = remote.start(("7", 0));
    gate.reached();
    driver.signal(Signal::SIGTERM);
    driver.exits(75);
    let subjects = remote.subjects();
    assert_eq!(subjects.last().map(String::as_str), Some("release run x"));
    assert!(subjects.iter().any(|subject| subject.contains("status=interrupted")), "{subjects:?}");
    assert_eq!(remote.git(&["show", "runner/x:half.txt"]), "half");
    remote.start_with(("8", 0), &[]).exits(0);
    assert!(remote.subjects().contains(&"claim run x".to_owned()), "{:?}", remote.subjects());
    remote.is_swept();
    remote.is_sound();
}

#[test]
fn after_a_kill_the_next_attempt_goes_on_from_what_was_published() {
    let remote = Remote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "echo lost > lost.txt; gate work").always(WRITES);
    let driver = remote.start(("7", 0));
    gate.reached();
    driver.signal(Signal::SIGKILL);
    driver.exits(-1);
    assert_eq!(remote.subjects().first().map(String::as_str), Some("start run x"));
    remote.start(("7", 1)).exits(0);
    assert_eq!(remote.git(&["show", "runner/x:work.txt"]), "work");
    remote.is_swept();
    remote.is_sound();
}

#[test]
fn what_a_killed_driver_has_left_in_a_kept_work_tree_is_put_aside() {
    let remote = Remote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "echo lost > lost.txt; gate work").always(WRITES);
    let work = remote.home.path().join("kept");
    let options = ["-m", "Do it.", "--work", work.to_str().expect("a path is text")];
    let driver = remote.start_with(("7", 0), &options);
    gate.reached();
    driver.signal(Signal::SIGKILL);
    driver.exits(-1);
    remote.start_with(("7", 1), &options).exits(0);
    let folder = format!("--git-dir={}/.git", work.display());
    let left = remote.repo.git(&[&folder, "for-each-ref", "--format=%(refname)", "refs/runner/left/x"]);
    assert_eq!(remote.repo.git(&[&folder, "show", &format!("{left}:lost.txt")]), "lost");
    assert!(!remote.git(&["ls-tree", "--name-only", "runner/x"]).contains("lost.txt"));
    remote.is_sound();
}

#[test]
fn neither_a_branch_nor_a_goal_is_refused() {
    let remote = Remote::new();
    let said = remote.start_with(("7", 0), &[]).exits(6);
    assert!(said.contains("has no run x, and no goal for a new one was given"), "{said}");
    assert_eq!(remote.git(&["for-each-ref", "refs/heads/runner"]), "");
    remote.is_swept();
}

#[test]
fn a_remote_that_takes_nothing_gives_the_job_back_until_it_does() {
    let remote = Remote::new();
    remote.repo.script().always(WRITES);
    let hook = remote.bare.join("hooks/pre-receive");
    fs::create_dir_all(remote.bare.join("hooks")).expect("a folder can be made");
    fs::write(&hook, "#!/bin/sh\necho full >&2\nexit 1\n").expect("a hook can be written");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
    let said = remote.start(("7", 0)).exits(75);
    assert!(said.contains("does not take what is committed"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("not before ")), "{said}");
    fs::remove_file(hook).expect("it is there");
    remote.start(("7", 1)).exits(0);
    remote.is_sound();
}
