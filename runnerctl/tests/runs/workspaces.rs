//! Workspaces of isolated runs, prepared by `copy` and `setup`.

use std::fs;
use std::path::PathBuf;

use runner_testkit::{Home, ProgramOutput, Repo};

use crate::play::{RUN, sample};

const LIMITED: i32 = 4;
const FAILED: i32 = 9;

/// A repository whose runs have a workspace, and a program that prepares it.
struct WorkspaceScene {
    repo: Repo,
    home: Home,
}

impl WorkspaceScene {
    fn new(setup: &str, more: &str) -> Self {
        let home = Home::new();
        let repo = home.repo("one");
        fs::write(home.path().join("setup.sh"), setup).expect("a program can be written");
        let argv = format!("setup = [\"sh\", \"{}\"]", home.path().join("setup.sh").display());
        repo.write(".gitignore", "deps/\n.env\n");
        repo.write(".runner/GOAL.md", "# Reach the goal\n");
        let config = repo.config().top("max_iterations = 1").section(&format!("[workspace]\n{argv}\n{more}"));
        repo.commit_config(&config);
        let text = repo.read(".runner/state/config.toml").replace("baseline = false", "baseline = true");
        repo.write(".runner/state/config.toml", &text);
        repo.commit_tree(&sample());
        repo.script().step(1, "cat deps/tool .env > seen.txt\nanswer retry 'Not yet.'");
        Self { repo, home }
    }

    fn start(&self) -> ProgramOutput {
        self.home.run(&self.repo, &["--isolated", "--id", RUN])
    }

    fn workspace_path(&self) -> PathBuf {
        let output = self.home.ctl_in(&self.repo, &["path", RUN]);
        output.exits(0);
        PathBuf::from(output.stdout.trim())
    }

    fn log(&self) -> Vec<u8> {
        fs::read(self.workspace_path().join(format!(".runner/iterations/{RUN}/setup.log"))).expect("a log of the setup")
    }
}

#[test]
fn setup_and_copies_are_there_before_the_guard_and_the_session() {
    let scene = WorkspaceScene::new("echo installing; mkdir deps; echo tool > deps/tool", "copy = [\".env\"]");
    scene.repo.write(".env", "KEY=1\n");
    scene.repo.script().guard_step(1, "test -f deps/tool && test -f .env");
    let _daemon = scene.home.daemon();
    scene.start().exits(LIMITED);
    assert_eq!(fs::read_to_string(scene.workspace_path().join("seen.txt")).expect("a file"), "tool\nKEY=1\n");
    assert_eq!(scene.log(), b"installing\n");
    assert!(!scene.repo.path().join("deps").exists(), "nothing was set up in place");
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn setup_that_fails_ends_the_run_before_any_session_and_is_run_again_by_resume() {
    let scene = WorkspaceScene::new(
        "echo no registry >&2; test -f \"$0.fixed\" || exit 3; mkdir deps; touch deps/tool .env",
        "",
    );
    let _daemon = scene.home.daemon();
    let ended = scene.start();
    ended.exits(FAILED);
    let text = format!("{}{}", ended.stdout, ended.stderr);
    for part in ["exit code 3", "no registry", "setup.log", "runnerctl resume"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(scene.repo.script().session_count(), 0);
    fs::write(scene.home.path().join("setup.sh.fixed"), "").expect("a file can be written");
    scene.home.ctl_in(&scene.repo, &["resume", "--run", RUN, "--wait"]).exits(LIMITED);
    assert_eq!(scene.repo.script().session_count(), 1);
}

#[test]
fn setup_that_hangs_is_ended_with_all_that_it_has_started() {
    let scene = WorkspaceScene::new("sleep 1000 & sleep 1000", "setup_timeout_secs = 1");
    let _daemon = scene.home.daemon();
    let ended = scene.start();
    ended.exits(FAILED);
    let text = format!("{}{}", ended.stdout, ended.stderr);
    assert!(text.contains("did not end within 1 seconds"), "{text}");
}

#[test]
fn setup_that_floods_leaves_a_log_that_is_bounded() {
    let scene = WorkspaceScene::new("yes flood | head -c 50000000; mkdir deps; touch deps/tool .env", "");
    let _daemon = scene.home.daemon();
    scene.start().exits(LIMITED);
    assert!(scene.log().len() < 2 << 20, "{} bytes", scene.log().len());
}

#[test]
fn setup_that_cannot_be_started_is_named() {
    let scene = WorkspaceScene::new("", "");
    let config = scene.repo.read(".runner/state/config.toml").replace("\"sh\"", "\"no-such-program\"");
    scene.repo.write(".runner/state/config.toml", &config);
    scene.repo.commit("Another program");
    let _daemon = scene.home.daemon();
    let ended = scene.start();
    ended.exits(FAILED);
    let text = format!("{}{}", ended.stdout, ended.stderr);
    assert!(text.contains("the setup of the workspace cannot be started"), "{text}");
}

#[test]
fn key_of_the_agents_service_is_given_to_the_session_alone() {
    let key = "dummy-key-of-a-service";
    let home = Home::new().export("GEMINI_API_KEY", key);
    home.install("gemini", include_str!("gemini/gemini.sh"));
    let kit = home.path().join("gemini");
    fs::create_dir(&kit).expect("a folder can be made");
    fs::write(kit.join("then"), "env > \"$kit/session\"").expect("a file can be written");
    let repo = home.repo("one");
    let gate = repo.script().gate("hook");
    let arrive = format!("printf x > {}/gates/hook.in", repo.script().folder().display());
    let tell = |name: &str, then: &str| format!("[\"sh\", \"-c\", \"env > {}/{name}; {then}\"]", kit.display());
    let config = format!(
        "[executor]\nkind = \"gemini\"\n[guard]\ncommand = {}\n[workspace]\nsetup = {}\n[hooks]\non_complete = {}\n",
        tell("guard", "true"),
        tell("setup", "true"),
        tell("hook", &arrive)
    );
    repo.write(".runner/GOAL.md", "# Reach the goal\n").write(".runner/state/config.toml", &config);
    repo.commit("Configure the runner");
    let _daemon = home.daemon();
    home.run(&repo, &["--isolated", "--id", RUN]).exits(0);
    gate.wait_reached();
    let read_file = |name: &str| fs::read_to_string(kit.join(name));
    assert!(read_file("session").expect("the session ran").contains(key));
    for name in ["guard", "setup", "hook"] {
        let env = read_file(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(env.contains("PATH=") && !env.contains(key), "{name}: {env}");
    }
}
