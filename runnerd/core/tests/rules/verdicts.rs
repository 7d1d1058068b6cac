//! Every verdict, reached through events; and the table of rows, typed a second time.

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::words::{GuardOutcome, IterationStatus, Mode, PhaseName, Role, VerdictName};
use runner_core::iteration::{Effect, Event, GuardEnd, GuardHow, Outcome, Phase, ReviewHow};
use runner_core::policy::{OnTimeout, Policy, ReviewBy, RolesMode};
use runner_core::verdict::{
    Breach, FaultKind, FeedbackEffect, Finding, Row, Rule, RunEffect, SessionEnd, SessionHow, StopCause, Task,
    TreeFinding, TreeTaken, Verdict, row,
};

use crate::fixture::{
    answer, answered, broken, context_exceeded, decomposed, drive, fault, faulty, finding, finding_of, green, guard,
    illegal, invalid, legal, misconfigured, outcome, review, session, task, unavailable, verdicts,
};

/// The events of an iteration up to Inspect.
struct Told {
    policy: Policy,
    task: Task,
    session: SessionEnd,
    finding: Finding,
}

impl Told {
    fn of(session: SessionEnd, tree: TreeFinding) -> Self {
        Self { policy: Policy::default(), task: task(), session, finding: finding(tree) }
    }

    fn done() -> Self {
        Self::of(answered(AnswerStatus::Done), legal())
    }

    fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    fn with_task(self, task: Task) -> Self {
        Self { task, ..self }
    }

    fn with_finding(self, finding: Finding) -> Self {
        Self { finding, ..self }
    }

    /// Leads the iteration through its events and `more`.
    fn after(&self, more: impl IntoIterator<Item = Event>) -> Phase {
        let events = [
            Event::Opened(self.task.clone()),
            Event::Briefed,
            Event::SessionEnded(self.session.clone()),
            Event::Inspected(self.finding.clone()),
        ];
        drive(&self.policy, events.into_iter().chain(more))
    }
}

fn outcome_of(phase: Phase) -> Outcome {
    let Phase::Settle { outcome } = phase else { panic!("not settled: {phase:?}") };
    *outcome
}

/// Checks that an iteration is settled with a verdict after `more` events.
fn check(told: &Told, more: impl IntoIterator<Item = Event>, expect: &Verdict) {
    assert_eq!(&outcome_of(told.after(more)).verdict, expect);
}

/// Checks that an iteration is settled as Broken by a rule, right after Inspect.
fn check_rule(told: &Told, expect: Rule) {
    let verdict = outcome_of(told.after([])).verdict;
    assert!(matches!(&verdict, Verdict::Broken(Breach { rule, .. }) if *rule == expect), "{verdict:?}");
}

fn reviewed(by: ReviewBy) -> Told {
    Told::done().with_policy(Policy { review: by, ..Policy::default() })
}

fn strict(role: Role, told: Told) -> Told {
    let policy = Policy { roles: RolesMode::Strict, ..Policy::default() };
    told.with_policy(policy).with_task(Task { role, ..task() })
}

fn guarded(how: GuardHow) -> Event {
    Event::GuardEnded(guard(how))
}

#[test]
fn done_with_a_green_guard_is_accepted() {
    check(&Told::done(), [Event::GuardEnded(green())], &Verdict::Accepted);
}

#[test]
fn done_with_any_other_end_of_the_guard_is_red() {
    for how in [GuardHow::Exited(1), GuardHow::Exited(-1), GuardHow::Exited(256), GuardHow::Signaled(9)] {
        check(&Told::done(), [guarded(how)], &Verdict::RedGuard);
    }
}

#[test]
fn a_red_guard_is_not_reviewed() {
    for by in [ReviewBy::Agent, ReviewBy::Human] {
        check(&reviewed(by), [guarded(GuardHow::Exited(1))], &Verdict::RedGuard);
    }
}

#[test]
fn the_guard_runs_for_a_claim_of_done_only() {
    assert_eq!(Told::done().after([]).name(), PhaseName::Guard);
    for session in [answered(AnswerStatus::Retry), decomposed(1), session(faulty())] {
        assert_eq!(Told::of(session, legal()).after([]).name(), PhaseName::Settle);
    }
}

#[test]
fn the_reviewer_decides_after_a_green_guard() {
    let ended = |how: ReviewHow| [Event::GuardEnded(green()), Event::ReviewEnded(review(how))];
    let told = reviewed(ReviewBy::Agent);
    let text = || "text".to_owned();
    check(&told, ended(ReviewHow::Accepted { reasons: text() }), &Verdict::Accepted);
    check(&told, ended(ReviewHow::Rejected { reasons: text() }), &Verdict::Rejected { reasons: text() });
    let failed = || Event::ReviewEnded(review(ReviewHow::Failed { what: text() }));
    let fault = Verdict::Fault { kind: FaultKind::Reviewer, what: text() };
    check(&told, [Event::GuardEnded(green()), failed(), failed(), failed()], &fault);
    assert_eq!(told.after([Event::GuardEnded(green()), failed(), failed()]).effect(), Some(Effect::RunReview));
    let until = Some("2026-01-01T00:00:00Z".parse().expect("a time"));
    let limit = Verdict::Unavailable { why: text(), until };
    check(&told, ended(ReviewHow::Unavailable { why: text(), until }), &limit);
    check(&told, ended(ReviewHow::Misconfigured { what: text() }), &Verdict::Misconfigured { what: text() });
    check(&told, ended(ReviewHow::TimedOut), &Verdict::Timeout { during: PhaseName::Review });
}

#[test]
fn a_person_decides_later_after_a_green_guard() {
    check(&reviewed(ReviewBy::Human), [Event::GuardEnded(green())], &Verdict::Pending);
}

#[test]
fn what_is_not_done_is_settled_by_its_status() {
    check(&Told::of(answered(AnswerStatus::Retry), legal()), [], &Verdict::Retry);
    check(&Told::of(decomposed(2), legal()), [], &Verdict::Decomposed);
    let gained = TreeFinding::Legal { gained: 2, reworded: false };
    check(&Told::of(answered(AnswerStatus::Decomposed), gained), [], &Verdict::Decomposed);
}

#[test]
fn a_planner_that_may_narrow_loses_no_attempt_for_a_changed_goal() {
    let reworded = TreeFinding::Legal { gained: 0, reworded: true };
    let told = |narrowing, status, tree| Told::of(answered(status), tree).with_task(Task { narrowing, ..task() });
    check(&told(true, AnswerStatus::Retry, reworded.clone()), [], &Verdict::Narrowed);
    check(&told(false, AnswerStatus::Retry, reworded.clone()), [], &Verdict::Retry);
    check(&told(true, AnswerStatus::Retry, legal()), [], &Verdict::Retry);
    check_rule(&told(true, AnswerStatus::Done, reworded), Rule::KeepGoal);
}

#[test]
fn a_session_without_an_answer_is_settled_by_its_end() {
    let told = |how| Told::of(session(how), legal());
    check(&told(unavailable()), [], &Verdict::Unavailable { why: "usage limit".to_owned(), until: None });
    check(&told(SessionHow::TimedOut), [], &Verdict::Timeout { during: PhaseName::Work });
    check(&told(misconfigured()), [], &Verdict::Misconfigured { what: "log in".to_owned() });
    check(&told(faulty()), [], &fault());
    check(&told(SessionHow::Cut), [], &Verdict::Interrupted { by: StopCause::Death });
    check_rule(&told(context_exceeded()), Rule::Context);
}

#[test]
fn each_rule_of_broken_is_found() {
    let of = Told::of;
    let tree = |gained, reworded| TreeFinding::Legal { gained, reworded };
    let with_children = |status| {
        let SessionHow::Answered(brought) = decomposed(1).how else { panic!("an answer") };
        session(SessionHow::Answered(AgentAnswer { status, ..brought }))
    };
    check_rule(&of(answered(AnswerStatus::Done), invalid()), Rule::ValidTree);
    for rule in [Rule::PassedNode, Rule::KeepNodes, Rule::KeepPlace] {
        check_rule(&of(answered(AnswerStatus::Retry), illegal(rule)), rule);
    }
    check_rule(&of(answered(AnswerStatus::Done), tree(0, true)), Rule::KeepGoal);
    for status in [AnswerStatus::Done, AnswerStatus::Retry] {
        check_rule(&of(with_children(status), legal()), Rule::ChildrenOnlyWithDecomposed);
        check_rule(&of(answered(status), tree(1, false)), Rule::ChildrenOnlyWithDecomposed);
    }
    check_rule(&of(answered(AnswerStatus::Decomposed), legal()), Rule::DecomposedNeedsChildren);
    check_rule(&of(decomposed(0), legal()), Rule::DecomposedNeedsChildren);
    check_rule(&of(decomposed(1), tree(1, false)), Rule::ChildrenOneWay);
    let rewritten = Finding { history: Some("a rebase is in progress".to_owned()), ..finding(legal()) };
    check_rule(&Told::done().with_finding(rewritten), Rule::History);
}

#[test]
fn an_empty_list_of_children_is_none() {
    let empty = AgentAnswer { children: Some(Vec::new()), ..answer(AnswerStatus::Done) };
    let told = Told::of(session(SessionHow::Answered(empty)), legal());
    assert_eq!(told.after([]).name(), PhaseName::Guard);
}

#[test]
fn the_root_is_not_done_while_nothing_differs_from_the_base() {
    let told = |path: &[&str], status, changed_since_base| {
        let path = path.iter().map(|id| (*id).to_owned()).collect();
        Told::of(answered(status), legal())
            .with_task(Task { path, role: Role::Planner, ..task() })
            .with_finding(Finding { changed_since_base, ..finding(legal()) })
    };
    check_rule(&told(&["root"], AnswerStatus::Done, false), Rule::RootNeedsChange);
    assert_eq!(told(&["root"], AnswerStatus::Done, true).after([]).name(), PhaseName::Guard);
    assert_eq!(told(&["root", "b"], AnswerStatus::Done, false).after([]).name(), PhaseName::Guard);
    check(&told(&["root"], AnswerStatus::Retry, false), [], &Verdict::Retry);
}

#[test]
fn strict_mode_keeps_planners_from_code_and_workers_from_plans() {
    let code = || Finding { changed_code: true, ..finding(legal()) };
    for status in [AnswerStatus::Done, AnswerStatus::Retry] {
        let told = || Told::of(answered(status), legal()).with_finding(code());
        check_rule(&strict(Role::Planner, told()), Rule::PlannerNoCode);
        for role in [Role::Worker, Role::Repair] {
            assert_ne!(outcome_name(&strict(role, told())), Some(VerdictName::Broken));
        }
    }
    check_rule(&strict(Role::Planner, Told::of(decomposed(1), legal()).with_finding(code())), Rule::PlannerNoCode);
    check_rule(&strict(Role::Worker, Told::of(decomposed(1), legal())), Rule::WorkerNoChildren);
    for role in [Role::Planner, Role::Repair] {
        check(&strict(role, Told::of(decomposed(1), legal())), [], &Verdict::Decomposed);
    }
}

#[test]
fn outside_strict_mode_a_session_may_plan_or_work() {
    let code = Finding { changed_code: true, ..finding(legal()) };
    let told = Told::of(decomposed(1), legal()).with_finding(code);
    for role in [Role::Planner, Role::Worker] {
        let told =
            Told { policy: Policy::default(), ..strict(role, Told { session: told.session.clone(), ..Told::done() }) };
        check(&told, [], &Verdict::Decomposed);
    }
}

fn outcome_name(told: &Told) -> Option<VerdictName> {
    match told.after([]) {
        Phase::Settle { outcome } => Some(outcome.verdict.name()),
        _ => None,
    }
}

#[test]
fn a_budget_that_runs_out_ends_the_run() {
    let during = |during| Verdict::Timeout { during };
    check(&Told::done(), [guarded(GuardHow::TimedOut)], &during(PhaseName::Guard));
    let timed_out = [Event::GuardEnded(green()), Event::ReviewEnded(review(ReviewHow::TimedOut))];
    check(&reviewed(ReviewBy::Agent), timed_out, &during(PhaseName::Review));
}

#[test]
fn a_budget_that_is_to_be_retried_is_a_fault_and_a_hanging_guard_is_red() {
    let policy = || Policy { on_timeout: OnTimeout::Retry, review: ReviewBy::Agent, ..Policy::default() };
    let told = Told::of(session(SessionHow::TimedOut), legal()).with_policy(policy());
    let faults = |told: &Told, more: Vec<Event>| {
        let verdict = outcome_of(told.after(more)).verdict;
        assert!(matches!(verdict, Verdict::Fault { kind: FaultKind::Timeout, .. }), "{verdict:?}");
    };
    faults(&told, Vec::new());
    let claimed = Told::done().with_policy(policy());
    faults(&claimed, vec![Event::GuardEnded(green()), Event::ReviewEnded(review(ReviewHow::TimedOut))]);
    check(&claimed, [guarded(GuardHow::TimedOut)], &Verdict::RedGuard);
}

#[test]
fn a_guard_that_cannot_run_is_misconfigured_and_one_that_was_cut_is_interrupted() {
    let missing = GuardHow::Missing { what: "install just".to_owned() };
    check(&Told::done(), [guarded(missing)], &Verdict::Misconfigured { what: "install just".to_owned() });
    check(&Told::done(), [guarded(GuardHow::Cut)], &Verdict::Interrupted { by: StopCause::Death });
}

#[test]
fn a_guard_whose_supervisor_is_lost_is_asked_once_more_and_then_is_a_fault() {
    let lost = || guarded(GuardHow::Lost);
    let again = Told::done().after([lost()]);
    assert_eq!(again.effect(), Some(Effect::RunGuard));
    check(&Told::done(), [lost(), Event::GuardEnded(green())], &Verdict::Accepted);
    check(&Told::done(), [lost(), guarded(GuardHow::Exited(1))], &Verdict::RedGuard);
    check(&Told::done(), [lost(), guarded(GuardHow::TimedOut)], &Verdict::Timeout { during: PhaseName::Guard });
    for more in [vec![], vec![Event::Restarted], vec![Event::Stop(StopCause::Shutdown), Event::Restarted]] {
        let told = Told::done().after([lost()].into_iter().chain(more).chain([lost()]));
        let outcome = outcome_of(told);
        assert_eq!(outcome.verdict.detail().as_deref(), Some("guard lost: the guard's supervisor was killed twice"));
        assert_eq!(row(outcome.verdict.name()).attempts, 0, "it is nobody's answer");
        assert_eq!(outcome.guard_outcome(), GuardOutcome::Skipped, "nobody knows what it would have said");
    }
}

#[test]
fn a_guard_that_rewrites_history_breaks_a_rule_green_or_red() {
    for how in [GuardHow::Exited(0), GuardHow::Exited(1), GuardHow::Lost] {
        let end = GuardEnd { history: Some("HEAD is elsewhere".to_owned()), ..guard(how) };
        let verdict = outcome_of(Told::done().after([Event::GuardEnded(end)])).verdict;
        assert!(matches!(&verdict, Verdict::Broken(breach) if breach.rule == Rule::History), "{verdict:?}");
    }
}

#[test]
fn a_stop_in_guard_or_review_is_what_the_iteration_ends_with() {
    let told = reviewed(ReviewBy::Agent);
    for by in [StopCause::Pause, StopCause::Cancel] {
        let interrupted = Verdict::Interrupted { by };
        for how in [GuardHow::Cut, GuardHow::Exited(0), GuardHow::Exited(1), GuardHow::TimedOut, GuardHow::Lost] {
            check(&told, [Event::Stop(by), guarded(how)], &interrupted);
        }
        let accepted = ReviewHow::Accepted { reasons: String::new() };
        let failed = ReviewHow::Failed { what: String::new() };
        for how in [ReviewHow::Cut, accepted, failed, ReviewHow::TimedOut] {
            let ended = Event::ReviewEnded(review(how));
            check(&told, [Event::GuardEnded(green()), Event::Stop(by), ended], &interrupted);
        }
    }
}

/// The table, typed a second time.
const ROWS: &[(VerdictName, Row)] = {
    use FeedbackEffect::{Cleared, Kept, Told};
    use GuardOutcome::{Fail, Pass, Skipped};
    use IterationStatus as Status;
    use TreeTaken::{Agents, AgentsIfLegal, AgentsPassed, Froms};
    const fn row(
        taken: (TreeTaken, u32),
        shown: (Option<GuardOutcome>, IterationStatus),
        then: (RunEffect, FeedbackEffect),
    ) -> Row {
        Row { tree: taken.0, attempts: taken.1, guard: shown.0, status: shown.1, run: then.0, feedback: then.1 }
    }
    &[
        (VerdictName::Accepted, row((AgentsPassed, 0), (Some(Pass), Status::Done), (RunEffect::GoesOn, Cleared))),
        (VerdictName::RedGuard, row((Agents, 1), (Some(Fail), Status::Done), (RunEffect::GoesOn, Told))),
        (VerdictName::Rejected, row((Agents, 1), (Some(Pass), Status::Done), (RunEffect::GoesOn, Told))),
        (VerdictName::Pending, row((Agents, 0), (Some(Pass), Status::Done), (RunEffect::WaitsForPerson, Kept))),
        (VerdictName::Retry, row((Agents, 1), (Some(Skipped), Status::Retry), (RunEffect::GoesOn, Told))),
        (VerdictName::Narrowed, row((Agents, 0), (Some(Skipped), Status::Retry), (RunEffect::GoesOn, Told))),
        (VerdictName::Decomposed, row((Agents, 0), (Some(Skipped), Status::Decomposed), (RunEffect::GoesOn, Cleared))),
        (VerdictName::Broken, row((Froms, 1), (Some(Skipped), Status::Retry), (RunEffect::GoesOn, Told))),
        (VerdictName::Fault, row((AgentsIfLegal, 0), (None, Status::Fault), (RunEffect::CountsFault, Told))),
        (
            VerdictName::Unavailable,
            row((AgentsIfLegal, 0), (None, Status::Waiting), (RunEffect::WaitsForService, Kept)),
        ),
        (VerdictName::Timeout, row((AgentsIfLegal, 0), (Some(Skipped), Status::Timeout), (RunEffect::TimedOut, Told))),
        (
            VerdictName::Misconfigured,
            row((AgentsIfLegal, 0), (Some(Skipped), Status::Fault), (RunEffect::Failed, Kept)),
        ),
        (
            VerdictName::Interrupted,
            row((AgentsIfLegal, 0), (Some(Skipped), Status::Interrupted), (RunEffect::AsAsked, Kept)),
        ),
    ]
};

#[test]
fn every_row_of_the_table_is_as_specified() {
    assert_eq!(ROWS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), VerdictName::ALL);
    for (name, expect) in ROWS {
        assert_eq!(&row(*name), expect, "{name}");
    }
}

#[test]
fn an_attempt_is_charged_for_an_answer_or_an_exceeded_context_only() {
    for how in [unavailable(), SessionHow::TimedOut, misconfigured(), faulty(), SessionHow::Cut] {
        for policy in [OnTimeout::Stop, OnTimeout::Retry] {
            let policy = Policy { on_timeout: policy, ..Policy::default() };
            let verdict = outcome_of(Told::of(session(how.clone()), invalid()).with_policy(policy).after([])).verdict;
            assert_eq!(row(verdict.name()).attempts, 0, "{verdict:?}");
        }
    }
    assert_eq!(row(outcome_of(Told::of(session(context_exceeded()), legal()).after([])).verdict.name()).attempts, 1);
}

#[test]
fn the_guard_column_is_fixed_or_as_it_ran() {
    let ran = |verdict: Verdict, how: GuardHow| Outcome { guard: Some(guard(how)), ..outcome(verdict) }.guard_outcome();
    assert_eq!(ran(fault(), GuardHow::Exited(0)), GuardOutcome::Pass);
    assert_eq!(outcome(fault()).guard_outcome(), GuardOutcome::Skipped);
    let unavailable = Verdict::Unavailable { why: "overload".to_owned(), until: None };
    assert_eq!(ran(unavailable, GuardHow::Exited(0)), GuardOutcome::Pass);
    let timeout = Verdict::Timeout { during: PhaseName::Guard };
    assert_eq!(ran(timeout, GuardHow::TimedOut), GuardOutcome::Skipped);
    assert_eq!(ran(Verdict::Interrupted { by: StopCause::Pause }, GuardHow::Cut), GuardOutcome::Skipped);
    assert_eq!(ran(Verdict::RedGuard, GuardHow::TimedOut), GuardOutcome::Fail);
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
        assert!(outcome.leaves_commit(), "a definition that was put back differs from the one at From");
        outcome.guard = Some(GuardEnd { reverted: vec![".runner/GOAL.md".to_owned()], ..green() });
        assert_eq!(outcome.leaves_commit(), !none, "what is the runner's stands as it was");
    }
}

#[test]
fn an_iteration_executes_where_session_guard_or_runner_has_changed_code() {
    let mode = |changed_code, guard: Option<GuardEnd>| {
        let mut outcome = Outcome { guard, ..outcome(Verdict::Accepted) };
        finding_of(&mut outcome).changed_code = changed_code;
        outcome.mode()
    };
    let reverted = |path: &str| GuardEnd { reverted: vec![path.to_owned()], ..green() };
    assert_eq!(mode(false, None), Mode::Decompose);
    assert_eq!(mode(false, Some(reverted(".runner/GOAL.md"))), Mode::Decompose);
    assert_eq!(mode(true, None), Mode::Execute);
    assert_eq!(mode(false, Some(GuardEnd { wrote: vec!["lock".to_owned()], ..green() })), Mode::Execute);
    assert_eq!(mode(false, Some(reverted("justfile"))), Mode::Execute);
}

#[test]
fn a_detail_tells_what_was_seen_where() {
    let details: Vec<Option<String>> = verdicts().iter().chain([&broken(Rule::History)]).map(Verdict::detail).collect();
    assert_eq!(details.iter().filter(|detail| detail.is_none()).count(), 6);
    assert_eq!(details[7].as_deref(), Some("a passed node must not change (b: it was seen)"));
    assert_eq!(details[8].as_deref(), Some("crash: signal 11"));
}
