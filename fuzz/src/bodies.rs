//! One function for each fuzz target: it reads hostile input, and asserts what must hold for any result.
//!
//! Nothing here knows a fuzzer. A function returns quietly if the input is refused, and panics if a rule is broken.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use protocol::answer::AgentAnswer;
use protocol::event::Event as WireEvent;
use protocol::request::{
    AddParams, AnswerParams, AtIteration, AtRun, EditParams, ExportParams, ForkParams, Handshake, LogParams,
    StartParams, Subscription,
};
use protocol::state::RunState;
use protocol::tree::{Node, TaskTree};
use runner_config::goal::Goal;
use runner_core::committed_state::CommittedState;
use runner_core::files::answer;
use runner_core::iteration::transition::{TransitionFacts, apply_outcome};
use runner_core::iteration::tree_examination::{SessionTree, examine_tree};
use runner_core::iteration::{
    GuardEnd, GuardEndKind, IterationEffect, IterationEvent, IterationOutcome, Phase, decide,
};
use runner_core::message::{HumanCommit, MessageError, RunnerCommit, compose_human};
use runner_core::policy::Policy;
use runner_core::run::{self, NextStep, RunScratch};
use runner_core::text::json;
use runner_core::text::redact::Secrets;
use runner_core::tree;
use runner_core::tree::schema;
use runner_core::tree::validate::{check_tree, load, load_agent_tree, load_person_tree};
use runner_core::verdict::{FaultKind, SessionEnd, SessionEndKind, SessionFinding, SessionTask, Verdict};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets that need only the public interfaces of crates.
pub const TARGETS: [Target; 7] = [
    ("tree", task_tree),
    ("transition", transition),
    ("agent_output", agent_output),
    ("config", configuration),
    ("front_matter", front_matter),
    ("trailers", trailers),
    ("frames", frames),
];

/// Separates the parts of an input that has several, so that its corpus can be read and written by hand.
const BORDER: &[u8] = b"\n----\n";

/// A task tree from bytes: an accepted tree is valid, and its canonical form is equivalent.
pub fn task_tree(input: &[u8]) {
    if let Ok(tree) = load(input) {
        let value: Value = serde_json::from_slice(input).expect("a tree is JSON");
        assert!(schema::tree_validator().is_valid(&value), "what is read keeps the schema");
        let text = tree::canonical(&tree);
        let again = load(text.as_bytes()).expect("the canonical form of a valid tree is valid");
        assert_eq!(tree::canonical(&again), text, "the canonical form is a fixpoint");
    }
    if let Ok(tree) = load_agent_tree(input) {
        assert!(tree::walk(&tree).iter().all(|placed| placed.node.attempts == 0), "an agent owns no counter");
    }
    if let Ok(tree) = load_person_tree(input) {
        check_tree(&tree).expect("a person's tree keeps the rules");
    }
}

/// From's tree, the tree that a session leaves, its answer, and `green` or `red`: the committed state follows the
/// rules.
pub fn transition(input: &[u8]) {
    let mut parts = split(input).into_iter();
    let (Some(from), Some(left), answer, guard) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let Ok(from) = load(from) else { return };
    let run_state = RunState { run_id: Some("run-1".to_owned()), next_iter: 7, ..RunState::default() };
    let before =
        CommittedState { tree: Arc::new(from.clone()), run_state: Arc::new(run_state), ..CommittedState::default() };
    let scratch = RunScratch::default();
    let inputs = before.run_inputs(&scratch, Timestamp::UNIX_EPOCH);
    let NextStep::Continue(task) = run::decide_next(&inputs, None, None) else { return };
    let answer: Option<AgentAnswer> = answer.and_then(|text| serde_json::from_slice(text).ok());
    let session = SessionTree {
        from: &from,
        node: &task.node,
        role: task.role,
        text: Some(left),
        answer: answer.as_ref(),
        max_attempts: 3,
    };
    let examined = examine_tree(&session);
    let is_green = guard == Some(b"green");
    let played = Played { answer: answer.clone(), finding: found(examined.finding), is_green };
    let Some(outcome) = settle(&before.policy, &task, &played) else { return };
    let after =
        apply_outcome(&before, &outcome, &TransitionFacts { agents_tree: examined.tree, ..TransitionFacts::default() });
    assert_legal(&from, &after.tree, &task, &outcome.verdict);
    let text = json::to_canonical_json(&after.run_state);
    assert_eq!(serde_json::from_str::<RunState>(&text).ok().as_ref(), Some(&after.run_state));
    let again = apply_outcome(
        &before,
        &outcome,
        &TransitionFacts { agents_tree: examine_tree(&session).tree, ..TransitionFacts::default() },
    );
    assert_eq!(again, after, "done again it is the same");
}

/// The results of a session and its guard.
struct Played {
    answer: Option<AgentAnswer>,
    finding: SessionFinding,
    is_green: bool,
}

/// Folds the table of phases down to the outcome.
fn settle(policy: &Policy, task: &SessionTask, played: &Played) -> Option<IterationOutcome> {
    let mut phase = Phase::Work { task: task.clone(), stop: None };
    loop {
        let (event, at) = match (phase.effect()?, phase) {
            (IterationEffect::Settle, Phase::Settle { outcome }) => return Some(*outcome),
            (IterationEffect::RunSession, at) => (IterationEvent::SessionEnded(session(played.answer.clone())), at),
            (IterationEffect::Inspect, at) => (IterationEvent::Inspected(played.finding.clone()), at),
            (IterationEffect::RunGuard, at) => (IterationEvent::GuardEnded(guard(played.is_green)), at),
            _ => return None,
        };
        phase = decide(policy, at, event).expect("the event is the one that the phase waits for");
    }
}

fn session(answer: Option<AgentAnswer>) -> SessionEnd {
    let none = SessionEndKind::Faulty { kind: FaultKind::NoAnswer, what: "no answer".to_owned() };
    let how = answer.map_or(none, SessionEndKind::Answered);
    SessionEnd { exit: Some(0), agent: "command 1".to_owned(), elapsed_ms: 1, ..SessionEnd::new(how) }
}

fn found(tree: runner_core::verdict::TreeFinding) -> SessionFinding {
    SessionFinding { changed: true, changed_code: true, changed_since_base: true, ..SessionFinding::new(tree) }
}

fn guard(is_green: bool) -> GuardEnd {
    let how = GuardEndKind::Exited(i32::from(!is_green));
    GuardEnd { output: "FAIL".to_owned(), elapsed_ms: 1, ..GuardEnd::new(how) }
}

/// Asserts what no session may cause.
fn assert_legal(from: &TaskTree, after: &TaskTree, task: &SessionTask, verdict: &Verdict) {
    check_tree(after).expect("what is committed is valid");
    let nodes = |tree: &TaskTree| -> BTreeMap<String, Node> {
        tree::walk(tree).into_iter().map(|placed| (placed.node.id.clone(), placed.node.clone())).collect()
    };
    let now = nodes(after);
    for (id, old) in nodes(from) {
        let new = now.get(&id).unwrap_or_else(|| panic!("node {id} is gone"));
        assert!(!old.passes || *new == old, "passed node {id} has changed");
        assert!(new.attempts >= old.attempts && new.attempts <= new.max_attempts, "attempts of {id}");
        let is_charged = new.attempts > old.attempts;
        assert!(!is_charged || id == task.node, "{id} is charged for {}", task.node);
        let passes_now = new.passes && !old.passes && new.children.is_empty();
        assert!(!passes_now || (id == task.node && *verdict == Verdict::Accepted), "{id} passes with {verdict:?}");
    }
}

/// `$RUNNER_OUTPUT`: an accepted answer is within the limits that all later code relies on.
pub fn agent_output(input: &[u8]) {
    match answer::read_answer::<AgentAnswer>(input, &Secrets::default()) {
        Ok(output) => {
            if let Ok(answer) = output.content {
                assert!((1..=20_000).contains(&answer.summary.len()), "a summary has its bounds");
            }
        }
        Err(answer::RejectedAnswer(what)) => {
            assert!(!what.is_empty() && what.len() <= 8 * 1024, "a refusal says why, and not more");
        }
    }
}

/// Both configuration files: a refusal names a place, and an accepted configuration can be queried for every key.
pub fn configuration(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let file = Path::new("config.toml");
    match runner_config::parse(&text, file) {
        Ok(parsed) => {
            assert!(parsed.commands().iter().all(|(label, _)| !label.is_empty()));
            assert_eq!(
                parsed.commands_digest(),
                runner_config::parse(&text, file).expect("it was read").commands_digest()
            );
            // Whether a ceiling can be enforced is a separate question from whether it can be parsed.
            let _ = parsed.check_cost_limit();
        }
        Err(error) => assert!(error.to_string().contains("config.toml"), "{error}"),
    }
    if let Err(error) = runner_config::DaemonConfig::parse(&text, file) {
        assert!(error.to_string().contains("config.toml"), "{error}");
    }
}

/// `GOAL.md`: an id that is written can be read back, and the goal is unchanged.
pub fn front_matter(input: &[u8]) {
    let file = Path::new("GOAL.md");
    let Ok(goal) = Goal::parse(input, file) else { return };
    let Ok(text) = goal.with_id("run-1") else { return };
    let again = Goal::parse(text.as_bytes(), file).expect("what was written is read");
    assert_eq!(again.id(), Some("run-1"));
    assert!(again.body().ends_with(goal.body()), "the goal stays as it was");
}

/// Commit messages: one that parses is, byte for byte, one that the runner writes.
pub fn trailers(input: &[u8]) {
    let message = String::from_utf8_lossy(input);
    match RunnerCommit::parse(&message) {
        Ok(commit) => assert_eq!(commit.compose().trim_end_matches('\n'), message.trim_end_matches('\n')),
        Err(MessageError::Form { line }) => assert!(line > 0),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Some(Ok(HumanCommit { run, command, .. })) = HumanCommit::parse_bytes(message.as_bytes()) {
        assert!(!command.contains('\n'), "a trailer has one line");
        let composed = compose_human(&run, &command, "");
        assert_eq!(message.lines().next(), composed.lines().next(), "the subject is the command's");
    }
}

/// Frames of the control socket: accepted parameters are the same when they are sent again.
pub fn frames(input: &[u8]) {
    let Ok(frame) = serde_json::from_slice::<Value>(input) else { return };
    let params = frame["params"].get(0).unwrap_or(&frame["params"]);
    same::<Handshake>(params);
    same::<StartParams>(params);
    same::<ForkParams>(params);
    same::<AtRun>(params);
    same::<AtIteration>(params);
    same::<LogParams>(params);
    same::<AddParams>(params);
    same::<EditParams>(params);
    same::<AnswerParams>(params);
    same::<ExportParams>(params);
    same::<Subscription>(params);
    same::<WireEvent>(params);
}

fn same<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(params: &Value) {
    let Ok(read) = T::deserialize(params) else { return };
    let sent = serde_json::to_value(&read).expect("what was read can be sent");
    assert_eq!(T::deserialize(&sent).expect("what was sent can be read"), read);
}

/// Splits an input at its separators.
fn split(input: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = input;
    while let Some(at) = rest.windows(BORDER.len()).position(|window| window == BORDER) {
        parts.push(&rest[..at]);
        rest = &rest[at + BORDER.len()..];
    }
    parts.push(rest.strip_suffix(b"\n").unwrap_or(rest));
    parts
}
