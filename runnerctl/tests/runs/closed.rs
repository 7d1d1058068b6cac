//! Files that a session makes unreadable to its own user: they are committed as if they were readable.

use runner_testkit::{Config, run_unprivileged};

use crate::play::{RunPlay, sample};

/// Runs one session in a repository with a folder `kept` that has one file, and returns what the receipt's commit has
/// of the session's files.
fn committed_files(deed: &str) -> Vec<String> {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.repo.write("kept/file", "old\n").commit("Keep a file");
    play.script().step(1, &format!("{deed}; answer done 'Done.'"));
    play.run_first(4);
    play.home.ctl_in(&play.repo, &["verify"]).exits(0);
    assert_eq!(play.repo.git(&["status", "--porcelain"]), "");
    play.repo.git(&["grep", "-lw", "new", "HEAD", "--", ".", ":!.runner"]).lines().map(str::to_owned).collect()
}

#[test]
fn a_changed_file_that_cannot_be_read_is_committed() {
    run_unprivileged(|| assert_eq!(committed_files("echo new > kept/file; chmod 000 kept/file"), ["HEAD:kept/file"]));
}

#[test]
fn what_was_changed_in_a_folder_that_cannot_be_read_is_committed() {
    let both = ["HEAD:kept/file", "HEAD:kept/more"];
    for mode in ["000", "100", "300", "600"] {
        let deed = format!("echo new > kept/file; echo new > kept/more; chmod {mode} kept");
        run_unprivileged(|| assert_eq!(committed_files(&deed), both, "{mode}"));
    }
}

#[test]
fn new_folders_that_cannot_be_read_are_committed() {
    let deed = "mkdir -p a/b c; echo new > a/b/file; echo new > c/file; chmod 000 a/b/file a/b a; chmod 300 c";
    run_unprivileged(|| assert_eq!(committed_files(deed), ["HEAD:a/b/file", "HEAD:c/file"]));
}

#[test]
fn ignored_folders_that_a_session_closes_are_open_for_the_next_one() {
    run_unprivileged(|| {
        let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
        play.repo.write(".gitignore", "out/\n").commit("Ignore");
        play.script()
            .step(1, "mkdir -p out/deep; echo x > out/deep/file; chmod 000 out/deep out; answer retry 'Later.'");
        play.script().step(2, "cat out/deep/file > seen && echo y >> out/deep/file; answer retry 'Later.'");
        play.run().exits(4);
        assert_eq!(play.repo.show("HEAD", "seen"), "x");
    });
}

#[test]
fn a_folder_that_a_session_makes_read_only_can_be_written_by_the_next_one() {
    run_unprivileged(|| {
        let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
        play.repo.write("kept/file", "old\n").write(".gitignore", "out/\n").commit("Keep a file");
        play.repo.write("out/file", "");
        play.script().step(1, "chmod 555 kept out; answer retry 'Later.'");
        play.script().step(2, "echo new > kept/more && echo new > out/more && echo yes > seen; answer retry 'Later.'");
        play.run().exits(4);
        assert_eq!(play.repo.show("HEAD", "seen"), "yes");
    });
}

#[test]
fn a_file_of_the_guard_that_git_ignores_is_read_by_it_though_a_session_has_closed_it() {
    run_unprivileged(|| {
        let configure = |config: Config| config.top("max_iterations = 1").guard("definition = [\"local.sh\"]");
        let play = RunPlay::with_tree(&sample(), configure);
        play.repo.write(".gitignore", "local.sh\n").commit("Ignore");
        play.repo.write("local.sh", "exit 0\n");
        play.script().step(1, "echo new > file; chmod 000 local.sh; answer done 'Done.'").guard_always("sh ./local.sh");
        play.run().exits(4);
        let receipt = play.repo.receipts().pop().expect("an iteration was settled");
        assert_eq!((receipt.verdict(), receipt.trailer("Runner-Guard-Changed")), ("Accepted", None));
    });
}
