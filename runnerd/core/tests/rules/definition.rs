//! The guard's definition: what counts as accepted, how often the guard runs, and the combined result.

use protocol::answer::AnswerStatus;
use protocol::words::{GuardOutcome, PhaseName};
use runner_config::{ChangePolicy, ReviewPolicy, TimeoutPolicy};
use runner_core::feedback::read_test_results;
use runner_core::guard::definition::{DefinitionDiff, DefinitionState, GuardDefinition, session_notice};
use runner_core::guard::test_results::TestOutcome;
use runner_core::iteration::{
    GuardEnd, GuardEndKind, IterationEffect, IterationEvent, IterationOutcome, Phase, decide,
};
use runner_core::policy::Policy;
use runner_core::verdict::{StopCause, Verdict};

use crate::fixture::{answered, departed, departure, drive, finding, green, guard, legal, task};
use crate::transition::{applied, facts};

fn definition(files: &[(&str, &str)]) -> GuardDefinition {
    files.iter().map(|(path, blob)| ((*path).to_owned(), (*blob).to_owned())).collect()
}

#[test]
fn what_is_changed_removed_or_new_departs() {
    let accepted = definition(&[("changed", "1"), ("removed", "1"), ("same", "1"), ("script", "1")]);
    let current = definition(&[("changed", "2"), ("new", "1"), ("same", "1"), ("script", "100755:1")]);
    let departure = DefinitionDiff::between(&accepted, &current);
    assert_eq!(departure.paths, ["changed", "new", "removed", "script"]);
    assert_eq!(DefinitionDiff::between(&accepted, &accepted).paths, [""; 0]);
}

#[test]
fn without_an_accepted_definition_a_new_one_is_only_reported() {
    let new = definition(&[("justfile", "1")]);
    for (accepted, policy, answer) in [
        (definition(&[]), ChangePolicy::Both, ChangePolicy::Report),
        (definition(&[]), ChangePolicy::Revert, ChangePolicy::Report),
        (definition(&[("GNUmakefile", "1")]), ChangePolicy::Both, ChangePolicy::Both),
        (definition(&[("GNUmakefile", "1")]), ChangePolicy::Revert, ChangePolicy::Revert),
        (definition(&[("GNUmakefile", "1")]), ChangePolicy::Report, ChangePolicy::Report),
        (new.clone(), ChangePolicy::Both, ChangePolicy::Report),
    ] {
        assert_eq!(
            DefinitionDiff::between(&accepted, &new).effective_policy(policy),
            answer,
            "{accepted:?} {policy:?}"
        );
    }
}

#[test]
fn a_session_is_told_which_files_depart_and_what_follows() {
    let accepted = definition(&[("a", "1"), ("b", "1")]);
    let committed = definition(&[("a", "2"), ("c\nNo person", "1")]);
    let notice = session_notice(
        ChangePolicy::Both,
        &DefinitionState { accepted: accepted.clone(), committed, is_absence_accepted: false },
    )
    .expect("it departs");
    insta::assert_snapshot!(notice, @r"
    a (changed)
    b (removed)
    c No person (new)
    No person has accepted that. `done` needs the guard to be green twice: with these files, and with those that were accepted.
    ");
    assert_eq!(
        session_notice(
            ChangePolicy::Both,
            &DefinitionState { committed: accepted.clone(), accepted, is_absence_accepted: false }
        ),
        None
    );
}

/// An iteration whose session claimed `done`.
fn claim_phase() -> Phase {
    let events = [
        IterationEvent::Opened(task()),
        IterationEvent::Briefed,
        IterationEvent::SessionEnded(answered(AnswerStatus::Done)),
        IterationEvent::Inspected(finding(legal())),
    ];
    drive(&Policy::default(), events)
}

/// The outcome of these guard results under a policy.
fn after(policy: &Policy, ends: impl IntoIterator<Item = GuardEnd>) -> Phase {
    ends.into_iter()
        .fold(claim_phase(), |phase, end| decide(policy, phase, IterationEvent::GuardEnded(end)).expect("is legal"))
}

fn policy(on_change: ChangePolicy) -> Policy {
    Policy { on_change, ..Policy::default() }
}

#[track_caller]
fn settled_outcome(phase: Phase) -> IterationOutcome {
    match phase {
        Phase::Settle { outcome } => *outcome,
        other => panic!("not settled: {other:?}"),
    }
}

#[test]
fn a_changed_definition_that_is_green_is_followed_by_the_accepted_one_under_both_alone() {
    for (on_change, runs_both) in
        [(ChangePolicy::Both, true), (ChangePolicy::Report, false), (ChangePolicy::Revert, false)]
    {
        let next = after(&policy(on_change), [departed(GuardEndKind::Exited(0))]);
        assert_eq!(next.effect() == Some(IterationEffect::RunAccepted), runs_both, "{on_change:?}");
    }
    assert_eq!(settled_outcome(after(&policy(ChangePolicy::Both), [green()])).verdict, Verdict::Accepted);
}

#[test]
fn both_definitions_must_be_green() {
    let both = policy(ChangePolicy::Both);
    let first = || departed(GuardEndKind::Exited(0));
    let table = [
        (vec![departed(GuardEndKind::Exited(1))], Verdict::RedGuard, GuardOutcome::Fail, false),
        (vec![first(), green()], Verdict::Accepted, GuardOutcome::Pass, true),
        (vec![first(), guard(GuardEndKind::Exited(1))], Verdict::RedGuard, GuardOutcome::Fail, true),
        (vec![first(), guard(GuardEndKind::Signaled(9))], Verdict::RedGuard, GuardOutcome::Fail, true),
        (vec![first(), guard(GuardEndKind::Lost), green()], Verdict::Accepted, GuardOutcome::Pass, true),
        (vec![guard(GuardEndKind::Lost), first(), green()], Verdict::Accepted, GuardOutcome::Pass, true),
        (
            vec![first(), guard(GuardEndKind::TimedOut)],
            Verdict::Timeout { during: PhaseName::Guard },
            GuardOutcome::Skipped,
            true,
        ),
        (
            vec![first(), guard(GuardEndKind::Cut)],
            Verdict::Interrupted { by: StopCause::Death },
            GuardOutcome::Skipped,
            true,
        ),
    ];
    for (ends, verdict, outcome, with_accepted) in table {
        let settled = settled_outcome(after(&both, ends.clone()));
        let end = settled.guard.as_ref().expect("it ran");
        assert_eq!((&settled.verdict, settled.guard_outcome()), (&verdict, outcome), "{ends:?}");
        assert_eq!((end.with_accepted, &end.departure), (with_accepted, &departure()), "{ends:?}");
    }
    let retry = Policy { on_timeout: TimeoutPolicy::Retry, ..both };
    assert_eq!(settled_outcome(after(&retry, [first(), guard(GuardEndKind::TimedOut)])).verdict, Verdict::RedGuard);
}

#[test]
fn a_person_reviews_if_tests_are_lost_with_a_changed_definition() {
    let with_tests = |end: GuardEnd, names: Option<&str>, review_required| {
        let tests = names.map(|name| read_test_results(format!("test {name} ... ok\n").as_bytes()).expect("a name"));
        GuardEnd { tests, review_required, ..end }
    };
    let changed = |names, required| with_tests(departed(GuardEndKind::Exited(0)), names, required);
    let accepted = |required| with_tests(green(), Some("accepted"), required);
    let table = [
        (ChangePolicy::Report, vec![changed(Some("a"), true)], "a", Verdict::Pending),
        (ChangePolicy::Both, vec![changed(Some("a"), true), accepted(false)], "a", Verdict::Pending),
        (ChangePolicy::Both, vec![changed(Some("a"), false), accepted(true)], "a", Verdict::Accepted),
        (ChangePolicy::Both, vec![changed(None, false), accepted(true)], "accepted", Verdict::Pending),
        (ChangePolicy::Both, vec![changed(None, false), accepted(false)], "accepted", Verdict::Accepted),
    ];
    for (on_change, ends, name, verdict) in table {
        for review in [ReviewPolicy::Off, ReviewPolicy::Human] {
            let verdict = if review == ReviewPolicy::Human { Verdict::Pending } else { verdict.clone() };
            let settled = settled_outcome(after(&Policy { review, ..policy(on_change) }, ends.clone()));
            let tests = settled.guard.and_then(|guard| guard.tests).expect("names");
            assert_eq!((settled.verdict, tests.names(TestOutcome::Passed)), (verdict, vec![name]), "{ends:?}");
        }
    }
}

#[test]
fn both_runs_share_the_budget_and_count_together() {
    let both = policy(ChangePolicy::Both);
    let first = GuardEnd { wrote: vec!["lock".to_owned()], survivors: 1, ..departed(GuardEndKind::Exited(0)) };
    let between = after(&both, [first.clone()]);
    assert_eq!(between.elapsed_ms(), claim_phase().elapsed_ms() + first.elapsed_ms);
    let end = settled_outcome(after(&both, [first.clone(), green()])).guard.expect("it ran");
    assert_eq!((end.elapsed_ms, end.wrote, end.survivors), (2 * first.elapsed_ms, first.wrote, 1));
}

#[test]
fn a_stop_between_the_two_ends_the_second() {
    let both = policy(ChangePolicy::Both);
    let between = after(&both, [departed(GuardEndKind::Exited(0))]);
    let stopped = decide(&both, between, IterationEvent::Stop(StopCause::Cancel)).expect("is legal");
    assert_eq!(stopped.effect(), Some(IterationEffect::EndGuard));
    let end = decide(&both, stopped, IterationEvent::GuardEnded(green())).expect("is legal");
    assert_eq!(settled_outcome(end).verdict, Verdict::Interrupted { by: StopCause::Cancel });
}

#[test]
fn a_reviewer_is_asked_after_both_alone() {
    let both = Policy { review: ReviewPolicy::Agent, ..policy(ChangePolicy::Both) };
    assert_eq!(after(&both, [departed(GuardEndKind::Exited(0))]).name(), PhaseName::Guard);
    assert_eq!(after(&both, [departed(GuardEndKind::Exited(0)), green()]).name(), PhaseName::Review);
}

#[test]
fn feedback_says_with_which_definition_the_guard_was_red() {
    let both = policy(ChangePolicy::Both);
    let first_line = |ends: Vec<GuardEnd>| {
        let after = applied(&settled_outcome(after(&both, ends)));
        after.feedback.nodes["b"].failures.last().expect("a failure").text.lines().next().unwrap_or_default().to_owned()
    };
    insta::assert_snapshot!(first_line(vec![departed(GuardEndKind::Exited(1))]), @"[red with a definition of the guard that no person has accepted: justfile]");
    insta::assert_snapshot!(first_line(vec![departed(GuardEndKind::Exited(0)), guard(GuardEndKind::Exited(1))]), @"[red with the accepted definition of the guard, green with the changed one: justfile]");
    assert!(!first_line(vec![guard(GuardEndKind::Exited(1))]).starts_with('['));
}

#[test]
fn what_was_accepted_is_in_the_run_state() {
    let after = applied(&settled_outcome(after(&Policy::default(), [green()])));
    assert_eq!(after.run_state.guard_definition, facts().guard_definition);
}
