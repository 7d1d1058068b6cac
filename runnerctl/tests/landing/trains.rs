//! Several runs: those that merge cleanly land, the others are skipped and listed.

use crate::scene::{LandingScene, change_step, write_step};

#[test]
fn of_four_runs_the_one_that_conflicts_is_left_out() {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&change_step("one", "eins")]);
    scene.run("b", &[&change_step("one", "uno")]);
    scene.run("c", &[&write_step("c", "3")]);
    scene.run("d", &[&change_step("five", "fuenf")]);
    let output = scene.land(&["a", "b", "c", "d", "--onto", "main"]);
    output.exits(6);
    assert!(output.stdout.contains("run b: left out"), "{}", output.stdout);
    assert!(output.stdout.contains("task x of run b conflicts in shared"), "{}", output.stdout);
    assert_eq!(scene.landed_subjects(), ["Title of x"; 3]);
    assert_eq!(scene.git(&["show", "main:shared"]), "eins\ntwo\nthree\nfour\nfuenf");
    let report = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(0).stdout.clone();
    assert!(report.contains("3 as merged, 0 changed since, 0 of runs not proven, 0 not checked"), "{report}");
}

#[test]
fn a_run_based_on_another_one_is_refused_alone_and_lands_after_it() {
    let scene = LandingScene::new(&["x", "y"]);
    scene.run("a", &[&write_step("x", "1"), &write_step("y", "2")]);
    scene.repo.write(".runner/GOAL.md", "# Go on\n");
    scene.git(&["commit", "-q", "-a", "-m", "Another goal"]);
    scene.run_on("q", &["answer done 'Nothing.'; echo 3 > z"]);
    let stderr = scene.land(&["q"]).exits(6).stderr.clone();
    assert!(stderr.contains("run q begins on run a, which the branch does not have"), "{stderr}");
    assert!(stderr.contains("runnerctl land a q --onto main"), "{stderr}");
    let output = scene.land(&["q", "a"]);
    output.exits(0);
    assert!(output.stdout.find("run a: landed") < output.stdout.find("run q: landed"), "{}", output.stdout);
    assert_eq!(scene.git(&["show", "main:z"]), "3");
}
