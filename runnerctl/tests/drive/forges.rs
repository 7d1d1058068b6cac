//! Remotes that accept only branches, as some forges do: the other refs of a run go where `[publish]` says.

use std::fs;

use crate::kit::{DriverProcess, GATED, TestRemote, WRITES};

/// A session that rewrites history; a reference keeps the original.
const REWRITES: &str = "echo mine > mine.txt; git add mine.txt; git -c user.name=a -c user.email=a@e commit -q --amend -m Mine; \
                        answer retry 'Mine.'";
/// A hook of the remote that rejects everything but branches, and counts pushes.
const BRANCHES_ALONE: &str =
    "echo >> pushes\nwhile read -r _ _ name; do case $name in refs/heads/*) ;; *) exit 1 ;; esac; done";

/// Drives a run of one session with this configuration; returns the number of pushes that the remote received.
fn drive_once(publish: &str) -> (TestRemote, usize) {
    let remote = new_remote(publish);
    remote.repo.script().step(1, REWRITES).always(WRITES);
    remote.start(("7", 0)).assert_exits(0);
    remote.assert_sound();
    let pushes = fs::read_to_string(remote.bare.join("pushes")).expect("the hook has counted");
    (remote, pushes.lines().count())
}

fn new_remote(publish: &str) -> TestRemote {
    let remote = TestRemote::new();
    let config = remote.repo.config().section(&format!("[publish]\n{publish}"));
    remote.repo.commit_config(&config).git(&["push", "--quiet", &remote.url(), "main"]);
    remote.hook("pre-receive", BRANCHES_ALONE);
    remote
}

#[test]
fn what_a_forge_does_not_take_is_offered_as_branches_or_not_at_all() {
    let (refused, tries) = drive_once("extras = \"refs\"");
    assert_eq!(refused.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\nrefs/heads/runner/x");

    let (taken, pushes) = drive_once("extras = \"branches\"");
    assert_eq!(taken.git(&["show", "runner-rescue/x/0001:mine.txt"]), "mine");
    assert_eq!(pushes + 1, tries, "what is refused costs a push more");

    let (left_out, fewest) = drive_once("extras = \"off\"");
    assert_eq!(left_out.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\nrefs/heads/runner/x");
    assert_eq!(fewest, pushes);
}

#[test]
fn the_work_of_a_driver_that_was_overtaken_is_kept_as_a_branch() {
    let remote = new_remote("extras = \"branches\"");
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, GATED).always("echo other > other.txt; answer done 'Wrote other.txt.'");
    let first: DriverProcess = remote.start(("7", 0));
    gate.wait_reached();
    remote.start_with(("7", 1), &[]).assert_exits(0);
    gate.open();
    assert!(first.assert_exits(11).contains("refs/heads/runner-rescue/x/7.0"));
    assert_eq!(remote.git(&["show", "runner-rescue/x/7.0:work.txt"]), "work");
}

#[test]
fn no_commit_may_be_unpublished_where_that_is_said() {
    let remote = new_remote("unpublished_max = 0");
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "gate work; answer retry 'More.'").always("answer retry 'More.'");
    let driver = remote.start_with(("7", 0), &["-m", "Do it.", "--max-wait", "1s"]);
    gate.wait_reached();
    let away = remote.home.path().join("away.git");
    fs::rename(&remote.bare, &away).expect("it can be moved");
    gate.open();
    assert!(driver.assert_exits(75).contains("not before"));
    fs::rename(&away, &remote.bare).expect("it can be moved back");
    assert_eq!(remote.repo.script().session_count(), 1, "no session without what was before it being published");
}
