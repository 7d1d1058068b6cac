//! Forecasts the next session: every way in which it can end, carried through `decide`, `apply` and `decide_next`.
//!
//! Contains no rules. The endings are made up and minimal: usage, output and summary of the session are empty.

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::explain::{Ending, StepView};
use protocol::tree::{ChildSpec, Node, TaskTree};
use protocol::words::Role;
use runner_config::{ReviewPolicy, RolesMode};

use crate::committed_state::CommittedState;
use crate::iteration::transition::{self, StateAfter, TransitionFacts};
use crate::iteration::tree_examination::{self, TreeExamination, examine_tree};
use crate::iteration::{
    GuardEnd, GuardEndKind, IterationEffect, IterationEvent, IterationOutcome, Phase, ReviewEnd, ReviewEndKind, decide,
};
use crate::policy::Policy;
use crate::run::fallback;
use crate::run::usage::ResourceUsage;
use crate::run::{self, NextStep, RunInputs};
use crate::tree;
use crate::verdict::{FaultKind, SessionEnd, SessionEndKind, SessionFinding, SessionTask, StopCause};

/// What a forecast begins with.
#[derive(Debug, Clone, Copy)]
pub struct ForecastInput<'a> {
    /// The committed state at From.
    pub state: &'a CommittedState,
    /// Everything that the run's next step is decided from.
    pub inputs: RunInputs<'a>,
}

/// The consequences of one ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The assumed ending.
    pub ending: Ending,
    /// The outcome of the iteration.
    pub outcome: IterationOutcome,
    /// The state it would commit; `None` if it leaves no commit.
    pub after: Option<StateAfter>,
    /// What the run does next.
    pub next: NextStep,
}

/// Returns the consequences of each ending of a session on `task` that is possible under the policy.
pub fn simulate_endings(input: &ForecastInput<'_>, task: &SessionTask) -> Vec<Forecast> {
    let is_reviewed = input.inputs.policy.review == ReviewPolicy::Agent;
    let can_come = |ending: &Ending| {
        (*ending != Ending::Rejected || is_reviewed) && (*ending != Ending::Reworded || task.narrowing)
    };
    let untouched = examine_left_tree(input, task, Ending::Retry);
    let endings = Ending::ALL.iter().copied().filter(can_come);
    let left = |ending| {
        let is_touched = matches!(ending, Ending::Reworded | Ending::Decomposed | Ending::InvalidTree);
        if is_touched { examine_left_tree(input, task, ending) } else { untouched.clone() }
    };
    endings.filter_map(|ending| simulate_ending(input, task, AssumedEnding { ending, tree: left(ending) })).collect()
}

/// Returns how selection reaches a node: one step for each node below the root.
pub fn selection_steps(tree: &TaskTree, path: &[String]) -> Vec<StepView> {
    let pairs = path.iter().zip(path.iter().skip(1));
    let step = |(parent, node): (&String, &String)| {
        let siblings = &tree::find(tree, parent)?.children;
        let own = siblings.iter().find(|sibling| sibling.id == *node)?;
        let place = |node: &Node| (node.order, node.id.clone());
        let before = siblings.iter().filter(|sibling| place(sibling) < place(own)).count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Some(StepView {
            node: node.clone(),
            parent: parent.clone(),
            passed_before: count(before),
            siblings: count(siblings.len()),
        })
    };
    pairs.filter_map(step).collect()
}

/// An ending, with the task tree that the session leaves.
struct AssumedEnding {
    ending: Ending,
    tree: TreeExamination,
}

fn simulate_ending(input: &ForecastInput<'_>, task: &SessionTask, assumed: AssumedEnding) -> Option<Forecast> {
    let inputs = &input.inputs;
    let outcome = simulate_outcome(inputs.policy, task, &assumed)?;
    let after = outcome.leaves_commit().then(|| apply_outcome(input, &outcome, assumed.tree.tree));
    let kind = task.kind.as_deref().unwrap_or_default();
    let then = RunInputs {
        tree: after.as_ref().map_or(inputs.tree, |after| &after.tree),
        run_state: after.as_ref().map_or(inputs.run_state, |after| &after.run_state),
        outages: &fallback::outages_after(inputs.outages, kind, &outcome.verdict, inputs.now),
        retry_usage: if after.is_some() { &ResourceUsage::default() } else { inputs.retry_usage },
        ..*inputs
    };
    let next = run::decide_next(&then, Some(&outcome.verdict), None);
    Some(Forecast { ending: assumed.ending, outcome, next, after })
}

/// Runs the table of phases on the events that the ending produces.
fn simulate_outcome(policy: &Policy, task: &SessionTask, assumed: &AssumedEnding) -> Option<IterationOutcome> {
    let stop = (assumed.ending == Ending::Interrupted).then_some(StopCause::Pause);
    let mut phase = Phase::Work { task: task.clone(), stop };
    loop {
        let event = match (phase.effect()?, phase) {
            (IterationEffect::Settle, Phase::Settle { outcome }) => return Some(*outcome),
            (IterationEffect::RunSession | IterationEffect::EndSession, at) => {
                (at, IterationEvent::SessionEnded(sample_session(assumed.ending)))
            }
            (IterationEffect::Inspect, at) => (at, IterationEvent::Inspected(sample_finding(policy, task, assumed))),
            (
                IterationEffect::RunGuard
                | IterationEffect::RunAccepted
                | IterationEffect::RerunGuard
                | IterationEffect::EndGuard,
                at,
            ) => (at, IterationEvent::GuardEnded(sample_guard_end(assumed.ending))),
            (IterationEffect::RunReview | IterationEffect::EndReview, at) => {
                (at, IterationEvent::ReviewEnded(sample_review_end(assumed.ending)))
            }
            (IterationEffect::Open | IterationEffect::Brief | IterationEffect::Settle, _) => return None,
        };
        phase = decide(policy, event.0, event.1).ok()?;
    }
}

fn apply_outcome(input: &ForecastInput<'_>, outcome: &IterationOutcome, agents_tree: Option<TaskTree>) -> StateAfter {
    let RunInputs { run_state, retry_usage, .. } = input.inputs;
    let held_back = run_state.held_back.clone();
    let dirty_submodules = run_state.dirty_submodules.clone();
    let guard_definition = run_state.guard_definition.clone();
    let facts = TransitionFacts {
        agents_tree,
        held_back,
        dirty_submodules,
        guard_definition,
        retry_usage: retry_usage.clone(),
        ..TransitionFacts::default()
    };
    transition::apply_outcome(input.state, outcome, &facts)
}

/// Examines the task tree that a session leaves with this ending.
fn examine_left_tree(input: &ForecastInput<'_>, task: &SessionTask, ending: Ending) -> TreeExamination {
    let from = input.inputs.tree;
    let mut agent_tree = from.clone();
    if let (Ending::Reworded, Some(node)) = (ending, tree::find_mut(&mut agent_tree, &task.node)) {
        node.goal = format!("{} (less of it)", node.goal);
    }
    let text = (ending != Ending::InvalidTree).then(|| tree::canonical(&agent_tree));
    examine_tree(&tree_examination::SessionTree {
        from,
        node: &task.node,
        role: task.role,
        text: text.as_deref().map(str::as_bytes),
        answer: sample_answer(ending).as_ref(),
        max_attempts: input.inputs.policy.max_attempts_default,
    })
}

fn sample_answer(ending: Ending) -> Option<AgentAnswer> {
    let children = || {
        let child = |title: &str| ChildSpec { title: title.to_owned(), goal: title.to_owned(), acceptance: Vec::new() };
        vec![child("the first part"), child("the second part")]
    };
    let (status, children) = match ending {
        Ending::Green | Ending::Red | Ending::Rejected => (AnswerStatus::Done, None),
        Ending::Retry | Ending::Reworded | Ending::InvalidTree => (AnswerStatus::Retry, None),
        Ending::Decomposed => (AnswerStatus::Decomposed, Some(children())),
        Ending::Broken => (AnswerStatus::Decomposed, None),
        Ending::ContextExceeded | Ending::Crash | Ending::Unavailable => return None,
        Ending::Timeout | Ending::Misconfigured | Ending::Interrupted => return None,
    };
    Some(AgentAnswer { status, summary: "what the session says".to_owned(), children })
}

fn sample_session(ending: Ending) -> SessionEnd {
    let how = match (sample_answer(ending), ending) {
        (Some(answer), _) => SessionEndKind::Answered(answer),
        (None, Ending::ContextExceeded) => SessionEndKind::ContextExceeded { what: "what the agent says".to_owned() },
        (None, Ending::Unavailable) => {
            SessionEndKind::Unavailable { why: "what the service says".to_owned(), until: None }
        }
        (None, Ending::Timeout) => SessionEndKind::TimedOut,
        (None, Ending::Misconfigured) => SessionEndKind::Misconfigured { what: "what the agent says".to_owned() },
        (None, Ending::Interrupted) => SessionEndKind::Cut,
        (None, _) => SessionEndKind::Faulty { kind: FaultKind::Crash, what: "what was seen".to_owned() },
    };
    SessionEnd::new(how)
}

/// Returns the finding: a session works, unless its role forbids that or it could not.
fn sample_finding(policy: &Policy, task: &SessionTask, assumed: &AssumedEnding) -> SessionFinding {
    let could_not = matches!(assumed.ending, Ending::Unavailable | Ending::Misconfigured);
    let must_not = policy.roles == RolesMode::Strict && task.role == Role::Planner;
    SessionFinding {
        changed: !could_not,
        changed_code: !could_not && !must_not,
        changed_since_base: true,
        ..SessionFinding::new(assumed.tree.finding.clone())
    }
}

fn sample_guard_end(ending: Ending) -> GuardEnd {
    let output = "what the guard prints".to_owned();
    GuardEnd { output, ..GuardEnd::new(GuardEndKind::Exited(i32::from(ending == Ending::Red))) }
}

fn sample_review_end(ending: Ending) -> ReviewEnd {
    let reasons = "what the reviewer says".to_owned();
    let is_rejected = ending == Ending::Rejected;
    ReviewEnd::new(if is_rejected { ReviewEndKind::Rejected { reasons } } else { ReviewEndKind::Accepted { reasons } })
}
