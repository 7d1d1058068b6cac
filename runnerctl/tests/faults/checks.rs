//! Assertions that must hold after every row of the matrix, whatever the fault was.

use std::fs;
use std::path::{Path, PathBuf};

use runner_testkit::invariants::{assert_consistent, assert_kept};
use runner_testkit::{Home, ProgramOutput, Repo};

/// Asserts what must hold after any fault: nothing that an iteration started is alive, history and bookkeeping agree,
/// git finds no errors, and no piece of work is lost.
#[track_caller]
pub(crate) fn assert_survived(home: &Home, repo: &Repo, work: &[&str]) {
    home.assert_no_survivors();
    assert!(!repo.script().is_any_alive(), "a process that shed its environment and its folder is alive");
    assert_consistent(repo);
    for piece in work {
        assert_kept(repo, piece.as_bytes());
    }
}

/// Asserts that a failed command reports what a person needs: a nonzero exit code, and each of these words.
#[track_caller]
pub(crate) fn assert_explains(output: &ProgramOutput, words: &[&str]) {
    let text = format!("{}{}", output.stdout, output.stderr);
    assert_ne!(output.code, 0, "it claims success: {text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is missing: {text}");
    }
}

/// Asserts that no interrupted write has left anything: no temporary file and no lock, in the repository or the state.
#[track_caller]
pub(crate) fn assert_no_leftovers(home: &Home, repo: &Repo, what: &str) {
    let mut left = Vec::new();
    for root in [repo.path().to_owned(), home.private(), home.state().join("tmp"), home.path().join("tmp")] {
        collect(&root, &mut left);
    }
    assert!(left.is_empty(), "{what}: left behind: {left:#?}");
}

fn collect(folder: &Path, left: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_lock = path.extension().is_some_and(|ending| ending == "lock") && name != "shim.lock";
        if is_lock || name.starts_with(".tmp") || name.ends_with(".runnerd-tmp") {
            left.push(path);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&path, left);
        }
    }
}
