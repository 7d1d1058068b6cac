//! What later sessions read: the feedback of a node, and the list of passed nodes.

use protocol::state::{Baseline, Failure, Feedback};
use protocol::words::{GuardOutcome, PhaseName, VerdictName};
use runner_core::iteration::transition::{MAX_FAILURE, PROGRESS_HEADING, StateAfter, TransitionFacts, apply_outcome};
use runner_core::iteration::{GuardEnd, GuardEndKind, IterationOutcome};
use runner_core::tree::validate::TreeFault;
use runner_core::verdict::{SessionRule, StopCause, TreeFinding, Verdict};

use crate::fixture::{broken, fault, guard, node, outcome, verdicts};
use crate::transition::{after, agents_tree, applied, applied_with, before, committed, facts, summarised, with_tree};

#[test]
fn every_verdict_clears_keeps_or_tells_the_feedback_of_its_node() {
    for verdict in verdicts() {
        let history = after(verdict.clone()).feedback.nodes.get("b").map(|node| node.history.len());
        let expect = match verdict.name() {
            VerdictName::Accepted | VerdictName::Decomposed => None,
            VerdictName::Pending | VerdictName::Unavailable | VerdictName::Misconfigured | VerdictName::Interrupted => {
                Some(1)
            }
            _ => Some(2),
        };
        assert_eq!(history, expect, "{verdict:?}");
    }
}

#[test]
fn feedback_is_kept_of_open_nodes_that_exist_only() {
    let ids: Vec<String> = after(Verdict::Retry).feedback.nodes.into_keys().collect();
    assert_eq!(ids, ["b", "c1"]);
}

#[test]
fn a_failure_says_what_the_row_promises() {
    let failure = |outcome: &IterationOutcome| applied(outcome).feedback.nodes["b"].failures.last().cloned();
    let text = |outcome: &IterationOutcome| failure(outcome).map(|failure| failure.text).unwrap_or_default();
    assert_eq!(text(&outcome(Verdict::RedGuard)), "test lexer::tests::empty ... FAILED");
    assert_eq!(text(&outcome(Verdict::Rejected { reasons: "no test".to_owned() })), "no test");
    assert_eq!(text(&outcome(broken(SessionRule::History))), "history must not be rewritten (b: it was seen)");
    assert_eq!(text(&outcome(fault())), "crash: signal 11");
    assert_eq!(text(&outcome(Verdict::Timeout { during: PhaseName::Review })), "during review");
    assert_eq!(failure(&outcome(Verdict::Retry)), None);
    assert_eq!(failure(&outcome(Verdict::Narrowed)), None);
    assert_eq!(
        applied(&outcome(Verdict::Retry)).feedback.nodes["b"].history[1].summary.as_deref(),
        Some("what was done")
    );
}

/// Returns the failures of node `b` after these verdicts in a row, each with its verdict and its text.
fn failures_after(verdicts: &[Verdict]) -> Vec<(VerdictName, String)> {
    let outcomes: Vec<IterationOutcome> = verdicts.iter().cloned().map(outcome).collect();
    let failures = feedback_after(&outcomes).nodes.remove("b").map(|node| node.failures).unwrap_or_default();
    failures.into_iter().map(|failure| (failure.verdict, failure.text)).collect()
}

/// The feedback after these outcomes, each an iteration.
fn feedback_after(outcomes: &[IterationOutcome]) -> Feedback {
    let (tree, state, mut feedback) = before();
    for (iter, outcome) in (7..).zip(outcomes) {
        let mut outcome = outcome.clone();
        outcome.work.task.iter = iter;
        let before = committed(&tree, &state, &feedback);
        feedback = apply_outcome(&before, &outcome, &facts()).feedback;
    }
    feedback
}

fn rejection(reasons: &str) -> Verdict {
    Verdict::Rejected { reasons: reasons.to_owned() }
}

#[test]
fn what_guard_and_reviewer_found_is_told_until_it_is_overcome() {
    use VerdictName::{RedGuard, Rejected};

    let names = |verdicts: &[Verdict]| failures_after(verdicts).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let silent = [Verdict::Retry, Verdict::Narrowed, broken(SessionRule::History), fault()];
    let cut = [Verdict::Timeout { during: PhaseName::Work }, Verdict::Interrupted { by: StopCause::Pause }];
    for then in silent.into_iter().chain(cut) {
        for found in [Verdict::RedGuard, rejection("no test")] {
            assert_eq!(names(&[found.clone(), then.clone()])[0], found.name(), "{then:?}");
            let later = [found.clone(), then.clone(), Verdict::Retry];
            assert_eq!(names(&later), [found.name()], "{then:?}: reported once");
        }
    }
    assert_eq!(names(&[rejection("a"), Verdict::RedGuard]), [Rejected, RedGuard]);
    assert_eq!(names(&[Verdict::RedGuard, rejection("a")]), [Rejected], "the guard was green");
    assert_eq!(names(&[Verdict::RedGuard, Verdict::Pending]), []);
    assert_eq!(names(&[rejection("a"), Verdict::Accepted]), []);
    assert_eq!(failures_after(&[rejection("a"), rejection("b")]), [(Rejected, "b".to_owned())]);
    assert_eq!(names(&[broken(SessionRule::History), broken(SessionRule::Context)]), [VerdictName::Broken]);
    assert_eq!(names(&[Verdict::RedGuard, fault(), fault()]), [RedGuard, VerdictName::Fault]);
}

#[test]
fn an_attempt_tells_how_it_ended_on_one_line() {
    let detail = |outcome: IterationOutcome| {
        applied(&outcome).feedback.nodes["b"].history.last().and_then(|attempt| attempt.detail.clone())
    };
    let red = |how, output: &str| {
        let guard = Some(GuardEnd { output: output.to_owned(), ..guard(how) });
        IterationOutcome { guard, ..outcome(Verdict::RedGuard) }
    };
    let go: String =
        (1..=6).flat_map(|n| ["--- FAIL: Test".to_owned(), n.to_string(), " (0.00s)\n".to_owned()]).collect();
    let words = |outcome| detail(outcome).unwrap_or_default();
    assert_eq!(words(red(GuardEndKind::Exited(101), &go)), "exit 101: Test1, Test2, Test3, Test4 and 2 more");
    assert_eq!(words(red(GuardEndKind::Signaled(9), "no runner\n")), "signal 9");
    assert_eq!(words(red(GuardEndKind::TimedOut, "")), "they did not end in time");
    assert_eq!(words(outcome(rejection("- no test\n- no docs"))), "- no test - no docs");
    assert_eq!(words(outcome(fault())), "crash: signal 11");
    assert_eq!(words(outcome(broken(SessionRule::History))), "history must not be rewritten (b: it was seen)");
    assert!(words(outcome(rejection(&"word ".repeat(1_000)))).len() <= 240);
    assert_eq!(detail(outcome(Verdict::Retry)), None);
}

#[test]
fn an_invalid_tree_is_told_until_it_is_repaired() {
    let torn = || {
        let tree = TreeFinding::Invalid { faults: Vec::new(), text: "{".to_owned(), blob: None };
        with_tree(broken(SessionRule::ValidTree), tree)
    };
    let is_reported = |then: &[IterationOutcome]| {
        let feedback = feedback_after(&[&[torn()], then].concat());
        feedback.nodes["b"].failures.iter().any(|failure| failure.invalid_tree.is_some())
    };
    assert!(is_reported(&[]));
    assert!(is_reported(&[outcome(fault())]), "no session has read it");
    assert!(is_reported(&[outcome(broken(SessionRule::History))]), "the next session is a repair, too");
    assert!(!is_reported(&[outcome(Verdict::Retry)]));
    assert!(!is_reported(&[outcome(Verdict::RedGuard)]));
    let twice = feedback_after(&[torn(), torn()]);
    assert_eq!(twice.nodes["b"].failures.len(), 1);
}

#[test]
fn a_red_base_is_mended_by_the_first_green_guard() {
    let red = Baseline { guard: GuardOutcome::Fail, output: Some("no rule".to_owned()), green_at: None };
    let (tree, state, mut feedback) = before();
    feedback.baseline = Some(red.clone());
    for verdict in verdicts() {
        let before = committed(&tree, &state, &feedback);
        let outcome = outcome(verdict);
        let after = apply_outcome(&before, &outcome, &facts()).feedback.baseline.expect("there is one");
        let is_green = outcome.guard_outcome() == GuardOutcome::Pass;
        let mended = Baseline { output: None, green_at: Some(7), ..red.clone() };
        assert_eq!(after, if is_green { mended } else { red.clone() }, "{:?}", outcome.verdict);
    }
}

#[test]
fn an_invalid_tree_is_told_with_its_faults_and_its_text() {
    let faults = vec![
        TreeFault { path: "root.goal (id root)".to_owned(), rule: "goal is longer".to_owned() },
        TreeFault { path: String::new(), rule: "more".to_owned() },
    ];
    let tree = TreeFinding::Invalid { faults, text: "{ \"version\"".to_owned(), blob: None };
    let failure =
        applied(&with_tree(broken(SessionRule::ValidTree), tree)).feedback.nodes["b"].failures.last().cloned();
    let expect = Failure {
        iter: 7,
        verdict: VerdictName::Broken,
        text: "the task tree must be valid:\n- root.goal (id root): goal is longer\n- more".to_owned(),
        invalid_tree: Some("{ \"version\"".to_owned()),
    };
    assert_eq!(failure, Some(expect));
}

#[test]
fn an_invalid_tree_is_not_told_where_another_rule_decided() {
    let invalid = TreeFinding::Invalid { faults: Vec::new(), text: "{".to_owned(), blob: None };
    for verdict in [broken(SessionRule::Context), broken(SessionRule::History), fault()] {
        let failure =
            applied(&with_tree(verdict.clone(), invalid.clone())).feedback.nodes["b"].failures.last().cloned();
        let failure = failure.expect("a failure");
        assert_eq!((Some(failure.text), failure.invalid_tree), (verdict.detail(), None));
    }
}

#[test]
fn feedback_is_bounded_whatever_is_said_and_however_often() {
    let (tree, state, mut feedback) = before();
    for iter in 7..40 {
        let mut outcome = summarised(Verdict::RedGuard, &"ä".repeat(10_000));
        outcome.work.task.iter = iter;
        outcome.guard = Some(GuardEnd { output: "ö".repeat(1_000_000), ..guard(GuardEndKind::Exited(1)) });
        let before = committed(&tree, &state, &feedback);
        let after = apply_outcome(&before, &outcome, &facts());
        assert!(after.run_state.last_summary.is_some_and(|summary| summary.len() <= 2_000));
        feedback = after.feedback;
    }
    let node = &feedback.nodes["b"];
    assert_eq!(node.history.iter().map(|attempt| attempt.iter).collect::<Vec<_>>(), (32..40).collect::<Vec<_>>());
    assert!(node.history.iter().all(|attempt| attempt.summary.as_ref().is_some_and(|text| text.len() <= 2_000)));
    assert!(node.failures.len() == 1 && node.failures[0].text.len() <= MAX_FAILURE);
}

#[test]
fn progress_gets_one_line_per_accepted_node() {
    let first = after(Verdict::Accepted).progress;
    assert_eq!(first, format!("{PROGRESS_HEADING}- b — Title of b (iteration 0007)\n"));
    let second = applied_with(&outcome(Verdict::Accepted), &facts(), &first).progress;
    assert_eq!(second.lines().count(), first.lines().count() + 1);
    for verdict in verdicts().into_iter().filter(|verdict| *verdict != Verdict::Accepted) {
        assert_eq!(applied_with(&outcome(verdict), &facts(), &first).progress, first);
    }
}

#[test]
fn a_title_of_several_lines_is_one_line_of_progress() {
    let mut left = agents_tree();
    node(&mut left, "b").title = "one\n- two\r\n\tthree\rfour".to_owned();
    let facts = TransitionFacts { agents_tree: Some(left), ..facts() };
    let progress = applied_with(&outcome(Verdict::Accepted), &facts, "").progress;
    assert_eq!(progress, format!("{PROGRESS_HEADING}- b — one - two three four (iteration 0007)\n"));
}

#[test]
fn progress_keeps_the_newest_lines_within_its_bound() {
    let limit = 64 * 1024;
    let line = |number: usize| format!("- n{number} — Title\n");
    let lines: String = (0..10_000).map(line).collect();
    for old in [format!("{PROGRESS_HEADING}{lines}"), lines, "x".repeat(200_000), format!("{}\n", "x".repeat(200_000))]
    {
        let new = applied_with(&outcome(Verdict::Accepted), &facts(), &old).progress;
        assert!(new.len() <= limit, "{} bytes", new.len());
        assert!(new.starts_with(PROGRESS_HEADING));
        assert!(new.ends_with("- b — Title of b (iteration 0007)\n") || !old.ends_with('\n'));
        assert!(new.lines().skip(2).all(|line| line.starts_with("- ")), "whole lines only");
    }
}

/// The committed feedback after attempts whose guards printed these texts, in order.
fn after_guards(outputs: &[&str]) -> StateAfter {
    let (tree, run_state, mut feedback) = before();
    let mut last = None;
    for output in outputs {
        let mut outcome = outcome(Verdict::RedGuard);
        outcome.guard = Some(GuardEnd { output: (*output).to_owned(), ..guard(GuardEndKind::Exited(1)) });
        let before = committed(&tree, &run_state, &feedback);
        let after = apply_outcome(&before, &outcome, &TransitionFacts::default());
        feedback = after.feedback.clone();
        last = Some(after);
    }
    last.expect("there was an attempt")
}

#[test]
fn a_guardrail_is_due_when_a_guard_is_red_in_the_same_way_again() {
    let slow = "error: no answer after 30s\n";
    let fast = "error: no answer after 2s\n";
    let other = "error: bad answer\n";
    assert_eq!(after_guards(&[slow]).guardrail, None);
    assert!(after_guards(&[slow, fast]).guardrail.is_some());
    assert!(after_guards(&[slow, other, fast]).guardrail.is_some());
    assert_eq!(after_guards(&[slow, other]).guardrail, None);
    assert_eq!(after_guards(&[slow, fast, other]).guardrail, None);
    let nine = [slow, "a\n", "b\n", "c\n", "d\n", "e\n", "f\n", "g\n", fast];
    assert_eq!(after_guards(&nine).guardrail, None, "a forgotten failure does not count as repeated");
}

#[test]
fn only_failures_that_an_agent_could_have_avoided_are_known_again() {
    use VerdictName::{Broken, RedGuard, Rejected};
    for verdict in verdicts() {
        let name = verdict.name();
        let after = after(verdict);
        let last = after.feedback.nodes.get("b").and_then(|node| node.history.last());
        let is_known = last.is_some_and(|attempt| attempt.iter == 7 && attempt.failure_digest.is_some());
        assert_eq!(is_known, matches!(name, RedGuard | Rejected | Broken), "{name}");
    }
}
