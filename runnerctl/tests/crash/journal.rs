//! State of the daemon that is truncated, or that it cannot read.

use std::fs;
use std::path::{Path, PathBuf};

use protocol::words::RunStatus;
use runner_testkit::{Home, Repo};

use runner_testkit::invariants::{assert_consistent, killed_mid_session, list_verdicts};

/// A run whose daemon died in its first session.
struct CrashedRun {
    home: Home,
    repo: Repo,
}

impl CrashedRun {
    fn new() -> Self {
        let home = Home::new();
        let repo = killed_mid_session(&home);
        Self { home, repo }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.registered_dir().join(name)
    }

    /// Starts the daemon with a changed file: the repository is held and the file stays as it is, while another
    /// repository continues. Once the file is restored, the run continues.
    fn assert_held_until_repaired(&self, name: &str, change: impl FnOnce(&str) -> String) {
        let path = self.file(name);
        let right = read_text(&path);
        let wrong = change(&right);
        assert_ne!(wrong, right);
        write(&path, &wrong);
        let _daemon = self.home.daemon();
        let other = self.home.scripted_repo("other");
        other.script().step(1, "echo done > done.txt; answer done 'It is done.'");
        self.home.run(&other, &["-m", "Something else"]).exits(0);
        let held = self.home.ctl_in(&self.repo, &["resume"]);
        held.exits(6);
        assert!(held.stderr.contains(name), "it names the file: {}", held.stderr);
        assert_eq!(read_text(&path), wrong, "what cannot be understood is not overwritten");
        write(&path, &right);
        self.home.ctl_in(&self.repo, &["resume"]).exits(0);
        self.assert_completes();
    }

    fn assert_completes(&self) {
        self.home.client().wait_for(self.repo.path(), RunStatus::Completed);
        assert_eq!(list_verdicts(&self.repo), ["Interrupted", "Accepted"]);
        assert_consistent(&self.repo);
    }
}

fn read_text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}

#[test]
fn last_line_of_the_journal_that_was_cut_never_happened() {
    let died = CrashedRun::new();
    let path = died.file("journal.jsonl");
    let right = read_text(&path);
    write(&path, &format!("{right}{{\"at\":\"2026-0"));
    let _daemon = died.home.daemon();
    died.assert_completes();
}

#[test]
fn line_of_the_journal_that_is_garbage_holds_the_repository() {
    CrashedRun::new().assert_held_until_repaired("journal.jsonl", |text| format!("{text}garbage\n"));
}

#[test]
fn journal_of_another_version_holds_the_repository() {
    CrashedRun::new()
        .assert_held_until_repaired("journal.jsonl", |text| text.replacen("\"version\":1", "\"version\":2", 1));
}

#[test]
fn repo_json_that_is_no_json_holds_the_repository() {
    CrashedRun::new().assert_held_until_repaired("repo.json", |text| text.replacen('{', "{{", 1));
}

#[test]
fn repo_json_of_another_version_holds_the_repository() {
    CrashedRun::new()
        .assert_held_until_repaired("repo.json", |text| text.replacen("\"version\": 1", "\"version\": 2", 1));
}

#[test]
fn journal_that_cannot_be_written_is_waited_for_and_costs_nothing() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.script().step(1, "echo done > done.txt; answer done 'It is done.'");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    let folder = fs::read_dir(home.private().join("repos")).unwrap().next().unwrap().unwrap().path();
    let in_the_way = folder.join("journal.jsonl");
    fs::create_dir(&in_the_way).unwrap();
    home.ctl_in(&repo, &["resume"]).exits(0);
    let run = home.client().wait_until(repo.path(), |run| run.summary.state == RunStatus::Waiting);
    assert!(run.summary.reason.expect("it says why").message.contains("journal.jsonl"));
    assert_eq!(repo.script().session_count(), 0, "an event that is not stored has no effect");
    fs::remove_dir(&in_the_way).unwrap();
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_consistent(&repo);
}
