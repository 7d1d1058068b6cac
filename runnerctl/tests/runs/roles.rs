//! The roles of sessions, and the end of a run whose sessions make no progress.

use protocol::tree::{TREE_VERSION, TaskTree};
use protocol::words::RunStatus;
use runner_testkit::Config;

use crate::play::{RunPlay, leaf, node, sample};

const BREAKS: &str = "echo '{\"version\": 1, \"root\": oops' > \"$tree\"\n";

#[test]
fn an_agent_that_breaks_the_task_tree_again_and_again_ends_stuck() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 9"));
    play.script().always(&format!("echo \"$n\" >> work; {BREAKS}answer done 'Done.'"));
    play.run().exits(3);
    let roles: Vec<_> =
        (1..=3).map(|n| play.iteration_at(n).receipt.trailer("Runner-Role").unwrap_or_default().to_owned()).collect();
    assert_eq!(roles, ["worker", "repair", "repair"]);
    assert_eq!(play.iteration_at(3).receipt.trailer("Runner-Attempts"), Some("3/3"));
    assert!(!play.has_record("0004"), "an attempt is charged each time");
    let mut tree = sample();
    node(&mut tree, "b").attempts = 3;
    assert_eq!(play.repo.tree("HEAD"), tree, "the tree is as it was");
    assert_eq!(play.repo.show("HEAD", "work"), "1\n2\n3", "and the work is kept");
    let reason = play.client().run(play.repo.path()).summary.reason.expect("it says why");
    assert!(reason.command.unwrap_or_default().contains("runnerctl retry b"));
}

/// A run that starts with only its root, with separate planners and workers.
fn strict() -> RunPlay {
    let tree = TaskTree { version: TREE_VERSION, root: leaf("root", 0) };
    RunPlay::with_tree(&tree, |config: Config| config.top("max_iterations = 2").section("[roles]\nmode = \"strict\""))
}

#[test]
fn what_a_strict_planner_writes_is_kept_and_committed_and_its_plan_is_not_taken() {
    let play = strict();
    play.script().step(1, "echo early > work; decompose 'Two, and one is done.' one two");
    play.script().step(2, "decompose 'Two.' one two");
    play.run().exits(4);
    let first = play.iteration_at(1);
    assert_eq!(first.receipt.trailer("Runner-Role"), Some("planner"));
    assert!(
        first
            .receipt
            .trailer("Runner-Verdict")
            .unwrap_or_default()
            .starts_with("Broken: a planner must not touch code")
    );
    assert_eq!(play.repo.show(&first.receipt.commit, "work"), "early");
    assert!(play.repo.tree(&first.receipt.commit).root.children.is_empty());
    assert!(play.script().prompt(1).contains("Planning and working are apart here: change nothing outside"));
    let prompt = play.script().prompt(2);
    assert!(prompt.contains("A rule was broken") && prompt.contains("a planner must not touch code"), "{prompt}");
    assert_eq!(play.repo.node("root").children.len(), 2);
}

#[test]
fn a_run_that_gets_the_same_answer_again_and_again_is_stuck_with_its_ways_on() {
    let mut tree = sample();
    node(&mut tree, "b").max_attempts = 9;
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 9").top("stall_after = 3"));
    play.script().step(4, "answer retry 'Something else.'").step(5, "answer retry 'And something else.'");
    play.script().step(6, "echo x > work; answer done 'It is done.'").step(7, "exit 1");
    play.script().always("answer retry 'I cannot.'");
    play.run().exits(3);
    let summary = play.client().run(play.repo.path()).summary;
    let reason = summary.reason.expect("it says why");
    assert_eq!(
        (summary.state, reason.message.as_str()),
        (RunStatus::Stuck, "the same answer came 3 times in a row, last on task b")
    );
    let command = reason.command.expect("a command");
    for way in ["runnerctl note TEXT", "runnerctl edit", "runnerctl add b --title", "runnerctl resume"] {
        assert!(command.contains(way), "{command}");
    }
    let shown = play.home.ctl_in(&play.repo, &["status"]);
    assert!(shown.stdout.contains("to continue: runnerctl note TEXT, or runnerctl edit"), "{}", shown.stdout);
    play.home.ctl_in(&play.repo, &["note", "Look at src/lock.rs"]).exits(0);
    play.home.ctl_in(&play.repo, &["resume"]).exits(0);
    play.client().wait_until(play.repo.path(), |run| run.leaves_passed > 1);
    assert!(play.script().prompt(4).contains("Look at src/lock.rs"));
}

#[test]
fn a_note_that_a_session_of_one_run_has_answered_to_is_not_told_in_the_next() {
    let play = RunPlay::new();
    play.script().step(1, "answer retry 'Not yet.'").step(2, "answer retry 'Noted.'");
    play.script().always("answer retry \"Nothing: $n.\"");
    play.run().exits(4);
    play.home.ctl_in(&play.repo, &["note", "For this run alone"]).exits(0);
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    play.home.ctl_in(&play.repo, &["note", "Nobody has read this"]).exits(0);
    play.home.ctl_in(&play.repo, &["start", "--yes", "--wait", "--id", "after", "-m", "Go further"]).exits(4);
    assert_eq!(play.repo.run_state("HEAD").run_id.as_deref(), Some("after"));
    let prompt = play.script().prompt(3);
    assert!(!prompt.contains("For this run alone") && prompt.contains("Nobody has read this"), "{prompt}");
    assert_eq!(play.repo.run_state("HEAD").notes_used, ["n1", "n2"]);
}
