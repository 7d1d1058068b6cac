//! Every verdict, reached through events; and the table of rows, written out independently.

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::words::{GuardOutcome, IterationStatus, Mode, PhaseName, Role, VerdictName};
use runner_config::{ReviewPolicy, RolesMode, TimeoutPolicy};
use runner_core::iteration::{
    GuardEnd, GuardEndKind, IterationEffect, IterationEvent, IterationOutcome, Phase, ReviewEndKind,
};
use runner_core::policy::Policy;
use runner_core::verdict::{
    FaultKind, FeedbackEffect, RuleBreach, RunEffect, SessionEnd, SessionEndKind, SessionFinding, SessionRule,
    SessionTask, StopCause, TreeFinding, TreeSource, Verdict, VerdictRow, verdict_row,
};

use crate::fixture::{
    answer, answered, broken, context_exceeded, decomposed, drive, fault, faulty, finding, finding_of, green, guard,
    illegal, invalid, legal, misconfigured, outcome, review, session, task, unavailable, verdicts,
};

/// The events of an iteration up to Inspect.
struct InspectedSession {
    policy: Policy,
    task: SessionTask,
    session: SessionEnd,
    finding: SessionFinding,
}

impl InspectedSession {
    fn of(session: SessionEnd, tree: TreeFinding) -> Self {
        Self { policy: Policy::default(), task: task(), session, finding: finding(tree) }
    }

    fn done() -> Self {
        Self::of(answered(AnswerStatus::Done), legal())
    }

    fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    fn with_task(self, task: SessionTask) -> Self {
        Self { task, ..self }
    }

    fn with_finding(self, finding: SessionFinding) -> Self {
        Self { finding, ..self }
    }

    /// Drives the iteration through its events and `more`.
    fn after(&self, more: impl IntoIterator<Item = IterationEvent>) -> Phase {
        let events = [
            IterationEvent::Opened(self.task.clone()),
            IterationEvent::Briefed,
            IterationEvent::SessionEnded(self.session.clone()),
            IterationEvent::Inspected(self.finding.clone()),
        ];
        drive(&self.policy, events.into_iter().chain(more))
    }
}

fn outcome_of(phase: Phase) -> IterationOutcome {
    let Phase::Settle { outcome } = phase else { panic!("not settled: {phase:?}") };
    *outcome
}

/// Asserts that an iteration is settled with this verdict after `more` events.
fn check(case: &InspectedSession, more: impl IntoIterator<Item = IterationEvent>, expect: &Verdict) {
    assert_eq!(&outcome_of(case.after(more)).verdict, expect);
}

/// Asserts that an iteration is settled as Broken by this rule, right after Inspect.
fn check_rule(case: &InspectedSession, expect: SessionRule) {
    let verdict = outcome_of(case.after([])).verdict;
    assert!(matches!(&verdict, Verdict::Broken(RuleBreach { rule, .. }) if *rule == expect), "{verdict:?}");
}

fn review_case(by: ReviewPolicy) -> InspectedSession {
    InspectedSession::done().with_policy(Policy { review: by, ..Policy::default() })
}

fn strict(role: Role, case: InspectedSession) -> InspectedSession {
    let policy = Policy { roles: RolesMode::Strict, ..Policy::default() };
    case.with_policy(policy).with_task(SessionTask { role, ..task() })
}

fn guard_event(how: GuardEndKind) -> IterationEvent {
    IterationEvent::GuardEnded(guard(how))
}

#[test]
fn done_with_a_green_guard_is_accepted() {
    check(&InspectedSession::done(), [IterationEvent::GuardEnded(green())], &Verdict::Accepted);
}

#[test]
fn done_with_any_other_end_of_the_guard_is_red() {
    for how in [GuardEndKind::Exited(1), GuardEndKind::Exited(-1), GuardEndKind::Exited(256), GuardEndKind::Signaled(9)]
    {
        check(&InspectedSession::done(), [guard_event(how)], &Verdict::RedGuard);
    }
}

#[test]
fn a_red_guard_is_not_reviewed() {
    for by in [ReviewPolicy::Agent, ReviewPolicy::Human] {
        check(&review_case(by), [guard_event(GuardEndKind::Exited(1))], &Verdict::RedGuard);
    }
}

#[test]
fn the_guard_runs_for_a_claim_of_done_only() {
    assert_eq!(InspectedSession::done().after([]).name(), PhaseName::Guard);
    for session in [answered(AnswerStatus::Retry), decomposed(1), session(faulty())] {
        assert_eq!(InspectedSession::of(session, legal()).after([]).name(), PhaseName::Settle);
    }
}

#[test]
fn the_reviewer_decides_after_a_green_guard() {
    let ended = |how: ReviewEndKind| [IterationEvent::GuardEnded(green()), IterationEvent::ReviewEnded(review(how))];
    let case = review_case(ReviewPolicy::Agent);
    let text = || "text".to_owned();
    check(&case, ended(ReviewEndKind::Accepted { reasons: text() }), &Verdict::Accepted);
    check(&case, ended(ReviewEndKind::Rejected { reasons: text() }), &Verdict::Rejected { reasons: text() });
    let failed = || IterationEvent::ReviewEnded(review(ReviewEndKind::Failed { what: text() }));
    let fault = Verdict::Fault { kind: FaultKind::Reviewer, what: text() };
    check(&case, [IterationEvent::GuardEnded(green()), failed(), failed(), failed()], &fault);
    assert_eq!(
        case.after([IterationEvent::GuardEnded(green()), failed(), failed()]).effect(),
        Some(IterationEffect::RunReview)
    );
    let until = Some("2026-01-01T00:00:00Z".parse().expect("a time"));
    let limit = Verdict::Unavailable { why: text(), until };
    check(&case, ended(ReviewEndKind::Unavailable { why: text(), until }), &limit);
    check(&case, ended(ReviewEndKind::Misconfigured { what: text() }), &Verdict::Misconfigured { what: text() });
    check(&case, ended(ReviewEndKind::TimedOut), &Verdict::Timeout { during: PhaseName::Review });
}

#[test]
fn a_person_decides_later_after_a_green_guard() {
    check(&review_case(ReviewPolicy::Human), [IterationEvent::GuardEnded(green())], &Verdict::Pending);
}

#[test]
fn what_is_not_done_is_settled_by_its_status() {
    check(&InspectedSession::of(answered(AnswerStatus::Retry), legal()), [], &Verdict::Retry);
    check(&InspectedSession::of(decomposed(2), legal()), [], &Verdict::Decomposed);
    let gained = TreeFinding::Legal { gained: 2, reworded: false };
    check(&InspectedSession::of(answered(AnswerStatus::Decomposed), gained), [], &Verdict::Decomposed);
}

#[test]
fn a_planner_that_may_narrow_loses_no_attempt_for_a_changed_goal() {
    let reworded = TreeFinding::Legal { gained: 0, reworded: true };
    let case = |narrowing, status, tree| {
        InspectedSession::of(answered(status), tree).with_task(SessionTask { narrowing, ..task() })
    };
    check(&case(true, AnswerStatus::Retry, reworded.clone()), [], &Verdict::Narrowed);
    check(&case(false, AnswerStatus::Retry, reworded.clone()), [], &Verdict::Retry);
    check(&case(true, AnswerStatus::Retry, legal()), [], &Verdict::Retry);
    check_rule(&case(true, AnswerStatus::Done, reworded), SessionRule::KeepGoal);
}

#[test]
fn a_session_without_an_answer_is_settled_by_its_end() {
    let case = |how| InspectedSession::of(session(how), legal());
    check(&case(unavailable()), [], &Verdict::Unavailable { why: "usage limit".to_owned(), until: None });
    check(&case(SessionEndKind::TimedOut), [], &Verdict::Timeout { during: PhaseName::Work });
    check(&case(misconfigured()), [], &Verdict::Misconfigured { what: "log in".to_owned() });
    check(&case(faulty()), [], &fault());
    check(&case(SessionEndKind::Cut), [], &Verdict::Interrupted { by: StopCause::Death });
    check_rule(&case(context_exceeded()), SessionRule::Context);
}

#[test]
fn each_rule_of_broken_is_found() {
    let of = InspectedSession::of;
    let tree = |gained, reworded| TreeFinding::Legal { gained, reworded };
    let with_children = |status| {
        let SessionEndKind::Answered(decomposed_answer) = decomposed(1).how else { panic!("an answer") };
        session(SessionEndKind::Answered(AgentAnswer { status, ..decomposed_answer }))
    };
    check_rule(&of(answered(AnswerStatus::Done), invalid()), SessionRule::ValidTree);
    for rule in [SessionRule::PassedNode, SessionRule::KeepNodes, SessionRule::KeepPlace] {
        check_rule(&of(answered(AnswerStatus::Retry), illegal(rule)), rule);
    }
    check_rule(&of(answered(AnswerStatus::Done), tree(0, true)), SessionRule::KeepGoal);
    for status in [AnswerStatus::Done, AnswerStatus::Retry] {
        check_rule(&of(with_children(status), legal()), SessionRule::ChildrenOnlyWithDecomposed);
        check_rule(&of(answered(status), tree(1, false)), SessionRule::ChildrenOnlyWithDecomposed);
    }
    check_rule(&of(answered(AnswerStatus::Decomposed), legal()), SessionRule::DecomposedNeedsChildren);
    check_rule(&of(decomposed(0), legal()), SessionRule::DecomposedNeedsChildren);
    check_rule(&of(decomposed(1), tree(1, false)), SessionRule::ChildrenOneWay);
    let rewritten = SessionFinding { history: Some("a rebase is in progress".to_owned()), ..finding(legal()) };
    check_rule(&InspectedSession::done().with_finding(rewritten), SessionRule::History);
}

#[test]
fn an_empty_list_of_children_is_none() {
    let empty = AgentAnswer { children: Some(Vec::new()), ..answer(AnswerStatus::Done) };
    let case = InspectedSession::of(session(SessionEndKind::Answered(empty)), legal());
    assert_eq!(case.after([]).name(), PhaseName::Guard);
}

#[test]
fn the_root_is_not_done_while_nothing_differs_from_the_base() {
    let case = |path: &[&str], status, changed_since_base| {
        let path = path.iter().map(|id| (*id).to_owned()).collect();
        InspectedSession::of(answered(status), legal())
            .with_task(SessionTask { path, role: Role::Planner, ..task() })
            .with_finding(SessionFinding { changed_since_base, ..finding(legal()) })
    };
    check_rule(&case(&["root"], AnswerStatus::Done, false), SessionRule::RootNeedsChange);
    assert_eq!(case(&["root"], AnswerStatus::Done, true).after([]).name(), PhaseName::Guard);
    assert_eq!(case(&["root", "b"], AnswerStatus::Done, false).after([]).name(), PhaseName::Guard);
    check(&case(&["root"], AnswerStatus::Retry, false), [], &Verdict::Retry);
}

#[test]
fn a_claim_of_which_nothing_is_in_the_scope_is_refused() {
    let case = |status, outside: &[&str], changed_code| {
        let outside: Vec<String> = outside.iter().map(|path| (*path).to_owned()).collect();
        let finding = SessionFinding { reverted: outside.clone(), outside, changed_code, ..finding(legal()) };
        InspectedSession::of(answered(status), legal()).with_finding(finding)
    };
    check_rule(&case(AnswerStatus::Done, &["lib/x"], false), SessionRule::Scope);
    assert_eq!(case(AnswerStatus::Done, &["lib/x"], true).after([]).name(), PhaseName::Guard);
    assert_eq!(case(AnswerStatus::Done, &[], false).after([]).name(), PhaseName::Guard);
    check(&case(AnswerStatus::Retry, &["lib/x"], false), [], &Verdict::Retry);
}

#[test]
fn strict_mode_keeps_planners_from_code_and_workers_from_plans() {
    let code = || SessionFinding { changed_code: true, ..finding(legal()) };
    for status in [AnswerStatus::Done, AnswerStatus::Retry] {
        let case = || InspectedSession::of(answered(status), legal()).with_finding(code());
        check_rule(&strict(Role::Planner, case()), SessionRule::PlannerNoCode);
        for role in [Role::Worker, Role::Repair] {
            assert_ne!(outcome_name(&strict(role, case())), Some(VerdictName::Broken));
        }
    }
    check_rule(
        &strict(Role::Planner, InspectedSession::of(decomposed(1), legal()).with_finding(code())),
        SessionRule::PlannerNoCode,
    );
    check_rule(&strict(Role::Worker, InspectedSession::of(decomposed(1), legal())), SessionRule::WorkerNoChildren);
    for role in [Role::Planner, Role::Repair] {
        check(&strict(role, InspectedSession::of(decomposed(1), legal())), [], &Verdict::Decomposed);
    }
}

#[test]
fn outside_strict_mode_a_session_may_plan_or_work() {
    let code = SessionFinding { changed_code: true, ..finding(legal()) };
    let case = InspectedSession::of(decomposed(1), legal()).with_finding(code);
    for role in [Role::Planner, Role::Worker] {
        let case = InspectedSession {
            policy: Policy::default(),
            ..strict(role, InspectedSession { session: case.session.clone(), ..InspectedSession::done() })
        };
        check(&case, [], &Verdict::Decomposed);
    }
}

fn outcome_name(case: &InspectedSession) -> Option<VerdictName> {
    match case.after([]) {
        Phase::Settle { outcome } => Some(outcome.verdict.name()),
        _ => None,
    }
}

#[test]
fn a_budget_that_runs_out_ends_the_run() {
    let during = |during| Verdict::Timeout { during };
    check(&InspectedSession::done(), [guard_event(GuardEndKind::TimedOut)], &during(PhaseName::Guard));
    let timed_out = [IterationEvent::GuardEnded(green()), IterationEvent::ReviewEnded(review(ReviewEndKind::TimedOut))];
    check(&review_case(ReviewPolicy::Agent), timed_out, &during(PhaseName::Review));
}

#[test]
fn a_budget_that_is_to_be_retried_is_a_fault_and_a_hanging_guard_is_red() {
    let policy = || Policy { on_timeout: TimeoutPolicy::Retry, review: ReviewPolicy::Agent, ..Policy::default() };
    let case = InspectedSession::of(session(SessionEndKind::TimedOut), legal()).with_policy(policy());
    let faults = |case: &InspectedSession, more: Vec<IterationEvent>| {
        let verdict = outcome_of(case.after(more)).verdict;
        assert!(matches!(verdict, Verdict::Fault { kind: FaultKind::Timeout, .. }), "{verdict:?}");
    };
    faults(&case, Vec::new());
    let claimed = InspectedSession::done().with_policy(policy());
    faults(
        &claimed,
        vec![IterationEvent::GuardEnded(green()), IterationEvent::ReviewEnded(review(ReviewEndKind::TimedOut))],
    );
    check(&claimed, [guard_event(GuardEndKind::TimedOut)], &Verdict::RedGuard);
}

#[test]
fn a_guard_that_cannot_run_is_misconfigured_and_one_that_was_cut_is_interrupted() {
    let missing = GuardEndKind::Missing { what: "install just".to_owned() };
    check(
        &InspectedSession::done(),
        [guard_event(missing)],
        &Verdict::Misconfigured { what: "install just".to_owned() },
    );
    check(&InspectedSession::done(), [guard_event(GuardEndKind::Cut)], &Verdict::Interrupted { by: StopCause::Death });
}

#[test]
fn a_guard_whose_supervisor_is_lost_is_asked_once_more_and_then_is_a_fault() {
    let lost = || guard_event(GuardEndKind::Lost);
    let again = InspectedSession::done().after([lost()]);
    assert_eq!(again.effect(), Some(IterationEffect::RunGuard));
    check(&InspectedSession::done(), [lost(), IterationEvent::GuardEnded(green())], &Verdict::Accepted);
    check(&InspectedSession::done(), [lost(), guard_event(GuardEndKind::Exited(1))], &Verdict::RedGuard);
    check(
        &InspectedSession::done(),
        [lost(), guard_event(GuardEndKind::TimedOut)],
        &Verdict::Timeout { during: PhaseName::Guard },
    );
    for more in [
        vec![],
        vec![IterationEvent::Restarted],
        vec![IterationEvent::Stop(StopCause::Shutdown), IterationEvent::Restarted],
    ] {
        let end = InspectedSession::done().after([lost()].into_iter().chain(more).chain([lost()]));
        let outcome = outcome_of(end);
        assert_eq!(outcome.verdict.detail().as_deref(), Some("guard lost: the guard's supervisor was killed twice"));
        assert_eq!(verdict_row(outcome.verdict.name()).attempts, 0, "it is not an answer");
        assert_eq!(outcome.guard_outcome(), GuardOutcome::Skipped, "its result is unknown");
    }
}

#[test]
fn a_guard_that_rewrites_history_breaks_a_rule_green_or_red() {
    for how in [GuardEndKind::Exited(0), GuardEndKind::Exited(1), GuardEndKind::Lost] {
        let end = GuardEnd { history: Some("HEAD is elsewhere".to_owned()), ..guard(how) };
        let verdict = outcome_of(InspectedSession::done().after([IterationEvent::GuardEnded(end)])).verdict;
        assert!(matches!(&verdict, Verdict::Broken(breach) if breach.rule == SessionRule::History), "{verdict:?}");
    }
}

#[test]
fn a_stop_in_guard_or_review_is_what_the_iteration_ends_with() {
    let case = review_case(ReviewPolicy::Agent);
    for by in [StopCause::Pause, StopCause::Cancel] {
        let interrupted = Verdict::Interrupted { by };
        for how in [
            GuardEndKind::Cut,
            GuardEndKind::Exited(0),
            GuardEndKind::Exited(1),
            GuardEndKind::TimedOut,
            GuardEndKind::Lost,
        ] {
            check(&case, [IterationEvent::Stop(by), guard_event(how)], &interrupted);
        }
        let accepted = ReviewEndKind::Accepted { reasons: String::new() };
        let failed = ReviewEndKind::Failed { what: String::new() };
        for how in [ReviewEndKind::Cut, accepted, failed, ReviewEndKind::TimedOut] {
            let ended = IterationEvent::ReviewEnded(review(how));
            check(&case, [IterationEvent::GuardEnded(green()), IterationEvent::Stop(by), ended], &interrupted);
        }
    }
}

/// The table, written out independently.
const ROWS: &[(VerdictName, VerdictRow)] = {
    use FeedbackEffect::{Clear, Keep, Record};
    use GuardOutcome::{Fail, Pass, Skipped};
    use IterationStatus as Status;
    use TreeSource::{Agent, AgentIfLegal, AgentPassed, FromCommit};
    const fn row(
        taken: (TreeSource, u32),
        shown: (Option<GuardOutcome>, IterationStatus),
        then: (RunEffect, FeedbackEffect),
    ) -> VerdictRow {
        VerdictRow { tree: taken.0, attempts: taken.1, guard: shown.0, status: shown.1, run: then.0, feedback: then.1 }
    }
    &[
        (VerdictName::Accepted, row((AgentPassed, 0), (Some(Pass), Status::Done), (RunEffect::Continues, Clear))),
        (VerdictName::RedGuard, row((Agent, 1), (Some(Fail), Status::Done), (RunEffect::Continues, Record))),
        (VerdictName::Rejected, row((Agent, 1), (Some(Pass), Status::Done), (RunEffect::Continues, Record))),
        (VerdictName::Pending, row((Agent, 0), (Some(Pass), Status::Done), (RunEffect::WaitsForPerson, Keep))),
        (VerdictName::Retry, row((Agent, 1), (Some(Skipped), Status::Retry), (RunEffect::Continues, Record))),
        (VerdictName::Narrowed, row((Agent, 0), (Some(Skipped), Status::Retry), (RunEffect::Continues, Record))),
        (VerdictName::Decomposed, row((Agent, 0), (Some(Skipped), Status::Decomposed), (RunEffect::Continues, Clear))),
        (VerdictName::Broken, row((FromCommit, 1), (Some(Skipped), Status::Retry), (RunEffect::Continues, Record))),
        (VerdictName::Fault, row((AgentIfLegal, 0), (None, Status::Fault), (RunEffect::CountsFault, Record))),
        (VerdictName::Unavailable, row((AgentIfLegal, 0), (None, Status::Waiting), (RunEffect::WaitsForService, Keep))),
        (VerdictName::Timeout, row((AgentIfLegal, 0), (Some(Skipped), Status::Timeout), (RunEffect::TimedOut, Record))),
        (VerdictName::Misconfigured, row((AgentIfLegal, 0), (Some(Skipped), Status::Fault), (RunEffect::Failed, Keep))),
        (
            VerdictName::Interrupted,
            row((AgentIfLegal, 0), (Some(Skipped), Status::Interrupted), (RunEffect::ByStopCause, Keep)),
        ),
    ]
};

#[test]
fn every_row_of_the_table_is_as_specified() {
    assert_eq!(ROWS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), VerdictName::ALL);
    for (name, expect) in ROWS {
        assert_eq!(&verdict_row(*name), expect, "{name}");
    }
}

#[test]
fn an_attempt_is_charged_for_an_answer_or_an_exceeded_context_only() {
    for how in [unavailable(), SessionEndKind::TimedOut, misconfigured(), faulty(), SessionEndKind::Cut] {
        for policy in [TimeoutPolicy::Stop, TimeoutPolicy::Retry] {
            let policy = Policy { on_timeout: policy, ..Policy::default() };
            let verdict =
                outcome_of(InspectedSession::of(session(how.clone()), invalid()).with_policy(policy).after([])).verdict;
            assert_eq!(verdict_row(verdict.name()).attempts, 0, "{verdict:?}");
        }
    }
    assert_eq!(
        verdict_row(outcome_of(InspectedSession::of(session(context_exceeded()), legal()).after([])).verdict.name())
            .attempts,
        1
    );
}

#[test]
fn the_guard_column_is_fixed_or_as_it_ran() {
    let ran = |verdict: Verdict, how: GuardEndKind| {
        IterationOutcome { guard: Some(guard(how)), ..outcome(verdict) }.guard_outcome()
    };
    assert_eq!(ran(fault(), GuardEndKind::Exited(0)), GuardOutcome::Pass);
    assert_eq!(outcome(fault()).guard_outcome(), GuardOutcome::Skipped);
    let unavailable = Verdict::Unavailable { why: "overload".to_owned(), until: None };
    assert_eq!(ran(unavailable, GuardEndKind::Exited(0)), GuardOutcome::Pass);
    let timeout = Verdict::Timeout { during: PhaseName::Guard };
    assert_eq!(ran(timeout, GuardEndKind::TimedOut), GuardOutcome::Skipped);
    assert_eq!(ran(Verdict::Interrupted { by: StopCause::Pause }, GuardEndKind::Cut), GuardOutcome::Skipped);
    assert_eq!(ran(Verdict::RedGuard, GuardEndKind::TimedOut), GuardOutcome::Fail);
}

#[test]
fn only_a_wait_or_a_misconfiguration_that_changed_nothing_leaves_no_commit() {
    for verdict in verdicts() {
        let mut outcome = outcome(verdict);
        assert!(outcome.leaves_commit());
        finding_of(&mut outcome).changed = false;
        let none = [VerdictName::Unavailable, VerdictName::Misconfigured].contains(&outcome.verdict.name());
        assert_eq!(outcome.leaves_commit(), !none, "{:?}", outcome.verdict);
        outcome.guard = Some(GuardEnd { wrote: vec!["lock".to_owned()], ..green() });
        assert!(outcome.leaves_commit());
        outcome.guard = Some(GuardEnd { reverted: vec!["justfile".to_owned()], ..green() });
        assert!(outcome.leaves_commit(), "a restored definition differs from the one at From");
        outcome.guard = Some(GuardEnd { reverted: vec![".runner/GOAL.md".to_owned()], ..green() });
        assert_eq!(outcome.leaves_commit(), !none, "what is the runner's stands as it was");
    }
}

#[test]
fn an_iteration_executes_where_session_guard_or_runner_has_changed_code() {
    let mode = |changed_code, guard: Option<GuardEnd>, guard_wrote: &[String]| {
        let mut outcome = IterationOutcome { guard, ..outcome(Verdict::Accepted) };
        finding_of(&mut outcome).changed_code = changed_code;
        outcome.mode(guard_wrote)
    };
    let reverted = |path: &str| GuardEnd { reverted: vec![path.to_owned()], ..green() };
    let wrote = GuardEnd { wrote: vec!["lock".to_owned()], ..green() };
    assert_eq!(mode(false, None, &[]), Mode::Decompose);
    assert_eq!(mode(false, Some(reverted(".runner/GOAL.md")), &[]), Mode::Decompose);
    assert_eq!(mode(false, Some(wrote.clone()), &[]), Mode::Decompose, "it is not in the commit");
    assert_eq!(mode(true, None, &[]), Mode::Execute);
    assert_eq!(mode(false, Some(wrote.clone()), &wrote.wrote), Mode::Execute);
    assert_eq!(mode(false, Some(reverted("justfile")), &[]), Mode::Execute);
}

#[test]
fn a_detail_tells_what_was_seen_where() {
    let details: Vec<Option<String>> =
        verdicts().iter().chain([&broken(SessionRule::History)]).map(Verdict::detail).collect();
    assert_eq!(details.iter().filter(|detail| detail.is_none()).count(), 6);
    assert_eq!(details[7].as_deref(), Some("a task that passed must not change (b: it was seen)"));
    assert_eq!(details[8].as_deref(), Some("crash: signal 11"));
}
