//! Runs with kind `claude`, in whose place a script prints recorded output of the real program.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use protocol::words::RunStatus;
use runner_testkit::{Daemon, Home, ProgramOutput, ReceiptCommit, Repo};

/// Recorded sessions.
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../runnerd/agents/src/samples/claude");
const KEY: &str = "dummy-key-of-a-service";
const VERSION: &str = "2.1.330 (Claude Code)";

/// A home in which `claude` is installed, and a repository that uses it.
struct ClaudeStand {
    _daemon: Daemon,
    repo: Repo,
    home: Home,
}

impl ClaudeStand {
    fn new(version: &str, sample: &str, exit: i32) -> Self {
        let home = Home::new().export("ANTHROPIC_API_KEY", KEY);
        let kit = home.path().join("claude");
        fs::create_dir(&kit).expect("the stand can be set up");
        fs::copy(format!("{SAMPLES}/{sample}.stdout"), kit.join("stdout")).expect("the stand can be set up");
        fs::write(kit.join("version"), version).expect("the stand can be set up");
        fs::write(kit.join("exit"), exit.to_string()).expect("the stand can be set up");
        home.install("claude", include_str!("claude/claude.sh"));
        let repo = home.repo("one");
        let guard = format!("env > {}; exit 0", kit.join("guard-env").display());
        let config = format!(
            "max_iterations = 2\n[executor]\nkind = \"claude\"\nmodel = \"opus\"\n[guard]\ncommand = [\"sh\", \"-c\", {guard:?}]\nbaseline = false\n"
        );
        repo.write(".runner/GOAL.md", "# Reach the goal\n");
        repo.write(".runner/state/config.toml", &config);
        repo.commit("Configure the runner");
        Self { _daemon: home.daemon(), repo, home }
    }

    fn run(&self) -> ProgramOutput {
        self.home.run(&self.repo, &["--id", "stand"])
    }

    fn kit(&self, file: &str) -> PathBuf {
        self.home.path().join("claude").join(file)
    }

    fn read_text(&self, file: &str) -> String {
        fs::read_to_string(self.kit(file)).expect("the stand can be set up")
    }

    /// Returns the receipt of the first session.
    fn receipt(&self) -> ReceiptCommit {
        self.repo.assert_sound();
        let receipts = self.repo.receipts();
        receipts.iter().find(|receipt| receipt.trailer("Runner-Agent").is_some()).expect("a receipt").clone()
    }
}

#[test]
fn session_is_driven_to_a_receipt_with_its_version_its_usage_and_its_cost() {
    let stand = ClaudeStand::new(VERSION, "success", 0);
    stand.run().exits(0);
    let receipt = stand.receipt();
    assert_eq!(receipt.verdict(), "Accepted", "{receipt:#?}");
    assert_eq!(receipt.trailer("Runner-Agent"), Some("claude 2.1.330"));
    assert_eq!(receipt.trailer("Runner-Usage"), Some("in=1600 cached=400 out=100 cost_usd=0.006420"));
    assert_eq!(receipt.body, "All done.");
    assert!(stand.read_text("argv").contains("--model\nopus\n"), "{}", stand.read_text("argv"));
    assert!(stand.read_text("prompt").contains("Reach the goal"));
}

#[test]
fn login_of_the_agent_goes_to_the_agent_alone() {
    let stand = ClaudeStand::new(VERSION, "success", 0);
    stand.run().exits(0);
    assert!(stand.read_text("env").contains(KEY), "it need not be named");
    assert!(!stand.read_text("guard-env").contains(KEY));
}

#[test]
fn session_that_is_cut_off_says_what_it_consumed() {
    let stand = ClaudeStand::new(VERSION, "killed-sigint", 0);
    let gate = stand.repo.script().gate("work");
    symlink(stand.repo.script().folder().join("gates/work.in"), stand.kit("arrived")).unwrap();
    stand.home.ctl_in(&stand.repo, &["start", "--yes", "--id", "stand"]).exits(0);
    gate.wait_reached();
    stand.home.ctl_in(&stand.repo, &["pause", "--now"]).exits(0);
    stand.home.client().wait_for(stand.repo.path(), RunStatus::Paused);
    let receipt = stand.receipt();
    assert_eq!(receipt.verdict(), "Interrupted", "{receipt:#?}");
    assert_eq!(receipt.trailer("Runner-Usage"), Some("in=800 cached=200 out=50 cost_usd=0.003210"));
}

#[test]
fn exit_without_structured_output_is_a_fault() {
    let stand = ClaudeStand::new(VERSION, "empty-answer", 0);
    stand.run().exits(4);
    let receipt = stand.receipt();
    assert!(receipt.verdict().starts_with("Fault"), "{receipt:#?}");
    assert_eq!(receipt.trailer("Runner-Attempts"), Some("0/3"));
}

#[test]
fn version_that_asks_for_ever_is_refused_before_anything_begins() {
    let stand = ClaudeStand::new("2.1.0 (Claude Code)", "success", 0);
    let output = stand.run();
    output.exits(6);
    assert!(output.stderr.contains("claude 2.1.0 is older than 2.1.197"), "{}", output.stderr);
    assert!(output.stderr.contains("npm install -g @anthropic-ai/claude-code@latest"), "{}", output.stderr);
    assert!(!stand.kit("prompt").exists());
}
