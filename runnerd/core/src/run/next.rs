//! Whether a run goes on, waits or ends, from what is committed and what was asked.
//!
//! Says why in one sentence, and which command goes on.

use jiff::Timestamp;
use protocol::command::{Command, Ways};
use protocol::explain::RoleReason;
use protocol::state::{Feedback, RunState};
use protocol::tree::{Node, TaskTree};
use protocol::view::StopReason;
use protocol::words::Role;

use super::record::{Asked, End};
use crate::approval::{Pending, PersonDecision, pending_leaf};
use crate::fallback::{Choice, Outage, choose};
use crate::policy::{Policy, ReviewBy};
use crate::select::{Selection, select};
use crate::tree;
use crate::usage::{self, Spent};
use crate::verdict::{FaultKind, StopCause, Task, Verdict};
use crate::wait::Wait;

/// Objects in one of the 256 folders that single ones are kept in, from which on git is asked to pack all: some thousand then.
const PACKED_FROM: usize = 4;
/// Answers `decomposed` in a row that end a run.
const MAX_DECOMPOSED_IN_ROW: u32 = 20;
/// Deaths in a row on one node that end a run.
const MAX_DEATHS: u32 = 10;
/// Costs are counted in millionths of a dollar, and stated in dollars.
const MICRO_PER_USD: u64 = 1_000_000;
/// Times are counted in milliseconds, and stated in seconds.
const MS_PER_SECOND: u64 = 1_000;

/// What is committed, what the configuration allows, and which services can be asked.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// The numbers and choices in force.
    pub policy: &'a Policy,
    /// The task tree at HEAD.
    pub tree: &'a TaskTree,
    /// The bookkeeping at HEAD.
    pub run_state: &'a RunState,
    /// The feedback at HEAD.
    pub feedback: &'a Feedback,
    /// A person's word that no commit holds yet.
    pub word: Option<&'a PersonDecision>,
    /// Kinds of agents whose services were not available.
    pub outages: &'a [Outage],
    /// What tries of the next iteration have spent that left no commit.
    pub tried: &'a Spent,
    /// The time.
    pub now: Timestamp,
}

/// What a run does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// The next iteration, on this leaf.
    GoOn(Task),
    /// Nothing until a time.
    Wait(Wait, StopReason),
    /// A person's review.
    WaitForPerson(StopReason),
    /// It is paused.
    Pause(StopReason),
    /// It needs the attention of a person first.
    Hold(StopReason),
    /// It is over.
    End {
        /// How.
        end: End,
        /// Why, and what goes on.
        reason: StopReason,
    },
}

/// Decides what a run does next; the first that applies, in the order of these lines. `ended` is the verdict of the iteration
/// that has just ended, where one has.
pub fn next(standing: &Standing<'_>, ended: Option<&Verdict>, asked: Option<Asked>) -> Next {
    let leaf = match select(standing.tree) {
        Selection::Complete => return end(End::Completed, "every leaf of the task tree passes", ""),
        Selection::Exhausted(leaf) => return exhausted(leaf),
        Selection::Open(leaf) => leaf,
    };
    let pending = pending_leaf(standing, leaf);
    let word = standing.word.filter(|word| ended.is_none() && word.counts_for(pending.as_ref(), standing.policy));
    if let Some(word) = word {
        // It is no session, so no ceiling stands in its way.
        let (decision, signature) = (Some(word.decision.clone()), word.signature.clone());
        return Next::GoOn(Task { role: Role::Human, narrowing: false, decision, signature, ..task(standing, leaf) });
    }
    stalled(standing, leaf)
        .or_else(|| failed(standing, ended))
        .or_else(|| ended.and_then(timed_out))
        .or_else(|| used_up(standing))
        .or_else(|| ended.and_then(|_| unpriced(standing)))
        .or_else(|| elsewhere(standing, ended).filter(|_| asked != Some(Asked::Cancel)))
        .or_else(|| by_request(asked, ended))
        .or_else(|| pending.map(|pending| review(&pending)))
        .unwrap_or_else(|| ask(standing, task(standing, leaf)))
}

fn end(end: End, message: impl Into<String>, ways: impl Into<Ways>) -> Next {
    Next::End { end, reason: StopReason::new(message, ways) }
}

fn stalled(standing: &Standing<'_>, leaf: &Node) -> Option<Next> {
    let state = standing.run_state;
    let message = if state.stall.count >= standing.policy.stall_after {
        format!("the same answer came {} times in a row, last on node {}", state.stall.count, leaf.id)
    } else if state.decomposed_in_row >= MAX_DECOMPOSED_IN_ROW {
        format!("{} decompositions in a row without work, now at node {}", state.decomposed_in_row, leaf.id)
    } else {
        return None;
    };
    let ways = Ways::from("runnerctl note TEXT").join(", or ", by_hand(leaf)).join("; then: ", "runnerctl resume");
    Some(end(End::Stuck, message, ways))
}

fn exhausted(leaf: &Node) -> Next {
    Next::End { end: End::Stuck, reason: used_up_attempts(leaf) }
}

/// Returns how a run that has ended would end again at once, and why, though its counters are reset and `more` iterations
/// granted; nothing where it would go on, or would turn out to be completed.
pub fn ends_again(standing: &Standing<'_>, more: u32) -> Option<(End, StopReason)> {
    let run_state = on_resume(standing, true, more);
    match next(&Standing { run_state: &run_state, ..*standing }, None, None) {
        Next::End { end: End::Completed, .. } => None,
        Next::End { end, reason } => Some((end, reason)),
        Next::GoOn(_) | Next::Wait(..) | Next::WaitForPerson(_) | Next::Pause(_) | Next::Hold(_) => None,
    }
}

/// Returns why a run has ended now that its files were changed: what stopped it may be put right, or stop it otherwise.
/// Nothing where it ended for a reason that no file takes away.
pub fn reason_after_change(before: &Standing<'_>, after: &Standing<'_>) -> Option<StopReason> {
    ends_again(before, 0)?;
    let (_, reason) = ends_again(after, 0).unwrap_or_else(|| {
        (End::Stuck, StopReason::new("what stopped it was changed since, and it can go on", "runnerctl resume"))
    });
    Some(reason)
}

/// Names the three ways on: raise, reword, decompose.
fn used_up_attempts(leaf: &Node) -> StopReason {
    let Node { id, max_attempts, .. } = leaf;
    let which = if *max_attempts == 1 { "only attempt".to_owned() } else { format!("{max_attempts} attempts") };
    StopReason::new(
        format!("node {id} has used its {which}"),
        Ways::from(Command::retry(id)).join(", or ", by_hand(leaf)).join("; then: ", "runnerctl resume"),
    )
}

/// Names the commands that reword and decompose.
fn by_hand(leaf: &Node) -> Ways {
    Ways::from("runnerctl edit").join(", or ", format!("runnerctl add {} --title TITLE --goal GOAL", leaf.id))
}

fn failed(standing: &Standing<'_>, ended: Option<&Verdict>) -> Option<Next> {
    let state = standing.run_state;
    if let Some(Verdict::Misconfigured { what }) = ended {
        return Some(end(End::Failed, what.clone(), "runnerctl resume"));
    }
    if state.deaths.count >= MAX_DEATHS {
        let node = state.deaths.node.as_deref().unwrap_or("?");
        let message = format!("the daemon or the machine died {} times in a row on node {node}", state.deaths.count);
        return Some(end(End::Failed, message, "runnerctl resume"));
    }
    (state.consecutive_faults >= standing.policy.max_consecutive_faults).then(|| {
        let (last, program) = match ended {
            Some(Verdict::Fault { what, kind: FaultKind::Guard }) => (format!(" ({what})"), "guard"),
            Some(Verdict::Fault { what, kind: FaultKind::Reviewer }) => (format!(" ({what})"), "review"),
            Some(Verdict::Fault { what, .. }) => (format!(" ({what})"), "agent"),
            _ => (String::new(), "agent"),
        };
        let what = match (state.consecutive_faults, program) {
            (1, "guard") => "a session could not be checked".to_owned(),
            (1, "review") => "a finished node could not be reviewed".to_owned(),
            (1, _) => "a session gave no valid answer".to_owned(),
            (count, "guard" | "review") => {
                format!("{count} sessions in a row gave no valid answer or could not be checked")
            }
            (count, _) => format!("{count} sessions in a row gave no valid answer"),
        };
        let log = format!("`runnerctl log --{program}` shows what the last one printed");
        end(End::Failed, format!("{what}{last}; {log}"), "runnerctl resume")
    })
}

fn timed_out(verdict: &Verdict) -> Option<Next> {
    let Verdict::Timeout { during } = verdict else { return None };
    let message = format!("the budget of the iteration ran out during {during}");
    Some(end(End::TimedOut, message, "runnerctl resume"))
}

fn used_up(standing: &Standing<'_>) -> Option<Next> {
    let (policy, state) = (standing.policy, standing.run_state);
    let iterations = policy.max_iterations.saturating_add(state.allowance);
    if state.next_iter > iterations {
        return Some(end(End::Limit, format!("{iterations} iterations are used up"), "runnerctl resume --more 20"));
    }
    let spent = Spent { usage: state.usage.clone(), elapsed_ms: state.elapsed_ms }.and(standing.tried);
    let ceilings = [
        ("max_cost_usd", policy.max_cost_micro_usd, spent.usage.cost_micro_usd.unwrap_or(0), MICRO_PER_USD),
        ("max_tokens", policy.max_tokens, usage::tokens(&spent.usage), 1),
        ("max_run_secs", policy.max_run_ms, spent.elapsed_ms, MS_PER_SECOND),
    ];
    ceilings.into_iter().find_map(|(key, ceiling, used, unit)| {
        let ceiling = ceiling.filter(|ceiling| used >= *ceiling)?;
        // As much again as it was, on top of what is spent.
        let raised = used.saturating_add(ceiling).div_ceil(unit);
        let ways = Ways::from(Command::set(key, &raised.to_string())).join(" && ", "runnerctl resume");
        Some(end(End::Limit, format!("{key} is used up"), ways))
    })
}

/// Ends a run whose ceiling on cost cannot be kept: a session has spent tokens that nobody has named a price for, and what is
/// not known is not free. Whoever lets it go on nevertheless has seen that.
fn unpriced(standing: &Standing<'_>) -> Option<Next> {
    let usage = usage::sum(&standing.run_state.usage, &standing.tried.usage);
    let unpriced = usage.cost_unknown.saturating_sub(usage.tokens_unknown);
    if standing.policy.max_cost_micro_usd.is_none() || unpriced == 0 {
        return None;
    }
    let what =
        format!("max_cost_usd cannot be kept: the price of what {unpriced} of its sessions have used is not known");
    Some(end(End::Limit, what, "runnerctl config set max_cost_usd --default && runnerctl resume"))
}

/// Holds a run whose HEAD somebody has moved: a person may be at work in the same work tree.
fn elsewhere(standing: &Standing<'_>, ended: Option<&Verdict>) -> Option<Next> {
    let Some(Verdict::Interrupted { by: StopCause::Elsewhere }) = ended else { return None };
    let (run, iter) = (standing.run_state.run_id.as_deref().unwrap_or_default(), standing.run_state.next_iter - 1);
    let rescue = format!("refs/runner/rescue/{run}/{iter:04}");
    let message = format!(
        "HEAD was moved away from runner/{run} in iteration {iter}, and whether by a person or the agent is not known; \
         what was there is kept under {rescue}, and runner/{run} is checked out again"
    );
    Some(Next::Hold(StopReason::new(message, Ways::from(Command::show_files(&rescue)).then("runnerctl resume"))))
}

fn by_request(asked: Option<Asked>, ended: Option<&Verdict>) -> Option<Next> {
    let by = ended.and_then(|verdict| if let Verdict::Interrupted { by } = verdict { Some(*by) } else { None });
    match (asked, by) {
        (Some(Asked::Cancel), _) | (_, Some(StopCause::Cancel)) => {
            Some(end(End::Cancelled, "cancelled by the user", "runnerctl start"))
        }
        (Some(Asked::Pause), _) | (_, Some(StopCause::Pause)) => Some(paused("paused by the user", ended)),
        (Some(Asked::Step), _) => Some(paused("the iteration you asked for is done", ended)),
        (None, _) => None,
    }
}

/// Pauses, and says so if the service was not available: the pause does not hide it.
fn paused(why: &str, ended: Option<&Verdict>) -> Next {
    let message = match ended {
        Some(verdict @ Verdict::Unavailable { .. }) => {
            let detail = verdict.detail().unwrap_or_default();
            format!("paused, and the model's service is not available: {detail}")
        }
        _ => why.to_owned(),
    };
    Next::Pause(StopReason::new(message, "runnerctl resume"))
}

fn review(pending: &Pending) -> Next {
    let Pending { node, iter } = pending;
    let message = format!("node {node} is done and awaits your review: `runnerctl log {iter} --diff` shows it");
    let ways = Ways::from("runnerctl approve, or: runnerctl reject REASON").with(Command::show_diff(*iter));
    Next::WaitForPerson(StopReason::new(message, ways))
}

/// Chooses the kinds that the session and its review are asked of; waits where the service of none of them is available:
/// what nobody can review is better not begun.
fn ask(standing: &Standing<'_>, task: Task) -> Next {
    let kind = chosen(standing, task.role);
    let reviewer = match standing.policy.review {
        ReviewBy::Agent => chosen(standing, Role::Reviewer),
        ReviewBy::Off | ReviewBy::Human => Ok(None),
    };
    match (kind, reviewer) {
        (Ok(kind), Ok(reviewer)) => Next::GoOn(Task { kind, reviewer, ..task }),
        (Err(wait), _) | (_, Err(wait)) => *wait,
    }
}

fn chosen(standing: &Standing<'_>, role: Role) -> Result<Option<String>, Box<Next>> {
    match choose(standing.policy.kinds.of(role), standing.outages, standing.now) {
        Choice::Ask(kind) => Ok(kind.map(str::to_owned)),
        Choice::Wait(wait, out) => {
            Err(Box::new(Next::Wait(wait, StopReason::new(unavailable(&out), "runnerctl resume --now"))))
        }
    }
}

fn unavailable(out: &[&Outage]) -> String {
    match out {
        [only] => format!("the model's service is not available: {}", only.why),
        all => {
            let each: Vec<String> = all.iter().map(|outage| format!("{}: {}", outage.kind, outage.why)).collect();
            format!("no service is available: {}", each.join("; "))
        }
    }
}

/// Returns what the next session is asked; its From is filled in by whoever knows HEAD.
fn task(standing: &Standing<'_>, leaf: &Node) -> Task {
    let state = standing.run_state;
    let path = tree::path(standing.tree, &leaf.id);
    let role = role(state, leaf, path.len() == 1);
    Task {
        run: state.run_id.clone().unwrap_or_default(),
        iter: state.next_iter,
        from: String::new(),
        node: leaf.id.clone(),
        path,
        role,
        narrowing: role == Role::Planner && is_last_attempt(leaf) && !state.narrowed.contains(&leaf.id),
        attempts: leaf.attempts,
        max_attempts: leaf.max_attempts,
        kind: None,
        reviewer: None,
        decision: None,
        signature: None,
        recheck: false,
    }
}

/// Returns what a session on `leaf` is asked to be.
pub fn role(state: &RunState, leaf: &Node, is_root: bool) -> Role {
    role_reason(state, leaf, is_root).role()
}

/// Returns why a session on `leaf` is asked to be what it is.
pub fn role_reason(state: &RunState, leaf: &Node, is_root: bool) -> RoleReason {
    if state.repair.as_ref() == Some(&leaf.id) {
        RoleReason::Repair
    } else if is_root {
        RoleReason::Root
    } else if leaf.max_attempts >= 2 && is_last_attempt(leaf) {
        RoleReason::LastAttempt
    } else {
        RoleReason::Leaf
    }
}

fn is_last_attempt(leaf: &Node) -> bool {
    leaf.attempts.checked_add(1) == Some(leaf.max_attempts)
}

/// Returns the state with which a run is resumed: iterations are granted, and the counters that would stop it at
/// once are reset if it had ended. Others count on.
pub fn on_resume(standing: &Standing<'_>, had_ended: bool, more: u32) -> RunState {
    let would_stop = matches!(next(standing, None, None), Next::End { .. });
    if had_ended && would_stop {
        return resumed(standing.run_state, more);
    }
    RunState { allowance: standing.run_state.allowance.saturating_add(more), ..standing.run_state.clone() }
}

/// Returns the state with which a run goes on after `resume`: counters that stopped it are reset.
pub fn resumed(state: &RunState, more: u32) -> RunState {
    RunState {
        consecutive_faults: 0,
        stall: protocol::state::Stall::default(),
        decomposed_in_row: 0,
        deaths: protocol::state::Deaths::default(),
        allowance: state.allowance.saturating_add(more),
        ..state.clone()
    }
}

/// Tells whether git's objects are packed, by how many lie about in one of their 256 folders: often enough that few do, seldom
/// enough that it costs nothing.
pub fn is_to_be_packed(in_one_folder: usize) -> bool {
    in_one_folder >= PACKED_FROM
}
