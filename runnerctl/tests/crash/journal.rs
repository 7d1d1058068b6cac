//! State of the daemon that is torn, or that it cannot understand.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use protocol::words::RunStatus;
use runner_testkit::{Home, Repo};

use crate::witness::assert_consistent;

/// A run that died in its first session.
struct Died {
    home: Home,
    repo: Repo,
}

impl Died {
    fn new() -> Self {
        let home = Home::new();
        let repo = home.scripted("one");
        let gate = repo.script().gate("session");
        repo.script().step(1, "echo half > half.txt; gate session");
        let daemon = home.daemon();
        home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
        gate.reached();
        daemon.kill();
        home.all_gone_within(Duration::from_secs(5));
        Self { home, repo }
    }

    fn file(&self, name: &str) -> PathBuf {
        let folder = fs::read_dir(self.home.state().join("repos")).unwrap().next().unwrap().unwrap();
        folder.path().join(name)
    }

    /// Starts the daemon with a changed file: the repository is held and the file stays as it is, another repository
    /// goes on, and with the file put right the run does.
    fn is_held_until_put_right(&self, name: &str, change: impl FnOnce(&str) -> String) {
        let path = self.file(name);
        let right = fs::read_to_string(&path).unwrap();
        let wrong = change(&right);
        assert_ne!(wrong, right);
        fs::write(&path, &wrong).unwrap();
        let _daemon = self.home.daemon();
        let other = self.home.scripted("other");
        other.script().step(1, "echo done > done.txt; answer done 'It is done.'");
        self.home.run(&other, &["-m", "Something else"]).exits(0);
        let held = self.home.ctl_in(&self.repo, &["resume"]);
        held.exits(6);
        assert!(held.stderr.contains(name), "it names the file: {}", held.stderr);
        assert_eq!(fs::read_to_string(&path).unwrap(), wrong, "what cannot be understood is not overwritten");
        fs::write(&path, &right).unwrap();
        self.home.ctl_in(&self.repo, &["resume"]).exits(0);
        self.completes();
    }

    fn completes(&self) {
        self.home.client().wait_for(self.repo.path(), RunStatus::Completed);
        let receipts = self.repo.receipts();
        assert_eq!(receipts.iter().map(|receipt| receipt.verdict()).collect::<Vec<_>>(), ["Interrupted", "Accepted"]);
        assert_consistent(&self.repo);
    }
}

#[test]
fn last_line_of_the_journal_that_was_cut_never_happened() {
    let died = Died::new();
    let path = died.file("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{{\"at\":\"2026-0")).unwrap();
    let _daemon = died.home.daemon();
    died.completes();
}

#[test]
fn line_of_the_journal_that_is_garbage_holds_the_repository() {
    Died::new().is_held_until_put_right("journal.jsonl", |text| format!("{text}garbage\n"));
}

#[test]
fn journal_of_another_version_holds_the_repository() {
    Died::new().is_held_until_put_right("journal.jsonl", |text| text.replacen("\"version\":1", "\"version\":2", 1));
}

#[test]
fn repo_json_that_is_no_json_holds_the_repository() {
    Died::new().is_held_until_put_right("repo.json", |text| text.replacen('{', "{{", 1));
}

#[test]
fn repo_json_of_another_version_holds_the_repository() {
    Died::new().is_held_until_put_right("repo.json", |text| text.replacen("\"version\": 1", "\"version\": 2", 1));
}
