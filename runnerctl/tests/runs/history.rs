//! Sessions that rewrite history, and sessions that only seem to.
//!
//! In every case From stays an ancestor of the branch, and nothing that they discarded is lost.

use protocol::words::RunStatus;
use runner_testkit::Config;

use crate::play::{ExpectedRow, RUN, RunPlay, SeenIteration};

const BROKEN: ExpectedRow = ExpectedRow { verdict: "Broken", status: "retry", guard: "skipped", attempts: "1/3" };
const ACCEPTED: ExpectedRow = ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" };
const RESCUE: &str = "refs/runner/rescue/play/0001";

/// Runs one iteration whose session leaves work, an ignored file with a secret, and then does `deed`.
fn play_rewrite(deed: &str, detail: &str) -> (RunPlay, SeenIteration) {
    let play = RunPlay::new();
    play.script().step(1, &format!("echo kept > work\n{deed}\nanswer done 'Done.'"));
    let seen = play.run_first(4);
    seen.assert_row(&BROKEN).assert_detail("history must not be rewritten").assert_detail(detail);
    assert_eq!(play.repo.refs("refs/runner/rescue"), [RESCUE]);
    assert_eq!(play.repo.git(&["branch", "--show-current"]), format!("runner/{RUN}"));
    let from = seen.receipt.trailer("Runner-From").expect("a receipt names From");
    assert_eq!(play.repo.git(&["rev-parse", "HEAD^"]), from, "the receipt stands on From");
    let missing = play.repo.git(&["ls-tree", "--name-only", "HEAD", "work"]);
    assert_eq!(missing, "", "what came with rewritten history is not in the branch");
    assert_eq!(play.repo.show(RESCUE, "work"), "kept", "and not lost");
    assert!(!play.repo.node("b").passes);
    (play, seen)
}

#[test]
fn reset_is_undone() {
    play_rewrite("git add -A; git reset -q --soft HEAD~1", "does not contain");
}

#[test]
fn amend_is_undone() {
    play_rewrite("git add -A; git commit -q --amend -m 'Mine now'", "does not contain");
}

#[test]
fn branch_at_a_commit_that_cannot_be_read_is_put_back() {
    let play = RunPlay::new();
    let deed = "tree=$(git rev-parse HEAD^{tree}); from=$(git rev-parse HEAD)\n\
                printf 'tree %s\\nparent %s\\nauthor \\ncommitter \\n\\n' $tree $from > bad\n\
                git hash-object -t commit -w --stdin --literally < bad > .git/$(git symbolic-ref HEAD)";
    play.script().step(1, &format!("echo kept > work\n{deed}\nanswer done 'Done.'"));
    play.run().exits(4);
    // git reports the commit itself, which the rescue keeps.
    let message = play.repo.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("branch runner/play has a commit that cannot be read"), "{message}");
    assert_eq!(play.repo.show(RESCUE, "work"), "kept");
}

#[test]
fn a_pipe_that_git_would_read_in_the_work_tree_is_removed() {
    let play = RunPlay::new();
    play.script().step(1, "mkfifo .mailmap; echo kept > work; answer done 'Done.'");
    let seen = play.run_first(4);
    assert_eq!(seen.receipt.trailer("Runner-Reverted"), Some(".mailmap"));
}

#[test]
fn branch_at_a_commit_that_needs_a_missing_object_is_put_back() {
    for edit in ["s/^tree .*/tree $none/", "/^parent/a parent $none"] {
        let play = RunPlay::new();
        let deed = format!(
            "none=$(printf %040d 1); git commit -q --allow-empty -m Mine\n\
             git cat-file commit HEAD | sed \"{edit}\" > .git/bad\n\
             git update-ref HEAD $(git hash-object -t commit -w --stdin --literally < .git/bad)"
        );
        play.script().step(1, &format!("echo kept > work\n{deed}\nanswer done 'Done.'"));
        play.run().exits(4);
        let message = play.repo.git(&["log", "-1", "--format=%B"]);
        let reason = "branch runner/play has a commit that needs object 0000000000000000000000000000000000000001";
        assert!(message.contains(reason), "{edit}: {message}");
        assert_eq!(play.repo.show(RESCUE, "work"), "kept");
        play.repo.git(&["gc", "--quiet"]);
    }
}

/// Runs one iteration whose session leaves work and moves HEAD away from the run's branch, without changing the branch.
fn play_leaving_branch(deed: &str) -> RunPlay {
    let play = RunPlay::with_tree(&crate::play::sample(), |config| config.top("max_iterations = 2"));
    play.script().step(1, &format!("echo kept > work\n{deed}\nanswer done 'Done.'"));
    play.run().exits(6);
    assert_held_on_other_branch(&play, &[RESCUE]);
    play
}

/// Asserts that the first iteration charged no attempt, and that the run is held with what was found and the command to
/// continue.
#[track_caller]
fn assert_held_on_other_branch(play: &RunPlay, kept: &[&str]) {
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Interrupted", status: "interrupted", guard: "skipped", attempts: "0/3" });
    seen.assert_detail("HEAD was not on the run's branch any more");
    let summary = play.client().run(play.repo.path()).summary;
    let reason = summary.reason.expect("it says why");
    assert_eq!(summary.state, RunStatus::Held, "{reason:?}");
    assert!(reason.message.contains(RESCUE), "{reason:?}");
    let command = format!("git show --stat {RESCUE}, then: runnerctl resume");
    assert_eq!(reason.command.as_deref(), Some(command.as_str()));
    assert_eq!(play.repo.refs("refs/runner/rescue"), kept);
    assert_eq!(play.repo.git(&["branch", "--show-current"]), format!("runner/{RUN}"));
    assert_eq!(play.repo.show(RESCUE, "work"), "kept", "what was there is not lost");
    assert_eq!(play.repo.node("b").attempts, 0, "no attempt is charged");
}

#[test]
fn switch_to_another_branch_charges_nobody_and_holds_the_run() {
    let play = play_leaving_branch("git switch -q -c elsewhere; git add -A; git commit -q -m Elsewhere");
    assert_eq!(play.repo.git(&["log", "-1", "--format=%s", "elsewhere"]), "Elsewhere", "the other branch stays");
    play.home.ctl_in(&play.repo, &["verify"]).exits(0);
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(4);
    play.iteration_at(2).assert_row(&ACCEPTED);
}

#[test]
fn detached_head_charges_nobody_and_holds_the_run() {
    play_leaving_branch("git checkout -q --detach");
}

#[test]
fn switch_by_a_person_under_a_session_charges_nobody_and_holds_the_run() {
    let play = RunPlay::with_tree(&crate::play::sample(), |config| config.top("max_iterations = 2"));
    let gate = play.script().gate("working");
    play.script().step(1, "echo kept > work\ngate working\nanswer done 'Done.'");
    play.start_run();
    gate.wait_reached();
    play.repo.git(&["switch", "-q", "main"]);
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Held);
    assert_held_on_other_branch(&play, &[RESCUE]);
}

#[test]
fn guard_that_leaves_the_branch_charges_nobody_and_holds_the_run() {
    let play = RunPlay::with_tree(&crate::play::sample(), |config| config.top("max_iterations = 2"));
    play.script().step(1, "echo kept > work\nanswer done 'Done.'");
    play.script().guard_step(1, "git checkout -q --detach");
    play.run().exits(6);
    assert_held_on_other_branch(&play, &[RESCUE, &format!("{RESCUE}-work")]);
    play.home.ctl_in(&play.repo, &["verify"]).exits(0);
}

/// What a guard leaves of a commit that nothing else keeps.
const PRUNE: &str = "git reflog expire --expire=now --all; git gc -q --prune=now";

#[test]
fn commits_of_a_session_are_kept_when_its_guard_rewrites_history_and_prunes() {
    let play = RunPlay::new();
    play.script().step(1, "echo kept > work; git add -A; git commit -qm Mine\nanswer done 'Done.'");
    play.script().guard_step(1, &format!("git reset -q --hard main; {PRUNE}"));
    play.run_first(4).assert_row(&BROKEN).assert_detail("history must not be rewritten");
    assert_eq!(play.repo.show(&format!("{RESCUE}-work"), "work"), "kept");
}

#[test]
fn commits_of_a_session_that_leaves_the_branch_are_kept() {
    let play = RunPlay::with_tree(&crate::play::sample(), |config| config.top("max_iterations = 2"));
    play.script().step(1, "echo mine > mine; git add -A; git commit -qm Mine\ngit switch -q main; answer done 'Done.'");
    play.run().exits(6);
    play.repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    play.repo.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(play.repo.show(&format!("{RESCUE}-branch"), "mine"), "mine");
}

#[test]
fn merge_that_was_left_under_way_is_ended() {
    let deed = "git switch -q -c other; echo theirs > README.md; git commit -qam Theirs; git switch -q -; \
                echo ours > README.md; git commit -qam Ours; git merge other > /dev/null";
    let (play, _) = play_rewrite(deed, "a merge was left under way");
    assert!(!play.repo.path().join(".git/MERGE_HEAD").exists());
}

#[test]
fn branch_that_was_deleted_is_made_again() {
    play_rewrite("git checkout -q --detach; git branch -q -D runner/play", "HEAD was detached");
}

#[test]
fn branch_that_was_deleted_below_head_is_made_again() {
    play_rewrite("git update-ref -d refs/heads/runner/play", "branch runner/play was removed");
}

#[test]
fn run_that_was_merged_into_another_branch_is_put_back_into_the_first_place() {
    let deed = "git switch -q -c mine main; git add -A; git commit -q -m Mine; \
                git merge -q -m Merge runner/play 2> /dev/null; git branch -q -f runner/play; git switch -q runner/play";
    play_rewrite(deed, "no first parent any more");
}

#[test]
fn garbage_collection_is_no_rewriting() {
    let play = RunPlay::new();
    play.script().step(1, "echo 1 > work\ngit gc -q --prune=now\ngit pack-refs --all\nanswer done 'Done.'");
    play.run_first(4).assert_row(&ACCEPTED);
}

#[test]
fn commits_of_the_agent_stay_below_the_receipt() {
    let play = RunPlay::new();
    play.script().step(1, "echo 1 > work; git add -A; git commit -q -m 'My step'\necho 2 > more\nanswer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&ACCEPTED);
    assert_eq!(play.repo.git(&["log", "-1", "--format=%s", "HEAD^"]), "My step");
    assert_eq!(play.repo.git(&["rev-parse", "HEAD~2"]), seen.receipt.trailer("Runner-From").unwrap());
    assert_eq!(play.repo.show("HEAD", "more"), "2");
}

#[test]
fn other_refs_are_left_as_the_agent_set_them() {
    let play = RunPlay::new();
    play.script().step(1, "git tag mine; git branch side\nanswer done 'Done.'");
    play.run_first(4).assert_row(&ACCEPTED);
    assert_eq!(play.repo.refs("refs/tags"), ["refs/tags/mine"]);
    assert_eq!(play.repo.refs("refs/heads/side"), ["refs/heads/side"]);
    let log = play.home.ctl_in(&play.repo, &["log", "1"]).exits(0).stdout.clone();
    let status = play.home.ctl_in(&play.repo, &["status"]).exits(0).stdout.clone();
    for name in ["refs/tags/mine", "refs/heads/side"] {
        assert!(log.contains(&format!("{name}: nothing -> ")), "{log}");
        assert!(status.contains(&format!("iteration 1 moved {name}: nothing -> ")), "{status}");
    }
}

#[test]
fn what_the_baseline_changed_without_right_is_named_by_its_commit() {
    let play = RunPlay::with_tree(&crate::play::sample(), |_| {
        Config::new(&["true"], &["git", "config", "core.pager", "evil"])
    });
    play.run();
    let commits = play.repo.git(&["log", "--format=%s%n%(trailers:key=Runner-Reverted)"]);
    let after_baseline = commits.lines().skip_while(|line| !line.contains("baseline run")).nth(1);
    assert_eq!(after_baseline, Some("Runner-Reverted: .git/config"), "{commits}");
}

#[test]
fn locks_of_dead_processes_are_removed_and_the_work_is_kept() {
    let play = RunPlay::new();
    let locks = "touch .git/index.lock .git/HEAD.lock .git/refs/heads/runner/play.lock .git/packed-refs.lock";
    play.script().step(1, &format!("echo 1 > work\n{locks}\nanswer done 'Done.'"));
    play.run_first(4).assert_row(&ACCEPTED);
    assert_eq!(play.repo.show("HEAD", "work"), "1");
}

#[test]
fn guard_that_rewrites_history_passes_nothing() {
    let play = RunPlay::new();
    play.script().step(1, "echo kept > work\nanswer done 'Done.'");
    play.script().guard_step(1, "git add -A; git commit -q --amend -m Mine");
    let seen = play.run_first(4);
    seen.assert_detail("history must not be rewritten");
    assert_eq!(seen.receipt.verdict(), "Broken");
    assert_eq!(play.repo.show(RESCUE, "work"), "kept");
    assert_eq!(play.client().run(play.repo.path()).summary.state, RunStatus::Limit);
}

#[test]
fn folder_of_the_runner_that_was_removed_is_put_back() {
    let play = RunPlay::new();
    play.script().step(1, "echo 1 > work\nrm -rf .runner\nmkdir -p \"${RUNNER_OUTPUT%/*}\"\nanswer retry 'Swept.'");
    let seen = play.run_first(4);
    seen.assert_row(&BROKEN).assert_detail("the file is gone");
    let reverted = seen.receipt.trailer("Runner-Reverted").expect("the restored paths are listed");
    assert!(reverted.contains(".runner/state/config.toml"), "{reverted}");
    assert_eq!(play.repo.show("HEAD", ".runner/GOAL.md"), play.repo.show("HEAD^", ".runner/GOAL.md"));
}

#[test]
fn files_of_the_runner_are_put_back_and_the_next_prompt_names_them() {
    let play = RunPlay::with_tree(&crate::play::sample(), |config| config.top("max_iterations = 2"));
    let deeds = "echo 'max_iterations = 9999' > .runner/state/config.toml\necho x > .runner/state/mine.txt\n\
                 rm .runner/state/schema.json\necho 1 > work\n";
    play.script().step(1, &format!("{deeds}answer done 'Done.'"));
    play.run().exits(4);
    let seen = play.iteration_at(1);
    seen.assert_row(&ACCEPTED);
    let paths = [".runner/state/config.toml", ".runner/state/mine.txt", ".runner/state/schema.json"];
    assert_eq!(play.repo.run_state(&seen.receipt.commit).reverted, paths);
    let changed = play.repo.git(&["diff", "--name-only", "HEAD~2", "HEAD", "--", paths[0], paths[1], paths[2]]);
    assert_eq!(changed, "");
    let prompt = play.script().prompt(2);
    for path in paths {
        assert!(seen.receipt.trailer("Runner-Reverted").unwrap().contains(path));
        assert!(prompt.contains(path), "{path} is not in the prompt");
    }
}

#[test]
fn file_under_the_runners_whose_name_is_no_text_is_removed() {
    let play = RunPlay::new();
    let name = ".runner/state/$(printf 'mine\\377')";
    play.script().step(1, &format!("echo x > \"{name}\"; echo 1 > work; answer done 'Done.'"));
    play.run().exits(4);
    let seen = play.iteration_at(1);
    seen.assert_row(&ACCEPTED);
    let reverted = seen.receipt.trailer("Runner-Reverted").expect("what was removed is named");
    assert!(reverted.contains(".runner/state/mine"), "{reverted}");
    assert_eq!(play.repo.git(&["ls-files", "--", ".runner/state/mine*"]), "");
}

#[test]
fn memory_may_grow_and_not_change() {
    let play = RunPlay::with_tree(&crate::play::sample(), |config| config.top("max_iterations = 2"));
    let memory = ".runner/state/assumptions.md";
    play.script().step(1, &format!("echo '- the first' >> {memory}\nanswer done 'One.'"));
    play.script().step(2, &format!("echo '- another' > {memory}\nanswer done 'Two.'"));
    play.run().exits(4);
    assert_eq!(play.iteration_at(1).receipt.trailer("Runner-Reverted"), None);
    assert!(play.iteration_at(2).receipt.trailer("Runner-Reverted").unwrap().contains(memory));
    assert!(play.repo.show("HEAD", memory).ends_with("- the first"));
}
