//! Several drivers of one run, and people who commit while one is active.

use nix::sys::signal::Signal;

use crate::kit::{DriverProcess, GATED, TestRemote, WRITES};

#[test]
fn of_several_drivers_in_one_second_one_begins_the_run_and_the_others_leave_nothing() {
    let remote = TestRemote::new();
    remote.repo.script().always(WRITES);
    let drivers = ["7", "8", "9", "10", "11"].map(|job| remote.start((job, 0)));
    let rivals = drivers.map(DriverProcess::wait_for_exit);
    // A later one may find the run already completed.
    assert!(rivals.iter().all(|(code, _)| [0, 11].contains(code)), "{rivals:?}");
    assert!(rivals.iter().any(|(code, _)| *code == 0), "{rivals:?}");
    let starts = remote.subjects().iter().filter(|subject| *subject == "start run x").count();
    assert_eq!(starts, 1);
    assert_eq!(remote.git(&["for-each-ref", "refs/runner/rescue"]), "", "who has done no work has none to keep");
    remote.assert_sound();
}

#[test]
fn a_driver_that_was_overtaken_keeps_its_work_at_the_remote_and_ends() {
    let remote = TestRemote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, GATED).always("echo other > other.txt; answer done 'Wrote other.txt.'");
    let first = remote.start(("7", 0));
    gate.wait_reached();
    remote.start_with(("7", 1), &[]).assert_exits(0);
    gate.open();
    let output = first.assert_exits(11);
    assert!(output.contains("refs/runner/rescue/x/7.0"), "{output}");
    assert_eq!(remote.git(&["show", "refs/runner/rescue/x/7.0:work.txt"]), "work");
    assert_eq!(remote.git(&["show", "runner/x:other.txt"]), "other");
    remote.assert_sound();
}

#[test]
fn after_a_persons_push_the_job_ends_and_the_next_one_starts_from_it() {
    let remote = TestRemote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, GATED).always(WRITES);
    let driver = remote.start(("7", 0));
    gate.wait_reached();
    remote.commit_as_person(|_| "By hand.\n".to_owned(), "README.md");
    gate.open();
    driver.assert_exits(75);
    remote.start_with(("8", 0), &[]).assert_exits(0);
    assert_eq!(remote.git(&["show", "runner/x:README.md"]), "By hand.");
    remote.assert_sound();
}

#[test]
fn a_claim_after_a_forbidden_change_does_not_hide_it() {
    let remote = TestRemote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "decompose 'Two parts.' One Two").step(2, "gate work").always(WRITES);
    let driver = remote.start(("7", 0));
    gate.wait_reached();
    driver.signal(nix::sys::signal::Signal::SIGTERM);
    driver.assert_exits(75);
    let pass_last = |tree: &str| {
        let (before, after) = tree.rsplit_once("\"passes\": false").expect("a leaf is open");
        format!("{before}\"passes\": true{after}")
    };
    remote.commit_as_person(pass_last, ".runner/state/tree.json");
    let output = remote.start_with(("8", 0), &[]).assert_exits(6);
    assert!(output.contains("breaks a rule"), "{output}");
    assert_eq!(remote.subjects().last().map(String::as_str), Some("release run x"), "claimed, looked at and released");
    let accepted = remote.subjects().iter().filter(|subject| subject.contains("guard=pass")).count();
    assert_eq!(accepted, 0, "{:?}", remote.subjects());
}

#[test]
fn a_release_that_changes_files_is_no_release() {
    let remote = TestRemote::new();
    remote.repo.script().always(WRITES);
    remote.start(("7", 0)).assert_exits(0);
    remote.assert_sound();
    let message = remote.git(&["log", "-1", "--format=%B", "runner/x"]);
    let forged = remote.git(&["commit-tree", "main^{tree}", "-p", "runner/x", "-m", &message]);
    remote.git(&["update-ref", "refs/heads/runner/x", &forged]);
    let _daemon = remote.home.daemon();
    let folder = remote.bare.to_str().expect("a path is text");
    let output = remote.home.ctl(&["verify", folder, "--run", "x"]);
    output.exits(10);
    assert!(output.stdout.contains("no change outside .runner/"), "{}", output.stdout);
}

#[test]
fn a_driver_that_was_stopped_for_long_finds_that_another_one_went_on() {
    let remote = TestRemote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, GATED).always("echo other > other.txt; answer done 'Wrote other.txt.'");
    let first = remote.start(("7", 0));
    gate.wait_reached();
    first.signal(Signal::SIGSTOP);
    remote.start_with(("8", 0), &["--take-over"]).assert_exits(0);
    gate.open();
    first.signal(Signal::SIGCONT);
    let output = first.assert_exits(11);
    assert!(output.contains("refs/runner/rescue/x/7.0"), "{output}");
    assert_eq!(remote.git(&["show", "refs/runner/rescue/x/7.0:work.txt"]), "work");
    assert_eq!(remote.git(&["show", "runner/x:other.txt"]), "other");
    remote.assert_sound();
}
