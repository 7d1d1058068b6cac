//! The state machine of a run: states, requests, events, and `decide`.
//!
//! The record holds the state of a run. The effect of a request or an event is decided only here; the caller stores the
//! record and then carries out the actions returned with it. `decide_next` decides whether a run continues, waits or
//! ends, and `queue` decides whose turn it is.

pub mod approval;
pub mod blocker;
pub mod commit_advice;
pub mod fallback;
mod next_step;
mod queue;
mod record;
mod refusal;
mod request;
pub mod usage;
pub mod wait;

use jiff::Timestamp;
use protocol::command::{Command, NextSteps};
use protocol::view::StopReason;

pub use self::next_step::{
    NextStep, RunInputs, decide_next, needs_packing, reason_after_change, reset_counters, role_reason, session_role,
    state_on_resume, would_end_again,
};
pub use self::queue::{
    QueueInput, QueueTurn, choose_turn, current_run, free_id, hidden_goal_files, pending_goal_files, put_record,
    queue_reason,
};
pub use self::record::{
    RecordState, ResumeOrder, RunEnd, RunPreparation, RunRecord, RunScratch, SettledIteration, StartSpec, StopRequest,
};
pub use self::refusal::RequestRefusal;
pub use self::request::{
    RequestContext, RunActivity, RunRequest, StartRequest, check_restart, create_run, handle_request,
};
use crate::run::blocker::{Blocker, Transience};
use crate::verdict::StopCause;

/// An event of a run that has its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The run gets its turn.
    Turn {
        /// Whether it is for a single iteration that a person has requested.
        step: bool,
    },
    /// The made id is final: nothing else had it, or this is the next free one.
    IdSettled {
        /// The id.
        id: String,
    },
    /// The start is committed.
    Started,
    /// The commit from which the run continues is known.
    ResumeAnchored {
        /// Id of that commit.
        from: String,
    },
    /// The commit with which the run resumes is made.
    Resumed,
    /// No iteration is in progress, so a pending request takes effect.
    BetweenIterations,
    /// Nothing was begun; this is the next step.
    Declined(NextStep),
    /// An iteration was settled; this is the next step.
    IterationSettled(NextStep),
    /// Uncommitted facts about the run have changed.
    ScratchChanged(RunScratch),
    /// The run needs a person's attention first.
    Hold(StopReason),
    /// An obstacle has ended the turn.
    Blocked(Blocker),
    /// The daemon was restarted and found the journal of an iteration.
    Restarted {
        /// Whether the journal reaches the end of the iteration.
        is_over: bool,
    },
}

/// An action to carry out once the record is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunAction {
    /// Announce the run's state, even if it has not changed.
    NotifyState,
    /// Move behind the others in the queue; done together with storing the record.
    MoveToBack,
    /// Stop what is in progress.
    Stop(StopCause),
    /// Answer once one iteration is done.
    AwaitStep,
    /// Answer those who wait for an iteration.
    AnswerSteps,
    /// Examine the repository again, then repeat the request.
    RecheckRepository,
    /// Try again after a pause.
    RetryLater(Blocker),
    /// Replay the journal when the run has its turn.
    ReplayJournal,
    /// Remove the journal.
    RemoveJournal,
}

/// Result of a request or an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTransition {
    /// The updated record.
    pub record: RunRecord,
    /// Actions to carry out once the record is stored.
    pub effects: Vec<RunAction>,
}

impl From<RunRecord> for RunTransition {
    fn from(record: RunRecord) -> Self {
        Self { record, effects: Vec::new() }
    }
}

impl RunTransition {
    fn with_effect(self, effect: RunAction) -> Self {
        let mut effects = self.effects;
        effects.push(effect);
        Self { effects, ..self }
    }
}

/// An event that cannot occur for a run in its state: a bug, so the run is held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {event} is not possible for a run that is {state}")]
pub struct IllegalRunEvent {
    /// State of the run.
    pub state: protocol::words::RunStatus,
    /// Name of the event.
    pub event: &'static str,
}

impl RunEvent {
    /// Returns the event's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Turn { .. } => "Turn",
            Self::IdSettled { .. } => "IdSettled",
            Self::Started => "Begun",
            Self::ResumeAnchored { .. } => "TakenUp",
            Self::Resumed => "Resumed",
            Self::BetweenIterations => "Between",
            Self::Declined(_) => "Declined",
            Self::IterationSettled(_) => "Followed",
            Self::ScratchChanged(_) => "Learned",
            Self::Hold(_) => "Hold",
            Self::Blocked(_) => "Obstructed",
            Self::Restarted { .. } => "Restarted",
        }
    }
}

/// Returns the effect of an event on a run.
pub fn decide(run: &RunRecord, event: RunEvent, now: Timestamp) -> Result<RunTransition, IllegalRunEvent> {
    let run = run.clone();
    let step = match (run.state, event) {
        // A run with its turn is driven; a person who requests a step does not want to wait for a service.
        (
            RecordState::Queued | RecordState::Running | RecordState::WaitsForService(_),
            RunEvent::Turn { step: false },
        ) => set_running(run).into(),
        (RecordState::Over { end: RunEnd::Completed | RunEnd::Cancelled, .. }, event @ RunEvent::Turn { .. }) => {
            return Err(illegal_event(&run, &event));
        }
        (_, RunEvent::Turn { step: true }) => set_running(prepare_step(run, now)).into(),

        // Each step of the beginning is stored before the next one.
        (RecordState::Running, RunEvent::IdSettled { id }) => settle_id(run, id).into(),
        (RecordState::Running, RunEvent::Started) => RunRecord { beginning: None, ..run }.into(),
        (RecordState::Running, RunEvent::ResumeAnchored { from }) => {
            let resume = run.resume.map(|order| ResumeOrder { from: Some(from), ..order });
            RunRecord { resume, ..run }.into()
        }
        (RecordState::Running, RunEvent::Resumed) => {
            let resume = run.resume.as_ref().and_then(ResumeOrder::remaining);
            RunRecord { resume, ..run }.into()
        }

        // A stop takes effect between two iterations, and takes precedence over any wait, even one for a person.
        (RecordState::Running, RunEvent::BetweenIterations) => apply_stop_request(run, now).into(),
        (
            RecordState::Running,
            RunEvent::Declined(
                next @ (NextStep::Wait(..) | NextStep::WaitForPerson(_) | NextStep::Pause(_) | NextStep::Hold(_)),
            )
            | RunEvent::IterationSettled(
                next @ (NextStep::Wait(..) | NextStep::WaitForPerson(_) | NextStep::Pause(_) | NextStep::Hold(_)),
            ),
        ) => match apply_stop_request(run.clone(), now) {
            stopped if stopped.state != RecordState::Running => stopped.into(),
            _ => apply_next_step(run, next, now).into(),
        },
        (RecordState::Running, RunEvent::Declined(next) | RunEvent::IterationSettled(next)) => {
            apply_next_step(run, next, now).into()
        }
        (RecordState::Running, RunEvent::ScratchChanged(uncommitted)) => RunRecord { uncommitted, ..run }.into(),
        // A run that a person has cancelled needs no attention.
        (RecordState::Running, RunEvent::Hold(why)) => match run.stop_request {
            Some(StopRequest::Cancel) => apply_stop_request(run, now).into(),
            Some(StopRequest::Pause | StopRequest::Step) | None => hold_run(run, why).into(),
        },
        (RecordState::Running, RunEvent::Blocked(obstruction)) => apply_blocker(run, obstruction, now),

        // A run that was being driven continues; for any other, the results of the iteration are already stored.
        (RecordState::Running, RunEvent::Restarted { .. }) => {
            RunTransition::from(run).with_effect(RunAction::ReplayJournal)
        }
        (RecordState::Over { .. }, RunEvent::Restarted { .. }) | (_, RunEvent::Restarted { is_over: true }) => {
            RunTransition::from(run).with_effect(RunAction::RemoveJournal)
        }
        (_, RunEvent::Restarted { is_over: false }) => RunTransition::from(run).with_effect(RunAction::ReplayJournal),

        (_, event) => return Err(illegal_event(&run, &event)),
    };
    Ok(step)
}

fn illegal_event(run: &RunRecord, event: &RunEvent) -> IllegalRunEvent {
    IllegalRunEvent { state: run.state.status(), event: event.name() }
}

fn set_running(run: RunRecord) -> RunRecord {
    RunRecord { state: RecordState::Running, reason: None, ..run }
}

fn settle_id(run: RunRecord, id: String) -> RunRecord {
    let beginning = run.beginning.map(|spec| StartSpec { id_stem: None, ..spec });
    let queued_as = if id == run.id { run.queued_as } else { Some(run.id) };
    RunRecord { id, queued_as, beginning, ..run }
}

fn prepare_step(mut run: RunRecord, now: Timestamp) -> RunRecord {
    run.uncommitted.retry_services_now(now);
    let reset = run.state.is_over();
    let resume = run.resume.or(Some(ResumeOrder::merged_with(None, 0, reset)));
    RunRecord { stop_request: Some(StopRequest::Step), resume, ..run }
}

fn apply_stop_request(run: RunRecord, now: Timestamp) -> RunRecord {
    match run.stop_request {
        Some(StopRequest::Cancel) => {
            let why = cancel_reason(&run);
            end_run(run, RunEnd::Cancelled, why, now)
        }
        Some(StopRequest::Pause) => pause_run(run, pause_reason(None)),
        Some(StopRequest::Step) | None => run,
    }
}

/// Says that a person has cancelled a run. The record of one that has not begun keeps its goal, which is in no commit.
fn cancel_reason(run: &RunRecord) -> StopReason {
    let message = match &run.beginning {
        Some(StartSpec { goal: Some(_), .. }) => "cancelled by the user before it began",
        Some(_) | None => "cancelled by the user",
    };
    StopReason::new(message, Command::start_again(&run.id))
}

/// Says that a person has paused a run, and what review of a person it waits for all the same.
fn pause_reason(review: Option<&StopReason>) -> StopReason {
    let Some(review) = review else { return StopReason::new("paused by the user", "runnerctl resume") };
    let resume = NextSteps::from("runnerctl resume");
    let ways = review.next_steps().map_or(resume, |ways| ways.then("runnerctl resume"));
    StopReason::new(format!("paused by the user; {}", review.message), ways)
}

fn apply_next_step(run: RunRecord, next: NextStep, now: Timestamp) -> RunRecord {
    match next {
        NextStep::Continue(_) => run,
        NextStep::Wait(wait, why) => RunRecord { state: RecordState::WaitsForService(wait), reason: Some(why), ..run },
        NextStep::WaitForPerson(why) => RunRecord { state: RecordState::WaitsForPerson, reason: Some(why), ..run },
        NextStep::Pause(why) => pause_run(run, why),
        NextStep::Hold(why) => hold_run(run, why),
        NextStep::End { end: how, reason } => end_run(run, how, reason, now),
    }
}

/// Waits for a passing obstacle, however long it takes. A run that a person has cancelled ends without what could not
/// be done, and says so.
fn apply_blocker(run: RunRecord, blocker: Blocker, now: Timestamp) -> RunTransition {
    match (blocker.nature, run.stop_request) {
        (_, Some(StopRequest::Cancel)) => {
            let why = cancelled_reason(&run, &blocker);
            RunTransition::from(end_run(run, RunEnd::Cancelled, why, now)).with_effect(RunAction::RemoveJournal)
        }
        (Transience::Passing, _) => RunTransition::from(run).with_effect(RunAction::RetryLater(blocker)),
        (Transience::Lasting | Transience::Lost, _) => hold_run(run, blocker.hold_reason()).into(),
    }
}

/// Describes what a cancelled run has left undone.
fn cancelled_reason(run: &RunRecord, Blocker { what, remedy, .. }: &Blocker) -> StopReason {
    let message = format!(
        "cancelled by the user, and its last iteration could not be brought to its end: {what}; what is not committed \
         stays as it is in {}",
        run.path
    );
    let commit = "git add -A && git commit";
    StopReason::new(message, NextSteps::from(remedy).then(commit).then(Command::start_again(&run.id)))
}

fn hold_run(run: RunRecord, why: StopReason) -> RunRecord {
    RunRecord { state: RecordState::Held, reason: Some(why), ..run }
}

fn pause_run(run: RunRecord, why: StopReason) -> RunRecord {
    RunRecord { state: RecordState::Paused, reason: Some(why), stop_request: None, ..run }
}

fn end_run(mut run: RunRecord, end: RunEnd, why: StopReason, now: Timestamp) -> RunRecord {
    run.uncommitted.outages.clear();
    RunRecord { state: RecordState::Over { end, at: now }, reason: Some(why), stop_request: None, ..run }
}
