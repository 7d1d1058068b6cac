//! A fork: a new run from an iteration's commit, with the tree and the state of that commit.

use protocol::words::RunStatus;
use runner_testkit::Repo;

use crate::play::{RUN, RunPlay, sample};

const STATE: &str = ".runner/state/run_state.json";

/// Three sessions on `b`: a retry, a red guard, and a crash.
fn play_run() -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 4\nmax_consecutive_faults = 1"));
    let script = play.script();
    script.step(1, "echo 1 > work\nanswer retry 'Half of it.'");
    script.step(2, "echo 2 > work\nanswer done 'It should work.'").guard_step(1, "echo 'FAIL: two'\nexit 1");
    script.step(3, "echo 3 > work\nexit 3").step(4, "echo 4 > work\nanswer done 'It works.'");
    play.run().exits(9);
    play
}

/// The commit of an iteration of the finished run.
fn commit_of(repo: &Repo, iter: u32) -> String {
    let subject = format!("chore(loop): run {RUN} iter {iter:04} ");
    let receipts = repo.receipts();
    receipts.iter().find(|receipt| receipt.subject.starts_with(&subject)).expect("a receipt").commit.clone()
}

/// What the start commit of a fork changes, and its trailers.
fn start_of(repo: &Repo, id: &str) -> (String, String) {
    let log = ["log", "--format=%H", "--grep", &format!("^chore(loop): start run {id}$"), &format!("runner/{id}")];
    let start = repo.git(&log);
    (repo.git(&["diff", "--name-only", &format!("{start}~1"), &start]), start)
}

#[test]
fn a_fork_takes_over_tree_attempts_and_feedback_and_is_asked_the_same() {
    let play = play_run();
    let from = commit_of(&play.repo, 2);
    play.home.ctl_in(&play.repo, &["fork", "--from", "2", "--id", "again", "--wait"]).exits(4);
    let (changed, start) = start_of(&play.repo, "again");
    assert_eq!(changed, ".runner/GOAL.md\n.runner/state/run_state.json", "a fork changes its identity alone");
    let receipt = runner_testkit::ReceiptCommit::read(&play.repo, &start);
    assert_eq!(receipt.trailer("Runner-From"), Some(from.as_str()));
    assert_eq!(receipt.body, "Forked from iteration 0002 of run play.");
    let before = play.repo.run_state(&from);
    let after = play.repo.run_state(&start);
    assert_eq!((after.run_id.as_deref(), after.base.as_ref()), (Some("again"), Some(&from)));
    assert_eq!((after.next_iter, after.usage, after.narrowed), (before.next_iter, before.usage, before.narrowed));
    assert_eq!(play.repo.feedback(&start), play.repo.feedback(&from));
    assert_eq!(play.repo.tree(&start), play.repo.tree(&from));
    assert_eq!(play.script().prompt(3), play.script().prompt(4), "the fork's first prompt is what came after it");
    assert!(play.repo.node("b").passes, "the fourth session has done in the fork what the third did not");
    let other = play.repo.tree(&format!("runner/{RUN}"));
    assert!(!other.root.children.iter().any(|node| node.id == "b" && node.passes), "the run it was forked from stays");
    play.repo.assert_sound();
}

#[test]
fn a_fork_whose_beginning_was_cut_short_begins_as_if_it_had_not_been() {
    let play = play_run();
    let from = commit_of(&play.repo, 2);
    let git = |args: &[&str]| play.repo.git(args);
    for (id, does_write, does_stage) in [("one", false, false), ("two", true, false), ("three", true, true)] {
        let order = ["fork", "--from", &format!("{RUN}/2"), "--id", id, "--queue-only"];
        play.home.ctl_in(&play.repo, &order).exits(0);
        // What a daemon leaves if it is killed before the start commit.
        git(&["checkout", "-q", "-b", &format!("runner/{id}"), &from]);
        let state = play.repo.show("HEAD", STATE).replace(RUN, id);
        if does_write {
            play.repo.write(STATE, &state);
        }
        if does_stage {
            git(&["add", STATE]);
        }
        play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(4);
        let (changed, start) = start_of(&play.repo, id);
        assert_eq!(changed, ".runner/GOAL.md\n.runner/state/run_state.json", "{id}");
        assert_eq!(git(&["rev-parse", &format!("{start}~1")]), from);
        assert_eq!(play.repo.run_state(&start).run_id.as_deref(), Some(id));
    }
    play.repo.assert_sound();
}

#[test]
fn a_fork_continues_with_a_guard_that_nobody_has_accepted_and_says_so() {
    let play = RunPlay::with_tree(&sample(), |config| {
        config.top("max_iterations = 2").guard("definition = [\"/ci.sh\"]\non_change = \"both\"")
    });
    play.repo.write("ci.sh", "echo strict\n").commit("Check the work");
    play.script().guard_always("sh ./ci.sh");
    play.script().step(1, "echo true > ci.sh; answer retry 'Not yet.'").step(2, "answer retry 'Nor now.'");
    play.script().step(3, "answer done 'Done.'");
    play.run().exits(4);
    play.home.ctl_in(&play.repo, &["fork", "--from", "1", "--id", "again", "--wait"]).exits(4);
    assert!(play.script().prompt(3).contains("ci.sh (changed)"));
    let receipt = runner_testkit::ReceiptCommit::read(&play.repo, "runner/again");
    assert_eq!(receipt.trailer("Runner-Guard-Changed"), Some("ci.sh"));
}

#[test]
fn what_waits_for_a_person_is_approved_in_a_fork_without_another_guard() {
    let play =
        RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2").section("[review]\nby = \"human\""));
    play.script().step(1, "echo 1 > result.txt; answer done 'The result is written.'");
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    play.home.ctl_in(&play.repo, &["cancel"]).exits(0);
    play.home.ctl_in(&play.repo, &["fork", "--from", "1", "--id", "again"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    play.home.ctl_in(&play.repo, &["approve", "--iter", "1"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let receipt = runner_testkit::ReceiptCommit::read(&play.repo, "runner/again");
    let trailers = ["Runner-Verdict", "Runner-Role", "Runner-Guard"].map(|name| receipt.trailer(name));
    assert_eq!(trailers, [Some("Accepted"), Some("human"), None]);
}

#[test]
fn counters_that_have_ended_the_run_do_not_end_its_fork() {
    let play = play_run();
    play.home.ctl_in(&play.repo, &["fork", "--from", &format!("{RUN}/3"), "--id", "again", "--wait"]).exits(4);
    assert_eq!(play.repo.run_state("runner/again").consecutive_faults, 0);
    assert_eq!(play.script().session_count(), 4, "its fault was the last that was allowed");
}

#[test]
fn forks_without_an_id_get_one_each_and_wait_in_the_queue() {
    let play = play_run();
    for id in ["reach-the-goal-fork", "reach-the-goal-fork-2"] {
        let forked = play
            .home
            .ctl_in(&play.repo, &["fork", "--from", &format!("{RUN}/1"), "--queue-only", "--json"])
            .exits(0)
            .json();
        assert_eq!((&forked["run"]["id"], &forked["run"]["state"]), (&id.into(), &"paused".into()));
    }
    play.client().wait_for(play.repo.path(), RunStatus::Paused);
    assert_eq!(play.repo.refs("refs/heads/runner/"), [format!("refs/heads/runner/{RUN}")], "nothing has begun");
}

#[test]
fn what_cannot_be_forked_is_refused() {
    let play = play_run();
    let refused = |args: &[&str], code: i32, why: &str| {
        let output = play.home.ctl_in(&play.repo, &[&["fork"], args].concat());
        output.exits(code);
        assert!(output.stderr.contains(why), "`{}` does not say `{why}`", output.stderr);
        assert!(output.stderr.contains("hint: ") || code == 2, "{}", output.stderr);
    };
    refused(&["--from", "9"], 1, "is that of iteration 0009 of run play");
    refused(&["--from", "nobody/1"], 1, "there is no branch runner/nobody");
    refused(&["--from", "1", "--id", RUN], 6, "a fork is a new run");
    refused(&["--from", "1", "--id", "PLAY"], 2, "only in case");
    refused(&["--from", "1", "--id", "a/b"], 2, "a/b");
    refused(&["--from", "1.w1"], 2, "has no commit to fork from");
    play.repo.write(".runner/state/notes.md", "mine\n");
    refused(&["--from", "1"], 6, "notes.md");
}

#[test]
fn a_fork_is_refused_where_git_would_wait_for_a_pipe() {
    let play = play_run();
    let rules = play.repo.path().join(".gitignore");
    nix::unistd::mkfifo(&rules, nix::sys::stat::Mode::S_IRWXU).expect("a pipe can be made");
    let output = play.home.ctl_in(&play.repo, &["fork", "--from", "2", "--id", "again"]);
    std::fs::remove_file(&rules).expect("the pipe is as it was");
    assert!(output.exits(6).stderr.contains("is a pipe"), "{output:?}");
}
