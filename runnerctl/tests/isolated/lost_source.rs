//! A repository whose folder is gone for good: its isolated runs can be forgotten, and their commits stay.

use std::fs;

use runner_testkit::Home;

use crate::kit::{WRITES, run, workspace};

#[test]
fn a_repository_that_is_gone_is_forgotten_with_its_runs_and_their_commits_stay() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("one");
    repo.script().always(WRITES);
    run(&home, &repo, "a").exits(0);
    let place = workspace(&home, &repo, "a");
    let path = repo.path().display().to_string();
    fs::rename(repo.path(), home.path().join("elsewhere")).expect("it can be moved");
    let stdout = home.ctl(&["gc", &path]).exits(0).stdout.clone();
    assert!(stdout.contains(&format!("runnerctl repos --remove {path}")), "{stdout}");
    let refused = home.ctl(&["repos", "--remove", &path]);
    let stderr = &refused.exits(6).stderr;
    assert!(stderr.contains(&format!("hint: runnerctl repos --remove {path} --force")), "{stderr}");
    assert!(stderr.contains(&place.display().to_string()), "{stderr}");
    home.ctl(&["repos", "--remove", &path, "--force"]).exits(0);
    assert!(!home.ctl(&["repos"]).exits(0).stdout.contains(&path));
    let git = std::process::Command::new("git")
        .args(["-C", &place.display().to_string(), "show", "runner/a:work.txt"])
        .output();
    assert_eq!(git.expect("git runs").stdout, b"work\n");
}
