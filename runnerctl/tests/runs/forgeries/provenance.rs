//! The origin of a run: commits made by hand that give a branch another start, and genuine starts of all kinds.

use std::fs;

use protocol::state::RunState;
use protocol::tree::TaskTree;
use protocol::verify::{AuditRule as Rule, Severity};

use super::{BranchCommit, BranchForge, GOAL, RUN_STATE, TREE, violation};
use crate::audits::{parse_report, play_two};
use crate::play::{RUN, RunPlay, node, sample};

impl BranchForge {
    /// The tree of a commit, with every leaf passed.
    fn all_passed(&self, tree: &str) -> String {
        let mut tasks: TaskTree = serde_json::from_str(&self.try_show(tree, TREE)).expect("it is a task tree");
        for id in ["b", "c1", "c2", "c", "root"] {
            node(&mut tasks, id).passes = true;
        }
        let text = serde_json::to_string_pretty(&tasks).expect("the tree serializes") + "\n";
        self.tree_with(tree, TREE, &text)
    }

    fn with_state(&self, tree: &str, change: impl FnOnce(&mut RunState)) -> String {
        let mut state: RunState = serde_json::from_str(&self.try_show(tree, RUN_STATE)).expect("it has its form");
        change(&mut state);
        let text = serde_json::to_string_pretty(&state).expect("the state serializes") + "\n";
        self.tree_with(tree, RUN_STATE, &text)
    }

    /// A start commit on top of a commit, with that commit's tree under another run id.
    fn fork(&self, run: &str, (parent, tree): (&str, &str)) -> String {
        let tree = self.with_state(tree, |state| {
            (state.run_id, state.base) = (Some(run.to_owned()), Some(parent.to_owned()));
        });
        let goal = self.try_show(&tree, GOAL).replacen(RUN, run, 1);
        let tree = self.tree_with(&tree, GOAL, &goal);
        let start = &self.pieces[self.index_of("start run")];
        let message = start.message.replace(&format!("start run {RUN}"), &format!("start run {run}"));
        let from = message.lines().find(|line| line.starts_with("Runner-From")).expect("a start names its parent");
        self.commit(Some(parent), &tree, &message.replace(from, &format!("Runner-From: {parent}")))
    }
}

#[test]
fn nothing_that_the_tip_says_moves_the_beginning() {
    let forge = BranchForge::new();
    let retry = &forge.pieces[forge.index_of("iter 0003")];
    let passed = forge.all_passed(&retry.tree);
    let first = forge.commit(Some(&retry.id), &passed, "All passed\n");
    let moved = forge.with_state(&passed, |state| state.base = Some(first.clone()));
    let second = forge.commit(Some(&first), &moved, "Begin here\n");
    forge.assert_finds_at((RUN, &second), violation(Rule::Passes, TREE));
    forge.assert_finds_at((RUN, &second), violation(Rule::Person, "run_state.json: base"));

    let renamed = forge.with_state(&retry.tree, |state| state.run_id = Some("other".to_owned()));
    let other = forge.commit(Some(&retry.id), &renamed, "Another\n");
    forge.assert_finds_at((RUN, &other), violation(Rule::Person, "run_state.json: run_id"));
}

#[test]
fn a_run_without_a_start_is_none() {
    let forge = BranchForge::new();
    let passed = forge.all_passed(&forge.tip().tree);
    let orphan = forge.commit(None, &passed, "All passed\n");
    forge.assert_finds_at((RUN, &orphan), violation(Rule::Chain, "Runner-Commit: start"));

    let last = forge.commit(None, &forge.tip().tree, &forge.tip().message);
    forge.assert_finds_at((RUN, &last), violation(Rule::Chain, "Runner-Commit: start"));

    let start = &forge.pieces[forge.index_of("start run")];
    let root = forge.commit(None, &start.tree, &start.message);
    forge.assert_finds_at((RUN, &root), violation(Rule::Chain, "parents"));

    let claimed = forge.with_state(&passed, |state| state.base = Some("1".repeat(40)));
    let claimed = forge.commit(Some(&orphan), &claimed, "More\n");
    forge.assert_finds_at((RUN, &claimed), violation(Rule::Chain, "Runner-Commit: start"));
}

#[test]
fn a_second_start_of_a_run_hides_nothing() {
    let forge = BranchForge::new();
    let retry = &forge.pieces[forge.index_of("iter 0003")];
    let passed = forge.all_passed(&retry.tree);
    let persons = forge.commit(Some(&retry.id), &passed, "All passed\n");
    let second = forge.fork(RUN, (&persons, &passed));
    forge.assert_finds_at((RUN, &second), violation(Rule::Milestone, "Runner-Commit"));
    forge.assert_finds_at((RUN, &second), violation(Rule::Passes, TREE));

    // In a session it belongs to the session, and the run's start is unchanged.
    let mut posed = forge.pieces.clone();
    let mut fake = forge.pieces[forge.index_of("start run")].clone();
    "fake".clone_into(&mut fake.id);
    posed.insert(forge.index_of("iter 0005"), fake);
    assert_eq!(forge.audit(&posed).base, forge.audit(&forge.pieces).base);
}

#[test]
fn a_fork_starts_at_a_receipt_of_a_run_that_is_proven_too() {
    let forge = BranchForge::new();
    let retry = &forge.pieces[forge.index_of("iter 0003")];
    let honest = forge.audit_at("again", &forge.fork("again", (&retry.id, &retry.tree)));
    assert_eq!((&honest.findings[..], &honest.unseen[..]), (&[][..], &[][..]), "an honest fork");
    assert_eq!(
        (honest.counts.iterations, &honest.brought[..]),
        (3, &["a".to_owned()][..]),
        "what it took over is proven"
    );

    let passed = forge.all_passed(&retry.tree);
    let persons = forge.commit(Some(&retry.id), &passed, "All passed\n");
    let invented = forge.fork("again", (&persons, &passed));
    forge.assert_finds_at(("again", &invented), violation(Rule::Milestone, "run_state.json"));

    let orphan = forge.commit(None, &passed, "By hand\n");
    let invented = forge.fork("again", (&orphan, &passed));
    forge.assert_finds_at(("again", &invented), violation(Rule::Milestone, "run_state.json"));

    let posed = forge.commit(None, &passed, &retry.message);
    forge.assert_finds_at(
        ("again", &forge.fork("again", (&posed, &passed))),
        violation(Rule::Chain, "Runner-Commit: start"),
    );

    let before = &forge.pieces[forge.index_of("iter 0002")];
    let forged = forge.commit(Some(&before.id), &passed, &retry.message);
    forge.assert_finds_at(("again", &forge.fork("again", (&forged, &passed))), violation(Rule::Passes, "passes"));

    let changed = forge.fork("again", (&retry.id, &passed));
    forge.assert_finds_at(("again", &changed), violation(Rule::Passes, TREE));
}

#[test]
fn what_stands_in_the_place_of_the_runners_folder_is_named() {
    let forge = BranchForge::new();
    let tip = forge.tip();
    let blob = forge.git(&["hash-object", "-w", "--stdin"], "elsewhere");
    for (mode, kind, id) in [("160000", "commit", &tip.id), ("100644", "blob", &blob), ("120000", "blob", &blob)] {
        let tree = forge.git(&["mktree"], format!("{mode} {kind} {id}\t.runner\n"));
        let put = forge.commit(Some(&tip.id), &tree, "By hand\n");
        forge.assert_finds_at((RUN, &put), violation(Rule::Valid, ".runner"));
    }
}

#[test]
fn nothing_that_a_receipt_names_ends_the_audit() {
    let forge = BranchForge::new();
    let retry = forge.index_of("iter 0003");
    let tree = forge.pieces[retry].tree.clone();
    for named in [tree, forge.pieces[0].id.clone(), "1".repeat(40)] {
        let raw = forge.with_change(retry, |piece| piece.message.push_str(&["\nRunner-Raw: ", &named].concat()));
        // It must return a report, which is checked when it is parsed.
        forge.audit(&raw);
    }
}

#[test]
fn one_commit_of_other_rules_ends_the_audit() {
    let forge = BranchForge::new();
    let last = forge.pieces.len() - 1;
    for at in [0, forge.index_of("iter 0004"), last] {
        for rules in ["", " rules=2", " rules=99", " rules=0", " rules=01"] {
            let named = |piece: &mut BranchCommit| piece.message = piece.message.replace(" rules=1", rules);
            forge.assert_ends(&forge.with_change(at, named), "of the runner cannot be read: it ");
        }
    }
}

#[test]
fn what_is_missing_or_cut_off_is_never_proven() {
    let mut play = play_two();
    let folder = play.home.path().join("cut.git");
    let at = folder.display().to_string();
    // Objects stay loose in a clone by path.
    play.repo.git(&["clone", "-q", "--bare", "--no-hardlinks", ".", &at]);
    let audit = || parse_report(&play.home.ctl(&["verify", &at, "--run", RUN, "--json"]));
    // A `shallow` file in a complete clone: all existing commits are read.
    fs::write(folder.join("shallow"), format!("{}\n", play.repo.head())).expect("the clone can be written to");
    assert_eq!((audit().counts.iterations, audit().unseen.len()), (2, 0));
    fs::remove_file(folder.join("shallow")).expect("it is there");

    let blob = play.repo.git(&["rev-parse", &format!("HEAD:{RUN_STATE}")]);
    fs::remove_file(folder.join("objects").join(&blob[..2]).join(&blob[2..])).expect("it is loose");
    let report = audit();
    assert_eq!(report.unseen.len(), 1, "{report:#?}");
    assert!(report.unseen[0].contains("git fsck"), "it blames no depth: {:?}", report.unseen);
    assert!(
        report.findings.iter().any(|finding| (finding.rule, finding.severity) == (Rule::Valid, Severity::Violation))
    );
    let allowed = play.home.ctl(&["verify", &at, "--run", RUN, "--allow-shallow"]);
    allowed.exits(10);
    play.home.expect_forgery();
}

#[test]
fn forks_of_forks_and_runs_based_on_runs_are_proven_down_to_the_first_start() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.script().step(1, "answer retry 'Not yet.'").always("echo $n > \"file$n\"\nanswer done \"Done $n.\"");
    play.run().exits(4);
    play.home.ctl_in(&play.repo, &["fork", "--from", "1", "--id", "again", "--wait"]).exits(4);
    play.home.ctl_in(&play.repo, &["fork", "--from", "again/2", "--id", "third", "--wait"]).exits(4);
    let clone = play.home.path().join("runs.git").display().to_string();
    play.repo.git(&["clone", "-q", "--bare", ".", &clone]);
    for (run, iterations) in [(RUN, 2), ("again", 2), ("third", 2)] {
        let report = parse_report(&play.home.ctl(&["verify", &clone, "--run", run, "--json"]));
        assert_eq!((&report.findings[..], &report.unseen[..]), (&[][..], &[][..]), "{run}");
        assert_eq!((report.counts.iterations, &report.brought[..]), (iterations, &["a".to_owned()][..]), "{run}");
    }
    let linked = play.home.path().join("linked").display().to_string();
    play.repo.git(&["worktree", "add", "-q", "--detach", &linked, "runner/again"]);
    let report = parse_report(&play.home.ctl(&["verify", &linked, "--run", "again", "--json"]));
    assert_eq!(report.findings, []);
}
