//! Landing again, and looking at what has landed.

use crate::scene::{Scene, writes};

#[test]
fn what_passes_later_lands_behind_what_has_landed() {
    let scene = Scene::new(&["x", "y"]);
    scene.repo.script().step(1, &writes("x", "1")).step(2, &writes("y", "2"));
    scene.home.ctl_in(&scene.repo, &["start", "--yes", "--id", "a", "--queue-only"]).exits(0);
    scene.home.ctl_in(&scene.repo, &["step"]).exits(0);
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.landed(), ["Title of x"]);
    scene.home.ctl_in(&scene.repo, &["resume", "--wait"]).exits(0);
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.landed(), ["Title of x", "Title of y"]);
    let tip = scene.git(&["rev-parse", "--short=7", "main"]);
    let said = scene.land(&["a"]).exits(0).stdout.clone();
    assert!(said.contains(&format!("already landed as {tip}")), "{said}");
    let report = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main", "--json"]).exits(0).json();
    let states: Vec<_> = report["commits"].as_array().unwrap().iter().map(|it| it["state"].clone()).collect();
    assert_eq!(states, ["same", "same"]);
}

#[test]
fn a_landed_commit_that_was_amended_is_found() {
    let scene = Scene::new(&["x", "y"]);
    scene.run("a", &[&writes("x", "1"), &writes("y", "2")]).on_main();
    scene.land(&["a"]).exits(0);
    scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(0);
    scene.repo.write("y", "tampered");
    scene.git(&["commit", "-q", "--amend", "--no-edit", "-a"]);
    let said = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(10).stdout.clone();
    assert!(said.contains("1 as merged, 1 changed since, 0 not checked"), "{said}");
    assert!(said.contains("      y\n"), "the file is named: {said}");
}

#[test]
fn a_squash_and_a_merge_are_made_again_as_well() {
    let scene = Scene::new(&["x", "y"]);
    scene.run("a", &[&writes("x", "1"), &writes("y", "2")]);
    scene.git(&["branch", "other", "main"]);
    scene.land(&["a", "--as", "squash"]).exits(0);
    scene.land(&["a", "--as", "merge", "--onto", "other"]).exits(0);
    for branch in ["main", "other"] {
        let said = scene.home.ctl_in(&scene.repo, &["verify", "--landed", branch]).exits(0).stdout.clone();
        assert!(said.contains("1 as merged, 0 changed since, 0 not checked"), "{branch}: {said}");
    }
}

#[test]
fn a_branch_without_the_runs_commits_is_not_called_right() {
    let scene = Scene::new(&["x"]);
    scene.run("a", &[&writes("x", "1")]).on_main();
    scene.land(&["a"]).exits(0);
    let clone = scene.home.path().join("repos/clone");
    let clone = clone.to_str().expect("a path of text");
    let from = format!("file://{}", scene.repo.path().display());
    scene.git(&["clone", "-q", "--single-branch", "--branch", "main", &from, clone]);
    let said = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main", clone]).exits(0).stdout.clone();
    assert!(said.contains("0 as merged, 0 changed since, 1 not checked"), "{said}");
}
