//! From an outcome to the committed state: tree and bookkeeping, field by field. Feedback is tested in `feedback`.

use std::sync::Arc;

use protocol::answer::{AgentAnswer, AnswerStatus, SessionUsage};
use protocol::flakes::FlakyTest;
use protocol::state::{Attempt, Deaths, Feedback, NodeFeedback, RunState, Stall, UsageTotal};
use protocol::tree::TaskTree;
use protocol::words::{Containment, GuardOutcome, IterationStatus, Mode, PhaseName, VerdictName};
use runner_core::committed_state::CommittedState;
use runner_core::files::layout;
use runner_core::iteration::transition::{StateAfter, TransitionFacts, apply_outcome};
use runner_core::iteration::{GuardEnd, IterationOutcome, WorkSource};
use runner_core::run::approval::Decision;
use runner_core::run::usage::ResourceUsage;
use runner_core::text::json;
use runner_core::tree::validate::load;
use runner_core::tree::{canonical, find};
use runner_core::verdict::{FaultKind, SessionEndKind, SessionRule, StopCause, TreeFinding, Verdict};

use crate::fixture::{
    answer, broken, decomposed, fault, finding_of, green, inner, leaf, node, outcome, passed, sample, session,
    session_of, tree, verdicts,
};

/// A state in which every field is set, so that a lost field is noticed.
pub(crate) fn before() -> (TaskTree, RunState, Feedback) {
    let mut tree = sample();
    node(&mut tree, "b").attempts = 1;
    let state = RunState {
        run_id: Some("run-1".to_owned()),
        base: Some("0".repeat(40)),
        next_iter: 7,
        last_node: Some("a".to_owned()),
        last_status: Some(IterationStatus::Done),
        last_summary: Some("old".to_owned()),
        last_guard: Some(GuardOutcome::Pass),
        review_required: true,
        consecutive_faults: 2,
        stall: Stall { digest: Some("old".to_owned()), count: 3 },
        decomposed_in_row: 4,
        deaths: Deaths { node: Some("b".to_owned()), count: 6 },
        narrowed: vec!["a".to_owned()],
        repair: Some("b".to_owned()),
        held_back: vec!["old.pem".to_owned()],
        dirty_submodules: vec!["old".to_owned()],
        notes_used: vec!["n1".to_owned()],
        allowance: 20,
        guard_definition: [("justfile".to_owned(), "1".repeat(40))].into(),
        reverted: vec!["old".to_owned()],
        hidden: vec!["old".to_owned()],
        flakes: vec![FlakyTest { name: None, count: 2, first_node: "a".to_owned(), last_iter: 5 }],
        usage: UsageTotal { sessions: 6, input_tokens: Some(10), ..UsageTotal::default() },
        elapsed_ms: 100,
    };
    let attempt = Attempt {
        iter: 6,
        verdict: VerdictName::Retry,
        detail: None,
        summary: Some("old".to_owned()),
        failure_digest: None,
    };
    let entry = NodeFeedback { history: vec![attempt], failures: Vec::new() };
    let nodes = ["b", "c1", "a", "gone"].map(|id| (id.to_owned(), entry.clone())).into();
    (tree, state, Feedback { baseline: None, nodes })
}

/// The tree that the agent left: a changed title, and a new node.
pub(crate) fn agents_tree() -> TaskTree {
    let mut tree = before().0;
    node(&mut tree, "c1").title = "another title".into();
    tree.root.children.push(leaf("d", 4));
    tree
}

pub(crate) fn facts() -> TransitionFacts {
    TransitionFacts {
        agents_tree: Some(agents_tree()),
        notes: vec!["n1".to_owned(), "n2".to_owned()],
        held_back: vec!["key.pem".to_owned()],
        dirty_submodules: vec!["parts/module".to_owned()],
        guard_definition: [("justfile".to_owned(), "2".repeat(40))].into(),
        elapsed_ms: 11,
        retry_usage: ResourceUsage::default(),
    }
}

pub(crate) fn committed(tree: &TaskTree, run_state: &RunState, feedback: &Feedback) -> CommittedState {
    CommittedState {
        tree: Arc::new(tree.clone()),
        run_state: Arc::new(run_state.clone()),
        feedback: Arc::new(feedback.clone()),
        ..CommittedState::default()
    }
}

pub(crate) fn applied_with(outcome: &IterationOutcome, facts: &TransitionFacts, progress: &str) -> StateAfter {
    let (tree, run_state, feedback) = before();
    let before = committed(&tree, &run_state, &feedback).with_text(layout::PROGRESS, progress);
    let after = apply_outcome(&before, outcome, facts);
    assert_eq!(apply_outcome(&before, outcome, facts), after, "done again it yields the same");
    assert_eq!(load(canonical(&after.tree).as_bytes()).as_ref(), Ok(&after.tree), "the tree is strictly valid");
    after
}

pub(crate) fn applied(outcome: &IterationOutcome) -> StateAfter {
    applied_with(outcome, &facts(), "")
}

pub(crate) fn after(verdict: Verdict) -> StateAfter {
    applied(&outcome(verdict))
}

/// An outcome whose session answered with this summary.
pub(crate) fn summarised(verdict: Verdict, summary: &str) -> IterationOutcome {
    let mut outcome = outcome(verdict);
    let answer = AgentAnswer { summary: summary.to_owned(), ..answer(AnswerStatus::Retry) };
    *session_of(&mut outcome) = session(SessionEndKind::Answered(answer));
    outcome
}

pub(crate) fn with_tree(verdict: Verdict, tree: TreeFinding) -> IterationOutcome {
    let mut outcome = outcome(verdict);
    finding_of(&mut outcome).tree = tree;
    outcome
}

#[test]
fn every_verdict_takes_the_tree_of_its_row() {
    for verdict in verdicts() {
        let name = verdict.name();
        let mut agents = agents_tree();
        let mut froms = before().0;
        node(&mut agents, "b").passes = name == VerdictName::Accepted;
        let charged = [VerdictName::RedGuard, VerdictName::Rejected, VerdictName::Retry, VerdictName::Broken];
        for tree in [&mut agents, &mut froms] {
            node(tree, "b").attempts = if charged.contains(&name) { 2 } else { 1 };
        }
        let expect = if name == VerdictName::Broken { froms } else { agents };
        assert_eq!(after(verdict).tree, expect, "{name}");
    }
}

#[test]
fn a_tree_that_is_not_legal_is_never_taken() {
    let invalid = TreeFinding::Invalid { faults: Vec::new(), text: "{".to_owned(), blob: None };
    for verdict in
        verdicts().into_iter().filter(|verdict| runner_core::verdict::verdict_row(verdict.name()).attempts == 0)
    {
        let after = applied(&with_tree(verdict.clone(), invalid.clone()));
        let mut expect = before().0;
        node(&mut expect, "b").passes = verdict == Verdict::Accepted;
        assert_eq!(after.tree, expect, "{verdict:?}");
        assert!(after.tree_refused);
    }
    let mut rewritten = outcome(fault());
    finding_of(&mut rewritten).history = Some("HEAD is elsewhere".to_owned());
    assert_eq!(applied(&rewritten).tree, before().0);
}

#[test]
fn a_tree_is_refused_where_the_agents_was_not_taken() {
    assert!(!after(Verdict::Retry).tree_refused);
    assert!(after(broken(SessionRule::PassedNode)).tree_refused);
    let same = TransitionFacts { agents_tree: Some(before().0), ..facts() };
    let idle = with_tree(broken(SessionRule::RootNeedsChange), TreeFinding::UNTOUCHED);
    assert!(!applied_with(&idle, &same, "").tree_refused);
    assert!(applied(&idle).tree_refused);
}

#[test]
fn the_last_leaf_that_passes_lets_its_parents_pass() {
    let last = tree(inner("root", 0, vec![passed("a", 1), inner("d", 2, vec![leaf("b", 1)])]));
    let (_, run_state, feedback) = before();
    let before = committed(&last, &run_state, &feedback);
    let tree = apply_outcome(&before, &outcome(Verdict::Accepted), &TransitionFacts::default()).tree;
    assert!(["root", "d", "b"].iter().all(|id| find(&tree, id).is_some_and(|node| node.passes)));
    assert_eq!(load(canonical(&tree).as_bytes()), Ok(tree));
}

#[test]
fn attempts_never_pass_what_is_allowed() {
    let mut full = agents_tree();
    node(&mut full, "b").attempts = 3;
    let facts = TransitionFacts { agents_tree: Some(full), ..facts() };
    let tree = applied_with(&outcome(Verdict::Retry), &facts, "").tree;
    assert_eq!(find(&tree, "b").map(|node| node.attempts), Some(3));
}

#[test]
fn passes_is_written_for_accepted_alone() {
    for verdict in verdicts() {
        let passes = find(&after(verdict.clone()).tree, "b").expect("b").passes;
        assert_eq!(passes, verdict == Verdict::Accepted, "{verdict:?}");
    }
}

#[test]
fn every_field_of_the_run_state_follows_an_accepted_node() {
    let old = before().1;
    let expect = RunState {
        next_iter: 8,
        last_node: Some("b".to_owned()),
        last_status: Some(IterationStatus::Done),
        last_summary: Some("what was done".to_owned()),
        last_guard: Some(GuardOutcome::Pass),
        review_required: false,
        consecutive_faults: 0,
        stall: Stall::default(),
        decomposed_in_row: 0,
        deaths: Deaths::default(),
        repair: None,
        held_back: vec!["key.pem".to_owned()],
        dirty_submodules: vec!["parts/module".to_owned()],
        notes_used: vec!["n1".to_owned(), "n2".to_owned()],
        guard_definition: facts().guard_definition,
        reverted: Vec::new(),
        hidden: Vec::new(),
        usage: UsageTotal { sessions: 7, tokens_unknown: 1, cost_unknown: 1, ..old.usage.clone() },
        elapsed_ms: 111,
        ..old
    };
    assert_eq!(after(Verdict::Accepted).run_state, expect);
}

#[test]
fn every_field_of_the_run_state_follows_a_death() {
    let old = before().1;
    let expect = RunState {
        next_iter: 8,
        last_node: Some("b".to_owned()),
        last_status: Some(IterationStatus::Interrupted),
        last_summary: None,
        last_guard: Some(GuardOutcome::Skipped),
        review_required: false,
        deaths: Deaths { node: Some("b".to_owned()), count: 7 },
        held_back: vec!["key.pem".to_owned()],
        dirty_submodules: vec!["parts/module".to_owned()],
        guard_definition: facts().guard_definition,
        reverted: Vec::new(),
        hidden: Vec::new(),
        usage: UsageTotal { sessions: 7, tokens_unknown: 1, cost_unknown: 1, ..old.usage.clone() },
        elapsed_ms: 111,
        ..old
    };
    assert_eq!(after(Verdict::Interrupted { by: StopCause::Death }).run_state, expect);
}

#[test]
fn status_and_guard_are_those_of_the_row() {
    for verdict in verdicts() {
        let row = runner_core::verdict::verdict_row(verdict.name());
        let state = after(verdict).run_state;
        assert_eq!(
            (state.last_status, state.last_guard),
            (Some(row.status), Some(row.guard.unwrap_or(GuardOutcome::Skipped)))
        );
    }
}

#[test]
fn a_fault_counts_an_answer_resets_and_all_else_leaves_it() {
    let faults = |outcome: &IterationOutcome| applied(outcome).run_state.consecutive_faults;
    for verdict in verdicts() {
        let expect = match verdict.name() {
            VerdictName::Fault => 3,
            VerdictName::Unavailable | VerdictName::Timeout | VerdictName::Misconfigured | VerdictName::Interrupted => {
                2
            }
            _ => 0,
        };
        assert_eq!(faults(&outcome(verdict.clone())), expect, "{verdict:?}");
    }
    let mut exceeded = outcome(broken(SessionRule::Context));
    *session_of(&mut exceeded) = session(SessionEndKind::ContextExceeded { what: "too long".to_owned() });
    assert_eq!(faults(&exceeded), 2, "an exceeded context is not an answer");
    let reviewer = Verdict::Fault { kind: FaultKind::Reviewer, what: "no answer".to_owned() };
    assert_eq!(faults(&summarised(reviewer, "x")), 3);
    assert_eq!(faults(&summarised(Verdict::Timeout { during: PhaseName::Guard }, "x")), 0);
}

#[test]
fn the_same_status_and_summary_in_a_row_are_counted() {
    let (tree, mut state, feedback) = before();
    let mut count = |verdict: Verdict, summary: &str| {
        let before = committed(&tree, &state, &feedback);
        state = apply_outcome(&before, &summarised(verdict, summary), &facts()).run_state;
        state.stall.count
    };
    assert_eq!(count(Verdict::Retry, "Still red"), 1);
    assert_eq!(count(Verdict::Retry, "  still\n RED "), 2);
    assert_eq!(count(fault(), "still red"), 1, "another status");
    assert_eq!(count(Verdict::Retry, "still red"), 1);
    assert_eq!(count(broken(SessionRule::PassedNode), "still red"), 2, "a broken rule is a retry too");
    assert_eq!(count(Verdict::Retry, "green"), 1);
    assert_eq!(count(Verdict::RedGuard, "green"), 1);
    assert_eq!(count(Verdict::Rejected { reasons: "no".to_owned() }, "green"), 2, "both are done");
    assert_eq!(count(Verdict::Accepted, "green"), 0);
}

#[test]
fn sessions_without_an_answer_leave_the_stall_alone() {
    for verdict in [
        fault(),
        Verdict::Interrupted { by: StopCause::Pause },
        Verdict::Unavailable { why: "x".to_owned(), until: None },
    ] {
        assert_eq!(after(verdict).run_state.stall, before().1.stall);
    }
}

#[test]
fn decompositions_in_a_row_end_with_any_other_answer() {
    for verdict in verdicts() {
        let expect = match verdict.name() {
            VerdictName::Decomposed => 5,
            VerdictName::Fault
            | VerdictName::Unavailable
            | VerdictName::Timeout
            | VerdictName::Misconfigured
            | VerdictName::Interrupted => 4,
            _ => 0,
        };
        assert_eq!(after(verdict.clone()).run_state.decomposed_in_row, expect, "{verdict:?}");
    }
}

#[test]
fn deaths_are_counted_per_node_and_asked_for_stops_are_none() {
    let deaths = |by, on: &str| {
        let mut outcome = outcome(Verdict::Interrupted { by });
        on.clone_into(&mut outcome.work.task.node);
        let deaths = applied(&outcome).run_state.deaths;
        (deaths.node.unwrap_or_default(), deaths.count)
    };
    assert_eq!(deaths(StopCause::Death, "b"), ("b".to_owned(), 7));
    assert_eq!(deaths(StopCause::Death, "c1"), ("c1".to_owned(), 1));
    for by in [StopCause::Pause, StopCause::Cancel, StopCause::Shutdown] {
        assert_eq!(deaths(by, "b"), ("b".to_owned(), 6));
    }
    assert_eq!(after(fault()).run_state.deaths, Deaths::default());
}

#[test]
fn narrowing_is_noted_once() {
    assert_eq!(after(Verdict::Narrowed).run_state.narrowed, ["a", "b"]);
    assert_eq!(after(Verdict::Retry).run_state.narrowed, ["a"]);
    let mut again = outcome(Verdict::Narrowed);
    again.work.task.node = "a".to_owned();
    assert_eq!(applied(&again).run_state.narrowed, ["a"]);
}

#[test]
fn repair_begins_with_an_invalid_tree_and_ends_with_a_legal_answer_of_its_node() {
    let repair = |outcome: &IterationOutcome| applied(outcome).run_state.repair;
    assert_eq!(repair(&outcome(broken(SessionRule::ValidTree))).as_deref(), Some("b"));
    for verdict in
        [Verdict::Accepted, Verdict::RedGuard, Verdict::Retry, Verdict::Narrowed, Verdict::Decomposed, Verdict::Pending]
    {
        assert_eq!(repair(&outcome(verdict.clone())), None, "{verdict:?}");
        let mut other = outcome(verdict);
        other.work.task.node = "c1".to_owned();
        assert_eq!(repair(&other).as_deref(), Some("b"), "another node's answer");
    }
    for verdict in [
        broken(SessionRule::PassedNode),
        broken(SessionRule::Context),
        fault(),
        Verdict::Interrupted { by: StopCause::Pause },
    ] {
        assert_eq!(repair(&outcome(verdict.clone())).as_deref(), Some("b"), "{verdict:?}");
    }
    let mut first = outcome(broken(SessionRule::ValidTree));
    first.work.task.node = "c1".to_owned();
    assert_eq!(repair(&first).as_deref(), Some("c1"));
}

#[test]
fn notes_are_used_by_a_session_that_answers() {
    let used = |outcome: &IterationOutcome| applied(outcome).run_state.notes_used.len();
    for verdict in [Verdict::Accepted, Verdict::Retry, broken(SessionRule::PassedNode)] {
        assert_eq!(used(&outcome(verdict)), 2);
    }
    for verdict in
        [fault(), Verdict::Timeout { during: PhaseName::Work }, Verdict::Interrupted { by: StopCause::Cancel }]
    {
        assert_eq!(used(&outcome(verdict)), 1);
    }
    assert_eq!(used(&summarised(Verdict::Timeout { during: PhaseName::Guard }, "x")), 2);
}

#[test]
fn usage_adds_what_is_known_and_stays_unknown_where_nothing_is() {
    let mut known = outcome(Verdict::Retry);
    session_of(&mut known).usage = SessionUsage {
        input_tokens: Some(5),
        cached_tokens: None,
        output_tokens: Some(u64::MAX),
        cost_micro_usd: Some(0),
    };
    let expect = UsageTotal {
        sessions: 7,
        input_tokens: Some(15),
        cached_tokens: None,
        output_tokens: Some(u64::MAX),
        cost_micro_usd: Some(0),
        tokens_unknown: 0,
        cost_unknown: 0,
    };
    assert_eq!(applied(&known).run_state.usage, expect);
    let silent = after(Verdict::Retry).run_state.usage;
    assert_eq!(silent.cost_micro_usd, None, "unknown is never 0");
    assert_eq!((silent.tokens_unknown, silent.cost_unknown), (1, 1), "and it is counted");
}

#[test]
fn tries_that_left_no_commit_are_part_of_the_iteration_after_them() {
    let tried = ResourceUsage {
        usage: UsageTotal { sessions: 3, output_tokens: Some(8), cost_unknown: 2, ..UsageTotal::default() },
        elapsed_ms: 1_000,
    };
    let with = |tried: ResourceUsage| {
        applied_with(&outcome(Verdict::Retry), &TransitionFacts { retry_usage: tried, ..facts() }, "").run_state
    };
    let without = with(ResourceUsage::default());
    let with = with(tried);
    assert_eq!(with.elapsed_ms, without.elapsed_ms + 1_000);
    assert_eq!((with.usage.sessions, with.usage.output_tokens), (10, Some(8)));
    assert_eq!((with.usage.tokens_unknown, with.usage.cost_unknown), (1, 3));
}

#[test]
fn a_persons_review_is_no_session() {
    let mut review = outcome(Verdict::Accepted);
    review.work.by = WorkSource::Person(Decision::Approve);
    assert_eq!(applied(&review).run_state.usage.sessions, 6);
    review.guard = None;
    assert_eq!((review.containment(), review.mode(&[]), review.elapsed_ms()), (Containment::Pidns, Mode::Decompose, 0));
    assert!(review.leaves_commit());
    review.verdict = Verdict::Interrupted { by: StopCause::Cancel };
    assert!(!review.leaves_commit(), "a word that did not come to count is as if it had not been given");
}

#[test]
fn reverted_paths_are_those_of_session_and_guard_once_and_sorted() {
    let mut outcome = outcome(Verdict::Accepted);
    finding_of(&mut outcome).reverted = vec![".runner/z".to_owned(), ".runner/a".to_owned()];
    outcome.guard = Some(GuardEnd { reverted: vec![".runner/m".to_owned(), ".runner/a".to_owned()], ..green() });
    assert_eq!(applied(&outcome).run_state.reverted, [".runner/a", ".runner/m", ".runner/z"]);
}

#[test]
fn the_same_outcome_yields_the_same_bytes() {
    for verdict in verdicts() {
        let bytes = || {
            let after = after(verdict.clone());
            [
                canonical(&after.tree),
                json::to_canonical_json(&after.run_state),
                json::to_canonical_json(&after.feedback),
                after.progress,
            ]
        };
        assert_eq!(bytes(), bytes());
    }
}

#[test]
fn an_answer_that_brings_children_opens_them() {
    let mut split = outcome(Verdict::Decomposed);
    *session_of(&mut split) = decomposed(2);
    let mut left = before().0;
    node(&mut left, "b").children = vec![leaf("b.1", 1), leaf("b.2", 2)];
    let after = applied_with(&split, &TransitionFacts { agents_tree: Some(left), ..facts() }, "");
    assert_eq!(find(&after.tree, "b").map(|node| (node.children.len(), node.attempts)), Some((2, 1)));
    assert!(
        matches!(runner_core::tree::select::select(&after.tree), runner_core::tree::select::LeafSelection::Open(leaf) if leaf.id == "b.1")
    );
}

#[test]
fn a_persons_word_is_no_answer_of_a_session() {
    let (tree, state, feedback) = before();
    let before = committed(&tree, &state, &feedback);
    for decision in [Decision::Approve, Decision::Reject { reasons: "no test".to_owned() }] {
        let mut outcome = outcome(decision.verdict());
        outcome.work.by = WorkSource::Person(decision.clone());
        let after = apply_outcome(&before, &outcome, &TransitionFacts::default());
        let state = &after.run_state;
        assert_eq!(state.last_summary, Some(decision.summary()));
        assert_eq!((state.usage.sessions, state.consecutive_faults), (6, 2), "no session, and none that answered");
        assert_eq!((state.last_status, state.last_guard), (Some(IterationStatus::Done), Some(GuardOutcome::Pass)));
        let b = find(&after.tree, "b").expect("b");
        let failure = after.feedback.nodes.get("b").and_then(|node| node.failures.last());
        match decision {
            Decision::Approve => assert_eq!((b.passes, b.attempts, failure), (true, 1, None)),
            Decision::Reject { reasons } => {
                assert_eq!((b.passes, b.attempts, failure.map(|node| &node.text)), (false, 2, Some(&reasons)));
            }
        }
    }
}
