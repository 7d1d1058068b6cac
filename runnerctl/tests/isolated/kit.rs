//! A repository with isolated runs, and observations of it from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use runner_testkit::{Home, ProgramOutput, Repo};
use serde_json::Value;

/// A session that writes a file and is done.
pub(crate) const WRITES: &str = "echo work > work.txt; answer done 'Wrote work.txt.'";

/// Starts an isolated run and waits for its end.
pub(crate) fn run(home: &Home, repo: &Repo, id: &str) -> ProgramOutput {
    home.ctl_in(repo, &["start", "--isolated", "--wait", "--yes", "-m", "Do it.", "--id", id])
}

/// Starts an isolated run and returns the reply.
pub(crate) fn start(home: &Home, repo: &Repo, id: &str, options: &[&str]) -> Value {
    let args = ["start", "--isolated", "--yes", "--json", "-m", "Do it.", "--id", id];
    home.ctl_in(repo, &[&args[..], options].concat()).exits(0).json()
}

/// Returns the folder of a run, as the client prints it.
pub(crate) fn workspace(home: &Home, repo: &Repo, run: &str) -> PathBuf {
    PathBuf::from(home.ctl_in(repo, &["path", run]).exits(0).stdout.trim_end())
}

/// Returns the reservations in a repository.
pub(crate) fn reserved_refs(repo: &Repo) -> String {
    repo.git(&["for-each-ref", "--format=%(refname)", "refs/runner/reserved"])
}

/// Everything in a checkout and its git folder that no isolated run may change: the bytes of each file, except objects,
/// the references of runs and the runner's own.
pub(crate) fn snapshot_files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).expect("a folder can be read") {
            let path = entry.expect("an entry").path();
            let below = path.strip_prefix(root).expect("it is below").to_owned();
            let is_runs = |folder: &&str| below.starts_with(folder);
            let own = [".git/objects", ".git/refs/heads/runner", ".git/refs/runner", ".git/logs/refs/heads/runner"];
            if own.iter().any(is_runs) {
                continue;
            }
            let is_folder = path.symlink_metadata().expect("it is there").is_dir();
            if is_folder {
                left.push(path);
            } else {
                files.insert(below, fs::read(&path).unwrap_or_default());
            }
        }
    }
    files
}
