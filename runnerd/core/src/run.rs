//! A run's life as a table: states, what is asked of it, what happens to it, and `decide`.
//!
//! The record says where a run stands. What a request or an event makes of it is decided here alone; whoever drives the
//! run stores the record and then does what is named beside it. When a run goes on, waits or ends is in `next`, whose turn
//! it is in `queue`.

pub mod approval;
pub mod fallback;
mod next;
pub mod obstacle;
mod queue;
mod record;
mod refusal;
mod request;
pub mod uncommitted;
pub mod usage;
pub mod wait;

use jiff::Timestamp;
use protocol::command::{Command, NextSteps};
use protocol::view::StopReason;

pub use self::next::{
    NextStep, RunInputs, would_end_again, needs_packing, decide_next, state_on_resume, reason_after_change, reset_counters, session_role, role_reason,
};
pub use self::queue::{QueueTurn, QueueInput, current_run, free_id, put_record, choose_turn};
pub use self::record::{StopRequest, StartSpec, RunEnd, RunPreparation, ResumeOrder, RunRecord, SettledIteration, RecordState, RunScratch};
pub use self::refusal::RequestRefusal;
pub use self::request::{RunRequest, RequestContext, StartRequest, RunActivity, handle_request, create_run, check_restart};
use crate::obstacle::{Transience, Blocker};
use crate::verdict::StopCause;

/// What happens to a run that has its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// It has its turn.
    Turn {
        /// For one iteration, which a person has asked for.
        step: bool,
    },
    /// Its start is committed.
    Started,
    /// It is known upon which commit it goes on.
    ResumeAnchored {
        /// The commit.
        from: String,
    },
    /// What it goes on with is committed.
    Resumed,
    /// Nothing is under way: what was asked takes effect.
    BetweenIterations,
    /// Nothing was begun, and what is next.
    Declined(NextStep),
    /// An iteration was settled, and what is next.
    IterationSettled(NextStep),
    /// What no commit holds has changed.
    ScratchChanged(RunScratch),
    /// It needs the attention of a person first.
    Hold(StopReason),
    /// Something is in the way that has ended the turn.
    Blocked(Blocker),
    /// The daemon was started anew, and has found the journal of an iteration.
    Restarted {
        /// Whether it leads to the iteration's end.
        is_over: bool,
    },
}

/// What is to be done once the record is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunAction {
    /// Tell that the run stands where it stands, though that may be where it stood.
    NotifyState,
    /// Let the others in the queue go first; done with the record.
    MoveToBack,
    /// End what is under way.
    Stop(StopCause),
    /// Answer once one iteration is done.
    AwaitStep,
    /// Answer those who wait for an iteration.
    AnswerSteps,
    /// Look at the repository again, and ask once more.
    RecheckRepository,
    /// Try again after a pause.
    RetryLater(Blocker),
    /// Go through the journal when the run has its turn.
    ReplayJournal,
    /// Remove the journal.
    RemoveJournal,
}

/// What a run comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTransition {
    /// Its record.
    pub record: RunRecord,
    /// What is done beside it.
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

/// An event that cannot happen to a run in its state: a bug, and the run is held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {event} is not possible for a run that is {state}")]
pub struct IllegalRunEvent {
    /// The state.
    pub state: protocol::words::RunStatus,
    /// Name of the event.
    pub event: &'static str,
}

impl RunEvent {
    /// Returns the event's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Turn { .. } => "Turn",
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

/// Returns what an event makes of a run.
pub fn decide(run: &RunRecord, event: RunEvent, now: Timestamp) -> Result<RunTransition, IllegalRunEvent> {
    let run = run.clone();
    let step = match (run.state, event) {
        // What has its turn runs; who asks for a step does not want to wait for a service.
        (RecordState::Queued | RecordState::Running | RecordState::WaitsForService(_), RunEvent::Turn { step: false }) => {
            set_running(run).into()
        }
        (RecordState::Over { end: RunEnd::Completed | RunEnd::Cancelled, .. }, event @ RunEvent::Turn { .. }) => {
            return Err(illegal_event(&run, &event));
        }
        (_, RunEvent::Turn { step: true }) => set_running(prepare_step(run, now)).into(),

        // Each step of a beginning is written down before the next.
        (RecordState::Running, RunEvent::Started) => RunRecord { beginning: None, ..run }.into(),
        (RecordState::Running, RunEvent::ResumeAnchored { from }) => {
            let resume = run.resume.map(|order| ResumeOrder { from: Some(from), ..order });
            RunRecord { resume, ..run }.into()
        }
        (RecordState::Running, RunEvent::Resumed) => {
            let resume = run.resume.as_ref().and_then(ResumeOrder::remaining);
            RunRecord { resume, ..run }.into()
        }

        // A stop takes effect between two iterations, and goes before a wait, be it for a person.
        (RecordState::Running, RunEvent::BetweenIterations) => apply_stop_request(run, now).into(),
        (
            RecordState::Running,
            RunEvent::Declined(next @ (NextStep::Wait(..) | NextStep::WaitForPerson(_) | NextStep::Pause(_) | NextStep::Hold(_)))
            | RunEvent::IterationSettled(next @ (NextStep::Wait(..) | NextStep::WaitForPerson(_) | NextStep::Pause(_) | NextStep::Hold(_))),
        ) => match apply_stop_request(run.clone(), now) {
            stopped if stopped.state != RecordState::Running => stopped.into(),
            _ => apply_next_step(run, next, now).into(),
        },
        (RecordState::Running, RunEvent::Declined(next) | RunEvent::IterationSettled(next)) => apply_next_step(run, next, now).into(),
        (RecordState::Running, RunEvent::ScratchChanged(uncommitted)) => RunRecord { uncommitted, ..run }.into(),
        // Nobody has to look at what a person has cancelled.
        (RecordState::Running, RunEvent::Hold(why)) => match run.asked {
            Some(StopRequest::Cancel) => apply_stop_request(run, now).into(),
            Some(StopRequest::Pause | StopRequest::Step) | None => hold_run(run, why).into(),
        },
        (RecordState::Running, RunEvent::Blocked(obstruction)) => apply_blocker(run, obstruction, now),

        // A run that was being driven goes on; what followed from the iteration of another is written down.
        (RecordState::Running, RunEvent::Restarted { .. }) => RunTransition::from(run).with_effect(RunAction::ReplayJournal),
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

fn prepare_step(mut run: RunRecord, now: Timestamp) -> RunRecord {
    run.uncommitted.retry_services_now(now);
    let reset = run.state.is_over();
    let resume = run.resume.or(Some(ResumeOrder::merged_with(None, 0, reset)));
    RunRecord { asked: Some(StopRequest::Step), resume, ..run }
}

fn apply_stop_request(run: RunRecord, now: Timestamp) -> RunRecord {
    match run.asked {
        Some(StopRequest::Cancel) => {
            let why = StopReason::new("cancelled by the user", Command::start_again(&run.id));
            end_run(run, RunEnd::Cancelled, why, now)
        }
        Some(StopRequest::Pause) => pause_run(run, StopReason::new("paused by the user", "runnerctl resume")),
        Some(StopRequest::Step) | None => run,
    }
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

/// What passes by itself is waited for, however long; a run that a person has cancelled ends without what could not be
/// done, and says so.
fn apply_blocker(run: RunRecord, blocker: Blocker, now: Timestamp) -> RunTransition {
    match (blocker.nature, run.asked) {
        (_, Some(StopRequest::Cancel)) => {
            let why = cancelled_reason(&run, &blocker);
            RunTransition::from(end_run(run, RunEnd::Cancelled, why, now)).with_effect(RunAction::RemoveJournal)
        }
        (Transience::Passing, _) => RunTransition::from(run).with_effect(RunAction::RetryLater(blocker)),
        (Transience::Lasting | Transience::Lost, _) => hold_run(run, blocker.hold_reason()).into(),
    }
}

/// Says what a cancelled run has left as it was.
fn cancelled_reason(run: &RunRecord, Blocker { what, remedy, .. }: &Blocker) -> StopReason {
    let message = format!(
        "cancelled by the user, and its last iteration could not be brought to its end: {what}; what is not committed \
         stays as it is in {}",
        run.path
    );
    StopReason::new(message, NextSteps::from(remedy).then(Command::start_again(&run.id)))
}

fn hold_run(run: RunRecord, why: StopReason) -> RunRecord {
    RunRecord { state: RecordState::Held, reason: Some(why), ..run }
}

fn pause_run(run: RunRecord, why: StopReason) -> RunRecord {
    RunRecord { state: RecordState::Paused, reason: Some(why), asked: None, ..run }
}

fn end_run(mut run: RunRecord, end: RunEnd, why: StopReason, now: Timestamp) -> RunRecord {
    run.uncommitted.outages.clear();
    RunRecord { state: RecordState::Over { end, at: now }, reason: Some(why), asked: None, ..run }
}
