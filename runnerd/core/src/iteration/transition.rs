//! Computes the next committed state from an outcome: tree, bookkeeping, feedback, progress.
//!
//! A pure function of From's state and the outcome; repeated after a crash, it yields the same bytes. Writes nothing.

use std::collections::BTreeSet;

use protocol::answer::AgentAnswer;
use protocol::state::{Attempt, Deaths, Failure, Feedback, NodeFeedback, RunState, Stall, UsageTotal};
use protocol::test_record::TestRecord;
use protocol::tree::TaskTree;
use protocol::words::{GuardOutcome, IterationStatus, VerdictName};

use crate::committed_state::CommittedState;
use crate::feedback::{fingerprint_failure, list_failures};
use crate::files::guardrails::{self, Guardrail};
use crate::files::layout;
pub use crate::files::layout::PROGRESS_HEADING;
use crate::guard::definition::GuardDefinition;
use crate::guard::flakes::{self, FlakyGuard};
use crate::guard::test_results;
use crate::iteration::{GuardEnd, GuardEndKind, IterationOutcome, WorkSource};
use crate::run::usage::{self, ResourceUsage};
use crate::text::digest::sha256_hex;
use crate::text::fence::one_line;
use crate::tree;
use crate::tree::validate::TreeFault;
use crate::verdict::{
    FeedbackEffect, SessionFinding, SessionRule, SessionTask, StopCause, TreeFinding, TreeSource, Verdict, VerdictRow,
    verdict_row,
};

/// Most attempts remembered per node.
const MAX_HISTORY: usize = 8;
/// Most bytes of a summary in `feedback.json`.
const MAX_SUMMARY: usize = 2_000;
/// Most bytes of a failure in `feedback.json`.
pub const MAX_FAILURE: usize = 16 * 1024;
/// Most bytes of the details of an attempt, and the number of failures that they name.
const MAX_DETAIL: usize = 240;
const MAX_FAILURE_NAMES: usize = 4;
/// Most bytes of the file names in a failure.
const MAX_NAMED: usize = 400;
/// Most bytes of `progress.md`.
const MAX_PROGRESS: usize = 64 * 1024;

/// What the caller knows in addition to the outcome.
#[derive(Debug, Clone, Default)]
pub struct TransitionFacts {
    /// The tree that Inspect kept, if it was legal.
    pub agents_tree: Option<TaskTree>,
    /// Ids of the notes that were in the prompt.
    pub notes: Vec<String>,
    /// All files that are held back from the branch.
    pub held_back: Vec<String>,
    /// Submodules with uncommitted work inside.
    pub dirty_submodules: Vec<String>,
    /// The guard's definition that a person accepted last.
    pub guard_definition: GuardDefinition,
    /// Duration of the iteration, in milliseconds.
    pub elapsed_ms: u64,
    /// What earlier attempts at this iteration that left no commit have used.
    pub retry_usage: ResourceUsage,
}

/// The committed state after an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateAfter {
    /// The task tree.
    pub tree: TaskTree,
    /// The run's bookkeeping.
    pub run_state: RunState,
    /// The feedback.
    pub feedback: Feedback,
    /// The text of `progress.md`.
    pub progress: String,
    /// The names of tests.
    pub tests: TestRecord,
    /// Entry to append to `guardrails.md`, unless it is already there.
    pub guardrail: Option<Guardrail>,
    /// Whether the agent's tree was rejected although it differs from From's.
    pub tree_refused: bool,
}

/// Applies an outcome to the state at From.
pub fn apply_outcome(before: &CommittedState, outcome: &IterationOutcome, facts: &TransitionFacts) -> StateAfter {
    let row = verdict_row(outcome.verdict.name());
    let tree = next_tree(before, outcome, facts, row);
    let feedback = next_feedback(&before.feedback, &tree, outcome, row);
    StateAfter {
        run_state: next_run_state(before, outcome, facts, row),
        guardrail: next_guardrail(&feedback, outcome, row),
        feedback,
        progress: next_progress(before.text(layout::PROGRESS), &tree, outcome),
        tests: next_tests(&before.tests, outcome),
        tree_refused: matches!(tree_finding(outcome), Some(TreeFinding::Invalid { .. } | TreeFinding::Illegal(_)))
            || (row.tree == TreeSource::FromCommit
                && facts.agents_tree.as_ref().is_some_and(|tree| *tree != *before.tree)),
        tree,
    }
}

/// Returns the finding about the session's task tree, if there was a session.
fn tree_finding(outcome: &IterationOutcome) -> Option<&TreeFinding> {
    outcome.work.finding().map(|finding| &finding.tree)
}

fn next_tree(
    before: &CommittedState,
    outcome: &IterationOutcome,
    facts: &TransitionFacts,
    row: VerdictRow,
) -> TaskTree {
    let agents = facts.agents_tree.as_ref().filter(|_| outcome.work.finding().is_none_or(SessionFinding::is_legal));
    let taken = match row.tree {
        TreeSource::Agent | TreeSource::AgentPassed | TreeSource::AgentIfLegal => agents,
        TreeSource::FromCommit => None,
    };
    let mut tree = taken.unwrap_or(&before.tree).clone();
    if let Some(node) = tree::find_mut(&mut tree, &outcome.work.task.node) {
        node.attempts = node.attempts.saturating_add(row.attempts).min(node.max_attempts);
        node.passes = node.passes || row.tree == TreeSource::AgentPassed;
    }
    tree::derive_passes(&mut tree);
    tree::sort(&mut tree);
    tree
}

fn next_run_state(
    before: &CommittedState,
    outcome: &IterationOutcome,
    facts: &TransitionFacts,
    row: VerdictRow,
) -> RunState {
    let old = &*before.run_state;
    let answer = usable_answer(outcome);
    let passed = outcome.verdict == Verdict::Accepted;
    RunState {
        next_iter: outcome.work.task.iter.saturating_add(1),
        last_node: Some(outcome.work.task.node.clone()),
        last_status: Some(row.status),
        last_summary: final_summary(outcome),
        last_guard: Some(outcome.guard_outcome()),
        review_required: outcome.verdict == Verdict::Pending
            && outcome.guard.as_ref().is_some_and(|guard| guard.review_required),
        consecutive_faults: consecutive_faults(old.consecutive_faults, outcome),
        stall: if passed { Stall::default() } else { next_stall(&old.stall, row.status, answer) },
        decomposed_in_row: decomposed_in_row(old.decomposed_in_row, &outcome.verdict),
        deaths: next_deaths(&old.deaths, outcome),
        narrowed: with_item(&old.narrowed, (outcome.verdict == Verdict::Narrowed).then_some(&outcome.work.task.node)),
        repair: next_repair(old.repair.as_ref(), outcome),
        held_back: facts.held_back.clone(),
        dirty_submodules: facts.dirty_submodules.clone(),
        notes_used: facts
            .notes
            .iter()
            .filter(|_| answer.is_some())
            .fold(old.notes_used.clone(), |used, note| with_item(&used, Some(note))),
        reverted: reverted_paths(outcome),
        hidden: hidden_paths(outcome),
        flakes: flakes::next_flakes(&old.flakes, outcome.flaky_guard(), &outcome.work.task),
        usage: usage::add_usage(&old.usage, &iteration_usage(outcome, &facts.retry_usage)),
        elapsed_ms: old.elapsed_ms.saturating_add(facts.retry_usage.elapsed_ms).saturating_add(facts.elapsed_ms),
        run_id: old.run_id.clone(),
        base: old.base.clone(),
        allowance: old.allowance,
        guard_definition: facts.guard_definition.clone(),
    }
}

/// Returns the final summary, by the session or by a person in its place.
fn final_summary(outcome: &IterationOutcome) -> Option<String> {
    let words = match &outcome.work.by {
        WorkSource::Person(decision) => Some(decision.summary()),
        WorkSource::Session { .. } => usable_answer(outcome).map(|answer| answer.summary.clone()),
    };
    words.map(|words| clip_summary(&words))
}

/// Returns the answer, unless the session was cut short.
fn usable_answer(outcome: &IterationOutcome) -> Option<&AgentAnswer> {
    outcome.work.answer().filter(|_| !matches!(outcome.verdict, Verdict::Interrupted { .. }))
}

fn consecutive_faults(in_row: u32, outcome: &IterationOutcome) -> u32 {
    match (&outcome.verdict, usable_answer(outcome)) {
        (Verdict::Fault { .. }, _) => in_row.saturating_add(1),
        (_, Some(_)) => 0,
        (_, None) => in_row,
    }
}

fn next_stall(old: &Stall, status: IterationStatus, answer: Option<&AgentAnswer>) -> Stall {
    let Some(answer) = answer else { return old.clone() };
    // Based on the summary as stored, so that the digest can be derived from what is committed.
    let words: Vec<String> = clip_summary(&answer.summary).split_whitespace().map(str::to_lowercase).collect();
    let digest = sha256_hex(format!("{status}\n{}", words.join(" ")).as_bytes());
    let count = if old.digest.as_ref() == Some(&digest) { old.count.saturating_add(1) } else { 1 };
    Stall { digest: Some(digest), count }
}

fn decomposed_in_row(in_row: u32, verdict: &Verdict) -> u32 {
    match verdict {
        Verdict::Decomposed => in_row.saturating_add(1),
        Verdict::Accepted | Verdict::RedGuard | Verdict::Rejected { .. } | Verdict::Pending => 0,
        Verdict::Retry | Verdict::Narrowed | Verdict::Broken(_) => 0,
        Verdict::Fault { .. } | Verdict::Unavailable { .. } | Verdict::Timeout { .. } => in_row,
        Verdict::Misconfigured { .. } | Verdict::Interrupted { .. } => in_row,
    }
}

fn next_deaths(old: &Deaths, outcome: &IterationOutcome) -> Deaths {
    let node = &outcome.work.task.node;
    let Verdict::Interrupted { by } = outcome.verdict else { return Deaths::default() };
    match by {
        StopCause::Death if old.node.as_ref() == Some(node) => {
            Deaths { node: Some(node.clone()), count: old.count.saturating_add(1) }
        }
        StopCause::Death => Deaths { node: Some(node.clone()), count: 1 },
        StopCause::Pause | StopCause::Cancel | StopCause::Shutdown | StopCause::Elsewhere => old.clone(),
    }
}

/// The repair role begins with an invalid tree and ends with the node's first answer that breaks no rule.
fn next_repair(old: Option<&String>, outcome: &IterationOutcome) -> Option<String> {
    let node = &outcome.work.task.node;
    if let Verdict::Broken(breach) = &outcome.verdict {
        return if breach.rule == SessionRule::ValidTree { Some(node) } else { old }.cloned();
    }
    old.filter(|repair| *repair != node || usable_answer(outcome).is_none()).cloned()
}

fn reverted_paths(outcome: &IterationOutcome) -> Vec<String> {
    let guard = outcome.guard.iter().flat_map(|guard| guard.reverted.iter());
    let review = outcome.review.iter().flat_map(|review| review.reverted.iter());
    let session = outcome.work.finding().into_iter().flat_map(|finding| finding.reverted.iter());
    let mut paths: Vec<String> = session.chain(guard).chain(review).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}

fn hidden_paths(outcome: &IterationOutcome) -> Vec<String> {
    let review = outcome.review.iter().flat_map(|review| &review.hidden);
    let session = outcome.work.session().into_iter().flat_map(|session| &session.hidden);
    let paths: BTreeSet<&String> = session.chain(review).collect();
    paths.into_iter().cloned().collect()
}

/// Returns what an iteration consumed: its session, its reviewers, and the attempts before it.
pub fn iteration_usage(outcome: &IterationOutcome, retry_usage: &ResourceUsage) -> UsageTotal {
    let session = outcome.work.session().map(|session| UsageTotal::from(&session.usage)).unwrap_or_default();
    let reviewers = outcome.review.as_ref().map(|review| review.usage.clone()).unwrap_or_default();
    usage::add_usage(&usage::add_usage(&retry_usage.usage, &session), &reviewers)
}

fn next_feedback(old: &Feedback, tree: &TaskTree, outcome: &IterationOutcome, row: VerdictRow) -> Feedback {
    let id = &outcome.work.task.node;
    let mut feedback = old.clone();
    match row.feedback {
        FeedbackEffect::Clear => {
            feedback.nodes.remove(id);
        }
        FeedbackEffect::Keep => {}
        FeedbackEffect::Record => record_outcome(feedback.nodes.entry(id.clone()).or_default(), outcome),
    }
    if outcome.guard_outcome() == GuardOutcome::Pass {
        end_red_guards(&mut feedback, &outcome.work.task);
    }
    let open = tree::index(tree);
    feedback.nodes.retain(|id, _| open.get(id.as_str()).is_some_and(|placed| !placed.node.passes));
    feedback
}

fn next_guardrail(feedback: &Feedback, outcome: &IterationOutcome, row: VerdictRow) -> Option<Guardrail> {
    let node = &outcome.work.task.node;
    feedback
        .nodes
        .get(node)
        .filter(|_| row.feedback == FeedbackEffect::Record)
        .and_then(|entry| guardrails::find_due_guardrail(node, entry))
}

/// A green guard overcomes the red one before it, and what the guard found on the base.
fn end_red_guards(feedback: &mut Feedback, task: &SessionTask) {
    let red_base = feedback.baseline.as_mut().filter(|baseline| baseline.guard != GuardOutcome::Pass);
    if let Some(baseline) = red_base.filter(|baseline| baseline.green_at.is_none()) {
        (baseline.output, baseline.green_at) = (None, Some(task.iter));
    }
    if let Some(node) = feedback.nodes.get_mut(&task.node) {
        node.failures.retain(|failure| failure.verdict != VerdictName::RedGuard);
    }
}

fn record_outcome(node: &mut NodeFeedback, outcome: &IterationOutcome) {
    let iter = outcome.work.task.iter;
    let verdict = outcome.verdict.name();
    let text = failure_text(outcome).map(|text| crate::feedback::clip_output(&text, MAX_FAILURE));
    node.history.push(Attempt {
        iter,
        verdict,
        detail: text.as_ref().map(|text| describe_end(outcome, text)),
        summary: usable_answer(outcome).map(|answer| clip_summary(&answer.summary)),
        failure_digest: text.as_ref().filter(|_| is_avoidable(verdict)).map(|text| fingerprint_failure(text).digest),
    });
    let surplus = node.history.len().saturating_sub(MAX_HISTORY);
    node.history.drain(..surplus);
    node.failures.retain(|failure| outlives_outcome(failure, outcome));
    node.failures.extend(text.map(|text| {
        let invalid_tree = invalid_tree(outcome).map(|(_, text)| text.to_owned());
        Failure { iter, verdict, text, invalid_tree }
    }));
}

/// Returns how an attempt that failed has ended, on one line.
fn describe_end(outcome: &IterationOutcome, text: &str) -> String {
    let red = outcome.guard.as_ref().filter(|_| outcome.verdict == Verdict::RedGuard);
    one_line(&red.map_or_else(|| text.to_owned(), |guard| describe_red_guard(guard, text)), MAX_DETAIL)
}

/// Returns how a red guard has ended, and the first failures in its output.
fn describe_red_guard(guard: &GuardEnd, text: &str) -> String {
    let end = match guard.how {
        GuardEndKind::Exited(code) => format!("exit {code}"),
        GuardEndKind::Signaled(signal) => format!("signal {signal}"),
        GuardEndKind::TimedOut | GuardEndKind::Missing { .. } | GuardEndKind::Cut | GuardEndKind::Lost => {
            "they did not end in time".to_owned()
        }
    };
    let failures = list_failures(text.as_bytes());
    let names: Vec<&str> = failures.iter().take(MAX_FAILURE_NAMES).map(|failure| failure.name.as_str()).collect();
    match failures.len() - names.len() {
        _ if names.is_empty() => end,
        0 => format!("{end}: {}", names.join(", ")),
        more => format!("{end}: {} and {more} more", names.join(", ")),
    }
}

/// Whether an earlier failure is told to the next session, too: neither overcome nor replaced by one of its kind.
fn outlives_outcome(failure: &Failure, outcome: &IterationOutcome) -> bool {
    use VerdictName::{
        Accepted, Broken, Decomposed, Fault, Interrupted, Misconfigured, Narrowed, Pending, RedGuard, Rejected, Retry,
        Timeout, Unavailable,
    };
    let verdict = outcome.verdict.name();
    let was_read = usable_answer(outcome).is_some() || matches!(verdict, RedGuard | Rejected);
    match failure.verdict {
        RedGuard | Rejected => failure.verdict != verdict,
        Broken if failure.invalid_tree.is_some() && verdict == Broken => invalid_tree(outcome).is_none(),
        Broken => verdict != Broken && !was_read,
        Accepted | Pending | Retry | Narrowed | Decomposed | Fault | Unavailable | Timeout | Misconfigured
        | Interrupted => !was_read && !matches!(verdict, Fault | Timeout),
    }
}

/// Whether the failure was the agent's fault.
fn is_avoidable(verdict: VerdictName) -> bool {
    matches!(verdict, VerdictName::RedGuard | VerdictName::Rejected | VerdictName::Broken)
}

fn failure_text(outcome: &IterationOutcome) -> Option<String> {
    if outcome.verdict == Verdict::RedGuard {
        return outcome.guard.as_ref().map(red_text);
    }
    match invalid_tree(outcome) {
        Some((faults, _)) => {
            let lines: Vec<String> = faults.iter().map(|fault| format!("- {fault}")).collect();
            Some(format!("{}:\n{}", SessionRule::ValidTree.as_str(), lines.join("\n")))
        }
        None => outcome.verdict.detail(),
    }
}

/// Returns the output of a red guard, why it counts if it was green the second time, and the definition it ran with if that
/// is not the accepted one.
fn red_text(guard: &GuardEnd) -> String {
    let files = || one_line(&guard.departure.paths.join(", "), MAX_NAMED);
    let with = match (guard.with_accepted, guard.departure.paths.is_empty()) {
        (true, _) => {
            format!("[red with the accepted definition of the guard, green with the changed one: {}]\n", files())
        }
        (false, false) => format!("[red with a definition of the guard that no person has accepted: {}]\n", files()),
        (false, true) => String::new(),
    };
    let charge = guard.flaky.as_ref().and_then(FlakyGuard::charge_notice).unwrap_or_default();
    charge + &with + &guard.output
}

/// Returns the faults of an invalid tree that the verdict is about, and the tree's text.
fn invalid_tree(outcome: &IterationOutcome) -> Option<(&[TreeFault], &str)> {
    match (&outcome.verdict, tree_finding(outcome)) {
        (Verdict::Broken(breach), Some(TreeFinding::Invalid { faults, text, .. }))
            if breach.rule == SessionRule::ValidTree =>
        {
            Some((faults, text))
        }
        _ => None,
    }
}

fn next_progress(old: &str, tree: &TaskTree, outcome: &IterationOutcome) -> String {
    let task = &outcome.work.task;
    let (Verdict::Accepted, Some(node)) = (&outcome.verdict, tree::find(tree, &task.node)) else {
        return old.to_owned();
    };
    let words: Vec<&str> = node.title.split_whitespace().collect();
    let line = format!("- {} — {} (iteration {:04})\n", task.node, words.join(" "), task.iter);
    let known = if old.is_empty() { PROGRESS_HEADING } else { old };
    keep_newest_lines(&format!("{known}{line}"))
}

/// Drops the oldest lines after the heading until the text fits, regardless of their author.
fn keep_newest_lines(text: &str) -> String {
    if text.len() <= MAX_PROGRESS {
        return text.to_owned();
    }
    let lines = text.strip_prefix(PROGRESS_HEADING).unwrap_or(text);
    let surplus = PROGRESS_HEADING.len() + lines.len() - MAX_PROGRESS;
    let ends = lines.bytes().enumerate().skip(surplus.saturating_sub(1));
    let cut = ends.filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1).next().unwrap_or(lines.len());
    format!("{PROGRESS_HEADING}{}", &lines[cut..])
}

/// A green guard replaces the list of tests that pass.
fn next_tests(old: &TestRecord, outcome: &IterationOutcome) -> TestRecord {
    let green = outcome.guard.as_ref().filter(|_| outcome.guard_outcome() == GuardOutcome::Pass);
    let results = green.and_then(|guard| guard.tests.as_ref());
    results.map_or_else(|| old.clone(), |results| test_results::next_record(old, outcome.work.task.iter, results))
}

fn clip_summary(summary: &str) -> String {
    crate::feedback::clip_output(summary, MAX_SUMMARY)
}

fn with_item(list: &[String], item: Option<&String>) -> Vec<String> {
    let new = item.filter(|item| !list.contains(item));
    list.iter().chain(new).cloned().collect()
}
