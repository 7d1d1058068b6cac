//! The three forms in which a run lands, and the messages of the commits.

use crate::scene::{LandingScene, change_step, write_step};

fn two_leaves() -> LandingScene {
    let scene = LandingScene::new(&["x", "y"]);
    scene
        .run("a", &["echo half > x; answer retry 'Half of it.'", &write_step("x", "whole"), &write_step("y", "other")]);
    scene
}

#[test]
fn each_leaf_becomes_a_commit_with_its_title_goal_and_summary() {
    let scene = two_leaves();
    let runner = scene.git(&["rev-parse", "main:.runner"]);
    let stdout = scene.land(&["a"]).exits(0).stdout.clone();
    assert!(stdout.contains("run a: landed") && stdout.contains("main went from"), "{stdout}");
    assert_eq!(scene.landed_subjects(), ["Title of x", "Title of y"]);
    assert_eq!(scene.git(&["rev-parse", "main:.runner"]), runner, "the runner's folder is as main has it");
    assert_eq!(scene.git(&["show", "main:x"]), "whole");
    let message = scene.git(&["log", "-1", "--format=%B", "main"]);
    let tip = scene.git(&["rev-parse", "runner/a"]);
    assert!(message.contains("\n\nGoal of y.\n\nWrote y.\n\nRunner-Merged: git/"), "{message}");
    assert!(message.ends_with(&format!("\nRunner-Landed: a@{tip} y")), "{message}");
    let author = scene.git(&["log", "-1", "--format=%an %ae %at", "main"]);
    assert_eq!(author, scene.git(&["log", "-1", "--format=%an %ae %at", "runner/a"]));
    scene.repo.assert_sound();
}

#[test]
fn a_run_becomes_one_commit_or_a_merge_that_keeps_its_history() {
    let scene = two_leaves();
    let before = scene.git(&["rev-parse", "main"]);
    scene.land(&["a", "--as", "squash"]).exits(0);
    assert_eq!(scene.landed_subjects(), ["Title of root"]);
    let message = scene.git(&["log", "-1", "--format=%B", "main"]);
    assert!(message.contains("- Title of x\n- Title of y") && message.contains(" root"), "{message}");
    let squashed = scene.git(&["rev-parse", "main^{tree}"]);
    scene.git(&["reset", "-q", "--hard", &before]);
    let stdout = scene.land(&["a", "--as", "merge"]).exits(0).stdout.clone();
    assert!(stdout.contains("note: .runner/ is in the history of runner/a"), "{stdout}");
    assert_eq!(scene.git(&["rev-parse", "main^{tree}"]), squashed);
    let parents = scene.git(&["log", "-1", "--format=%P", "main"]);
    assert_eq!(parents, format!("{before} {}", scene.git(&["rev-parse", "runner/a"])));
    assert!(scene.land(&["a"]).exits(0).stdout.contains("already landed as"));
}

#[test]
fn a_moved_branch_keeps_what_it_has_and_gets_what_the_run_did() {
    let scene = LandingScene::new(&["x", "y"]);
    scene.run("a", &[&change_step("one", "eins"), &change_step("five", "fuenf")]);
    scene.on_main();
    scene.repo.write("shared", "one\ntwo\ndrei\nfour\nfive\n").write("beside", "main's\n").commit("Move on");
    let stdout = scene.land(&["a"]).exits(0).stdout.clone();
    assert!(stdout.contains("working tree updated"), "{stdout}");
    assert_eq!(scene.repo.read("shared"), "eins\ntwo\ndrei\nfour\nfuenf\n");
    assert_eq!(scene.landed_subjects(), ["Move on", "Title of x", "Title of y"]);
    scene.repo.assert_sound();
}

#[test]
fn the_runners_folder_comes_along_where_that_is_asked_for() {
    let scene = two_leaves();
    scene.land(&["a", "--with-runner"]).exits(0);
    assert_eq!(scene.git(&["rev-parse", "main:.runner"]), scene.git(&["rev-parse", "runner/a:.runner"]));
}

#[test]
fn a_preview_shows_the_commits_and_moves_nothing() {
    let scene = two_leaves();
    let before = scene.git(&["rev-parse", "main"]);
    let guards = std::fs::read_to_string(scene.repo.script().folder().join("guarded")).expect("guards are counted");
    let reply = scene.land(&["a", "--preview", "--json"]).exits(0).json();
    let subjects: Vec<&str> = reply["runs"][0]["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|commit| commit["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["Title of x", "Title of y"]);
    assert_eq!(scene.git(&["rev-parse", "main"]), before);
    let after = std::fs::read_to_string(scene.repo.script().folder().join("guarded")).expect("guards are counted");
    assert_eq!(after, guards, "a preview runs no guard");
}

#[test]
fn a_persons_commit_stays_its_own_and_is_folded_amid_work() {
    let scene = LandingScene::new(&["x", "y"]);
    scene.repo.script().step(1, &write_step("x", "1"));
    scene.git(&["checkout", "-q", "main"]);
    scene.home.ctl_in(&scene.repo, &["start", "--yes", "--id", "a", "--queue-only"]).exits(0);
    scene.home.ctl_in(&scene.repo, &["step"]).exits(0);
    scene.repo.write("own", "a person's\n");
    scene.git(&["-c", "user.name=Ann", "-c", "user.email=ann@x", "add", "own"]);
    scene.git(&["-c", "user.name=Ann", "-c", "user.email=ann@x", "commit", "-q", "-m", "Add a file of my own"]);
    scene.repo.script().step(2, &write_step("y", "2"));
    scene.home.ctl_in(&scene.repo, &["resume", "--wait"]).exits(0);
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.landed_subjects(), ["Title of x", "Add a file of my own", "Title of y"]);
    assert_eq!(scene.git(&["log", "-1", "--format=%an", "main~1"]), "Ann");
}
