//! Decides what a person's request does to a run in each state, or why it is refused. Carries nothing out.

use jiff::Timestamp;
use protocol::path::WirePath;
use protocol::view::StopReason;

use super::next_step::{RunInputs, would_end_again};
use super::record::{RecordState, ResumeOrder, RunEnd, RunRecord, StartSpec, StopRequest};
use super::refusal::RequestRefusal;
use super::{RunAction, RunTransition, cancel_reason, end_run, pause_reason, pause_run};
use crate::files::change::ChangeSubject;
use crate::message::ReviewSignature;
use crate::run::approval::{self, Decision, PendingNode, ReviewDecision};
use crate::run::blocker::Blocker;
use crate::tree::select::{LeafSelection, select};
use crate::verdict::StopCause;

/// A person's request concerning a run that is in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRequest {
    /// Begin it or continue it.
    Start(StartRequest),
    /// Run one iteration.
    Step,
    /// Stop after the current iteration.
    Pause {
        /// Whether to end the session now.
        now: bool,
    },
    /// Continue.
    Resume {
        /// Whether to try services again at once.
        now: bool,
        /// Number of iterations to grant.
        more: Option<u32>,
        /// Whether the repository was examined again for this request.
        rechecked: bool,
    },
    /// End the run.
    Cancel,
    /// Apply a person's decision on finished work.
    Review {
        /// The decision.
        decision: Decision,
        /// The iteration that it is meant for.
        iter: u32,
        /// The person's signature of it, if they signed.
        signature: Option<ReviewSignature>,
    },
    /// Change its files.
    Change(ChangeSubject),
}

/// How to start a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRequest {
    /// The work tree.
    pub path: WirePath,
    /// Title of its goal, if known.
    pub goal: Option<String>,
    /// The file in the work tree that its goal was read from, if that is not committed.
    pub goal_file: Option<WirePath>,
    /// How it begins, if it is not in the queue.
    pub start_spec: StartSpec,
    /// Whether to queue it without beginning yet.
    pub queue_only: bool,
    /// Whether it has a branch.
    pub is_begun: bool,
}

/// What is in progress for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunActivity {
    /// Nothing is in progress.
    Nothing,
    /// The run is being driven.
    Active,
    /// A previous daemon process has begun an iteration.
    Unfinished,
}

/// What a request is decided from, in addition to the record.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// Why nothing may be done with the repository.
    pub hold_reason: Option<&'a StopReason>,
    /// What is in progress for the run.
    pub work: RunActivity,
    /// A run of the repository that is being driven, or was when the daemon died.
    pub driven_run: Option<&'a str>,
    /// What blocks the driven run.
    pub blocker: Option<&'a Blocker>,
    /// The committed state, if the request needs it and it can be read.
    pub inputs: Option<RunInputs<'a>>,
    /// The current time.
    pub now: Timestamp,
}

impl RequestContext<'_> {
    /// Returns the node that waits for a person's review.
    fn find_pending(&self) -> Option<PendingNode> {
        self.inputs.as_ref().and_then(approval::find_pending)
    }
}

impl RunRequest {
    /// Whether the answer to this request depends on the committed state.
    pub fn needs_commit(&self, state: RecordState) -> bool {
        matches!(
            (self, state),
            (Self::Resume { .. } | Self::Step, RecordState::WaitsForPerson)
                | (Self::Review { .. }, _)
                | (Self::Resume { .. } | Self::Step | Self::Start(_), RecordState::Over { .. })
        )
    }
}

/// Returns what a request does to a run, or why it is refused.
pub fn handle_request(
    run: &RunRecord,
    request: RunRequest,
    situation: &RequestContext<'_>,
) -> Result<RunTransition, RequestRefusal> {
    let held = || situation.hold_reason.map_or(Ok(()), |held| Err(RequestRefusal::RepositoryHeld(held.clone())));
    match request {
        RunRequest::Pause { now } => handle_pause(run.clone(), now, situation),
        RunRequest::Cancel => handle_cancel(run.clone(), situation),
        RunRequest::Resume { rechecked: false, .. } if situation.hold_reason.is_some() => {
            Ok(RunTransition::from(run.clone()).with_effect(RunAction::RecheckRepository))
        }
        RunRequest::Resume { now, more, rechecked: looked } => {
            held()?;
            if looked && run.state == RecordState::Running {
                return Ok(run.clone().into());
            }
            check_resume(run, now, more, situation)?;
            Ok(handle_resume(run.clone(), now, more, situation.now))
        }
        RunRequest::Start(order) => {
            held()?;
            handle_start(run.clone(), order, situation)
        }
        RunRequest::Step => {
            held()?;
            check_step(run, situation)?;
            Ok(RunTransition::from(run.clone()).with_effect(RunAction::AwaitStep))
        }
        RunRequest::Review { decision, iter, signature } => {
            held()?;
            handle_review(run.clone(), decision, iter, signature, situation)
        }
        RunRequest::Change(subject) => {
            held()?;
            check_change(run.state, subject)?;
            Ok(run.clone().into())
        }
    }
}

/// Returns the transition for a run that is not in the list yet.
pub fn create_run(id: &str, start: StartRequest, now: Timestamp) -> RunTransition {
    let StartRequest { path, goal, goal_file, start_spec, queue_only, is_begun } = start;
    let run = RunRecord::queued(id, path, now);
    // The counters that stopped another run must not stop its fork.
    let resume = (is_begun || start_spec.fork).then(|| ResumeOrder::merged_with(None, 0, true));
    let run = RunRecord { goal, goal_file, beginning: Some(start_spec), resume, ..run };
    let why = || StopReason::new("paused until you resume it", "runnerctl resume");
    RunTransition::from(if queue_only { pause_run(run, why()) } else { run }).with_effect(RunAction::NotifyState)
}

/// A queued run continues where a person had stopped it; a finished one starts again at the end of the queue.
fn handle_start(
    run: RunRecord,
    start: StartRequest,
    situation: &RequestContext<'_>,
) -> Result<RunTransition, RequestRefusal> {
    let now = situation.now;
    match run.state {
        _ if start.start_spec.fork => Err(RequestRefusal::RunExists),
        RecordState::Over { end, .. } => {
            let may_begin = |standing| match end {
                RunEnd::Completed => check_restart(standing),
                // It may end at once, but then it gives a reason with a remedy, which a cancelled run cannot.
                RunEnd::Cancelled => Ok(()),
                RunEnd::Stuck | RunEnd::Limit | RunEnd::TimedOut | RunEnd::Failed => check_continue(standing, 0),
            };
            situation.inputs.as_ref().map_or(Ok(()), may_begin)?;
            let RunTransition { record, effects } = create_run(&run.id, StartRequest { is_begun: true, ..start }, now);
            let record = RunRecord { uncommitted: run.uncommitted, ..record };
            Ok(RunTransition { record, effects }.with_effect(RunAction::MoveToBack))
        }
        RecordState::Paused | RecordState::Held if !start.queue_only => Ok(handle_resume(run, false, None, now)),
        RecordState::Queued | RecordState::Running | RecordState::Paused | RecordState::Held => Ok(run.into()),
        RecordState::WaitsForService(_) | RecordState::WaitsForPerson => Ok(run.into()),
    }
}

/// Refuses to restart a run whose committed state has reached its goal or would end at once.
pub fn check_restart(inputs: &RunInputs<'_>) -> Result<(), RequestRefusal> {
    if select(inputs.tree) == LeafSelection::Complete {
        return Err(RequestRefusal::IsCompleted);
    }
    check_continue(inputs, 0)
}

/// Refuses to continue a run that has ended and would end again at once.
fn check_continue(inputs: &RunInputs<'_>, more: u32) -> Result<(), RequestRefusal> {
    match would_end_again(inputs, more) {
        Some((RunEnd::Limit, why)) => Err(RequestRefusal::StillAtLimit(why)),
        Some((_, why)) => Err(RequestRefusal::StillStuck(why)),
        None => Ok(()),
    }
}

fn check_step(run: &RunRecord, situation: &RequestContext<'_>) -> Result<(), RequestRefusal> {
    match (run.state, situation.driven_run) {
        (RecordState::Running, Some(driven)) => Err(RequestRefusal::OtherRunActive(driven.to_owned())),
        (_, Some(driven)) if driven != run.id => Err(RequestRefusal::OtherRunActive(driven.to_owned())),
        (RecordState::Over { end, .. }, _) => check_continue_from_end(end, 0, situation),
        (RecordState::WaitsForPerson, _) => {
            situation.find_pending().map_or(Ok(()), |on| Err(RequestRefusal::WaitsForReview(on)))
        }
        _ => Ok(()),
    }
}

/// Refuses to continue a run from its end if that leads nowhere.
fn check_continue_from_end(end: RunEnd, more: u32, situation: &RequestContext<'_>) -> Result<(), RequestRefusal> {
    match end {
        RunEnd::Completed => Err(RequestRefusal::IsCompleted),
        RunEnd::Cancelled => Err(RequestRefusal::IsCancelled),
        RunEnd::Stuck | RunEnd::Limit | RunEnd::TimedOut | RunEnd::Failed => {
            situation.inputs.as_ref().map_or(Ok(()), |inputs| check_continue(inputs, more))
        }
    }
}

fn handle_pause(run: RunRecord, now: bool, situation: &RequestContext<'_>) -> Result<RunTransition, RequestRefusal> {
    match (run.state, situation.work) {
        (RecordState::Over { end, .. }, _) => Err(RequestRefusal::IsOver(end.status())),
        (_, RunActivity::Active) | (RecordState::Running, RunActivity::Unfinished) => {
            let stop_request =
                run.stop_request.filter(|asked| *asked == StopRequest::Cancel).or(Some(StopRequest::Pause));
            let step = RunTransition::from(RunRecord { stop_request, ..run });
            Ok(if now { step.with_effect(RunAction::Stop(StopCause::Pause)) } else { step })
        }
        _ => {
            let why = pause_reason(run.reason.as_ref().filter(|_| run.state == RecordState::WaitsForPerson));
            Ok(RunTransition::from(pause_run(run, why)).with_effect(RunAction::AnswerSteps))
        }
    }
}

/// Cancels a run; what a session has left is committed before the run ends.
fn handle_cancel(run: RunRecord, situation: &RequestContext<'_>) -> Result<RunTransition, RequestRefusal> {
    match (run.state, situation.work) {
        (RecordState::Over { end: RunEnd::Cancelled, .. }, _) => Ok(run.into()),
        (RecordState::Over { end, .. }, _) => Err(RequestRefusal::IsOver(end.status())),
        (_, RunActivity::Active | RunActivity::Unfinished) => {
            let run =
                RunRecord { stop_request: Some(StopRequest::Cancel), state: RecordState::Running, reason: None, ..run };
            Ok(RunTransition::from(run).with_effect(RunAction::Stop(StopCause::Cancel)))
        }
        (_, RunActivity::Nothing) => {
            let why = cancel_reason(&run);
            let mut run = end_run(run, RunEnd::Cancelled, why, situation.now);
            run.uncommitted.word = None;
            Ok(RunTransition::from(run).with_effect(RunAction::AnswerSteps))
        }
    }
}

fn check_resume(
    run: &RunRecord,
    now: bool,
    more: Option<u32>,
    situation: &RequestContext<'_>,
) -> Result<(), RequestRefusal> {
    let refused = match run.state {
        RecordState::Over { end, .. } => check_continue_from_end(end, more.unwrap_or(0), situation).err(),
        RecordState::WaitsForPerson => situation.find_pending().map(RequestRefusal::WaitsForReview),
        RecordState::WaitsForService(_) => (!now).then_some(RequestRefusal::WaitsForService),
        RecordState::Running if run.stop_request.is_none() && more.is_none() => {
            let blocker = situation.blocker.map(|obstacle| RequestRefusal::IsBlocked(obstacle.wait_reason()));
            Some(blocker.unwrap_or(RequestRefusal::IsRunning))
        }
        RecordState::Queued | RecordState::Running | RecordState::Paused | RecordState::Held => None,
    };
    refused.map_or(Ok(()), Err)
}

fn handle_resume(mut run: RunRecord, now: bool, more: Option<u32>, time: Timestamp) -> RunTransition {
    if now {
        run.uncommitted.retry_services_now(time);
    }
    if run.state != RecordState::Running || more.is_some() {
        run.resume = Some(ResumeOrder::merged_with(run.resume, more.unwrap_or(0), run.state.is_over()));
    }
    queue_run(run)
}

/// Takes a person's decision. A run that the user had paused is paused again afterwards.
fn handle_review(
    mut run: RunRecord,
    decision: Decision,
    iter: u32,
    signature: Option<ReviewSignature>,
    situation: &RequestContext<'_>,
) -> Result<RunTransition, RequestRefusal> {
    decision.check().map_err(RequestRefusal::InvalidDecision)?;
    if situation.work != RunActivity::Nothing {
        return Err(RequestRefusal::SessionActive);
    }
    if matches!(run.state, RecordState::Over { end: RunEnd::Cancelled, .. }) {
        return Err(RequestRefusal::IsCancelled);
    }
    let on = situation.find_pending().ok_or_else(|| RequestRefusal::NothingToReview(run.state.status()))?;
    if on.iter != iter {
        return Err(RequestRefusal::OtherReview { on, iter });
    }
    let review_decision = ReviewDecision { on, decision, signature };
    let policy = situation.inputs.as_ref().map(|inputs| inputs.policy);
    if !policy.is_some_and(|policy| review_decision.counts_for(Some(&review_decision.on), policy)) {
        return Err(RequestRefusal::Unsigned(review_decision.on));
    }
    let stop_request = (run.state == RecordState::Paused).then_some(StopRequest::Step);
    run.uncommitted.word = Some(review_decision);
    let RunTransition { record, effects } = queue_run(run);
    Ok(RunTransition { record: RunRecord { stop_request, ..record }, effects })
}

fn check_change(state: RecordState, subject: ChangeSubject) -> Result<(), RequestRefusal> {
    match (subject, state) {
        (ChangeSubject::Note, RecordState::Over { end: RunEnd::Completed | RunEnd::Cancelled, .. }) => {
            Err(RequestRefusal::NoReader(state.status()))
        }
        (ChangeSubject::Tree, RecordState::Over { end: RunEnd::Completed, .. }) => Err(RequestRefusal::AllPassed),
        (ChangeSubject::Note | ChangeSubject::Tree | ChangeSubject::Files, _) => Ok(()),
    }
}

/// Queues a run that is not being driven; one that was over goes to the end of the queue.
fn queue_run(run: RunRecord) -> RunTransition {
    let was_over = run.state.is_over();
    let state = if run.state == RecordState::Running { RecordState::Running } else { RecordState::Queued };
    let step = RunTransition::from(RunRecord { state, stop_request: None, reason: None, ..run })
        .with_effect(RunAction::NotifyState);
    if was_over { step.with_effect(RunAction::MoveToBack) } else { step }
}
