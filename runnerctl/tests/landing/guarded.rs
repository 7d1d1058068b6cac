//! The guard on the result of a landing: what it runs with, and who has confirmed it.

use std::fs;

use crate::scene::{LandingScene, write_step};

/// A run of a repository whose guard needs files that are not in git.
fn with_workspace() -> LandingScene {
    let scene = LandingScene::new(&["x"]);
    scene.repo.write(".gitignore", "deps/\n");
    let section = "[workspace]\ncopy = [\"deps\"]\nsetup = [\"sh\", \"-c\", \"cp deps/lib made.ready\"]";
    scene.repo.commit_config(&scene.repo.config().section(section)).write("deps/lib", "copied");
    scene.run("a", &[&write_step("x", "1")]).on_main();
    scene
}

#[test]
fn the_guard_on_a_result_finds_what_the_workspace_names() {
    let scene = with_workspace();
    scene.repo.script().guard_step(2, "[ \"$(cat deps/lib)$(cat made.ready)\" = copiedcopied ] || exit 9");
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.landed_subjects().last().map(String::as_str), Some("Title of x"));
    assert!(!scene.repo.path().join("made.ready").exists(), "it was made ready elsewhere");
    assert_eq!(scene.git(&["status", "--porcelain", "--untracked-files=no"]), "");
}

/// A run of a repository whose guard runs a program of a submodule that is checked out.
fn with_submodule() -> LandingScene {
    let scene = LandingScene::new(&["x"]);
    let library = scene.home.path().join("library").display().to_string();
    scene.git(&["init", "-q", &library]);
    fs::write(format!("{library}/check.sh"), "test -e x\n").expect("it can be written");
    scene.git(&["-C", &library, "add", "check.sh"]);
    scene.git(&["-C", &library, "commit", "-q", "-m", "Check"]);
    scene.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &library, "lib"]);
    scene.git(&["commit", "-q", "-m", "Use a library"]);
    scene.repo.script().guard_always("sh lib/check.sh");
    scene.run("a", &[&write_step("x", "1")]).on_main();
    fs::remove_dir_all(library).expect("nothing is fetched from it");
    scene
}

#[test]
fn the_guard_on_a_result_finds_the_submodules_that_are_checked_out() {
    let scene = with_submodule();
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.landed_subjects(), ["Use a library", "Title of x"]);
}

#[test]
fn a_red_guard_on_a_result_names_the_submodules_that_it_was_without() {
    let scene = with_submodule();
    scene.git(&["submodule", "--quiet", "deinit", "--force", "lib"]);
    let stderr = scene.land(&["a"]).exits(6).stderr.clone();
    assert!(stderr.contains(", without submodule lib: git submodule update --init)"), "{stderr}");
}

#[test]
fn who_has_confirmed_nothing_is_shown_setup_and_guard_first() {
    let mut scene = with_workspace();
    scene.kill();
    // Like a daemon that does not know this repository yet.
    fs::remove_dir_all(scene.home.path().join("state")).expect("the state can be removed");
    scene.restart();
    let before = scene.git(&["rev-parse", "main"]);
    let stderr = scene.land(&["a", "--onto", "main"]).exits(6).stderr.clone();
    assert!(stderr.contains("the guard would be run on the result, as this user:"), "{stderr}");
    let setup = stderr.find("sh -c 'cp deps/lib made.ready'");
    let guard = stderr.find(&scene.repo.script().guard_program());
    assert!(setup.is_some() && setup < guard, "{stderr}");
    assert_eq!(scene.git(&["rev-parse", "main"]), before);
    scene.land(&["a", "--onto", "main", "--yes"]).exits(0);
}
