//! Guards that are red and then green on the same files: when they run once more, and what follows.

use protocol::answer::AnswerStatus::Done;
use protocol::words::{Containment, GuardOutcome, PhaseName};
use runner_config::{ChangePolicy, TimeoutPolicy};
use runner_core::guard::flakes::FlakyGuard;
use runner_core::iteration::{
    GuardEnd, GuardEndKind, IterationEffect, IterationEvent, IterationOutcome, Phase, decide,
};
use runner_core::message::NameList;
use runner_core::policy::Policy;
use runner_core::verdict::{StopCause, Verdict};

use crate::fixture::{answered, departed, drive, finding, green, guard, legal, red, task};
use crate::transition::{applied, before};

const NAME: &str = "tests/test_net.py::test_get";

/// The phase after a claim and these ends of guards.
fn after(policy: &Policy, ends: impl IntoIterator<Item = GuardEnd>) -> Phase {
    let start = [
        IterationEvent::Opened(task()),
        IterationEvent::Briefed,
        IterationEvent::SessionEnded(answered(Done)),
        IterationEvent::Inspected(finding(legal())),
    ];
    drive(policy, start.into_iter().chain(ends.into_iter().map(IterationEvent::GuardEnded)))
}

#[track_caller]
fn outcome(policy: &Policy, ends: impl IntoIterator<Item = GuardEnd>) -> IterationOutcome {
    match after(policy, ends) {
        Phase::Settle { outcome } => *outcome,
        other => panic!("not settled: {other:?}"),
    }
}

fn named_red() -> GuardEnd {
    GuardEnd { failing: NameList::new([NAME]), ..red() }
}

/// Red, with a failure in a file that the session changed.
fn suspect() -> GuardEnd {
    GuardEnd { suspects: vec!["tests/test_net.py".to_owned()], ..named_red() }
}

#[test]
fn a_red_guard_runs_once_more_and_a_green_one_passes() {
    let policy = Policy::default();
    let between = after(&policy, [named_red()]);
    assert_eq!(between.effect(), Some(IterationEffect::RerunGuard));
    assert_eq!(between.elapsed_ms(), 1_200, "the first one counts");
    let passed = outcome(&policy, [named_red(), green()]);
    assert_eq!((&passed.verdict, passed.guard_outcome()), (&Verdict::Accepted, GuardOutcome::Pass));
    assert_eq!(passed.elapsed_ms(), 1_400);
    let flaky = FlakyGuard { failing: NameList::new([NAME]), suspects: Vec::new() };
    assert_eq!(passed.flaky_guard(), Some(&flaky));
    let state = applied(&passed).run_state;
    let flakes: Vec<_> = state.flakes.iter().map(|test| (test.name.as_deref(), test.count)).collect();
    assert_eq!(flakes, [(Some(NAME), 1), (None, 2)]);
}

#[test]
fn red_twice_is_charged_and_nothing_is_flaky() {
    let second = GuardEnd { output: "the second time".to_owned(), ..red() };
    let failed = outcome(&Policy::default(), [named_red(), second]);
    assert_eq!((&failed.verdict, failed.flaky_guard()), (&Verdict::RedGuard, None));
    assert_eq!(failed.guard.as_ref().map(|guard| guard.output.as_str()), Some("the second time"));
    let after = applied(&failed);
    let attempts = runner_core::tree::find(&after.tree, "b").map(|node| node.attempts);
    assert_eq!((attempts, after.run_state.flakes), (Some(2), before().1.flakes));
}

#[test]
fn a_failure_in_a_file_that_the_session_changed_is_charged_although_it_passed() {
    let failed = outcome(&Policy::default(), [suspect(), green()]);
    assert_eq!((&failed.verdict, failed.guard_outcome()), (&Verdict::RedGuard, GuardOutcome::Fail));
    assert_eq!(failed.guard.as_ref().map(|guard| &guard.how), Some(&GuardEndKind::Exited(1)));
    assert!(failed.flaky_guard().is_some(), "the receipt names it");
    let after = applied(&failed);
    let text = &after.feedback.nodes["b"].failures[0].text;
    insta::assert_snapshot!(text, @r"
    [failed, then passed on the same files; counted, because this session changed what failed: tests/test_net.py]
    test lexer::tests::empty ... FAILED
    ");
}

#[test]
fn a_guard_runs_once_where_a_second_run_could_prove_nothing() {
    let policy = Policy::default();
    let off = Policy { flakes: false, ..policy.clone() };
    let wrote = GuardEnd { wrote: vec!["coverage.xml".to_owned()], ..named_red() };
    let unrun = GuardEnd::not_run("no such file".to_owned());
    let long = GuardEnd { elapsed_ms: policy.budget_ms / 2, ..named_red() };
    for (policy, end) in [(&off, named_red()), (&policy, wrote), (&policy, unrun), (&policy, long)] {
        assert_eq!(outcome(policy, [end.clone()]).verdict, Verdict::RedGuard, "{end:?}");
    }
    let rewritten = GuardEnd { history: Some("HEAD is elsewhere".to_owned()), ..named_red() };
    assert_eq!(after(&policy, [rewritten]).name(), PhaseName::Settle);
    let just = GuardEnd { elapsed_ms: policy.budget_ms / 2 - 500, ..named_red() };
    assert_eq!(after(&policy, [just]).effect(), Some(IterationEffect::RerunGuard));
}

#[test]
fn a_second_run_without_a_result_is_as_if_it_had_not_been() {
    let missing = GuardEndKind::Missing { what: "a file has changed".to_owned() };
    for on_timeout in [TimeoutPolicy::Stop, TimeoutPolicy::Retry] {
        let policy = Policy { on_timeout, ..Policy::default() };
        for how in [GuardEndKind::TimedOut, GuardEndKind::Lost, missing.clone()] {
            let failed = outcome(&policy, [named_red(), guard(how.clone())]);
            assert_eq!((&failed.verdict, failed.guard_outcome()), (&Verdict::RedGuard, GuardOutcome::Fail), "{how:?}");
            let end = failed.guard.expect("it ran");
            assert_eq!((end.how, end.elapsed_ms), (GuardEndKind::Exited(1), 400), "the time counts");
        }
    }
}

#[test]
fn a_stop_and_a_breach_during_the_second_run_count() {
    let policy = Policy::default();
    let stopped = decide(&policy, after(&policy, [red()]), IterationEvent::Stop(StopCause::Pause)).expect("is legal");
    assert_eq!(stopped.effect(), Some(IterationEffect::EndGuard));
    let ended = decide(&policy, stopped, IterationEvent::GuardEnded(green())).expect("is legal");
    let Phase::Settle { outcome: interrupted } = ended else { panic!("{ended:?}") };
    assert_eq!(interrupted.verdict, Verdict::Interrupted { by: StopCause::Pause });
    assert_eq!(interrupted.flaky_guard(), None);
    let cut = outcome(&policy, [red(), guard(GuardEndKind::Cut)]);
    assert_eq!(cut.verdict, Verdict::Interrupted { by: StopCause::Death });
    for how in [GuardEndKind::Exited(0), GuardEndKind::TimedOut] {
        let rewritten = GuardEnd { history: Some("HEAD is elsewhere".to_owned()), ..guard(how) };
        let broken = outcome(&policy, [red(), rewritten]);
        assert!(matches!(broken.verdict, Verdict::Broken(_)), "{broken:?}");
        assert_eq!(broken.flaky_guard(), None);
    }
    let strayed = GuardEnd { elsewhere: Some("main".to_owned()), ..green() };
    assert_eq!(outcome(&policy, [red(), strayed]).verdict, Verdict::Interrupted { by: StopCause::Elsewhere });
}

#[test]
fn each_definition_may_be_red_once() {
    let both = Policy { on_change: ChangePolicy::Both, ..Policy::default() };
    let first = || GuardEnd { containment: Some(Containment::Walk), ..departed(GuardEndKind::Exited(1)) };
    let accepted = after(&both, [first(), departed(GuardEndKind::Exited(0))]);
    assert_eq!(accepted.effect(), Some(IterationEffect::RunAccepted));
    let second = after(&both, [first(), departed(GuardEndKind::Exited(0)), named_red()]);
    assert_eq!(second.effect(), Some(IterationEffect::RerunGuard));
    let passed = outcome(&both, [first(), departed(GuardEndKind::Exited(0)), named_red(), green()]);
    assert_eq!(
        (&passed.verdict, passed.flaky_guard().map(|flaky| flaky.failing.to_texts())),
        (&Verdict::Accepted, Some(vec![NAME.to_owned()]))
    );
    let failed = outcome(&both, [first(), departed(GuardEndKind::Exited(0)), named_red(), red()]);
    assert_eq!((&failed.verdict, failed.flaky_guard()), (&Verdict::RedGuard, None), "nothing excuses it");
}

#[test]
fn a_lost_guard_before_a_red_one_counts_too() {
    let lost = || GuardEnd { survivors: 1, ..guard(GuardEndKind::Lost) };
    let passed = outcome(&Policy::default(), [lost(), red(), green()]);
    assert_eq!(passed.verdict, Verdict::Accepted);
    assert_eq!(passed.guard.map(|guard| (guard.survivors, guard.elapsed_ms)), Some((1, 600)));
    let wrote = GuardEnd { wrote: vec!["a".to_owned()], ..lost() };
    assert_eq!(outcome(&Policy::default(), [wrote, red()]).verdict, Verdict::RedGuard, "the files are others");
}
