//! A daemon that dies while it lands: the branch and its work tree are both unchanged, or both updated.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runner_testkit::{PATIENCE, SessionGate};

use crate::scene::LandingScene;

/// A run that is ready to land on `main`, which is checked out, with a filter that stops while its file is written.
fn stopping_scene() -> (LandingScene, SessionGate) {
    let scene = LandingScene::new(&["x"]);
    scene
        .run("a", &["mkdir a; echo 1 > a/made; echo 1 > a.txt; echo 2 > b.stops; echo 3 > shared; answer done 'Done.'"])
        .on_main();
    scene.repo.write(".gitattributes", "*.stops filter=stops\n").commit("Filter");
    let gate = scene.repo.script().gate("smudge");
    let gates = scene.repo.script().folder().join("gates/smudge");
    let gates = gates.display();
    // The copy that the guard runs in is another work tree.
    let stop = format!(
        "[ \"$(pwd)\" != '{}' ] || {{ echo > {gates}.in; read -r _ < {gates}.out; }}; cat",
        scene.repo.path().display()
    );
    scene.git(&["config", "filter.stops.smudge", &stop]);
    scene.git(&["config", "filter.stops.clean", "cat"]);
    (scene, gate)
}

/// Lands with a separate client, which exits with the daemon; returns once the branch is locked and files are written.
fn kill_at_gate(scene: &mut LandingScene, gate: &SessionGate) {
    let mut client = scene.home.ctl_command(&scene.repo, &["land", "a"]);
    let mut client = client.stdin(std::process::Stdio::null()).spawn().expect("a client can be started");
    gate.wait_reached();
    scene.kill();
    client.wait().expect("the client ends");
}

/// Kills the git processes that the daemon has left, as a machine going down would.
fn kill_git(scene: &LandingScene) {
    for pid in scene.home.processes() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name.trim() == "git" {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn assert_unchanged(scene: &LandingScene, before: &str) {
    assert_eq!(scene.git(&["rev-parse", "main"]), before);
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
    assert!(scene.repo.read("shared").starts_with("one\n"));
    assert!(!scene.repo.path().join("a.txt").exists(), "what was added is gone again");
    let locks =
        ["refs/heads/main.lock", "HEAD.lock", "index.lock"].map(|lock| scene.repo.path().join(".git").join(lock));
    assert!(!locks.iter().any(|lock| lock.exists()), "a lock is left");
}

#[test]
fn row_108_daemon_that_dies_between_lock_and_commit_leaves_everything_as_before() {
    let (mut scene, gate) = stopping_scene();
    let before = scene.git(&["rev-parse", "main"]);
    kill_at_gate(&mut scene, &gate);
    gate.open();
    scene.home.wait_all_gone(PATIENCE);
    scene.restart();
    assert_unchanged(&scene, &before);
    scene.git(&["config", "--unset", "filter.stops.smudge"]);
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.repo.read("shared"), "3\n");
    scene.repo.assert_sound();
}

#[test]
fn row_109_machine_that_goes_down_between_lock_and_commit_leaves_no_stale_lock() {
    let (mut scene, gate) = stopping_scene();
    let before = scene.git(&["rev-parse", "main"]);
    kill_at_gate(&mut scene, &gate);
    kill_git(&scene);
    gate.open();
    scene.home.wait_all_gone(PATIENCE);
    scene.restart();
    assert_unchanged(&scene, &before);
    scene.git(&["config", "--unset", "filter.stops.smudge"]);
    scene.land(&["a"]).exits(0);
    scene.repo.assert_sound();
}

#[test]
fn row_114_link_that_stands_in_the_place_of_a_landed_folder_by_then_is_not_followed() {
    let (mut scene, gate) = stopping_scene();
    let before = scene.git(&["rev-parse", "main"]);
    kill_at_gate(&mut scene, &gate);
    gate.open();
    scene.home.wait_all_gone(PATIENCE);
    let folder = scene.repo.path().join("a");
    let theirs = scene.home.path().join("theirs");
    fs::rename(&folder, &theirs).expect("the folder can be moved");
    std::os::unix::fs::symlink(&theirs, &folder).expect("a link can be made");
    scene.repo.write("a.txt", "somebody's\n");
    scene.restart();
    assert_eq!(scene.git(&["rev-parse", "main"]), before);
    assert_eq!(fs::read_to_string(theirs.join("made")).expect("it is theirs"), "1\n");
    assert_eq!(fs::read_link(&folder).expect("the link stays"), theirs);
    assert_eq!(scene.repo.read("a.txt"), "somebody's\n");
    let status = scene.git(&["status", "--porcelain", "--", "a", "a.txt", "b.stops", "shared"]);
    assert_eq!(status, "?? a\n?? a.txt");
    assert!(scene.repo.read("shared").starts_with("one\n"));
    scene.git(&["config", "--unset", "filter.stops.smudge"]);
    let stderr = scene.land(&["--run", "a"]).exits(6).stderr.clone();
    assert!(
        stderr.contains("a is in the way (untracked)") || stderr.contains("a.txt is in the way (untracked)"),
        "{stderr}"
    );
}
