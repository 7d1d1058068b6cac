//! What the next session would lead to: every way in which it can end, carried through `decide`, `apply` and `next`.
//!
//! No rule stands here. The endings are made up, dull ones: what a session consumes, prints and summarizes is empty.

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::explain::{Ending, StepView};
use protocol::tree::{ChildSpec, Node, TaskTree};
use protocol::words::Role;

use crate::examine::{self, Examined, examine};
use crate::fallback;
use crate::iteration::{Effect, Event, GuardEnd, GuardHow, Outcome, Phase, ReviewEnd, ReviewHow, decide};
use crate::policy::{Policy, ReviewBy, RolesMode};
use crate::run::{self, Next, Standing};
use crate::transition::{self, After, Before, Facts};
use crate::tree;
use crate::usage::Spent;
use crate::verdict::{FaultKind, Finding, SessionEnd, SessionHow, StopCause, Task};

/// The committed state at From.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// What the run's next step is decided from.
    pub standing: Standing<'a>,
    /// The text of `progress.md`.
    pub progress: &'a str,
}

/// What one ending leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// Which.
    pub ending: Ending,
    /// The outcome of the iteration.
    pub outcome: Outcome,
    /// The state that it would commit; none where it leaves no commit.
    pub after: Option<After>,
    /// What the run does then.
    pub next: Next,
}

/// Returns what each ending of a session on `task` leads to, as far as it can come under the policy.
pub fn courses(ground: &Ground<'_>, task: &Task) -> Vec<Course> {
    let is_reviewed = ground.standing.policy.review == ReviewBy::Agent;
    let can_come = |ending: &Ending| {
        (*ending != Ending::Rejected || is_reviewed) && (*ending != Ending::Reworded || task.narrowing)
    };
    let untouched = left_by(ground, task, Ending::Retry);
    let endings = Ending::ALL.iter().copied().filter(can_come);
    let left = |ending| {
        let is_touched = matches!(ending, Ending::Reworded | Ending::Decomposed | Ending::InvalidTree);
        if is_touched { left_by(ground, task, ending) } else { untouched.clone() }
    };
    endings.filter_map(|ending| course(ground, task, Supposed { ending, left: left(ending) })).collect()
}

/// Returns how selection comes to a node: one step for each node below the root.
pub fn steps(tree: &TaskTree, path: &[String]) -> Vec<StepView> {
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

/// An ending with the task tree that the session leaves.
struct Supposed {
    ending: Ending,
    left: Examined,
}

fn course(ground: &Ground<'_>, task: &Task, supposed: Supposed) -> Option<Course> {
    let standing = &ground.standing;
    let outcome = outcome(standing.policy, task, &supposed)?;
    let after = outcome.leaves_commit().then(|| apply(ground, &outcome, supposed.left.tree));
    let kind = task.kind.as_deref().unwrap_or_default();
    let then = Standing {
        tree: after.as_ref().map_or(standing.tree, |after| &after.tree),
        run_state: after.as_ref().map_or(standing.run_state, |after| &after.run_state),
        outages: &fallback::after(standing.outages, kind, &outcome.verdict, standing.now),
        tried: if after.is_some() { &Spent::default() } else { standing.tried },
        ..*standing
    };
    let next = run::next(&then, Some(&outcome.verdict), None);
    Some(Course { ending: supposed.ending, outcome, next, after })
}

/// Folds the table of phases over what the ending lets happen.
fn outcome(policy: &Policy, task: &Task, supposed: &Supposed) -> Option<Outcome> {
    let stop = (supposed.ending == Ending::Interrupted).then_some(StopCause::Pause);
    let mut phase = Phase::Work { task: task.clone(), stop };
    loop {
        let event = match (phase.effect()?, phase) {
            (Effect::Settle, Phase::Settle { outcome }) => return Some(*outcome),
            (Effect::RunSession | Effect::EndSession, at) => (at, Event::SessionEnded(session(supposed.ending))),
            (Effect::Inspect, at) => (at, Event::Inspected(finding(policy, task, supposed))),
            (Effect::RunGuard | Effect::RunAccepted | Effect::EndGuard, at) => {
                (at, Event::GuardEnded(guard(supposed.ending)))
            }
            (Effect::RunReview | Effect::EndReview, at) => (at, Event::ReviewEnded(review(supposed.ending))),
            (Effect::Open | Effect::Brief | Effect::Settle, _) => return None,
        };
        phase = decide(policy, event.0, event.1).ok()?;
    }
}

fn apply(ground: &Ground<'_>, outcome: &Outcome, agents_tree: Option<TaskTree>) -> After {
    let Standing { tree, run_state, tried, .. } = ground.standing;
    let before = Before { tree, run_state, feedback: ground.standing.feedback, progress: ground.progress };
    let (held_back, dirty_submodules) = (run_state.held_back.clone(), run_state.dirty_submodules.clone());
    let guard_definition = run_state.guard_definition.clone();
    let facts =
        Facts { agents_tree, held_back, dirty_submodules, guard_definition, tried: tried.clone(), ..Facts::default() };
    transition::apply(&before, outcome, &facts)
}

/// Examines the task tree that a session leaves with this ending.
fn left_by(ground: &Ground<'_>, task: &Task, ending: Ending) -> Examined {
    let from = ground.standing.tree;
    let mut left = from.clone();
    if let (Ending::Reworded, Some(node)) = (ending, tree::find_mut(&mut left, &task.node)) {
        node.goal = format!("{} (less of it)", node.goal);
    }
    let text = (ending != Ending::InvalidTree).then(|| tree::canonical(&left));
    examine(&examine::LeftBySession {
        from,
        node: &task.node,
        text: text.as_deref().map(str::as_bytes),
        answer: answer(ending).as_ref(),
        max_attempts: ground.standing.policy.max_attempts_default,
    })
}

fn answer(ending: Ending) -> Option<AgentAnswer> {
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

fn session(ending: Ending) -> SessionEnd {
    let how = match (answer(ending), ending) {
        (Some(answer), _) => SessionHow::Answered(answer),
        (None, Ending::ContextExceeded) => SessionHow::ContextExceeded { what: "what the agent says".to_owned() },
        (None, Ending::Unavailable) => SessionHow::Unavailable { why: "what the service says".to_owned(), until: None },
        (None, Ending::Timeout) => SessionHow::TimedOut,
        (None, Ending::Misconfigured) => SessionHow::Misconfigured { what: "what the agent says".to_owned() },
        (None, Ending::Interrupted) => SessionHow::Cut,
        (None, _) => SessionHow::Faulty { kind: FaultKind::Crash, what: "what was seen".to_owned() },
    };
    SessionEnd::new(how)
}

/// A session works, unless its role forbids that or it could not.
fn finding(policy: &Policy, task: &Task, supposed: &Supposed) -> Finding {
    let could_not = matches!(supposed.ending, Ending::Unavailable | Ending::Misconfigured);
    let must_not = policy.roles == RolesMode::Strict && task.role == Role::Planner;
    Finding {
        changed: !could_not,
        changed_code: !could_not && !must_not,
        changed_since_base: true,
        ..Finding::new(supposed.left.finding.clone())
    }
}

fn guard(ending: Ending) -> GuardEnd {
    let output = "what the guard prints".to_owned();
    GuardEnd { output, ..GuardEnd::new(GuardHow::Exited(i32::from(ending == Ending::Red))) }
}

fn review(ending: Ending) -> ReviewEnd {
    let reasons = "what the reviewer says".to_owned();
    let is_rejected = ending == Ending::Rejected;
    ReviewEnd::new(if is_rejected { ReviewHow::Rejected { reasons } } else { ReviewHow::Accepted { reasons } })
}
