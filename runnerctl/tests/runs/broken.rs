//! One run for each rule of the task tree and of the answer that a session can break.

use protocol::tree::{Node, TaskTree};
use protocol::words::VerdictName;
use runner_testkit::Config;

use crate::play::{ExpectedRow, LEAVE, RunPlay, SeenIteration, inner, leaf, node, sample};

pub(crate) const BROKEN: ExpectedRow =
    ExpectedRow { verdict: "Broken", status: "retry", guard: "skipped", attempts: "1/3" };

/// Runs one iteration whose session does `step`; the tree must be that of From, with an attempt charged to `b`.
pub(crate) fn assert_breaks(play: &RunPlay, step: &str, detail: &str) -> SeenIteration {
    play.script().step(1, step);
    let seen = play.run_first(4);
    seen.assert_row(&BROKEN).assert_detail(detail);
    let mut expected = sample();
    node(&mut expected, "b").attempts = 1;
    assert_eq!(play.repo.tree("HEAD"), expected);
    let failure =
        play.repo.feedback("HEAD").nodes["b"].failures.last().cloned().expect("the breach is in the feedback");
    assert_eq!(failure.verdict, VerdictName::Broken);
    seen
}

/// A session that leaves a changed tree and answers `status`.
fn assert_tree_left(status: &str, detail: &str, change: impl FnOnce(&mut TaskTree)) {
    let play = RunPlay::new();
    play.script_tree_change(change);
    let step = format!("{LEAVE}echo 1 > work\nanswer {status} 'So it is.'");
    let seen = assert_breaks(&play, &step, detail);
    assert_eq!(play.repo.show("HEAD", "work"), "1", "work is never discarded");
    assert_raw_kept(&play, &seen);
}

/// The rejected tree is kept as a blob named by the receipt.
fn assert_raw_kept(play: &RunPlay, seen: &SeenIteration) {
    let raw = seen.receipt.trailer("Runner-Raw").expect("the receipt names the tree that was not taken");
    assert_eq!(play.repo.refs("refs/runner/raw"), ["refs/runner/raw/play/0001"]);
    assert_eq!(play.repo.git(&["rev-parse", "refs/runner/raw/play/0001"]), raw);
    assert_eq!(play.repo.git(&["cat-file", "blob", raw]), play.record(1, "tree.agent.json").trim_end());
}

fn deep(depth: usize) -> Node {
    (1..depth).rev().fold(leaf(&format!("d{depth}"), 1), |child, level| inner(&format!("d{level}"), 1, vec![child]))
}

#[test]
fn ids_that_differ_in_case_alone_are_one_id() {
    assert_tree_left("retry", "id", |tree| tree.root.children.push(leaf("B", 9)));
}

#[test]
fn tree_of_65_levels_is_too_deep() {
    assert_tree_left("retry", "(id d64): it is deeper than 64 levels", |tree| {
        tree.root.children.push(Node { order: 9, ..deep(64) });
    });
}

#[test]
fn tree_of_64_levels_is_legal() {
    let mut tree = sample();
    tree.root.children.push(Node { order: 9, ..deep(63) });
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 1"));
    play.script().step(1, "answer retry 'Planned far ahead.'");
    play.run_first(4).assert_row(&ExpectedRow { verdict: "Retry", ..BROKEN });
    assert!(play.repo.node("d63").children.is_empty());
    let shown = play.home.ctl_in(&play.repo, &["tree"]);
    assert!(shown.exits(0).stdout.contains("Title of d63"), "{}", shown.stdout);
}

#[test]
fn unknown_field_is_named_by_its_path() {
    let play = RunPlay::new();
    let step = "sed -i 's/\"id\": \"c2\"/\"id\": \"c2\", \"owner\": \"me\"/' \"$tree\"\nanswer done 'Done.'";
    let seen = assert_breaks(&play, step, "the task tree must be valid (.runner/state/tree.json: ");
    seen.assert_detail("owner").assert_detail("children");
    assert_raw_kept(&play, &seen);
}

#[test]
fn text_that_is_no_json_begins_a_repair() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.script().step(1, "echo '{\"version\": 1, \"root\": oops' > \"$tree\"\nanswer done 'Done.'");
    play.script().step(2, "answer retry 'The tree is as it was.'");
    play.run().exits(4);
    assert_raw_kept(&play, &play.iteration_at(1));
    let from = play.repo.run_state(&play.iteration_at(1).receipt.commit);
    assert_eq!(from.repair.as_deref(), Some("b"));
    let second = play.iteration_at(2);
    assert_eq!(second.receipt.trailer("Runner-Role"), Some("repair"));
    second.assert_row(&ExpectedRow { verdict: "Retry", attempts: "2/3", ..BROKEN });
    let prompt = play.script().prompt(2);
    assert!(prompt.contains("\"root\": oops") && prompt.contains("the task tree must be valid"), "{prompt}");
    assert_eq!(play.repo.run_state("HEAD").repair, None);
}

#[test]
fn tree_that_is_gone_or_no_file_is_invalid() {
    for step in ["rm \"$tree\"", "rm \"$tree\"; mkdir \"$tree\"", "rm \"$tree\"; ln -s /etc/passwd \"$tree\""] {
        let play = RunPlay::new();
        assert_breaks(&play, &format!("{step}\nanswer done 'Done.'"), "the file is gone");
    }
}

#[test]
fn passed_node_must_not_be_reworded() {
    assert_tree_left("retry", "a task that passed must not change (a: ", |tree| {
        node(tree, "a").goal = "Another".to_owned();
    });
}

#[test]
fn passed_node_must_not_be_reordered() {
    assert_tree_left("done", "a task that passed must not change (a: ", |tree| node(tree, "a").order = 7);
}

#[test]
fn passed_node_must_not_be_moved() {
    assert_tree_left("retry", "a task that passed must not change (a: ", |tree| {
        let passed = tree.root.children.remove(0);
        node(tree, "c").children.push(passed);
    });
}

#[test]
fn passed_node_must_not_be_removed() {
    assert_tree_left("retry", "(a: ", |tree| drop(tree.root.children.remove(0)));
}

#[test]
fn passed_node_must_not_gain_children() {
    assert_tree_left("retry", "a task that passed must not change (a: ", |tree| {
        node(tree, "a").children.push(leaf("a1", 1));
    });
}

#[test]
fn open_sibling_must_not_be_removed() {
    assert_tree_left("done", "a task must not be removed or renamed (c2: ", |tree| {
        drop(node(tree, "c").children.pop());
    });
}

#[test]
fn open_node_must_not_be_renamed() {
    assert_tree_left("done", "a task must not be removed or renamed (c1: ", |tree| {
        node(tree, "c1").id = "c9".to_owned();
    });
}

#[test]
fn open_node_must_not_be_moved() {
    assert_tree_left("done", "a task must not be moved (c2: ", |tree| {
        let moved = node(tree, "c").children.remove(1);
        tree.root.children.push(moved);
    });
}

#[test]
fn goal_and_acceptance_stay_with_done() {
    assert_tree_left("done", "must not change with `done` (b: ", |tree| node(tree, "b").goal = "Less".to_owned());
    assert_tree_left("done", "must not change with `done` (b: ", |tree| node(tree, "b").acceptance.clear());
}

#[test]
fn children_come_with_decomposed_only() {
    let children = r#"[{"title":"t","goal":"g","acceptance":[]}]"#;
    for status in ["done", "retry"] {
        let answer = format!(r#"{{"status":"{status}","summary":"s","children":{children}}}"#);
        assert_breaks(
            &RunPlay::new(),
            &format!("answer_json '{answer}'"),
            "only with `decomposed` (b: 1 in the answer",
        );
        assert_tree_left(status, "only with `decomposed` (b: ", |tree| node(tree, "b").children.push(leaf("b1", 1)));
    }
}

#[test]
fn decomposed_needs_children() {
    assert_breaks(&RunPlay::new(), "answer decomposed 'Into nothing.'", "`decomposed` needs subtasks");
}

#[test]
fn children_come_one_way() {
    let play = RunPlay::new();
    play.script_tree_change(|tree| node(tree, "b").children.push(leaf("b1", 1)));
    assert_breaks(
        &play,
        &format!("{LEAVE}decompose 'Both ways.' other"),
        "not in both (b: 1 in the answer and 1 in the tree)",
    );
}

#[test]
fn root_is_not_done_while_nothing_has_changed() {
    let tree = TaskTree { version: 1, root: leaf("root", 0) };
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 1"));
    let seen = play.run_first(4);
    seen.assert_row(&BROKEN).assert_detail("the root cannot be done");
    assert!(!play.repo.node("root").passes);
}

#[test]
fn planner_does_not_touch_code_in_strict_mode() {
    let mut tree = sample();
    node(&mut tree, "b").attempts = 2;
    let play = RunPlay::with_tree(&tree, strict);
    play.script().step(1, "echo 1 > work\nanswer retry 'Planned.'");
    play.run_first(3)
        .assert_row(&ExpectedRow { attempts: "3/3", ..BROKEN })
        .assert_detail("a planner must not touch code");
}

#[test]
fn worker_does_not_decompose_in_strict_mode() {
    let play = RunPlay::with_tree(&sample(), strict);
    assert_breaks(&play, "decompose 'Two.' one two", "a worker must not decompose");
}

fn strict(config: Config) -> Config {
    config.top("max_iterations = 1").section("[roles]\nmode = \"strict\"")
}

#[test]
fn session_must_fit_into_its_context() {
    let error = r#"{"error":{"class":"context_exceeded","message":"200001 of 200000 tokens"}}"#;
    let step = format!("echo 1 > work\nanswer_json '{error}'");
    let play = RunPlay::new();
    assert_breaks(&play, &step, "200001 of 200000 tokens");
    assert_eq!(play.repo.show("HEAD", "work"), "1");
}

#[test]
fn fields_of_the_runner_are_reset_in_silence() {
    let play = RunPlay::new();
    play.script_tree_change(|tree| {
        node(tree, "b").max_attempts = 99;
        node(tree, "c1").passes = true;
        node(tree, "c2").attempts = 2;
        node(tree, "a").attempts = 1;
        tree.root.children.push(Node { passes: true, attempts: 2, max_attempts: 50, ..leaf("new", 9) });
    });
    play.script().step(1, &format!("{LEAVE}answer done 'Done.'"));
    let seen = play.run_first(4);
    seen.assert_row(&ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" });
    let mut expected = sample();
    node(&mut expected, "b").passes = true;
    expected.root.children.push(leaf("new", 9));
    assert_eq!(play.repo.tree("HEAD"), expected);
    assert_eq!(seen.receipt.trailer("Runner-Raw"), None);
}

#[test]
fn open_nodes_may_be_reworded_reordered_and_added() {
    let play = RunPlay::new();
    let change = |tree: &mut TaskTree| {
        node(tree, "c1").title = "Another title".to_owned();
        node(tree, "c1").order = 5;
        node(tree, "c2").goal = "Another goal".to_owned();
        tree.root.children.push(leaf("later", 9));
    };
    play.script_tree_change(change);
    play.script().step(1, &format!("{LEAVE}answer done 'Done.'"));
    play.run_first(4).assert_row(&ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" });
    let ids: Vec<String> = play.repo.node("c").children.into_iter().map(|node| node.id).collect();
    assert_eq!(ids, ["c2", "c1"]);
    assert_eq!(play.repo.node("c2").goal, "Another goal");
    assert_eq!(play.repo.node("later").title, "Title of later");
}
