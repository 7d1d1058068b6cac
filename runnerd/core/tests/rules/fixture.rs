//! Plain values shared by the tests: trees, tasks, ends of sessions and guards.
//!
//! Each is as plain as possible; a test changes only the part that it is about.

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::state::UsageTotal;
use protocol::tree::{ChildSpec, Node, TREE_VERSION, TaskTree};
use protocol::words::{Containment, Role};
use runner_core::guard::definition::DefinitionDiff;
use runner_core::iteration::{
    GuardEnd, GuardEndKind, IterationEvent, IterationOutcome, Phase, ReviewEnd, ReviewEndKind, WorkResult, WorkSource,
    decide,
};
use runner_core::policy::Policy;
use runner_core::run::blocker::{Blocker, Transience};
use runner_core::verdict::{
    FaultKind, RuleBreach, SessionEnd, SessionEndKind, SessionFinding, SessionRule, SessionTask, StopCause,
    TreeFinding, Verdict,
};

pub(crate) const STOPS: [StopCause; 4] = [StopCause::Pause, StopCause::Cancel, StopCause::Shutdown, StopCause::Death];

pub(crate) fn leaf(id: &str, order: i64) -> Node {
    Node {
        id: id.to_owned(),
        order,
        title: format!("Title of {id}"),
        goal: format!("Goal of {id}"),
        acceptance: vec![format!("{id} holds")],
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children: Vec::new(),
    }
}

pub(crate) fn passed(id: &str, order: i64) -> Node {
    Node { passes: true, ..leaf(id, order) }
}

pub(crate) fn inner(id: &str, order: i64, children: Vec<Node>) -> Node {
    let passes = children.iter().all(|child| child.passes);
    Node { passes, children, ..leaf(id, order) }
}

pub(crate) fn tree(root: Node) -> TaskTree {
    TaskTree { version: TREE_VERSION, root }
}

/// A root with a passed leaf `a`, an open leaf `b` (the selected one) and an open branch `c` of `c1`, `c2`.
pub(crate) fn sample() -> TaskTree {
    let branch = inner("c", 3, vec![leaf("c1", 1), leaf("c2", 2)]);
    tree(inner("root", 0, vec![passed("a", 1), leaf("b", 2), branch]))
}

pub(crate) fn node<'a>(tree: &'a mut TaskTree, id: &str) -> &'a mut Node {
    runner_core::tree::find_mut(tree, id).expect("the node is in the tree")
}

pub(crate) fn child(title: &str) -> ChildSpec {
    ChildSpec { title: title.to_owned(), goal: format!("Goal of {title}"), acceptance: vec!["it holds".to_owned()] }
}

pub(crate) fn task() -> SessionTask {
    SessionTask {
        run: "run-1".to_owned(),
        iter: 7,
        from: "f".repeat(40),
        node: "b".to_owned(),
        path: vec!["root".to_owned(), "b".to_owned()],
        role: Role::Worker,
        narrowing: false,
        attempts: 0,
        max_attempts: 3,
        kind: None,
        reviewer: None,
        decision: None,
        signature: None,
        recheck: false,
    }
}

pub(crate) fn answer(status: AnswerStatus) -> AgentAnswer {
    AgentAnswer { status, summary: "what was done".to_owned(), children: None }
}

pub(crate) fn session(how: SessionEndKind) -> SessionEnd {
    SessionEnd { exit: Some(0), agent: "command 1".to_owned(), elapsed_ms: 1_000, ..SessionEnd::new(how) }
}

pub(crate) fn answered(status: AnswerStatus) -> SessionEnd {
    session(SessionEndKind::Answered(answer(status)))
}

pub(crate) fn decomposed(children: u32) -> SessionEnd {
    let children = (1..=children).map(|number| child(&format!("part {number}"))).collect();
    let answer = AgentAnswer { children: Some(children), ..answer(AnswerStatus::Decomposed) };
    session(SessionEndKind::Answered(answer))
}

pub(crate) fn unavailable() -> SessionEndKind {
    SessionEndKind::Unavailable { why: "usage limit".to_owned(), until: None }
}

pub(crate) fn misconfigured() -> SessionEndKind {
    SessionEndKind::Misconfigured { what: "log in".to_owned() }
}

pub(crate) fn context_exceeded() -> SessionEndKind {
    SessionEndKind::ContextExceeded { what: "too long".to_owned() }
}

pub(crate) fn faulty() -> SessionEndKind {
    SessionEndKind::Faulty { kind: FaultKind::Crash, what: "signal 11".to_owned() }
}

pub(crate) fn full_disk() -> Blocker {
    let what = "the disk is full".to_owned();
    let remedy = "make room".to_owned();
    Blocker { what, remedy, nature: Transience::Passing }
}

pub(crate) fn legal() -> TreeFinding {
    TreeFinding::UNTOUCHED
}

pub(crate) fn invalid() -> TreeFinding {
    TreeFinding::Invalid { faults: Vec::new(), text: "{".to_owned(), blob: None }
}

pub(crate) fn illegal(rule: SessionRule) -> TreeFinding {
    TreeFinding::Illegal(RuleBreach { rule, at: "a".to_owned(), details: "`goal` differs".to_owned() })
}

pub(crate) fn finding(tree: TreeFinding) -> SessionFinding {
    SessionFinding { changed: true, changed_since_base: true, ..SessionFinding::new(tree) }
}

/// A guard that was red and may run once more.
pub(crate) fn red() -> GuardEnd {
    GuardEnd { containment: Some(Containment::Walk), ..guard(GuardEndKind::Exited(1)) }
}

pub(crate) fn guard(how: GuardEndKind) -> GuardEnd {
    let output = "test lexer::tests::empty ... FAILED".to_owned();
    GuardEnd { output, elapsed_ms: 200, ..GuardEnd::new(how) }
}

pub(crate) fn green() -> GuardEnd {
    guard(GuardEndKind::Exited(0))
}

pub(crate) fn review(how: ReviewEndKind) -> ReviewEnd {
    let usage = UsageTotal { sessions: 1, ..UsageTotal::default() };
    ReviewEnd { agent: "command 1".to_owned(), tries: 1, usage, elapsed_ms: 30, ..ReviewEnd::new(how) }
}

/// A definition of the guard that differs from an accepted one in its justfile.
pub(crate) fn departure() -> DefinitionDiff {
    DefinitionDiff { paths: vec!["justfile".to_owned()], has_accepted: true }
}

/// A guard that ran with this definition.
pub(crate) fn departed(how: GuardEndKind) -> GuardEnd {
    GuardEnd { departure: departure(), ..guard(how) }
}

/// The outcome of a legal session with this verdict, including everything that leads to it.
pub(crate) fn outcome(verdict: Verdict) -> IterationOutcome {
    let (how, tree, guard_end) = match &verdict {
        Verdict::Accepted | Verdict::Rejected { .. } | Verdict::Pending => {
            (answered(AnswerStatus::Done), legal(), Some(green()))
        }
        Verdict::RedGuard => (answered(AnswerStatus::Done), legal(), Some(guard(GuardEndKind::Exited(1)))),
        Verdict::Retry => (answered(AnswerStatus::Retry), legal(), None),
        Verdict::Narrowed => (answered(AnswerStatus::Retry), TreeFinding::Legal { gained: 0, reworded: true }, None),
        Verdict::Decomposed => (decomposed(2), legal(), None),
        Verdict::Broken(RuleBreach { rule: SessionRule::ValidTree, .. }) => {
            (answered(AnswerStatus::Done), invalid(), None)
        }
        Verdict::Broken(_) => (answered(AnswerStatus::Done), illegal(SessionRule::PassedNode), None),
        Verdict::Fault { .. } => (session(faulty()), legal(), None),
        Verdict::Unavailable { .. } => (session(unavailable()), legal(), None),
        Verdict::Timeout { .. } => (session(SessionEndKind::TimedOut), legal(), None),
        Verdict::Misconfigured { .. } => (session(misconfigured()), legal(), None),
        Verdict::Interrupted { .. } => (session(SessionEndKind::Cut), legal(), None),
    };
    IterationOutcome {
        work: WorkResult { task: task(), by: WorkSource::Session { end: how, finding: finding(tree) } },
        guard: guard_end,
        review: None,
        verdict,
    }
}

pub(crate) fn session_of(outcome: &mut IterationOutcome) -> &mut SessionEnd {
    let WorkSource::Session { end, .. } = &mut outcome.work.by else { panic!("a session") };
    end
}

pub(crate) fn finding_of(outcome: &mut IterationOutcome) -> &mut SessionFinding {
    let WorkSource::Session { finding, .. } = &mut outcome.work.by else { panic!("a session") };
    finding
}

pub(crate) fn broken(rule: SessionRule) -> Verdict {
    Verdict::Broken(RuleBreach { rule, at: "b".to_owned(), details: "it was seen".to_owned() })
}

pub(crate) fn fault() -> Verdict {
    Verdict::Fault { kind: FaultKind::Crash, what: "signal 11".to_owned() }
}

/// One verdict of every row of the table.
pub(crate) fn verdicts() -> Vec<Verdict> {
    vec![
        Verdict::Accepted,
        Verdict::RedGuard,
        Verdict::Rejected { reasons: "no test".to_owned() },
        Verdict::Pending,
        Verdict::Retry,
        Verdict::Narrowed,
        Verdict::Decomposed,
        broken(SessionRule::PassedNode),
        fault(),
        Verdict::Unavailable { why: "usage limit".to_owned(), until: None },
        Verdict::Timeout { during: protocol::words::PhaseName::Work },
        Verdict::Misconfigured { what: "log in".to_owned() },
        Verdict::Interrupted { by: StopCause::Pause },
    ]
}

/// Drives an iteration through `events`, each of which must be legal.
pub(crate) fn drive(policy: &Policy, events: impl IntoIterator<Item = IterationEvent>) -> Phase {
    events.into_iter().fold(Phase::Open, |phase, event| decide(policy, phase, event).expect("a legal event"))
}
