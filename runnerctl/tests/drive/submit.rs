//! Runs submitted to an engine: what its program receives, its output, and the state of the remote by then.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use runner_testkit::ProgramOutput;

use crate::kit::{TestRemote, WRITES};

/// A stand-in for an engine's program, which stores its input.
struct FakeEngine {
    folder: PathBuf,
}

impl FakeEngine {
    fn new(remote: &TestRemote, name: &str, script: &str) -> Self {
        let folder = remote.home.path().join("engine");
        fs::create_dir_all(&folder).expect("a folder can be made");
        let program = folder.join(name);
        let text = format!("#!/bin/sh\necho \"$@\" > {0}/args\ncat > {0}/script\n{script}\n", folder.display());
        fs::write(&program, text).expect("it can be written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
        Self { folder }
    }

    fn read_file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }
}

/// Submits run `x` with an engine's program first in `PATH`.
fn run_submit(remote: &TestRemote, engine: &FakeEngine, args: &[&str]) -> ProgramOutput {
    let path = remote.home.env().iter().find(|(name, _)| name == "PATH").map_or("/usr/bin:/bin", |(_, path)| path);
    let path = format!("{}:{path}", engine.folder.display());
    let url = remote.url();
    let all = [&["submit", &url, "--run", "x"], args].concat();
    remote.home.ctl_with(&remote.repo, &all, &[("PATH", &path)])
}

#[test]
fn a_run_is_begun_at_the_remote_and_its_script_drives_it_to_the_end() {
    let remote = TestRemote::new();
    remote.repo.script().always(WRITES);
    let engine = FakeEngine::new(&remote, "sbatch", "echo '4711;north'");
    let output = run_submit(&remote, &engine, &["--to", "slurm", "-m", "Do it.", "--yes", "--", "--partition=long"]);
    output.exits(0);
    assert!(output.stdout.contains("run x is job 4711 of slurm"), "{output:?}");
    assert_eq!(engine.read_file("args"), "--parsable --partition=long\n");
    assert_eq!(remote.subjects(), ["start run x", "release run x"]);

    // As on a node: there is no `scontrol`, and none is needed.
    let script = engine.folder.join("script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
    remote.home.run_program(&script, &[]).exits(0);
    assert_eq!(remote.git(&["show", "runner/x:work.txt"]), "work");
    assert_eq!(remote.subjects().last().map(String::as_str), Some("release run x"));
    remote.assert_swept();
    remote.assert_sound();

    let output = run_submit(&remote, &engine, &["--to", "slurm", "-m", "Do it.", "--yes"]);
    output.exits(6);
    assert!(output.stderr.contains("run x is completed at"), "{output:?}");
}

#[test]
fn what_is_only_shown_is_neither_begun_nor_asked_for() {
    let remote = TestRemote::new();
    let engine = FakeEngine::new(&remote, "sbatch", "echo 4711");
    let output = run_submit(&remote, &engine, &["--to", "slurm", "--print"]);
    output.exits(0);
    assert!(output.stdout.starts_with("#!/bin/bash\n") && output.stdout.contains(&remote.url()), "{output:?}");
    assert_eq!(
        (engine.read_file("args"), remote.git(&["branch", "--list", "runner/*"])),
        (String::new(), String::new())
    );
}

#[test]
fn nothing_is_submitted_that_was_not_confirmed_or_by_a_session() {
    let remote = TestRemote::new();
    let engine = FakeEngine::new(&remote, "sbatch", "echo 4711");
    let output = run_submit(&remote, &engine, &["--to", "slurm", "-m", "Do it."]);
    output.exits(6);
    assert!(output.stderr.contains("it was not confirmed") && output.stderr.contains("--yes"), "{output:?}");
    let args = ["submit", &remote.url(), "--to", "slurm", "--run", "x", "-m", "Do it.", "--yes"];
    let output = remote.home.ctl_with(&remote.repo, &args, &[("RUNNERD_MARK", "x")]);
    output.exits(6);
    assert!(output.stderr.contains("no job is submitted from inside an iteration"), "{output:?}");
    assert_eq!(
        (engine.read_file("args"), remote.git(&["branch", "--list", "runner/*"])),
        (String::new(), String::new())
    );
}

#[test]
fn an_engine_that_refuses_is_missing_or_says_something_else_is_told_and_the_beginning_stays() {
    let remote = TestRemote::new();
    let args = ["--to", "slurm", "-m", "Do it.", "--yes"];
    for (script, words) in [
        ("echo 'Invalid partition' >&2; exit 1", ["handing job", "Invalid partition"]),
        ("echo Submitted.", ["did not say what it calls job", "squeue --name remote-x"]),
    ] {
        let output = run_submit(&remote, &FakeEngine::new(&remote, "sbatch", script), &args);
        output.exits(1);
        assert!(words.iter().all(|word| output.stderr.contains(word)), "{output:?}");
        assert_eq!(remote.subjects(), ["start run x", "release run x"]);
    }
    let output = run_submit(&remote, &FakeEngine::new(&remote, "other", ""), &["--to", "command", "--yes"]);
    output.exits(6);
    assert!(output.stderr.contains("[engine.command] submit"), "{output:?}");
    // Of this machine's programs, which may include a real engine, only git is found.
    let bare = remote.home.path().join("bare");
    fs::create_dir(&bare).expect("a folder can be made");
    let git = std::env::split_paths(&std::env::var_os("PATH").expect("there is one"))
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file());
    symlink(git.expect("git is installed"), bare.join("git")).expect("a link can be made");
    let url = remote.url();
    let all = [&["submit", &url, "--run", "x"], &args[..]].concat();
    let output = remote.home.ctl_with(&remote.repo, &all, &[("PATH", &bare.display().to_string())]);
    output.exits(1);
    assert!(output.stderr.contains("`sbatch` is not on your PATH"), "{output:?}");
}
