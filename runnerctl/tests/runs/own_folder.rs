//! A session changes the runner's own folder as a whole, or a name that another file system takes for it: the receipt
//! restores it, and `verify` accepts the run.

use crate::play::{ExpectedRow, RunPlay, sample};

const ACCEPTED: ExpectedRow = ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" };

/// Runs one session, and returns the modes of the entries under `.runner` in its receipt.
fn modes_after(deed: &str) -> Vec<String> {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.script().guard_always("echo green");
    play.script().step(1, &format!("{deed}; echo new > a.txt; answer done 'Done.'"));
    play.run_first(4).assert_row(&ACCEPTED);
    play.home.ctl_in(&play.repo, &["verify"]).exits(0);
    let listed = play.repo.git(&["ls-tree", "-r", "HEAD", ".runner"]);
    let mut modes: Vec<String> =
        listed.lines().map(|line| line.split(' ').next().expect("a mode").to_owned()).collect();
    modes.sort();
    modes.dedup();
    modes
}

#[test]
fn a_chmod_of_everything_changes_no_mode_of_the_runners_files() {
    assert_eq!(modes_after("chmod -R 755 ."), ["100644"]);
}

#[test]
fn a_link_that_a_session_commits_in_its_place_is_no_violation() {
    let link = "l=$(printf /tmp | git hash-object -w --stdin); git rm -rq --cached .runner; \
                git update-index --add --cacheinfo 120000,$l,.runner; git commit -qm mine";
    assert_eq!(modes_after(link), ["100644"]);
}

#[test]
fn a_submodule_that_a_session_commits_in_its_place_is_no_violation() {
    let submodule = "h=$(git rev-parse HEAD); git rm -rq --cached .runner; \
                     git update-index --add --cacheinfo 160000,$h,.runner; git commit -qm mine";
    assert_eq!(modes_after(submodule), ["100644"]);
}

#[test]
fn a_folder_that_another_file_system_takes_for_it_is_in_no_receipt_though_a_session_commits_it() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.script().guard_always("echo green");
    let deed = "mkdir -p .RUNNER/state; echo evil > .RUNNER/state/config.toml; printf x > \"$(printf '.runner\\342\\200\\214')\"\n\
                git add -f .RUNNER .runner*; git commit -qm mine; echo new > a.txt; answer done 'Done.'";
    play.script().step(1, deed);
    play.run_first(4).assert_row(&ACCEPTED);
    play.home.ctl_in(&play.repo, &["verify"]).exits(0);
    let listed = play.repo.git(&["-c", "core.quotePath=false", "ls-tree", "--name-only", "HEAD"]);
    let like_runner: Vec<&str> = listed.lines().filter(|name| name.to_lowercase().contains("runner")).collect();
    assert_eq!(like_runner, [".runner"], "{listed}");
    let message = play.repo.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("Runner-Held-Back: .RUNNER/state/config.toml"), "{message}");
    assert_eq!(play.repo.read(".RUNNER/state/config.toml"), "evil\n", "the file stays");
}

#[test]
fn a_person_who_commits_one_holds_no_run_and_the_next_receipt_takes_it_out() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.script().always("echo $n > \"file$n\"; answer done 'Done.'");
    play.run_first(4);
    play.repo.write(".Runner/notes.md", "mine\n").commit("Take notes");
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    assert_eq!(play.repo.git(&["ls-tree", "HEAD", ".Runner"]), "");
    assert_eq!(play.repo.read(".Runner/notes.md"), "mine\n", "the file stays");
    play.home.ctl_in(&play.repo, &["verify"]).exits(0);
}

#[test]
fn a_task_tree_that_a_person_makes_executable_is_told_as_the_runners_other_files_are() {
    for name in ["tree.json", "run_state.json"] {
        let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
        play.script().step(1, "echo new > a.txt; answer retry 'Not yet.'").step(2, "answer retry 'Not yet.'");
        play.run_first(4);
        play.repo.git(&["update-index", "--chmod=+x", &format!(".runner/state/{name}")]);
        play.repo.git(&["commit", "-q", "-m", "Executable"]);
        play.repo.git(&["reset", "-q", "--hard"]);
        play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
        let verified = play.home.ctl_in(&play.repo, &["verify"]);
        let text = verified.exits(0).stdout.clone();
        assert!(text.contains("a file that cannot be executed") && text.contains(name), "{text}");
    }
}

#[test]
fn a_run_does_not_begin_where_such_a_folder_is_tracked() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    play.repo.write(".Runner/notes.md", "mine\n").commit("Take notes");
    let stderr = play.run().exits(6).stderr.clone();
    assert!(stderr.contains(".Runner, which some file systems take for .runner"), "{stderr}");
    assert!(stderr.contains("git rm -r --cached .Runner"), "{stderr}");
}

#[test]
fn a_run_does_not_begin_from_a_commit_that_cannot_be_read() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    play.repo.write("a.txt", "mine\n").commit("Take notes");
    let undated = "git cat-file commit HEAD | sed -E 's/^(author|committer) (.*>) .*/\\1 \\2/' > .git/undated; \
                   git update-ref HEAD $(git hash-object -t commit -w --literally .git/undated)";
    let made = std::process::Command::new("sh").args(["-c", undated]).current_dir(play.repo.path()).status();
    assert!(made.is_ok_and(|status| status.success()));
    let stderr = play.run().exits(6).stderr.clone();
    let commit = play.repo.git(&["rev-parse", "--short=12", "HEAD"]);
    assert!(stderr.contains(&format!("commit {} cannot be read", commit.trim())), "{stderr}");
}
