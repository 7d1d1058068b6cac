//! Two findings at once: the first in the order of verdicts counts, and the effects of the second are still reverted.

use protocol::tree::Node;
use protocol::words::RunStatus;

use crate::play::{ExpectedRow, LEAVE, RunPlay, leaf, node, sample};

const BROKEN: ExpectedRow = ExpectedRow { verdict: "Broken", status: "retry", guard: "skipped", attempts: "1/3" };
const FAULT: ExpectedRow = ExpectedRow { verdict: "Fault", status: "fault", guard: "skipped", attempts: "0/3" };
const INVALID: &str = "echo '{' > \"$tree\"\n";
const RESET: &str = "echo kept > work; git add -A; git reset -q --soft HEAD~1\n";
const STATES: &str = "answer_json '{\"error\":{\"class\":\"CLASS\",\"message\":\"as stated\"}}'\n";

#[test]
fn fault_goes_before_rewritten_history_which_is_undone() {
    let play = RunPlay::new();
    play.script().step(1, &format!("{RESET}exit 3"));
    let seen = play.run_first(4);
    seen.assert_row(&FAULT).assert_detail("exited with code 3");
    assert_eq!(play.repo.show("refs/runner/rescue/play/0001", "work"), "kept");
    assert_eq!(play.repo.git(&["rev-parse", "HEAD^"]), seen.receipt.trailer("Runner-From").unwrap());
}

#[test]
fn fault_goes_before_an_invalid_tree_which_is_not_taken() {
    let play = RunPlay::new();
    play.script().step(1, &format!("{INVALID}exit 3"));
    let seen = play.run_first(4);
    seen.assert_row(&FAULT);
    assert_eq!(play.repo.tree("HEAD"), sample());
    assert!(seen.receipt.trailer("Runner-Raw").is_some());
    assert_eq!(play.repo.run_state("HEAD").repair, None);
}

#[test]
fn fault_takes_a_tree_that_is_legal() {
    let play = RunPlay::new();
    play.script_tree_change(|tree| tree.root.children.push(leaf("new", 9)));
    play.script().step(1, &format!("{LEAVE}exit 3"));
    play.run_first(4).assert_row(&FAULT);
    assert_eq!(play.repo.node("new"), leaf("new", 9));
}

#[test]
fn unavailable_service_goes_before_an_exit_code_and_an_invalid_tree() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    play.script().step(1, &format!("{INVALID}{}exit 3", STATES.replace("CLASS", "unavailable")));
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    let row = ExpectedRow { verdict: "Unavailable", status: "waiting", ..FAULT };
    play.iteration_at(1).assert_row(&row);
    assert_eq!(play.repo.tree("HEAD"), sample());
}

#[test]
fn exceeded_context_goes_before_an_exit_code() {
    let play = RunPlay::new();
    play.script().step(1, &format!("{}exit 3", STATES.replace("CLASS", "context_exceeded")));
    play.run_first(4).assert_row(&BROKEN).assert_detail("as stated");
}

#[test]
fn misconfigured_agent_goes_before_rewritten_history() {
    let play = RunPlay::new();
    play.script().step(1, &format!("{RESET}{}", STATES.replace("CLASS", "misconfigured")));
    play.run().exits(9);
    play.iteration_at(1).assert_row(&ExpectedRow { verdict: "Misconfigured", ..FAULT });
    assert_eq!(play.repo.refs("refs/runner/rescue"), ["refs/runner/rescue/play/0001"]);
}

#[test]
fn budget_that_ran_out_goes_before_a_misconfigured_agent() {
    let (play, clock) = RunPlay::with_clock(|config| config);
    let gate = play.script().gate("stated");
    play.script().step(1, &format!("{}gate stated", STATES.replace("CLASS", "misconfigured")));
    play.run_over_budget(&gate, &clock).exits(4);
    play.iteration_at(1).assert_row(&ExpectedRow { verdict: "Timeout", status: "timeout", ..FAULT });
}

#[test]
fn rewritten_history_goes_before_an_invalid_tree() {
    let play = RunPlay::new();
    play.script().step(1, &format!("{RESET}{INVALID}answer done 'Done.'"));
    play.run_first(4).assert_row(&BROKEN).assert_detail("history must not be rewritten");
    assert_eq!(play.repo.run_state("HEAD").repair, None);
}

#[test]
fn invalid_tree_goes_before_a_touched_passed_node() {
    let play = RunPlay::new();
    play.script_tree_change(|tree| {
        node(tree, "a").goal = "Another".to_owned();
        tree.root.children.push(Node { id: "c1".to_owned(), ..leaf("x", 9) });
    });
    play.script().step(1, &format!("{LEAVE}answer done 'Done.'"));
    play.run_first(4).assert_row(&BROKEN).assert_detail("the task tree must be valid");
}

#[test]
fn touched_passed_node_goes_before_a_removed_one() {
    let play = RunPlay::new();
    play.script_tree_change(|tree| {
        node(tree, "a").goal = "Another".to_owned();
        node(tree, "c").children.pop();
    });
    play.script().step(1, &format!("{LEAVE}answer done 'Done.'"));
    play.run_first(4).assert_row(&BROKEN).assert_detail("a task that passed must not change (a: ");
}

#[test]
fn broken_rule_goes_before_the_guard() {
    let play = RunPlay::new();
    play.script_tree_change(|tree| node(tree, "b").goal = "Less".to_owned());
    play.script().step(1, &format!("{LEAVE}answer done 'Done.'")).guard_always("touch \"$kit/asked\"\nexit 1");
    play.run_first(4).assert_row(&BROKEN);
    assert!(!play.script().folder().join("asked").exists(), "the guard was not asked");
}

#[test]
fn stop_by_the_user_goes_before_everything() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    let gate = play.script().gate("working");
    play.script().step(1, &format!("{RESET}{INVALID}{}gate working", STATES.replace("CLASS", "misconfigured")));
    play.start_run();
    gate.wait_reached();
    play.home.ctl_in(&play.repo, &["cancel"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Cancelled);
    play.iteration_at(1).assert_row(&ExpectedRow { verdict: "Interrupted", status: "interrupted", ..FAULT });
    assert_eq!(play.repo.tree("HEAD"), sample());
    assert_eq!(play.repo.show("refs/runner/rescue/play/0001", "work"), "kept");
}

#[test]
fn completed_goes_before_a_limit_that_was_reached_with_it() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 3"));
    play.script().always("echo $n > work\nanswer done \"Step $n.\"");
    play.run().exits(0);
}

#[test]
fn stuck_goes_before_a_limit_that_was_reached_with_it() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 3"));
    play.script().always("answer retry \"Try $n.\"");
    play.run().exits(3);
}
