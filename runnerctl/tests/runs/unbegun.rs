//! A run that ended before its first commit: each command says so.

use protocol::words::RunStatus;

use crate::play::{RUN, RunPlay};

const ENDED: &str = "error: run play ended before its first commit\n\nhint: runnerctl status --run play\n";

/// Asserts what commands say of a run that has made no commit.
fn assert_named(play: &RunPlay) {
    let asked: [&[&str]; 6] =
        [&["land", RUN, "--yes"], &["deliver", RUN, "--dry-run"], &["tree"], &["select"], &["explain"], &["bisect"]];
    for args in asked {
        let rest: &[&str] = match args {
            ["bisect"] => &["--run", RUN, "--", "true"],
            [_] => &["--run", RUN],
            _ => &[],
        };
        let said = play.home.ctl_in(&play.repo, &[args, rest].concat());
        assert_eq!((said.exits(1).stderr.as_str(), said.stdout.as_str()), (ENDED, ""), "{args:?}");
    }
    play.home.ctl_in(&play.repo, &["log", "--run", RUN]).exits(0);
    let status = play.home.ctl_in(&play.repo, &["status", "--run", RUN]);
    assert!(status.exits(0).stdout.contains("run play cancelled"), "{}", status.stdout);
}

#[test]
fn a_run_that_ended_before_its_first_commit_is_named_by_every_command() {
    for way in ["--in-place", "--isolated"] {
        let play = RunPlay::new();
        let ctl = |args: &[&str]| play.home.ctl_in(&play.repo, args);
        ctl(&["start", "--yes", "--queue-only", way, "--id", RUN]).exits(0);
        let queued = ctl(&["verify", "--run", RUN]);
        assert!(queued.exits(1).stderr.contains("run play has not made its first commit yet"), "{}", queued.stderr);
        ctl(&["cancel", "--run", RUN]).exits(0);
        let verified = ctl(&["verify", "--run", RUN]);
        assert_eq!(verified.exits(1).stderr, ENDED, "{way}");
        assert_named(&play);
    }
}

#[test]
fn a_run_without_an_iteration_is_nothing_to_verify_where_it_is_recorded() {
    let play = RunPlay::new();
    let ctl = |args: &[&str]| play.home.ctl_in(&play.repo, args);
    let gate = play.script().gate("work");
    play.script().step(1, "gate work");
    ctl(&["start", "--yes", "--id", RUN]).exits(0);
    gate.wait_reached();
    let told = "run play has made no iteration: there is nothing to verify\n";
    assert_eq!(ctl(&["verify"]).exits(0).stdout, told);
    assert_eq!(ctl(&["verify", RUN, "--strict"]).exits(0).stdout, told);
    let clone = play.home.path().join("clone.git");
    play.repo.git(&["clone", "-q", "--bare", ".", &clone.display().to_string()]);
    let elsewhere = ctl(&["verify", &clone.display().to_string(), "--run", RUN]);
    assert!(elsewhere.exits(10).stdout.contains("nothing proven"), "{}", elsewhere.stdout);
    ctl(&["cancel"]).exits(0);
}

#[test]
fn a_change_of_a_run_without_commits_is_refused_as_every_request_about_it_is() {
    let play = RunPlay::new();
    let ctl = |args: &[&str]| play.home.ctl_in(&play.repo, args);
    ctl(&["start", "--yes", "--queue-only", "--id", RUN]).exits(0);
    let queued = "error: run play has not made its first commit yet\n\nhint: runnerctl status --run play\n";
    assert_eq!(ctl(&["retry", "root"]).exits(1).stderr, queued);
    ctl(&["cancel"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Cancelled);
    assert_eq!(ctl(&["retry", "root"]).exits(1).stderr, ENDED);
}

#[test]
fn the_branch_of_a_run_that_ended_before_its_first_commit_is_nothing_to_verify_while_it_is_at_its_base() {
    let play = RunPlay::new();
    let ctl = |args: &[&str]| play.home.ctl_in(&play.repo, args);
    ctl(&["start", "--yes", "--queue-only", "--id", RUN]).exits(0);
    ctl(&["cancel"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Cancelled);
    // As a daemon leaves it that is killed before the commit, or that holds the run there.
    play.repo.git(&["branch", "runner/play"]);
    let told = "run play has made no iteration: there is nothing to verify\n";
    for args in [&["verify"][..], &["verify", RUN], &["verify", RUN, "--strict"]] {
        assert_eq!(ctl(args).exits(0).stdout, told, "{args:?}");
    }
    assert_named(&play);
    // A clone has no record of the run: its commits may have been removed.
    let clone = play.home.path().join("clone.git");
    play.repo.git(&["clone", "-q", "--bare", ".", &clone.display().to_string()]);
    ctl(&["verify", &clone.display().to_string(), "--run", RUN]).exits(10);
    // More than the base is judged.
    play.repo.git(&["switch", "-q", "runner/play"]);
    play.repo.write("more", "").commit("More");
    ctl(&["verify"]).exits(10);
    play.repo.git(&["switch", "-q", "main"]);
    play.repo.git(&["branch", "-q", "-D", "runner/play"]);
}
