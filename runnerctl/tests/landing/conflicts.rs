//! Conflicts: they are reported, move nothing, and can be resolved.

use crate::scene::{LandingScene, change_step, write_step};

fn conflicting_scene() -> LandingScene {
    let scene = LandingScene::new(&["x", "y"]);
    scene.run("a", &[&change_step("one", "eins"), &write_step("y", "2")]).on_main();
    scene.repo.write("shared", "uno\ntwo\nthree\nfour\nfive\n").commit("Say it in Spanish");
    scene
}

#[test]
fn a_conflict_names_leaf_and_files_and_moves_nothing() {
    let scene = conflicting_scene();
    let before = scene.git(&["rev-parse", "main"]);
    let status = scene.git(&["status", "--porcelain"]);
    let stderr = scene.land(&["a"]).exits(6).stderr.clone();
    assert!(stderr.contains("task x of run a conflicts in shared"), "{stderr}");
    assert!(stderr.contains("runnerctl land a --resolve --onto main"), "{stderr}");
    assert_eq!((scene.git(&["rev-parse", "main"]), scene.git(&["status", "--porcelain"])), (before, status));
}

#[test]
fn squash_is_offered_where_only_the_leaves_conflict() {
    let scene = LandingScene::new(&["x", "y"]);
    scene.run("a", &[&change_step("one", "eins"), &change_step("eins", "uno")]).on_main();
    scene.repo.write("shared", "uno\ntwo\nthree\nfour\nfive\n").write("beside", "1").commit("Say it in Spanish");
    let stderr = scene.land(&["a"]).exits(6).stderr.clone();
    assert!(stderr.contains("runnerctl land a --as squash --onto main"), "{stderr}");
    let stdout = scene.land(&["a", "--as", "squash"]).exits(0).stdout.clone();
    assert!(stdout.contains("already landed completely"), "{stdout}");
}

#[test]
fn a_red_guard_on_the_result_moves_nothing_and_shows_its_lines() {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&write_step("x", "1")]).on_main();
    scene.repo.write("beside", "1").commit("Move on");
    scene.repo.script().guard_always("if [ -e beside ]; then echo 'FAIL: beside'; exit 1; fi");
    let before = scene.git(&["rev-parse", "main"]);
    let stderr = scene.land(&["a"]).exits(6).stderr.clone();
    assert!(stderr.contains("the guard of run a is red on the result (exit=1)"), "{stderr}");
    assert!(stderr.contains("FAIL: beside"), "{stderr}");
    assert_eq!(scene.git(&["rev-parse", "main"]), before);
}

#[test]
fn a_run_settles_the_conflicts_and_lands_with_what_it_settled() {
    let scene = conflicting_scene();
    let number = 3;
    scene.repo.script().step(
        number,
        "git merge --squash refs/runner/squash/a > merge.log 2>&1 || true\n\
         printf 'eins, uno\\ntwo\\nthree\\nfour\\nfive\\n' > shared\n\
         git add -A && git commit -q -m 'Bring in run a'\n\
         answer done 'Both are said.'",
    );
    scene.land(&["a", "--resolve", "--wait", "--yes"]).exits(0);
    assert!(scene.repo.script().prompt(number).contains("git merge --squash refs/runner/squash/a"));
    scene.home.ctl_in(&scene.repo, &["verify", "--run", "resolve-a"]).exits(0);
    scene.on_main().land(&["resolve-a"]).exits(0);
    assert_eq!(scene.repo.read("shared"), "eins, uno\ntwo\nthree\nfour\nfive\n");
    assert_eq!(scene.repo.read("y"), "2");
    let stdout = scene.land(&["a"]).exits(0).stdout.clone();
    assert!(stdout.contains("already landed as"), "{stdout}");
}

/// A run `resolve-a` whose session merges run `a`, and then does this.
fn resolved_scene(step: &str) -> LandingScene {
    let scene = conflicting_scene();
    let merge = "git merge --squash refs/runner/squash/a > merge.log 2>&1 || true";
    scene.repo.script().step(3, &format!("{merge}\n{step}\ngit add -A; answer done 'Done.'"));
    scene.land(&["a", "--resolve", "--wait", "--yes"]).exits(0);
    scene.on_main();
    scene
}

#[test]
fn a_resolution_without_the_work_of_the_run_is_refused_with_the_files() {
    let scene = resolved_scene("git reset -q --hard; echo 1 > beside");
    let before = scene.git(&["rev-parse", "main"]);
    let stderr = scene.land(&["resolve-a"]).exits(6).stderr.clone();
    assert!(stderr.contains("run resolve-a does not show that it brings in run a: beside is not what"), "{stderr}");
    assert!(stderr.contains("shared has only one side of a conflict, y is not what the merge gives"), "{stderr}");
    assert!(stderr.contains("--accept beside --accept shared --accept y --onto main"), "{stderr}");
    assert_eq!(scene.git(&["rev-parse", "main"]), before);
    scene.land(&["a"]).exits(6);
}

#[test]
fn conflict_markers_that_a_session_leaves_do_not_land() {
    let scene = resolved_scene("");
    let stderr = scene.land(&["resolve-a"]).exits(6).stderr.clone();
    assert!(stderr.contains("shared has conflict markers"), "{stderr}");
}

#[test]
fn one_side_of_a_conflict_lands_if_a_person_accepts_the_file() {
    let scene = resolved_scene("git checkout -q HEAD -- shared");
    let stderr = scene.land(&["resolve-a"]).exits(6).stderr.clone();
    assert!(stderr.contains("brings in run a: shared has only one side of a conflict\n"), "{stderr}");
    assert!(stderr.contains("runnerctl land resolve-a --accept shared --onto main"), "{stderr}");
    scene.land(&["resolve-a", "--accept", "shared"]).exits(0);
    assert!(scene.git(&["log", "-1", "--format=%B", "main"]).contains("Runner-Accepted: shared\n"));
    scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(0);
    // Without the acceptance, the commit shows nothing.
    let message = scene.git(&["log", "-1", "--format=%B", "main"]).replace("Runner-Accepted: shared\n", "");
    scene.git(&["commit", "-q", "--amend", "-m", &message]);
    let stdout = scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(10).stdout.clone();
    assert!(stdout.contains("not proven") && stdout.contains("shared has only one side of a conflict"), "{stdout}");
}

#[test]
fn a_guard_that_the_run_has_weakened_is_run_as_it_was_accepted() {
    let scene = LandingScene::new(&["x"]);
    scene.repo.write("check.sh", "test ! -e beside\n");
    scene.repo.commit_config(&scene.repo.config().guard_command(&["sh", "check.sh"]).guard("on_change = \"report\""));
    scene.run("a", &["echo true > check.sh; answer done 'Done.'"]).on_main();
    scene.repo.write("beside", "1").commit("Move on");
    let stderr = scene.land(&["a", "--yes"]).exits(6).stderr.clone();
    assert!(stderr.contains("(exit=1, with check.sh as accepted)"), "{stderr}");
}
