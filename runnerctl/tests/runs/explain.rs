//! What `explain` predicts before a session is what its commit says after it.

use std::collections::BTreeMap;

use runner_testkit::Home;
use serde_json::Value;

use crate::play::{RUN, RunPlay, sample};

fn find_ending<'a>(reply: &'a Value, name: &str) -> &'a Value {
    let endings = reply["endings"].as_array().expect("there are endings");
    endings.iter().find(|ending| ending["ending"] == name).unwrap_or_else(|| panic!("no {name} in {reply:#}"))
}

/// Explains the next session, runs it, and compares the result with the prediction for this ending.
fn assert_forecast_holds(play: &RunPlay, name: &str) {
    let explain = || play.home.ctl_in(&play.repo, &["explain", "--json"]).exits(0).json();
    let reply = explain();
    assert_eq!(reply["commit"], play.repo.head(), "the next session begins there");
    let ending = find_ending(&reply, name);
    play.home.ctl_in(&play.repo, &["step"]).exits(0);
    let receipts = play.repo.receipts();
    let receipt = receipts.last().expect("the iteration has a receipt");
    assert_eq!(ending["subject"], receipt.subject.as_str());
    assert_eq!(ending["verdict"], receipt.verdict());
    let attempts = format!("{}/{}", ending["attempts"], ending["max_attempts"]);
    assert_eq!(receipt.trailer("Runner-Attempts"), Some(attempts.as_str()));
    let before = nodes(play, &reply["commit"]);
    let after = nodes(play, &play.repo.head().into());
    let passes: Vec<&String> =
        after.iter().filter(|(id, passes)| **passes && before.get(*id) == Some(&false)).map(|(id, _)| id).collect();
    assert_eq!(sorted_ids(&ending["passes"]), passes, "after {name}");
    let gains: Vec<&String> = after.keys().filter(|id| !before.contains_key(*id)).collect();
    assert_eq!(sorted_ids(&ending["gains"]), gains, "after {name}");
    assert_eq!(ending["next"], explain()["next"], "after {name}");
}

/// The nodes in the tree of a commit, and whether they pass.
fn nodes(play: &RunPlay, commit: &Value) -> BTreeMap<String, bool> {
    let tree = play.repo.tree(commit.as_str().expect("a commit"));
    let mut nodes = BTreeMap::new();
    let mut left = vec![tree.root];
    while let Some(node) = left.pop() {
        nodes.insert(node.id, node.passes);
        left.extend(node.children);
    }
    nodes
}

fn sorted_ids(ids: &Value) -> Vec<&str> {
    let mut ids: Vec<&str> = ids.as_array().expect("ids").iter().map(|id| id.as_str().expect("an id")).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn what_is_told_of_an_ending_is_what_comes_of_it() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    let script = play.script();
    script.step(1, "answer retry 'Not yet.'");
    script.step(2, "echo 2 > work\nanswer done 'It should work.'").guard_step(1, "exit 1");
    script.step(3, "echo 3 > work\nexit 3");
    script.step(4, "echo 4 > work\nanswer done 'It works.'").step(5, "decompose 'Two parts.' one two");
    script.step(6, "echo '{' > \"$tree\"\nanswer retry 'Oops.'");
    play.home.ctl_in(&play.repo, &["start", "--yes", "--queue-only", "--id", RUN]).exits(0);
    play.home.ctl_in(&play.repo, &["step"]).exits(0);
    assert_forecast_holds(&play, "red");
    let reply = play.home.ctl_in(&play.repo, &["explain", "--json"]).exits(0).json();
    assert_eq!(reply["leaf"]["role_reason"], "last_attempt");
    assert_eq!(find_ending(&reply, "invalid_tree")["next"]["state"], "stuck");
    for ending in ["crash", "green", "decomposed", "invalid_tree"] {
        assert_forecast_holds(&play, ending);
    }
}

#[test]
fn a_repository_without_a_run_is_explained_too() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["init"]).exits(0);
    repo.commit("Plan");
    let output = home.ctl_in(&repo, &["explain"]);
    output.exits(0);
    assert!(output.stdout.contains("planner: it is the root"), "{}", output.stdout);
}
