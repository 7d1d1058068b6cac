//! What the audit after each test detects, and what it accepts.

use std::fs;

use runner_testkit::{Home, ProgramOutput, Repo, binary};

fn run_audit(home: &Home) -> ProgramOutput {
    let repositories = home.path().join("repos");
    home.run_program(&binary("runner-audit"), &[repositories.to_str().expect("a temporary folder has a plain name")])
}

/// A repository with the branch of a run of one iteration.
fn driven_repo(home: &Home) -> Repo {
    let repo = home.scripted_repo("one");
    repo.script().always("echo $n > work\nanswer done 'Done.'");
    let _daemon = home.daemon();
    home.run(&repo, &["--id", "play"]).exits(0);
    repo
}

#[test]
fn a_rewritten_branch_is_named_and_the_runners_own_is_not() {
    let mut home = Home::new();
    let repo = driven_repo(&home);
    run_audit(&home).exits(0);
    home.expect_forgery();
    repo.git(&["commit", "-q", "--amend", "-m", "Another message"]);
    let seen = run_audit(&home);
    seen.exits(1);
    assert!(seen.stderr.contains("the rules do not make refs/heads/runner/play"), "{}", seen.stderr);
}

#[test]
fn a_branch_that_cannot_be_read_is_named() {
    let mut home = Home::new();
    let repo = driven_repo(&home);
    home.expect_forgery();
    let head = repo.head();
    let (folder, file) = head.split_at(2);
    fs::remove_file(repo.path().join(".git/objects").join(folder).join(file)).expect("a new object is loose");
    let seen = run_audit(&home);
    seen.exits(1);
    assert!(seen.stderr.contains("auditing "), "{}", seen.stderr);
}
