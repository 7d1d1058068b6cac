//! What is predicted for each ending of a session before it begins.

use std::sync::Arc;

use protocol::explain::Ending;
use protocol::state::{Feedback, RunState};
use protocol::tree::TaskTree;
use protocol::words::{Role, RunStatus, VerdictName};
use runner_config::{ReviewPolicy, RolesMode};
use runner_core::committed_state::CommittedState;
use runner_core::iteration::forecast::{Forecast, ForecastInput, selection_steps, simulate_endings};
use runner_core::policy::Policy;
use runner_core::run::{self, NextStep, RunScratch};
use runner_core::tree::find;

use crate::fixture::{node, sample};
use crate::transition::committed;

fn forecasts(policy: &Policy, tree: &TaskTree, run_state: &RunState) -> Vec<Forecast> {
    let state = CommittedState { policy: Arc::new(policy.clone()), ..committed(tree, run_state, &Feedback::default()) };
    let scratch = RunScratch::default();
    let inputs = state.run_inputs(&scratch, jiff::Timestamp::UNIX_EPOCH);
    let NextStep::Continue(task) = run::decide_next(&inputs, None, None) else { panic!("a leaf is open") };
    simulate_endings(&ForecastInput { state: &state, inputs }, &task)
}

fn state() -> RunState {
    RunState { run_id: Some("run-1".to_owned()), next_iter: 7, ..RunState::default() }
}

fn of(courses: &[Forecast], ending: Ending) -> &Forecast {
    courses.iter().find(|course| course.ending == ending).expect("the ending is predicted")
}

/// The leaf that the run continues with, and its role.
fn goes_on(course: &Forecast) -> (&str, Role) {
    match &course.next {
        NextStep::Continue(task) => (&task.node, task.role),
        next => panic!("{:?} does not continue: {next:?}", course.ending),
    }
}

fn ends(course: &Forecast) -> Option<RunStatus> {
    if let NextStep::End { end, .. } = course.next { Some(end.status()) } else { None }
}

#[test]
fn every_ending_is_told_with_its_verdict() {
    let endings: Vec<(Ending, VerdictName)> = forecasts(&Policy::default(), &sample(), &state())
        .iter()
        .map(|course| (course.ending, course.outcome.verdict.name()))
        .collect();
    let expected = [
        (Ending::Green, VerdictName::Accepted),
        (Ending::Red, VerdictName::RedGuard),
        (Ending::Retry, VerdictName::Retry),
        (Ending::Decomposed, VerdictName::Decomposed),
        (Ending::Broken, VerdictName::Broken),
        (Ending::InvalidTree, VerdictName::Broken),
        (Ending::ContextExceeded, VerdictName::Broken),
        (Ending::Crash, VerdictName::Fault),
        (Ending::Unavailable, VerdictName::Unavailable),
        (Ending::Timeout, VerdictName::Timeout),
        (Ending::Misconfigured, VerdictName::Misconfigured),
        (Ending::Interrupted, VerdictName::Interrupted),
    ];
    assert_eq!(endings, expected);
}

#[test]
fn tree_attempts_and_next_leaf_follow_from_the_ending() {
    let courses = forecasts(&Policy::default(), &sample(), &state());
    let leaf = |ending| {
        let after = of(&courses, ending).after.as_ref().expect("it leaves a commit");
        let leaf = find(&after.tree, "b").expect("the leaf is there");
        (leaf.passes, leaf.attempts, leaf.children.len())
    };
    assert_eq!((leaf(Ending::Green), goes_on(of(&courses, Ending::Green))), ((true, 0, 0), ("c1", Role::Worker)));
    assert_eq!((leaf(Ending::Red), goes_on(of(&courses, Ending::Red))), ((false, 1, 0), ("b", Role::Worker)));
    let split = of(&courses, Ending::Decomposed);
    assert_eq!((leaf(Ending::Decomposed), goes_on(split)), ((false, 0, 2), ("b.1", Role::Worker)));
    assert_eq!(goes_on(of(&courses, Ending::InvalidTree)), ("b", Role::Repair));
    assert_eq!((leaf(Ending::Crash), goes_on(of(&courses, Ending::Crash))), ((false, 0, 0), ("b", Role::Worker)));
    assert_eq!(ends(of(&courses, Ending::Timeout)), Some(RunStatus::TimedOut));
    assert_eq!(ends(of(&courses, Ending::Misconfigured)), Some(RunStatus::Failed));
    assert!(matches!(of(&courses, Ending::Interrupted).next, NextStep::Pause(_)));
}

#[test]
fn what_changes_nothing_leaves_no_commit() {
    for course in forecasts(&Policy::default(), &sample(), &state()) {
        let is_idle = matches!(course.ending, Ending::Unavailable | Ending::Misconfigured);
        assert_eq!(course.after.is_none(), is_idle, "{:?}", course.ending);
    }
}

#[test]
fn a_service_that_is_not_available_is_waited_for() {
    let mut policy = Policy::default();
    policy.kinds.work = vec!["codex".to_owned()];
    let courses = forecasts(&policy, &sample(), &state());
    assert!(matches!(of(&courses, Ending::Unavailable).next, NextStep::Wait(..)));
    policy.kinds.work.push("claude".to_owned());
    let courses = forecasts(&policy, &sample(), &state());
    let NextStep::Continue(task) = &of(&courses, Ending::Unavailable).next else { panic!("the other kind is asked") };
    assert_eq!(task.kind.as_deref(), Some("claude"));
}

#[test]
fn the_last_attempt_is_a_planners_and_ends_the_run_or_narrows_the_leaf() {
    let mut tree = sample();
    node(&mut tree, "b").attempts = 2;
    let courses = forecasts(&Policy::default(), &tree, &state());
    assert_eq!(of(&courses, Ending::Retry).outcome.work.task.role, Role::Planner);
    assert_eq!(ends(of(&courses, Ending::Retry)), Some(RunStatus::Stuck));
    let reworded = of(&courses, Ending::Reworded);
    assert_eq!((reworded.outcome.verdict.name(), goes_on(reworded)), (VerdictName::Narrowed, ("b", Role::Planner)));
    let narrowed = RunState { narrowed: vec!["b".to_owned()], ..state() };
    let courses = forecasts(&Policy::default(), &tree, &narrowed);
    assert!(courses.iter().all(|course| course.ending != Ending::Reworded), "a leaf is narrowed once");
}

#[test]
fn a_reviewer_can_reject_and_a_person_is_waited_for() {
    let by = |review| forecasts(&Policy { review, ..Policy::default() }, &sample(), &state());
    let agent = by(ReviewPolicy::Agent);
    assert_eq!(of(&agent, Ending::Rejected).outcome.verdict.name(), VerdictName::Rejected);
    assert_eq!(goes_on(of(&agent, Ending::Rejected)), ("b", Role::Worker));
    let human = by(ReviewPolicy::Human);
    assert!(matches!(of(&human, Ending::Green).next, NextStep::WaitForPerson(_)));
}

#[test]
fn strict_roles_are_told_as_they_are_kept() {
    let strict = Policy { roles: RolesMode::Strict, ..Policy::default() };
    let worker = forecasts(&strict, &sample(), &state());
    assert_eq!(of(&worker, Ending::Decomposed).outcome.verdict.name(), VerdictName::Broken);
    let mut tree = sample();
    node(&mut tree, "b").attempts = 2;
    let planner = forecasts(&strict, &tree, &state());
    assert_eq!(of(&planner, Ending::Decomposed).outcome.verdict.name(), VerdictName::Decomposed);
}

#[test]
fn the_way_to_a_leaf_names_its_place_among_its_siblings() {
    let path = ["root", "c", "c2"].map(str::to_owned);
    let seen: Vec<(String, u32, u32)> = selection_steps(&sample(), &path)
        .into_iter()
        .map(|step| (step.node, step.passed_before, step.siblings))
        .collect();
    assert_eq!(seen, [("c".to_owned(), 2, 3), ("c2".to_owned(), 1, 2)]);
}
