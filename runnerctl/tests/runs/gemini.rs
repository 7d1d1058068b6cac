//! Runs with kind `gemini`, in whose place a script reports what it sees: the real program obeys files in the work tree
//! regardless of its arguments.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use protocol::words::RunStatus;
use runner_testkit::{Daemon, Home, Repo};

const PROGRAM: &str = include_str!("gemini/gemini.sh");

/// A home in which `gemini` is installed, and a repository that uses it and has settings of the program.
struct GeminiStand {
    daemon: Daemon,
    repo: Repo,
    home: Home,
}

impl GeminiStand {
    fn new() -> Self {
        let home = Home::new().export("GEMINI_API_KEY", "dummy");
        home.install("gemini", PROGRAM);
        fs::create_dir(home.path().join("gemini")).expect("the stand can be set up");
        let repo = home.repo("one");
        let config = "[executor]\nkind = \"gemini\"\n[guard]\ncommand = [\"true\"]\nbaseline = false\n";
        repo.write(".runner/GOAL.md", "# Reach the goal\n").write(".runner/state/config.toml", config);
        repo.write(".gemini/settings.json", "{}\n").write(".gitignore", ".gemini/.env\n");
        symlink("nowhere", repo.path().join("GEMINI.md")).expect("a link can be made");
        repo.commit("Configure the runner and the agent");
        repo.write(".gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:9\n");
        Self { daemon: home.daemon(), repo, home }
    }

    fn kit(&self, file: &str) -> PathBuf {
        self.home.path().join("gemini").join(file)
    }

    fn is_restored(&self) -> bool {
        let at = |path: &str| self.repo.path().join(path);
        fs::read_link(at("GEMINI.md")).is_ok_and(|target| target == Path::new("nowhere"))
            && self.repo.read(".gemini/settings.json") == "{}\n"
            && at(".gemini/.env").exists()
    }
}

#[test]
fn files_that_the_program_obeys_are_away_for_the_session_and_come_back() {
    let stand = GeminiStand::new();
    fs::write(stand.kit("then"), "mkdir .gemini; echo mine > .gemini/settings.json").expect("the stand can be set up");
    stand.home.run(&stand.repo, &["--id", "stand"]).exits(0);
    let seen = fs::read_to_string(stand.kit("seen")).expect("the program ran");
    assert!(seen.contains(".gitignore") && !seen.contains("GEMINI.md") && !seen.contains(".gemini\n"), "{seen}");
    assert!(stand.is_restored());
    assert_eq!(stand.repo.show("HEAD", ".gemini/settings.json"), "{}");
    let kept = stand.repo.path().join(".runner/iterations/stand/0001/reverted/swapped__.gemini/settings.json");
    assert_eq!(fs::read_to_string(kept).expect("what the session wrote is kept"), "mine\n");
    let hidden = [".gemini", "GEMINI.md"];
    assert_eq!(stand.repo.run_state("HEAD").hidden, hidden, "the next prompt names them");
    let receipts = stand.repo.receipts();
    let named = receipts.last().and_then(|commit| commit.trailer("Runner-Hidden"));
    assert_eq!(named, Some(".gemini, GEMINI.md"));
    let status = stand.home.ctl_in(&stand.repo, &["status"]).exits(0).stdout.clone();
    assert!(hidden.iter().all(|path| status.contains(&format!("iteration 1 ran without {path}"))), "{status}");
    let log = stand.home.ctl_in(&stand.repo, &["log", "1"]).exits(0).stdout.clone();
    assert!(log.contains("hidden") && log.contains("GEMINI.md"), "{log}");
    stand.home.ctl_in(&stand.repo, &["verify"]).exits(0);
    let home = fs::read_to_string(stand.kit("home")).expect("the program ran");
    assert!(home.trim().starts_with(&stand.home.state().display().to_string()), "{home}");
    assert!(!Path::new(home.trim()).exists(), "the home goes with the session: {home}");
}

#[test]
fn whatever_a_session_puts_in_their_place_is_away_for_the_next_and_comes_back() {
    let answer = r#"{"status": "retry", "summary": "Not yet.", "children": null}"#;
    let end = r#"{"type":"result","status":"success","stats":{"input_tokens":1,"output_tokens":1,"cached":0}}"#;
    for (plant, is_kept) in [
        ("mkfifo .gemini", "test -p .gemini"),
        ("mkdir -p .gemini/a; mkfifo .gemini/a/settings.json", "test -p .gemini/a/settings.json"),
        ("ln -s / .gemini", "test -L .gemini"),
        ("truncate -s 100M .gemini", "test $(stat -c %s .gemini) = 104857600"),
        ("printf '{\\377' >.gemini", "test $(stat -c %s .gemini) = 2"),
    ] {
        let stand = GeminiStand::new();
        fs::remove_dir_all(stand.repo.path().join(".gemini")).expect("it is removed");
        stand.repo.commit("Remove the settings");
        let planted = stand.kit("planted").display().to_string();
        let first = format!("{plant}; echo >{planted}; echo '{answer}' >\"$RUNNER_OUTPUT\"; echo '{end}'");
        fs::write(stand.kit("then"), format!("[ -e {planted} ] || {{ {first}; exit; }}"))
            .expect("the stand can be set up");
        stand.home.run(&stand.repo, &["--id", "stand"]).exits(0);
        let seen = fs::read_to_string(stand.kit("seen")).expect("the program ran");
        assert!(!seen.lines().any(|name| name == ".gemini"), "{plant}: {seen}");
        let kept = Command::new("sh").args(["-c", is_kept]).current_dir(stand.repo.path()).status();
        assert!(kept.expect("sh runs").success(), "{plant}");
    }
}

#[test]
fn files_that_the_program_obeys_come_back_though_the_daemon_is_killed() {
    let stand = GeminiStand::new();
    let gate = stand.repo.script().gate("work");
    let arrived = stand.repo.script().folder().join("gates/work.in");
    fs::write(stand.kit("then"), format!("echo > {}; sleep 600", arrived.display())).expect("the stand can be set up");
    stand.home.ctl_in(&stand.repo, &["start", "--yes", "--id", "stand"]).exits(0);
    gate.wait_reached();
    assert!(!stand.repo.path().join(".gemini").exists());
    fs::write(stand.kit("then"), "true").expect("the stand can be set up");
    stand.daemon.kill();
    let _daemon = stand.home.daemon();
    stand.home.client().wait_for(stand.repo.path(), RunStatus::Completed);
    let at = |path: &str| stand.repo.path().join(path);
    assert_eq!(stand.repo.read(".gemini/settings.json"), "{}\n");
    assert!(at(".gemini/.env").exists() && at("GEMINI.md").symlink_metadata().is_ok());
    let homes = fs::read_dir(stand.home.state().join("sessions")).expect("sessions have had homes");
    assert_eq!(homes.count(), 0);
    let temporary = fs::read_dir(stand.home.path().join("tmp")).expect("it can be listed");
    let is_left = |name: &str| name.starts_with("runner-");
    assert!(!temporary.flatten().any(|entry| is_left(&entry.file_name().to_string_lossy())), "a folder stays");
}
