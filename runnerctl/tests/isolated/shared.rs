//! Two daemons, of two users or with two state folders: one source and one folder of workspaces, but each has its own
//! runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use protocol::words::RunStatus;
use runner_testkit::{Daemon, Home, PATIENCE, ProgramOutput, Repo, SessionGate};

use crate::kit::{reserved_refs, start, workspace};

/// Runs a command with another daemon than that of the repository's home, but with that home's programs.
fn run_as(other: &Home, home: &Home, repo: &Repo, args: &[&str]) -> ProgramOutput {
    other.ctl_with(repo, args, &[("PATH", &path(other, home))])
}

fn path(other: &Home, home: &Home) -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("{}:{}:{own}", home.path().join("bin").display(), other.path().join("bin").display())
}

/// Makes both daemons create their workspaces in one folder.
fn share(home: &Home, other: &Home) -> PathBuf {
    let folder = home.path().join("shared");
    for home in [home, other] {
        home.configure(&format!("workspaces = {:?}", folder.display().to_string()));
    }
    folder
}

fn count_started(folder: &Path) -> usize {
    let sources = fs::read_dir(folder).into_iter().flatten().flatten();
    let workspaces = sources.flat_map(|source| fs::read_dir(source.path()).into_iter().flatten().flatten());
    workspaces.filter(|workspace| workspace.file_name().to_string_lossy().starts_with(".unfinished-")).count()
}

#[test]
fn each_of_two_daemons_publishes_its_own_runs_of_one_source() {
    let home = Home::new();
    let other = Home::new();
    share(&home, &other);
    let repo = home.scripted_repo("plain");
    let gate = repo.script().gate("work");
    repo.script().always("gate work; echo $n > work-$n.txt; answer done 'Done.'");
    let _daemon = home.daemon();
    let _second = other.daemon();
    let first = start(&home, &repo, "tidy", &[]);
    gate.wait_reached();
    let args = ["start", "--isolated", "--yes", "--json", "-m", "Do it.", "--id", "tidy"];
    let second = run_as(&other, &home, &repo, &args).exits(0).json();
    gate.wait_reached();
    assert_eq!((&first["run"]["id"], &second["run"]["id"]), (&"tidy".into(), &"tidy-2".into()));
    assert_eq!(reserved_refs(&repo).lines().count(), 2);
    gate.open();
    gate.open();
    home.client().wait_for(&workspace(&home, &repo, "tidy"), RunStatus::Completed);
    other.client().wait_for(&workspace(&other, &repo, "tidy-2"), RunStatus::Completed);
    home.ctl_in(&repo, &["verify", "--run", "tidy"]).exits(0);
    other.ctl_in(&repo, &["verify", "--run", "tidy-2"]).exits(0);
    assert_eq!(repo.show("runner/tidy", "work-1.txt").trim(), "1");
    assert_eq!(repo.show("runner/tidy-2", "work-2.txt").trim(), "2");
    home.ctl_in(&repo, &["gc"]).exits(0);
    assert_eq!(reserved_refs(&repo), "refs/runner/reserved/tidy-2", "the other daemon's stays");
    other.ctl_in(&repo, &["gc"]).exits(0);
    assert_eq!(reserved_refs(&repo), "");
    assert_eq!(repo.git(&["branch", "--format=%(refname:short)", "--list", "runner/*"]), "runner/tidy\nrunner/tidy-2");
}

/// A repository whose workspaces are checked out by a program that stops at a gate.
struct SlowCopy {
    gate: SessionGate,
    repo: Repo,
}

impl SlowCopy {
    fn new(home: &Home) -> Self {
        let repo = home.scripted_repo("plain");
        let gate = repo.script().gate("made");
        let gates = repo.script().folder().join("gates").display().to_string();
        repo.script().file("slow.sh", &format!("echo > {gates}/made.in\nread -r _ < {gates}/made.out\ncat\n"));
        let program = repo.script().folder().join("files/slow.sh").display().to_string();
        repo.write(".gitattributes", "slow.txt filter=slow\n").write("slow.txt", "slow\n").commit("Slow");
        repo.git(&["config", "filter.slow.smudge", &format!("sh {program}")]);
        Self { gate, repo }
    }

    /// Makes a daemon create a workspace, up to the gate.
    fn started(home: &Home) -> (Self, Daemon, Child) {
        let slow = Self::new(home);
        let daemon = home.daemon();
        let client = slow.begin(home);
        slow.gate.wait_reached();
        (slow, daemon, client)
    }

    fn begin(&self, home: &Home) -> Child {
        let args = ["start", "--isolated", "--yes", "--queue-only", "--id", "tidy", "-m", "Do it."];
        home.ctl_command(&self.repo, &args).spawn().expect("the client can be started")
    }
}

#[test]
fn a_daemon_that_starts_removes_nothing_that_another_is_making_in_the_same_folder() {
    let home = Home::new();
    let other = Home::new();
    let folder = share(&home, &other);
    let (slow, daemon, mut client) = SlowCopy::started(&home);
    assert_eq!(count_started(&folder), 1);
    let _second = other.daemon();
    assert_eq!(count_started(&folder), 1, "it is in the making");
    slow.gate.open();
    assert!(client.wait().expect("the client ends").success());
    assert_eq!(count_started(&folder), 0);
    home.ctl_in(&slow.repo, &["cancel"]).exits(0);
    drop(daemon);
}

#[test]
fn row_111_what_a_killed_daemon_has_left_in_a_shared_folder_waits_for_that_daemon() {
    let home = Home::new();
    let other = Home::new();
    let folder = share(&home, &other);
    let (slow, daemon, mut client) = SlowCopy::started(&home);
    daemon.kill();
    assert!(!client.wait().expect("the client ends").success());
    slow.gate.open();
    home.wait_all_gone(PATIENCE);
    let _second = other.daemon();
    assert_eq!(count_started(&folder), 1, "it is not this daemon's");
    let _daemon = home.daemon();
    assert_eq!(count_started(&folder), 0);
    assert_eq!(reserved_refs(&slow.repo), "");
}
