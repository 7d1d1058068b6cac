//! Runs with kind `codex`, in whose place a script prints recorded output of the real program.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use protocol::words::RunStatus;
use runner_testkit::{Daemon, Home, ProgramOutput, Repo, Tty};

/// Recorded sessions.
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../runnerd/agents/src/samples/codex");
const KEY: &str = "dummy-key-of-a-service";

/// A home in which `codex` is installed, and a repository that uses it.
struct CodexStand {
    _daemon: Daemon,
    repo: Repo,
    home: Home,
}

impl CodexStand {
    fn new(home: Home, version: &str, sample: &str) -> Self {
        let kit = home.path().join("codex");
        fs::create_dir(&kit).expect("the stand can be set up");
        fs::write(kit.join("version"), version).expect("the stand can be set up");
        for part in ["stdout", "rollout", "last"] {
            let text = fs::read(format!("{SAMPLES}/{sample}.{part}")).unwrap_or_default();
            fs::write(kit.join(part), text).expect("the stand can be set up");
        }
        home.install("codex", include_str!("codex/codex.sh"));
        let repo = home.repo("one");
        let guard = format!("env > {}; exit 0", kit.join("guard-env").display());
        let config = format!(
            "max_iterations = 2\n[executor]\nkind = \"codex\"\n[guard]\ncommand = [\"sh\", \"-c\", {guard:?}]\nbaseline = false\n"
        );
        repo.write(".runner/GOAL.md", "# Reach the goal\n");
        repo.write(".runner/state/config.toml", &config);
        repo.commit("Configure the runner");
        Self { _daemon: home.daemon(), repo, home }
    }

    fn with_key(version: &str, sample: &str) -> Self {
        Self::new(Home::new().export("CODEX_API_KEY", KEY), version, sample)
    }

    fn run(&self) -> ProgramOutput {
        self.home.run(&self.repo, &["--id", "stand"])
    }

    fn kit(&self, file: &str) -> PathBuf {
        self.home.path().join("codex").join(file)
    }

    fn rollouts(&self) -> usize {
        let homes = fs::read_dir(self.home.state().join("sessions")).expect("sessions have had homes");
        homes.count() + usize::from(self.home.path().join(".codex/sessions").exists())
    }

    /// Asserts that a start is refused before anything has started.
    #[track_caller]
    fn assert_refuses(&self, what: &str, fix: &str) {
        let output = self.run();
        output.exits(6);
        assert!(output.stderr.contains(what) && output.stderr.contains(fix), "{}", output.stderr);
        assert!(self.repo.refs("refs/heads/runner").is_empty() && !self.kit("prompt").exists());
    }
}

#[test]
fn session_is_driven_to_a_receipt_with_its_version_and_its_usage() {
    let stand = CodexStand::with_key("codex-cli 0.169.0", "success");
    stand.run().exits(0);
    stand.repo.assert_sound();
    let receipts = stand.repo.receipts();
    let receipt = receipts.iter().find(|receipt| receipt.trailer("Runner-Agent").is_some()).unwrap();
    assert_eq!(receipt.verdict(), "Accepted", "{receipt:#?}");
    assert_eq!(receipt.trailer("Runner-Agent"), Some("codex 0.169.0"));
    assert_eq!(receipt.trailer("Runner-Usage"), Some("in=1600 cached=400 out=100 cost_usd=unknown"));
    assert_eq!(receipt.body, "All done.");
    assert!(fs::read_to_string(stand.kit("schema")).unwrap().contains("\"additionalProperties\": false"));
    assert_eq!(stand.rollouts(), 0, "what the session wrote down is read and removed");
    let record = stand.repo.path().join(".runner/iterations/stand/0001");
    let names = fs::read_dir(record).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let own: Vec<String> = names.filter(|name| name.starts_with("codex") || name.starts_with("version")).collect();
    assert!(own.is_empty(), "{own:?}");
}

#[test]
fn login_of_the_agent_goes_to_the_agent_alone() {
    let stand = CodexStand::with_key("codex-cli 0.169.0", "success");
    stand.run().exits(0);
    let has_key = |file: &str| fs::read_to_string(stand.kit(file)).unwrap().contains(KEY);
    assert!(has_key("env"), "it need not be named");
    assert!(!has_key("guard-env"));
}

#[test]
fn session_that_is_cut_off_is_asked_to_end_and_leaves_its_usage() {
    let stand = CodexStand::with_key("codex-cli 0.169.0", "killed-sigkill");
    let gate = stand.repo.script().gate("work");
    symlink(stand.repo.script().folder().join("gates/work.in"), stand.kit("arrived")).unwrap();
    stand.home.ctl_in(&stand.repo, &["start", "--yes", "--id", "stand"]).exits(0);
    gate.wait_reached();
    stand.home.ctl_in(&stand.repo, &["pause", "--now"]).exits(0);
    stand.home.client().wait_for(stand.repo.path(), RunStatus::Paused);
    let receipts = stand.repo.receipts();
    let receipt = receipts.iter().find(|receipt| receipt.trailer("Runner-Agent").is_some()).unwrap();
    assert_eq!(receipt.verdict(), "Interrupted", "{receipt:#?}");
    assert_eq!(receipt.trailer("Runner-Usage"), Some("in=800 cached=200 out=50 cost_usd=0.002135"));
    assert_eq!(stand.rollouts(), 0);
}

#[test]
fn agent_that_cannot_work_is_refused_before_anything_begins() {
    let update = "npm install -g @openai/codex@latest";
    CodexStand::with_key("codex-cli 0.99.0", "success").assert_refuses("codex 0.99.0 is older than", update);
    CodexStand::with_key("hello", "success").assert_refuses("says no version", update);
    CodexStand::new(Home::new(), "codex-cli 0.169.0", "success").assert_refuses("codex has no login", "codex login");
    let stand = CodexStand::with_key("codex-cli 0.169.0", "success");
    fs::remove_file(stand.home.path().join("bin/codex")).unwrap();
    stand.assert_refuses("cannot find the program `codex`", update);
}

#[test]
fn agent_that_was_replaced_is_asked_again() {
    let stand = CodexStand::with_key("codex-cli 0.169.0", "success");
    stand.home.ctl_in(&stand.repo, &["start", "--yes", "--id", "stand", "--queue-only"]).exits(0);
    fs::write(stand.kit("version"), "codex-cli 0.99.0").unwrap();
    // Another file in its place, as a package manager leaves it.
    let program = stand.home.path().join("bin/codex");
    fs::remove_file(&program).unwrap();
    stand.home.install("codex", include_str!("codex/codex.sh"));
    let output = stand.home.ctl_in(&stand.repo, &["resume", "--yes"]);
    output.exits(6);
    assert!(output.stderr.contains("codex 0.99.0 is older than"), "{}", output.stderr);
}

#[test]
fn what_an_agent_does_is_seen_live_in_words_and_as_it_was_printed() {
    let stand = CodexStand::with_key("codex-cli 0.169.0", "success");
    stand.home.ctl_in(&stand.repo, &["start", "--yes", "--id", "stand", "--queue-only"]).exits(0);
    let mut tty = Tty::start(&stand.home.ctl_command(&stand.repo, &["watch"]), (120, 40));
    tty.wait_for_text("to continue: runnerctl resume");
    tty.keys("r").wait_for_text("$ /bin/bash -lc 'echo hi > work; echo seen'");
    tty.wait_for_text("└ exit code 0: /bin/bash");
    tty.wait_for_text("completed: ");
    assert!(!tty.screen().contains("command_execution"));
    tty.keys("v").wait_for_text("command_execution");
}
