//! Guards that clean up: discarded changes of the session are restored, and the guard's success does not count.

use crate::play::{ExpectedRow, RunPlay, sample};

const RED: ExpectedRow = ExpectedRow { verdict: "RedGuard", status: "done", guard: "fail", attempts: "1/3" };

/// Runs one session that does `deed`, with a guard that does `discard` and then succeeds.
fn play_discard(discard: &str, deed: &str) -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.repo.write("kept.txt", "old\n").write("gone.txt", "old\n").commit("Two files");
    play.script().guard_always(&format!("{discard}; echo green"));
    play.script().step(1, &format!("{deed}; answer done 'Done.'"));
    let seen = play.run_first(4);
    seen.assert_row(&RED);
    play
}

#[test]
fn a_guard_that_discards_the_whole_change_is_red_and_the_change_is_kept() {
    let deed =
        "echo new > kept.txt; rm gone.txt; mkdir -p a; echo new > a/new.txt; printf '#!/bin/sh\\n' > run; chmod +x run";
    let play = play_discard("git checkout -q . && git clean -qfd", deed);
    assert_eq!((play.repo.show("HEAD", "kept.txt"), play.repo.show("HEAD", "a/new.txt")), ("new".into(), "new".into()));
    assert_eq!(play.repo.git(&["ls-tree", "HEAD", "run", "gone.txt"]).split(' ').next(), Some("100755"));
    let reason = "The guard discarded 4 files (a/new.txt, gone.txt, kept.txt, run) of this change. They are restored";
    assert!(play.record(1, "guard.log").contains(reason), "{}", play.record(1, "guard.log"));
    let failure = play.repo.feedback("HEAD").nodes["b"].failures.last().cloned().expect("it failed");
    assert!(failure.text.contains(reason), "{}", failure.text);
    assert_eq!(play.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_a_guard_printed_is_known_though_it_has_removed_all_ignored_files() {
    let play = play_discard("git clean -qfdx", "echo new > a.txt");
    let log = play.record(1, "guard.log");
    assert!(log.starts_with("green\n") && log.contains("The guard discarded 1 file (a.txt) of this change"), "{log}");
}

#[test]
fn a_guard_that_removes_all_records_is_judged_by_what_it_printed() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.script().guard_always("rm -rf .runner/iterations; echo 'test pays ... FAILED'; exit 1");
    play.script().step(1, "echo new > a.txt; answer done 'Done.'");
    play.run_first(4).assert_row(&RED);
    assert_eq!(play.record(1, "guard.log"), "test pays ... FAILED\n");
}

#[test]
fn a_guard_that_removes_what_the_session_has_committed_is_red_and_it_is_kept() {
    let play = play_discard("rm -f a.txt", "echo new > a.txt; git add a.txt; git commit -qm mine");
    assert_eq!(play.repo.show("HEAD", "a.txt"), "new");
}

#[test]
fn a_guard_that_resets_and_prunes_what_the_session_has_committed_is_red_and_it_is_kept() {
    let discard = "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now";
    let play = play_discard(discard, "echo new > a.txt; rm gone.txt; git add -A; git commit -qm mine");
    assert_eq!(play.repo.show("HEAD", "a.txt"), "new");
    assert_eq!(play.repo.git(&["ls-tree", "HEAD", "gone.txt"]), "");
    assert_eq!(play.repo.git(&["log", "-1", "--format=%s", "refs/runner/guard/play"]), "mine");
}

#[test]
fn a_guard_that_reverts_the_commit_of_a_session_is_red_and_the_change_is_kept() {
    let play = play_discard("git revert --no-edit HEAD", "echo new > a.txt; git add a.txt; git commit -qm mine");
    assert_eq!(play.repo.show("HEAD", "a.txt"), "new");
}

#[test]
fn a_guard_that_stashes_the_change_is_red_and_it_is_kept() {
    let play = play_discard("git stash -q -u", "echo new > kept.txt; echo new > a.txt");
    assert_eq!((play.repo.show("HEAD", "kept.txt"), play.repo.show("HEAD", "a.txt")), ("new".into(), "new".into()));
}

#[test]
fn a_guard_that_writes_or_commits_the_change_discards_nothing() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.repo.write("kept.txt", "old\n").commit("A file");
    play.script()
        .guard_always("echo formatted > kept.txt; touch made.txt; git add -A; git commit -qm formatted; echo green");
    play.script().step(1, "echo new > kept.txt; answer done 'Done.'");
    play.run_first(4).assert_row(&ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" });
    assert_eq!(play.repo.show("HEAD", "kept.txt"), "formatted");
}

#[test]
fn a_guard_that_resets_a_submodule_is_red_and_its_folder_stays() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    let module = play.home.repo("module");
    module.write("inner.txt", "one\n").commit("One");
    let url = module.path().display().to_string();
    play.repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
    play.repo.git(&["commit", "-qm", "Module"]);
    play.script().guard_always("git reset -q --hard HEAD~1; git submodule --quiet update; echo green");
    play.script().step(
        1,
        "echo two > sub/inner.txt; git -C sub commit -qam Two; git add sub; git commit -qm Bump; \
         answer done 'Done.'",
    );
    play.run_first(4).assert_row(&RED);
    let reason = "The guard discarded 1 submodule (sub) of this change. Submodules stay as the guard left them";
    assert!(play.record(1, "guard.log").contains(reason), "{}", play.record(1, "guard.log"));
    assert_eq!(play.repo.read("sub/inner.txt"), "one\n");
    assert_eq!(play.repo.git(&["log", "-1", "--format=%s", "refs/runner/guard/play"]), "Bump");
}

#[test]
fn a_guard_that_removes_what_is_held_back_is_red_and_says_that_it_is_lost() {
    let play = play_discard("rm -f .env", "echo A=1 > .env; echo new > a.txt");
    let reason = "The guard discarded 1 held-back file (.env) of this change. Held-back files cannot be restored, and";
    assert!(play.record(1, "guard.log").contains(reason), "{}", play.record(1, "guard.log"));
    assert_eq!(play.repo.show("HEAD", "a.txt"), "new");
}

#[test]
fn a_guard_that_puts_something_else_in_the_place_of_a_file_is_red_and_the_file_is_kept() {
    let discard = "rm -rf n d; mkdir n; echo x > n/x; ln -s /nonexistent d; mkfifo p; rm -f q; mkfifo q; \
                   rm -f kept.txt gone.txt; mkfifo kept.txt; git init -q gone.txt";
    let deed = "echo new > n; mkdir d; echo new > d/f; echo new > q; echo new > kept.txt; echo new > gone.txt";
    let play = play_discard(discard, deed);
    for path in ["n", "d/f", "q", "kept.txt", "gone.txt"] {
        assert_eq!(play.repo.show("HEAD", path), "new", "{path}");
    }
}

#[test]
fn a_guard_that_writes_to_a_file_that_is_held_back_has_written_nothing_that_is_committed() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.script().guard_always("echo more >> .env; echo more > made.txt; echo green");
    play.script().step(1, "echo A=1 > .env; echo new > kept.txt; answer done 'Done.'");
    play.run_first(4).assert_row(&ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" });
    let message = play.repo.git(&["log", "-1", "--format=%B"]);
    assert!(
        message.contains("Runner-Guard-Wrote: made.txt\n") && message.contains("Runner-Held-Back: .env\n"),
        "{message}"
    );
}

#[test]
fn a_sparse_checkout_of_a_session_or_a_guard_removes_nothing() {
    let sparse = "git sparse-checkout set --no-cone /b.txt /.runner";
    for in_guard in [false, true] {
        let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
        play.repo.write("kept.txt", "old\n").write("other/o.txt", "old\n").commit("Two files");
        play.script().guard_always(if in_guard { sparse } else { "true" });
        let deed = if in_guard { "true" } else { sparse };
        play.script().step(1, &format!("echo new > b.txt; {deed}; answer done 'Done.'"));
        let seen = play.run_first(4);
        seen.assert_row(&ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" });
        assert_eq!((play.repo.show("HEAD", "kept.txt"), play.repo.read("other/o.txt")), ("old".into(), "old\n".into()));
    }
}

#[test]
fn references_in_the_way_of_the_runners_own_are_renamed() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    let deed = "git commit -q --allow-empty -m mine; for name in rescue moved guard; do \
                git update-ref refs/runner/$name HEAD; done; git update-ref refs/runner/raw HEAD; git checkout -q -b away";
    play.script().step(1, &format!("echo new > a.txt; {deed}; answer done 'Done.'"));
    play.run_first(4);
    let refs = play.repo.git(&["for-each-ref", "--format=%(refname)", "refs/runner/rescue", "refs/moved"]);
    assert!(refs.contains("refs/runner/rescue/play/0001") && refs.contains("refs/moved/runner/rescue-"), "{refs}");
}
