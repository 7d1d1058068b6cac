//! The daemon dies while the workspace of an isolated run is created, and while it is set up. Rows 105 and 106.

use std::fs;
use std::path::{Path, PathBuf};

use protocol::words::RunStatus;
use runner_testkit::{Home, PATIENCE, Repo, SessionGate};

const RUN: &str = "apart";

/// A repository whose workspaces are set up by a program that stops at a gate.
struct FaultyWorkspace {
    gate: SessionGate,
    repo: Repo,
    home: Home,
}

impl FaultyWorkspace {
    fn new(config: impl FnOnce(&str) -> String) -> Self {
        let home = Home::new();
        let repo = home.repo("one");
        let gate = repo.script().gate("made");
        let gates = repo.script().folder().join("gates").display().to_string();
        let program = format!(
            "#!/bin/sh\necho x >> {count}\necho > {gates}/made.in\nread -r _ < {gates}/made.out\ncat\n",
            count = home.path().join("count").display(),
        );
        let path = home.path().join("program.sh");
        fs::write(&path, program).expect("a program can be written");
        repo.write(".runner/GOAL.md", "# Reach the goal\n");
        repo.script().always("echo work > work.txt; answer done 'Done.'");
        let text = config(&path.display().to_string());
        repo.commit_config(&repo.config().top("max_iterations = 1").section(&text));
        Self { gate, repo, home }
    }

    /// How often the program was started.
    fn count(&self) -> usize {
        fs::read_to_string(self.home.path().join("count")).map_or(0, |text| text.lines().count())
    }

    fn workspaces(&self) -> Vec<PathBuf> {
        folders(&self.home.state().join("workspaces")).iter().flat_map(|source| folders(source)).collect()
    }
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[test]
fn row_105_killed_while_a_workspace_is_made() {
    let scene = FaultyWorkspace::new(|_| String::new());
    let program = scene.home.path().join("program.sh").display().to_string();
    scene.repo.write(".gitattributes", "slow.txt filter=slow\n");
    scene.repo.write("slow.txt", "slow\n");
    scene.repo.commit("A file that takes long");
    scene.repo.git(&["config", "filter.slow.smudge", &format!("sh {program}")]);
    let refs = scene.repo.refs("refs/heads/");
    let daemon = scene.home.daemon();
    let args = ["start", "--isolated", "--yes", "--id", RUN, "-m", "Do it"];
    let mut client = scene.home.ctl_command(&scene.repo, &args).spawn().expect("the client can be started");
    scene.gate.wait_reached();
    daemon.kill();
    assert!(!client.wait().expect("the client ends").success());
    scene.gate.open();
    scene.home.wait_all_gone(PATIENCE);
    let _daemon = scene.home.daemon();
    assert_eq!(scene.workspaces(), Vec::<PathBuf>::new(), "what was begun is swept");
    assert_eq!(scene.repo.refs("refs/heads/"), refs);
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    scene.repo.git(&["config", "--unset", "filter.slow.smudge"]);
    scene.home.ctl_in(&scene.repo, &[&args[..], &["--wait"]].concat()).exits(0);
    assert_eq!(scene.workspaces().len(), 1);
}

#[test]
fn row_106_killed_while_a_workspace_is_made_ready() {
    let scene = FaultyWorkspace::new(|program| format!("[workspace]\nsetup = [\"sh\", \"{program}\"]"));
    let daemon = scene.home.daemon();
    let args = ["start", "--isolated", "--yes", "--id", RUN, "-m", "Do it"];
    scene.home.ctl_in(&scene.repo, &args).exits(0);
    scene.gate.wait_reached();
    daemon.kill();
    let _daemon = scene.home.daemon();
    scene.gate.wait_reached();
    scene.gate.open();
    let place = scene.home.ctl_in(&scene.repo, &["path", RUN]);
    scene.home.client().wait_for(Path::new(place.stdout.trim()), RunStatus::Completed);
    assert_eq!(scene.count(), 2, "it ran again, since it is unknown whether it had finished");
    assert_eq!(scene.repo.script().session_count(), 1);
}
