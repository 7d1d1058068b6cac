//! After a test: every branch of a run in its home is one that the rules have made, or the test says that it is not.
//!
//! A daemon of its own, without any state, looks at the branches, as on another machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use protocol::paths::{SOCKET_VARIABLE, STATE_VARIABLE};

use crate::daemon::Daemon;
use crate::home::{Home, Output};

/// What `verify` exits with where it found a violation, or nothing that it could prove.
const VIOLATION: i32 = 10;
/// What it says of the branch of a run that has only begun.
const BEGUN: [&str; 2] = ["this branch has no iteration of the run", "\n0 violations"];

/// Audits every branch of a run in a home; returns what is wrong with one.
pub(crate) fn of_branches(home: &Home) -> Option<String> {
    let branches = branches(home);
    if branches.is_empty() {
        return None;
    }
    let folder = home.path().join("audit");
    let command = |program: &str| {
        let mut command = home.command(program);
        command.env(STATE_VARIABLE, folder.join("state")).env(SOCKET_VARIABLE, folder.join("s"));
        command
    };
    let daemon = Daemon::start(command("runnerd"));
    let audit = |(path, run): &(PathBuf, String)| {
        let mut verify = command("runnerctl");
        verify.args(["--no-spawn", "verify", "--run", run]).arg(path);
        let output = Output::of(verify);
        let is_begun = BEGUN.iter().all(|told| output.stdout.contains(told));
        (output.code == VIOLATION && !is_begun).then_some(output.stdout)
    };
    let found = branches.iter().find_map(audit);
    drop(daemon);
    found
}

/// The branches of runs in the repositories of a home that git can read.
fn branches(home: &Home) -> Vec<(PathBuf, String)> {
    let repos = fs::read_dir(home.path().join("repos")).into_iter().flatten().flatten();
    repos.flat_map(|repo| runs(home, &repo.path()).into_iter().map(move |run| (repo.path(), run))).collect()
}

fn runs(home: &Home, repo: &Path) -> Vec<String> {
    let mut git = Command::new("git");
    git.env_clear().envs(home.env().iter().cloned()).current_dir(repo);
    git.args(["for-each-ref", "--format=%(refname)", "refs/heads/runner/"]);
    let output = git.output().expect("git can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|name| name.strip_prefix("refs/heads/runner/")).map(str::to_owned).collect()
}
