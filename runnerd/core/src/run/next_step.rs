//! Decides whether a run continues, waits or ends, from what is committed and what was requested.
//!
//! Gives the reason in one sentence, and names the command that continues.

use jiff::Timestamp;
use protocol::command::{Command, NextSteps};
use protocol::explain::RoleReason;
use protocol::state::{Feedback, RunState};
use protocol::tree::{Node, TaskTree};
use protocol::view::StopReason;
use protocol::words::{Role, VerdictName};
use runner_config::ReviewPolicy;

use super::pause_reason;
use super::record::{RunEnd, StopRequest};
use super::refusal::review_ways;
use crate::iteration::session_failure::is_unexplained;
use crate::policy::Policy;
use crate::prompt::describe_attempt;
use crate::publish;
use crate::run::approval::{PendingNode, ReviewDecision, find_pending_leaf};
use crate::run::fallback::{KindChoice, ServiceOutage, choose_kind};
use crate::run::usage::{self, ResourceUsage};
use crate::run::wait::WaitPeriod;
use crate::text::fence::one_line;
use crate::tree;
use crate::tree::select::{LeafSelection, select};
use crate::verdict::{FaultKind, SessionTask, StopCause, Verdict};

/// Number of loose objects in one of git's 256 folders above which git packs them all: some thousand objects by then.
const PACK_THRESHOLD: usize = 4;
/// Consecutive `decomposed` answers that end a run.
const MAX_DECOMPOSED_IN_ROW: u32 = 20;
/// Consecutive deaths on one node that end a run.
const MAX_DEATHS: u32 = 10;
/// Most bytes of a summary in the reason for an end.
const MAX_SUMMARY_SHOWN: usize = 200;
/// Costs are counted in millionths of a dollar and configured in dollars.
const MICRO_PER_USD: u64 = 1_000_000;
/// Times are counted in milliseconds and configured in seconds.
const MS_PER_SECOND: u64 = 1_000;

/// What is committed, what the configuration allows, and which services are available.
#[derive(Debug, Clone, Copy)]
pub struct RunInputs<'a> {
    /// The configured numbers and choices in force.
    pub policy: &'a Policy,
    /// The task tree at HEAD.
    pub tree: &'a TaskTree,
    /// The bookkeeping at HEAD.
    pub run_state: &'a RunState,
    /// The feedback at HEAD.
    pub feedback: &'a Feedback,
    /// A person's decision that is not committed yet.
    pub review_decision: Option<&'a ReviewDecision>,
    /// Kinds of agents whose services were unavailable.
    pub outages: &'a [ServiceOutage],
    /// What attempts at the next iteration that left no commit have used.
    pub retry_usage: &'a ResourceUsage,
    /// The current time.
    pub now: Timestamp,
}

/// What a run does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// Run the next iteration, on this leaf.
    Continue(SessionTask),
    /// Wait until a time.
    Wait(WaitPeriod, StopReason),
    /// Wait for a person's review.
    WaitForPerson(StopReason),
    /// Pause.
    Pause(StopReason),
    /// Hold until a person has dealt with it.
    Hold(StopReason),
    /// End.
    End {
        /// How it ends.
        end: RunEnd,
        /// Why it ends, and which command continues.
        reason: StopReason,
    },
}

/// Returns what a run does next: the first step that applies, in the order of these lines. `ended` is the verdict of
/// the iteration that has just ended, if any.
pub fn decide_next(inputs: &RunInputs<'_>, ended: Option<&Verdict>, stop_request: Option<StopRequest>) -> NextStep {
    let leaf = match select(inputs.tree) {
        LeafSelection::Complete => return end_step(RunEnd::Completed, "every task has passed", ""),
        LeafSelection::Exhausted(leaf) => return exhausted_step(inputs, leaf),
        LeafSelection::Open(leaf) => leaf,
    };
    let pending = find_pending_leaf(inputs, leaf);
    let review_decision =
        inputs.review_decision.filter(|word| ended.is_none() && word.counts_for(pending.as_ref(), inputs.policy));
    if let Some(review_decision) = review_decision {
        // A decision is not a session, so no ceiling applies to it.
        let decision = Some(review_decision.decision.clone());
        let signature = review_decision.signature.clone();
        return NextStep::Continue(SessionTask {
            role: Role::Human,
            narrowing: false,
            decision,
            signature,
            ..build_task(inputs, leaf)
        });
    }
    // To wait for a person uses nothing, so no ceiling hides that: they apply once the person has decided.
    let begins_session = pending.is_none();
    let review = pending.map(|pending| review_reason(&pending, inputs.run_state));
    check_stall(inputs, leaf)
        .or_else(|| check_failure(inputs, leaf, ended))
        .or_else(|| ended.and_then(check_timeout))
        .or_else(|| check_limits(inputs).filter(|_| begins_session))
        .or_else(|| ended.and_then(|_| check_unpriced_tokens(inputs)).filter(|_| begins_session))
        .or_else(|| check_moved_head(inputs, ended).filter(|_| stop_request != Some(StopRequest::Cancel)))
        .or_else(|| check_stop_request(stop_request, ended, review.as_ref()))
        .or_else(|| review.clone().map(NextStep::WaitForPerson))
        .unwrap_or_else(|| choose_agents(inputs, build_task(inputs, leaf)))
}

fn end_step(end: RunEnd, message: impl Into<String>, ways: impl Into<NextSteps>) -> NextStep {
    NextStep::End { end, reason: StopReason::new(message, ways) }
}

fn check_stall(inputs: &RunInputs<'_>, leaf: &Node) -> Option<NextStep> {
    let state = inputs.run_state;
    let message = if state.stall.count >= inputs.policy.stall_after {
        format!("the same answer came {} times in a row, last on task {}", state.stall.count, leaf.id)
    } else if state.decomposed_in_row >= MAX_DECOMPOSED_IN_ROW {
        format!("{} decompositions in a row without work, now at task {}", state.decomposed_in_row, leaf.id)
    } else {
        return None;
    };
    let ways =
        NextSteps::from("runnerctl note TEXT").join(", or ", manual_ways(leaf)).join("; then: ", "runnerctl resume");
    Some(end_step(RunEnd::Stuck, message, ways))
}

fn exhausted_step(inputs: &RunInputs<'_>, leaf: &Node) -> NextStep {
    NextStep::End { end: RunEnd::Stuck, reason: attempts_used_up_reason(inputs, leaf) }
}

/// Returns what the last session on a task did, to follow a sentence.
fn last_attempt_suffix(inputs: &RunInputs<'_>, leaf: &Node) -> String {
    let Some(last) = inputs.feedback.nodes.get(&leaf.id).and_then(|feedback| feedback.history.last()) else {
        return String::new();
    };
    // A session that asks for another one says why in its summary.
    let summary = last.summary.as_ref().filter(|_| last.verdict == VerdictName::Retry && last.detail.is_none());
    let summary = summary.map(|summary| format!(": {}", one_line(summary, MAX_SUMMARY_SHOWN))).unwrap_or_default();
    format!("; iteration {} {}{summary}", last.iter, describe_attempt(last))
}

/// Returns how and why a run that has ended would end again at once even with its counters reset and `more` iterations
/// granted; `None` if it would continue, or would turn out to be completed.
pub fn would_end_again(inputs: &RunInputs<'_>, more: u32) -> Option<(RunEnd, StopReason)> {
    let run_state = state_on_resume(inputs, true, more);
    match decide_next(&RunInputs { run_state: &run_state, ..*inputs }, None, None) {
        NextStep::End { end: RunEnd::Completed, .. } => None,
        NextStep::End { end, reason } => Some((end, reason)),
        NextStep::Continue(_)
        | NextStep::Wait(..)
        | NextStep::WaitForPerson(_)
        | NextStep::Pause(_)
        | NextStep::Hold(_) => None,
    }
}

/// Returns why a run has ended now that its files have changed: the change may have fixed what stopped it, or the run
/// may now be stopped by something else. `None` if it ended for a reason that no file can fix.
pub fn reason_after_change(before: &RunInputs<'_>, after: &RunInputs<'_>) -> Option<StopReason> {
    would_end_again(before, 0)?;
    let (_, reason) = would_end_again(after, 0).unwrap_or_else(|| {
        (
            RunEnd::Stuck,
            StopReason::new("the reason why it stopped has changed since, and it can continue", "runnerctl resume"),
        )
    });
    Some(reason)
}

/// Returns the reason with the three ways to continue: raise, reword, decompose.
fn attempts_used_up_reason(inputs: &RunInputs<'_>, leaf: &Node) -> StopReason {
    let Node { id, max_attempts, .. } = leaf;
    let which = if *max_attempts == 1 { "only attempt".to_owned() } else { format!("{max_attempts} attempts") };
    StopReason::new(
        format!("task {id} has used its {which}{}", last_attempt_suffix(inputs, leaf)),
        NextSteps::from(Command::retry(id)).join("; or ", manual_ways(leaf)).join(", then: ", "runnerctl resume"),
    )
}

/// Returns the commands that reword and decompose.
fn manual_ways(leaf: &Node) -> NextSteps {
    NextSteps::from("runnerctl edit").join(", or ", format!("runnerctl add {} --title TITLE --goal GOAL", leaf.id))
}

fn check_failure(inputs: &RunInputs<'_>, leaf: &Node, ended: Option<&Verdict>) -> Option<NextStep> {
    let state = inputs.run_state;
    if let Some(Verdict::Misconfigured { what }) = ended {
        return Some(end_step(RunEnd::Failed, what.clone(), "runnerctl resume"));
    }
    if state.deaths.count >= MAX_DEATHS {
        let node = state.deaths.node.as_deref().unwrap_or("?");
        let message = format!("the daemon or the machine died {} times in a row on task {node}", state.deaths.count);
        return Some(end_step(RunEnd::Failed, message, "runnerctl resume"));
    }
    (state.consecutive_faults >= inputs.policy.max_consecutive_faults).then(|| {
        let (last, program) = match ended {
            Some(Verdict::Fault { what, kind: FaultKind::Guard }) => (format!(" ({what})"), "guard"),
            Some(Verdict::Fault { what, kind: FaultKind::Reviewer }) => (format!(" ({what})"), "review"),
            Some(Verdict::Fault { what, .. }) => (format!(" ({what})"), "agent"),
            _ => (last_attempt_suffix(inputs, leaf), "agent"),
        };
        let what = match (state.consecutive_faults, program) {
            (1, "guard") => "a session could not be checked".to_owned(),
            (1, "review") => "a finished task could not be reviewed".to_owned(),
            (1, _) => "a session gave no valid answer".to_owned(),
            (count, "guard" | "review") => {
                format!(
                    "{count} sessions in a row gave no valid answer or could not be checked, last on task {}",
                    leaf.id
                )
            }
            (count, _) => format!("{count} sessions in a row gave no valid answer, last on task {}", leaf.id),
        };
        let log = format!("`runnerctl log --{program}` shows what the last one printed");
        end_step(RunEnd::Failed, format!("{what}{last}; {log}"), "runnerctl resume")
    })
}

fn check_timeout(verdict: &Verdict) -> Option<NextStep> {
    let Verdict::Timeout { during } = verdict else { return None };
    let message = format!("the budget of the iteration ran out during {during}");
    Some(end_step(RunEnd::TimedOut, message, "runnerctl resume"))
}

fn check_limits(inputs: &RunInputs<'_>) -> Option<NextStep> {
    let policy = inputs.policy;
    let state = inputs.run_state;
    let iterations = policy.max_iterations.saturating_add(state.allowance);
    if state.next_iter > iterations {
        return Some(end_step(
            RunEnd::Limit,
            if iterations == 1 {
                "the only iteration is used up".into()
            } else {
                format!("{iterations} iterations are used up")
            },
            "runnerctl resume --more 20",
        ));
    }
    let usage = ResourceUsage { usage: state.usage.clone(), elapsed_ms: state.elapsed_ms }.plus(inputs.retry_usage);
    let ceilings = [
        ("max_cost_usd", policy.max_cost_micro_usd, usage.usage.cost_micro_usd.unwrap_or(0), MICRO_PER_USD),
        ("max_tokens", policy.max_tokens, usage::total_tokens(&usage.usage), 1),
        ("max_run_secs", policy.max_run_ms, usage.elapsed_ms, MS_PER_SECOND),
    ];
    ceilings.into_iter().find_map(|(key, ceiling, used, unit)| {
        let ceiling = ceiling.filter(|ceiling| used >= *ceiling)?;
        // The original ceiling again, on top of what is spent.
        let raised = used.saturating_add(ceiling).div_ceil(unit);
        let run = state.run_id.as_deref().unwrap_or_default();
        let raise = Command::set_config(key, &raised.to_string(), run);
        let ways = NextSteps::from(raise).join(" && ", Command::resume(run));
        Some(end_step(RunEnd::Limit, format!("{key} is used up"), ways))
    })
}

/// Ends a run whose cost ceiling cannot be enforced: a session has used tokens with no known price, and unknown does
/// not mean free. A person who resumes the run has seen that.
fn check_unpriced_tokens(inputs: &RunInputs<'_>) -> Option<NextStep> {
    let usage = usage::add_usage(&inputs.run_state.usage, &inputs.retry_usage.usage);
    let unpriced = usage.cost_unknown.saturating_sub(usage.tokens_unknown);
    if inputs.policy.max_cost_micro_usd.is_none() || unpriced == 0 {
        return None;
    }
    let what =
        format!("max_cost_usd cannot be kept: the price of what {unpriced} of its sessions have used is not known");
    Some(end_step(RunEnd::Limit, what, "runnerctl config set max_cost_usd --default && runnerctl resume"))
}

/// Holds a run whose HEAD was moved away: a person may be working in the same work tree.
fn check_moved_head(inputs: &RunInputs<'_>, ended: Option<&Verdict>) -> Option<NextStep> {
    let Some(Verdict::Interrupted { by: StopCause::Elsewhere }) = ended else { return None };
    let run = inputs.run_state.run_id.as_deref().unwrap_or_default();
    let iter = inputs.run_state.next_iter - 1;
    let rescue = publish::rescue_ref(run, iter);
    let message = format!(
        "HEAD was moved away from runner/{run} in iteration {iter}, and whether by a person or the agent is not known; \
         what was there is kept under {rescue}, and runner/{run} is checked out again"
    );
    Some(NextStep::Hold(StopReason::new(
        message,
        NextSteps::from(Command::show_files(&rescue)).then("runnerctl resume"),
    )))
}

fn check_stop_request(
    stop_request: Option<StopRequest>,
    ended: Option<&Verdict>,
    review: Option<&StopReason>,
) -> Option<NextStep> {
    let by = ended.and_then(|verdict| if let Verdict::Interrupted { by } = verdict { Some(*by) } else { None });
    match (stop_request, by) {
        (Some(StopRequest::Cancel), _) | (_, Some(StopCause::Cancel)) => {
            Some(end_step(RunEnd::Cancelled, "cancelled by the user", "runnerctl start"))
        }
        (Some(StopRequest::Pause), _) | (_, Some(StopCause::Pause)) if review.is_some() => {
            Some(NextStep::Pause(pause_reason(review)))
        }
        (Some(StopRequest::Pause), _) | (_, Some(StopCause::Pause)) => Some(pause_step("paused by the user", ended)),
        (Some(StopRequest::Step), _) => Some(pause_step("the iteration you asked for is done", ended)),
        (None, _) => None,
    }
}

/// Pauses, and says so if the service was unavailable, because the pause must not hide that.
fn pause_step(why: &str, ended: Option<&Verdict>) -> NextStep {
    let message = match ended {
        Some(verdict @ Verdict::Unavailable { .. }) => {
            let detail = verdict.detail().unwrap_or_default();
            format!("paused, and the model's service is not available: {detail}")
        }
        _ => why.to_owned(),
    };
    NextStep::Pause(StopReason::new(message, "runnerctl resume"))
}

fn review_reason(pending: &PendingNode, state: &RunState) -> StopReason {
    let PendingNode { node, iter } = pending;
    let why = if state.review_required {
        ", because tests that passed before no longer do, and the guard's definition has changed"
    } else {
        ""
    };
    let run = state.run_id.as_deref().unwrap_or_default();
    let diff = Command::show_diff(run, *iter);
    let message = format!("task {node} is done and awaits your review{why}: `{}` shows it", diff.to_shell());
    let ways = review_ways(run, pending).with_command(diff);
    StopReason::new(message, ways)
}

/// Chooses the kinds of agents for the session and its review. Waits if no kind's service is available: a session that
/// cannot be reviewed is better not begun.
fn choose_agents(inputs: &RunInputs<'_>, task: SessionTask) -> NextStep {
    let kind = choose_agent_kind(inputs, task.role);
    let reviewer = match inputs.policy.review {
        ReviewPolicy::Agent => choose_agent_kind(inputs, Role::Reviewer),
        ReviewPolicy::Off | ReviewPolicy::Human => Ok(None),
    };
    match (kind, reviewer) {
        (Ok(kind), Ok(reviewer)) => NextStep::Continue(SessionTask { kind, reviewer, ..task }),
        (Err(wait), _) | (_, Err(wait)) => *wait,
    }
}

fn choose_agent_kind(inputs: &RunInputs<'_>, role: Role) -> Result<Option<String>, Box<NextStep>> {
    match choose_kind(inputs.policy.kinds.for_role(role), inputs.outages, inputs.now) {
        KindChoice::Ask(kind) => Ok(kind.map(str::to_owned)),
        KindChoice::Wait(_, out) if out.iter().all(|outage| outage.is_failure()) => {
            let why = describe_outages(&out);
            Err(Box::new(end_step(
                RunEnd::Failed,
                format!("{why}; it was tried again for six hours"),
                "runnerctl resume",
            )))
        }
        KindChoice::Wait(wait, out) => {
            Err(Box::new(NextStep::Wait(wait, StopReason::new(describe_outages(&out), "runnerctl resume --now"))))
        }
    }
}

fn describe_outages(out: &[&ServiceOutage]) -> String {
    match out {
        [only] if is_unexplained(&only.why) => format!("the agent {}", only.why),
        [only] => format!("the model's service is not available: {}", only.why),
        all => {
            let each: Vec<String> = all.iter().map(|outage| format!("{}: {}", outage.kind, outage.why)).collect();
            format!("no service is available: {}", each.join("; "))
        }
    }
}

/// Returns the next session's task; the caller, which knows HEAD, fills in From.
fn build_task(inputs: &RunInputs<'_>, leaf: &Node) -> SessionTask {
    let state = inputs.run_state;
    let path = tree::path_to(inputs.tree, &leaf.id);
    let role = session_role(state, leaf, path.len() == 1);
    SessionTask {
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

/// Returns the role of a session on `leaf`.
pub fn session_role(state: &RunState, leaf: &Node, is_root: bool) -> Role {
    role_reason(state, leaf, is_root).role()
}

/// Returns why a session on `leaf` has its role.
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

/// Returns the state with which a run is resumed: iterations are granted, and if the run had ended, the counters that
/// would stop it at once are reset. Other counters are kept.
pub fn state_on_resume(inputs: &RunInputs<'_>, had_ended: bool, more: u32) -> RunState {
    let would_stop = matches!(decide_next(inputs, None, None), NextStep::End { .. });
    if had_ended && would_stop {
        return reset_counters(inputs.run_state, more);
    }
    RunState { allowance: inputs.run_state.allowance.saturating_add(more), ..inputs.run_state.clone() }
}

/// Returns the state with which a run continues after `resume`: the counters that stopped it are reset.
pub fn reset_counters(state: &RunState, more: u32) -> RunState {
    RunState {
        consecutive_faults: 0,
        stall: protocol::state::Stall::default(),
        decomposed_in_row: 0,
        deaths: protocol::state::Deaths::default(),
        allowance: state.allowance.saturating_add(more),
        ..state.clone()
    }
}

/// Whether git's objects should be packed, given the number of loose ones in one of its 256 folders: often enough to
/// keep them few, rarely enough to cost nothing.
pub fn needs_packing(in_one_folder: usize) -> bool {
    in_one_folder >= PACK_THRESHOLD
}
