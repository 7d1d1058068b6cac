//! What holds after every row of the matrix, whatever the fault was.

use runner_testkit::witness::{assert_consistent, assert_kept};
use runner_testkit::{Home, Output, Repo};

/// Asserts what no fault may break: nothing that an iteration started is alive, history and bookkeeping agree, git finds
/// no fault, and none of the pieces of work is lost.
#[track_caller]
pub(crate) fn assert_survived(home: &Home, repo: &Repo, work: &[&str]) {
    home.assert_no_survivors();
    assert!(!repo.script().is_any_alive(), "a process that shed its environment and its folder is alive");
    assert_consistent(repo);
    for piece in work {
        assert_kept(repo, piece.as_bytes());
    }
}

/// Asserts that a failed command says what a person needs: an exit code that is not 0, and each of the words.
#[track_caller]
pub(crate) fn assert_explains(output: &Output, words: &[&str]) {
    let said = format!("{}{}", output.stdout, output.stderr);
    assert_ne!(output.code, 0, "it claims success: {said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is missing: {said}");
    }
}
