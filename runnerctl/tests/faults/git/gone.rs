//! Row 74: git's own folder is removed during a run.

use std::fs;

use protocol::words::RunStatus;
use runner_testkit::invariants::{assert_kept, list_verdicts};
use runner_testkit::{Home, Repo};

use super::prepare;

/// Starts a run whose session does `deed` to git's folder, and waits until the run is held.
fn hold_reason(home: &Home, repo: &Repo, deed: &str) -> String {
    repo.script().step(1, &format!("echo mine > mine.txt\n{deed}\nanswer done 'Done.'"));
    let output = home.run(repo, &["--id", "x", "-m", "Do it"]);
    output.exits(6);
    let status = home.ctl_in(repo, &["status"]);
    status.exits(0);
    assert!(status.stdout.contains("held"), "{}", status.stdout);
    assert!(status.stdout.contains("put the git directory back, then: runnerctl resume"), "{}", status.stdout);
    assert_eq!(repo.read("mine.txt"), "mine\n", "the working tree is as the session left it");
    status.stdout
}

#[test]
fn row_74_git_folder_from_a_copy_is_accepted_when_a_person_resumes() {
    let (home, repo) = prepare();
    let other = home.scripted_repo("other");
    other.script().always("echo theirs > theirs.txt\nanswer done 'Done.'");
    let _daemon = home.daemon();
    hold_reason(&home, &repo, "cp -a .git \"$kit/copy\"; rm -rf .git");
    home.run(&other, &["-m", "Do it"]).exits(0);
    fs::rename(repo.script().folder().join("copy"), repo.path().join(".git")).expect("the copy can be put there");
    home.ctl_in(&repo, &["resume", "--wait"]);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_kept(&repo, b"mine\n");
}

#[test]
fn row_74_run_without_its_git_folder_can_be_cancelled() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    hold_reason(&home, &repo, "rm -rf .git");
    let refused = home.ctl_in(&repo, &["resume"]);
    assert_eq!(refused.code, 6, "{}{}", refused.stdout, refused.stderr);
    home.ctl_in(&repo, &["cancel"]).exits(0);
    home.client().wait_for(repo.path(), RunStatus::Cancelled);
    assert_eq!(repo.read("mine.txt"), "mine\n");
}

mod slow {
    use super::*;

    #[test]
    fn row_74_run_is_held_until_the_git_folder_is_back() {
        let deeds = [
            "mv .git \"$kit/away\"; echo 'gitdir: /nowhere' > .git",
            "mv .git \"$kit/away\"; ln -s \"$kit/away\" .git",
            "mv .git \"$kit/away\"; git init -q",
        ];
        for deed in deeds {
            let (home, repo) = prepare();
            let _daemon = home.daemon();
            let status = hold_reason(&home, &repo, deed);
            assert!(status.contains(".git"), "{status}");
            let git = repo.path().join(".git");
            let is_dir = git.symlink_metadata().is_ok_and(|found| found.is_dir());
            let removed = if is_dir { fs::remove_dir_all(&git) } else { fs::remove_file(&git) };
            removed.or_else(|error| if git.exists() { Err(error) } else { Ok(()) }).expect("what stands there can go");
            fs::rename(repo.script().folder().join("away"), &git).expect("the folder can be restored");
            home.ctl_in(&repo, &["resume", "--wait"]);
            assert_eq!(list_verdicts(&repo), ["Accepted"], "{deed}");
            assert_kept(&repo, b"mine\n");
            home.assert_no_survivors();
        }
    }
}
