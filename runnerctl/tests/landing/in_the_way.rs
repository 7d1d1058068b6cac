//! Files in the way of a landing: one line names each, and the suggested command moves it out of the way.

use std::fs;
use std::process::Command;

use crate::scene::LandingScene;

/// Types the hint of a refused landing.
fn type_hint(scene: &LandingScene, stderr: &str) {
    let hint = stderr.lines().find_map(|line| line.strip_prefix("hint: ")).expect("there is a hint");
    let typed = Command::new("bash").args(["-c", hint]).current_dir(scene.repo.path()).status();
    assert!(typed.expect("a shell can be started").success(), "{hint}");
}

#[test]
fn an_ignored_file_in_a_folder_that_becomes_a_link_is_moved_out_of_the_folder() {
    let scene = LandingScene::new(&["x"]);
    scene.repo.write("dir/f", "1\n").write("other/f", "1\n").commit("Folders");
    scene.run("a", &["rm -r dir; ln -s other dir; answer done 'Linked.'"]).on_main();
    scene.repo.write("dir/sub/a.log", "mine\n");
    let stderr = scene.land(&["a"]).exits(6).stderr.clone();
    assert!(stderr.contains("dir/sub/a.log is in the way (ignored)"), "{stderr}");
    type_hint(&scene, &stderr);
    scene.land(&["a"]).exits(0);
    assert_eq!(fs::read_link(scene.repo.path().join("dir")).expect("a link").to_str(), Some("other"));
    assert_eq!(scene.repo.read("dir.before-landing/sub/a.log"), "mine\n");
}

#[test]
fn a_name_with_a_line_break_is_told_in_one_line_and_can_be_typed() {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &["echo 1 > \"$(printf 'new\\nline')\"; answer done 'Made it.'"]).on_main();
    scene.repo.write("new\nline", "mine\n");
    let stderr = scene.land(&["a"]).exits(6).stderr.clone();
    assert!(stderr.contains(r#"error: "new\nline" is in the way (untracked)"#), "{stderr}");
    type_hint(&scene, &stderr);
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.repo.read("new\nline"), "1\n");
    assert_eq!(scene.repo.read("new\nline.before-landing"), "mine\n");
}

#[test]
fn a_filter_of_the_repositorys_own_applies_where_the_guard_runs() {
    let scene = LandingScene::new(&["x"]);
    scene.git(&["config", "filter.caps.clean", "tr a-z A-Z"]);
    scene.git(&["config", "filter.caps.smudge", "tr A-Z a-z"]);
    scene.repo.write(".gitattributes", "*.f filter=caps\n").commit("Filter");
    scene.repo.script().guard_always("test ! -e made.f || grep -q small made.f");
    scene.run("a", &["echo small > made.f; answer done 'Made it.'"]).on_main();
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.git(&["show", "main:made.f"]), "SMALL");
    assert_eq!(scene.repo.read("made.f"), "small\n");
}
