//! Landing again, and auditing landed commits.

use runner_testkit::Tty;

use crate::scene::{LandingScene, write_step};

#[test]
fn what_passes_later_lands_behind_what_has_landed() {
    let scene = LandingScene::new(&["x", "y"]);
    scene.repo.script().step(1, &write_step("x", "1")).step(2, &write_step("y", "2"));
    scene.home.ctl_in(&scene.repo, &["start", "--yes", "--id", "a", "--queue-only"]).exits(0);
    scene.home.ctl_in(&scene.repo, &["step"]).exits(0);
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.landed_subjects(), ["Title of x"]);
    scene.home.ctl_in(&scene.repo, &["resume", "--wait"]).exits(0);
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.landed_subjects(), ["Title of x", "Title of y"]);
    let tip = scene.git(&["rev-parse", "--short=7", "main"]);
    let stdout = scene.land(&["a"]).exits(0).stdout.clone();
    assert!(stdout.contains(&format!("already landed as {tip}")), "{stdout}");
    let report = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main", "--json"]).exits(0).json();
    let states: Vec<_> = report["commits"].as_array().unwrap().iter().map(|commit| commit["state"].clone()).collect();
    assert_eq!(states, ["same", "same"]);
}

#[test]
fn the_only_run_lands_without_a_name_and_one_that_has_not_begun_is_not_offered() {
    let scene = LandingScene::new(&["x", "y"]);
    scene.run("a", &[&write_step("x", "1"), &write_step("y", "2")]).on_main();
    let mut tty = Tty::start(&scene.home.ctl_command(&scene.repo, &["land", "--yes"]), (80, 24));
    assert_eq!(tty.wait_exit(), 0, "{}", tty.screen());
    assert_eq!(scene.landed_subjects(), ["Title of x", "Title of y"]);
    scene.home.ctl_in(&scene.repo, &["start", "--yes", "--queue-only", "--id", "b", "-m", "b"]).exits(0);
    let unnamed = scene.land(&[]);
    assert!(unnamed.exits(2).stderr.contains("no run here has anything left to land"), "{}", unnamed.stderr);
}

#[test]
fn a_landed_commit_that_was_amended_is_found() {
    let scene = LandingScene::new(&["x", "y"]);
    scene.run("a", &[&write_step("x", "1"), &write_step("y", "2")]).on_main();
    scene.land(&["a"]).exits(0);
    scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(0);
    scene.repo.write("y", "tampered");
    scene.git(&["commit", "-q", "--amend", "--no-edit", "-a"]);
    let stdout = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(10).stdout.clone();
    assert!(stdout.contains("1 as merged, 1 changed since, 0 of runs not proven, 0 not checked"), "{stdout}");
    assert!(stdout.contains("      y\n"), "the file is named: {stdout}");
}

#[test]
fn a_squash_and_a_merge_are_made_again_as_well() {
    let scene = LandingScene::new(&["x", "y"]);
    scene.run("a", &[&write_step("x", "1"), &write_step("y", "2")]);
    scene.git(&["branch", "other", "main"]);
    scene.land(&["a", "--as", "squash"]).exits(0);
    scene.land(&["a", "--as", "merge", "--onto", "other"]).exits(0);
    for branch in ["main", "other"] {
        let stdout = scene.home.ctl_in(&scene.repo, &["verify", "--landed", branch]).exits(0).stdout.clone();
        assert!(
            stdout.contains("1 as merged, 0 changed since, 0 of runs not proven, 0 not checked"),
            "{branch}: {stdout}"
        );
    }
}

#[test]
fn a_branch_without_the_runs_commits_is_not_called_right() {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&write_step("x", "1")]).on_main();
    scene.land(&["a"]).exits(0);
    let clone = scene.home.path().join("repos/clone");
    let clone = clone.to_str().expect("a path of text");
    let from = format!("file://{}", scene.repo.path().display());
    scene.git(&["clone", "-q", "--single-branch", "--branch", "main", &from, clone]);
    let stdout = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main", clone]).exits(10).stdout.clone();
    assert!(stdout.contains("0 as merged, 0 changed since, 0 of runs not proven, 1 not checked"), "{stdout}");
    assert!(stdout.contains("branch runner/a is not here"), "{stdout}");
    scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main", "--allow-shallow", clone]).exits(0);
    scene.git(&["-C", clone, "fetch", "-q", "origin", "runner/a:refs/remotes/origin/runner/a"]);
    scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main", clone]).exits(0);
}

/// A scene in which a run of one leaf has landed on `main`, which is checked out.
fn with_one_landed() -> LandingScene {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&write_step("x", "1")]).on_main();
    scene.land(&["a"]).exits(0);
    scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(0);
    scene
}

/// Rewrites the last commit of `main` so that it names another commit of the run.
fn name_commit(scene: &LandingScene, commit: &str) {
    let message = scene.git(&["log", "-1", "--format=%B", "main"]);
    let landed = scene.git(&["rev-parse", "runner/a"]);
    scene.git(&["commit", "-q", "--amend", "-m", &message.replace(&landed, commit)]);
}

/// Creates a commit like the last one of the run, with one more file with this text.
fn forge_commit(scene: &LandingScene, file: &str, text: &str) -> String {
    scene.git(&["checkout", "-q", "--detach", "runner/a"]);
    scene.repo.write(file, text);
    scene.git(&["add", file]);
    scene.git(&["commit", "-q", "--amend", "--no-edit", "--reset-author"]);
    let forged = scene.git(&["rev-parse", "HEAD"]);
    scene.on_main();
    forged
}

#[test]
fn a_landing_of_a_commit_that_is_not_on_the_runs_branch_is_found() {
    let scene = with_one_landed();
    let forged = forge_commit(&scene, "evil", "1");
    scene.repo.write("evil", "1");
    scene.git(&["add", "evil"]);
    name_commit(&scene, &forged);
    let stdout = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(10).stdout.clone();
    assert!(stdout.contains("0 as merged, 0 changed since, 1 of runs not proven, 0 not checked"), "{stdout}");
    assert!(stdout.contains(&format!("commit {forged} is not among the first parents of branch runner/a")), "{stdout}");
}

#[test]
fn a_landing_is_looked_at_in_whatever_spelling_git_reads_it() {
    for (spelled, counts) in [
        ("runner-landed: ", "0 as merged, 1 changed since, 0 of runs not proven"),
        ("Runner-Landed : ", "0 as merged, 1 changed since, 0 of runs not proven"),
        ("Runner-Landed:\n ", "0 as merged, 1 changed since, 0 of runs not proven"),
        ("Runner-Landed: not ", "0 as merged, 0 changed since, 1 of runs not proven"),
    ] {
        let scene = with_one_landed();
        let message = scene.git(&["log", "-1", "--format=%B", "main"]).replace("Runner-Landed: ", spelled);
        scene.repo.write("evil", "1");
        scene.git(&["add", "evil"]);
        scene.git(&["commit", "-q", "--amend", "-m", &message]);
        let stdout = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(10).stdout.clone();
        assert!(stdout.contains(counts), "{spelled:?}: {stdout}");
    }
}

#[test]
fn a_landing_of_a_run_that_breaks_the_rules_is_found() {
    let scene = with_one_landed();
    let goal = scene.repo.read(".runner/GOAL.md");
    let forged = forge_commit(&scene, ".runner/GOAL.md", &format!("{goal}And more.\n"));
    let honest = scene.git(&["rev-parse", "runner/a"]);
    name_commit(&scene, &forged);
    scene.git(&["branch", "-f", "runner/a", &forged]);
    let stdout = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(10).stdout.clone();
    assert!(stdout.contains("0 as merged, 0 changed since, 1 of runs not proven, 0 not checked"), "{stdout}");
    assert!(stdout.contains("owned, .runner/GOAL.md"), "{stdout}");
    scene.git(&["branch", "-f", "runner/a", &honest]);
}

#[test]
fn what_breaks_the_rules_behind_a_landing_does_not_count_against_it() {
    let scene = with_one_landed();
    scene.git(&["checkout", "-q", "runner/a"]);
    scene.repo.write(".runner/state/tree.json", "not a tree\n");
    scene.git(&["commit", "-q", "-a", "-m", "Break it"]);
    scene.on_main();
    scene.home.ctl_in(&scene.repo, &["verify", "--run", "a"]).exits(10);
    scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(0);
    scene.git(&["branch", "-f", "runner/a", "runner/a~"]);
}

#[test]
fn a_landed_commit_with_another_subject_author_or_node_is_found() {
    for (at, amend) in [
        ("subject", ["-m", "Another title\n\n{rest}"].as_slice()),
        ("author", ["--no-edit", "--author", "Somebody <s@example.com>"].as_slice()),
        ("Runner-Landed", ["-m", "{other}"].as_slice()),
    ] {
        let scene = with_one_landed();
        let message = scene.git(&["log", "-1", "--format=%B", "main"]);
        let (_, rest) = message.split_once("\n\n").expect("there is a body");
        let other = format!("{} y", message.trim_end().trim_end_matches(" x"));
        let amend: Vec<String> =
            amend.iter().map(|word| word.replace("{rest}", rest).replace("{other}", &other)).collect();
        let words: Vec<&str> =
            ["commit", "-q", "--amend"].into_iter().chain(amend.iter().map(String::as_str)).collect();
        scene.git(&words);
        let stdout = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(10).stdout.clone();
        assert!(stdout.contains("0 as merged, 1 changed since"), "{at}: {stdout}");
        assert!(stdout.contains(&format!("      {at}: expected ")), "{at}: {stdout}");
    }
}
