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
use protocol::command::{Command, Ways};
use protocol::view::StopReason;

pub use self::next::{
    Next, Standing, ends_again, is_to_be_packed, next, on_resume, reason_after_change, resumed, role, role_reason,
};
pub use self::queue::{Turn, Wanted, current, free_id, put, turn};
pub use self::record::{Asked, Beginning, End, Preparation, ResumeOrder, RunRecord, Settled, State, Uncommitted};
pub use self::refusal::Refusal;
pub use self::request::{Request, Situation, Start, Work, ask, begin, may_begin_again};
use crate::obstacle::{Nature, Obstruction};
use crate::verdict::StopCause;

/// What happens to a run that has its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It has its turn.
    Turn {
        /// For one iteration, which a person has asked for.
        step: bool,
    },
    /// Its start is committed.
    Begun,
    /// It is known upon which commit it goes on.
    TakenUp {
        /// The commit.
        from: String,
    },
    /// What it goes on with is committed.
    Resumed,
    /// Nothing is under way: what was asked takes effect.
    Between,
    /// Nothing was begun, and what is next.
    Declined(Next),
    /// An iteration was settled, and what is next.
    Followed(Next),
    /// What no commit holds has changed.
    Learned(Uncommitted),
    /// It needs the attention of a person first.
    Hold(StopReason),
    /// Something is in the way that has ended the turn.
    Obstructed(Obstruction),
    /// The daemon was started anew, and has found the journal of an iteration.
    Restarted {
        /// Whether it leads to the iteration's end.
        is_over: bool,
    },
}

/// What is to be done once the record is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Tell that the run stands where it stands, though that may be where it stood.
    Tell,
    /// Let the others in the queue go first; done with the record.
    GoLast,
    /// End what is under way.
    Stop(StopCause),
    /// Answer once one iteration is done.
    AwaitStep,
    /// Answer those who wait for an iteration.
    AnswerSteps,
    /// Look at the repository again, and ask once more.
    LookAgain,
    /// Try again after a pause.
    WaitOut(Obstruction),
    /// Go through the journal when the run has its turn.
    KeepJournal,
    /// Remove the journal.
    RemoveJournal,
}

/// What a run comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its record.
    pub record: RunRecord,
    /// What is done beside it.
    pub effects: Vec<Effect>,
}

impl From<RunRecord> for Step {
    fn from(record: RunRecord) -> Self {
        Self { record, effects: Vec::new() }
    }
}

impl Step {
    fn with(self, effect: Effect) -> Self {
        let mut effects = self.effects;
        effects.push(effect);
        Self { effects, ..self }
    }
}

/// An event that cannot happen to a run in its state: a bug, and the run is held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {event} is not possible for a run that is {state}")]
pub struct IllegalEvent {
    /// The state.
    pub state: protocol::words::RunStatus,
    /// Name of the event.
    pub event: &'static str,
}

impl Event {
    /// Returns the event's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Turn { .. } => "Turn",
            Self::Begun => "Begun",
            Self::TakenUp { .. } => "TakenUp",
            Self::Resumed => "Resumed",
            Self::Between => "Between",
            Self::Declined(_) => "Declined",
            Self::Followed(_) => "Followed",
            Self::Learned(_) => "Learned",
            Self::Hold(_) => "Hold",
            Self::Obstructed(_) => "Obstructed",
            Self::Restarted { .. } => "Restarted",
        }
    }
}

/// Returns what an event makes of a run.
pub fn decide(run: &RunRecord, event: Event, now: Timestamp) -> Result<Step, IllegalEvent> {
    let run = run.clone();
    let step = match (run.state, event) {
        // What has its turn runs; who asks for a step does not want to wait for a service.
        (State::Queued | State::Running | State::WaitsForService(_), Event::Turn { step: false }) => {
            running(run).into()
        }
        (State::Over { end: End::Completed | End::Cancelled, .. }, event @ Event::Turn { .. }) => {
            return Err(illegal(&run, &event));
        }
        (_, Event::Turn { step: true }) => running(stepped(run, now)).into(),

        // Each step of a beginning is written down before the next.
        (State::Running, Event::Begun) => RunRecord { beginning: None, ..run }.into(),
        (State::Running, Event::TakenUp { from }) => {
            let resume = run.resume.map(|order| ResumeOrder { from: Some(from), ..order });
            RunRecord { resume, ..run }.into()
        }
        (State::Running, Event::Resumed) => {
            let resume = run.resume.as_ref().and_then(ResumeOrder::rest);
            RunRecord { resume, ..run }.into()
        }

        // A stop takes effect between two iterations, and goes before a wait, be it for a person.
        (State::Running, Event::Between) => between(run, now).into(),
        (
            State::Running,
            Event::Declined(next @ (Next::Wait(..) | Next::WaitForPerson(_) | Next::Pause(_) | Next::Hold(_)))
            | Event::Followed(next @ (Next::Wait(..) | Next::WaitForPerson(_) | Next::Pause(_) | Next::Hold(_))),
        ) => match between(run.clone(), now) {
            stopped if stopped.state != State::Running => stopped.into(),
            _ => follow(run, next, now).into(),
        },
        (State::Running, Event::Declined(next) | Event::Followed(next)) => follow(run, next, now).into(),
        (State::Running, Event::Learned(uncommitted)) => RunRecord { uncommitted, ..run }.into(),
        // Nobody has to look at what a person has cancelled.
        (State::Running, Event::Hold(why)) => match run.asked {
            Some(Asked::Cancel) => between(run, now).into(),
            Some(Asked::Pause | Asked::Step) | None => hold(run, why).into(),
        },
        (State::Running, Event::Obstructed(obstruction)) => obstructed(run, obstruction, now),

        // A run that was being driven goes on; what followed from the iteration of another is written down.
        (State::Running, Event::Restarted { .. }) => Step::from(run).with(Effect::KeepJournal),
        (State::Over { .. }, Event::Restarted { .. }) | (_, Event::Restarted { is_over: true }) => {
            Step::from(run).with(Effect::RemoveJournal)
        }
        (_, Event::Restarted { is_over: false }) => Step::from(run).with(Effect::KeepJournal),

        (_, event) => return Err(illegal(&run, &event)),
    };
    Ok(step)
}

fn illegal(run: &RunRecord, event: &Event) -> IllegalEvent {
    IllegalEvent { state: run.state.status(), event: event.name() }
}

fn running(run: RunRecord) -> RunRecord {
    RunRecord { state: State::Running, reason: None, ..run }
}

fn stepped(mut run: RunRecord, now: Timestamp) -> RunRecord {
    run.uncommitted.ask_at_once(now);
    let reset = run.state.is_over();
    let resume = run.resume.or(Some(ResumeOrder::upon(None, 0, reset)));
    RunRecord { asked: Some(Asked::Step), resume, ..run }
}

fn between(run: RunRecord, now: Timestamp) -> RunRecord {
    match run.asked {
        Some(Asked::Cancel) => {
            let why = StopReason::new("cancelled by the user", Command::start_again(&run.id));
            end(run, End::Cancelled, why, now)
        }
        Some(Asked::Pause) => paused(run, StopReason::new("paused by the user", "runnerctl resume")),
        Some(Asked::Step) | None => run,
    }
}

fn follow(run: RunRecord, next: Next, now: Timestamp) -> RunRecord {
    match next {
        Next::GoOn(_) => run,
        Next::Wait(wait, why) => RunRecord { state: State::WaitsForService(wait), reason: Some(why), ..run },
        Next::WaitForPerson(why) => RunRecord { state: State::WaitsForPerson, reason: Some(why), ..run },
        Next::Pause(why) => paused(run, why),
        Next::Hold(why) => hold(run, why),
        Next::End { end: how, reason } => end(run, how, reason, now),
    }
}

/// What passes by itself is waited for, however long; a run that a person has cancelled ends without what could not be
/// done, and says so.
fn obstructed(run: RunRecord, obstruction: Obstruction, now: Timestamp) -> Step {
    match (obstruction.nature, run.asked) {
        (_, Some(Asked::Cancel)) => {
            let why = unfinished(&run, &obstruction);
            Step::from(end(run, End::Cancelled, why, now)).with(Effect::RemoveJournal)
        }
        (Nature::Passing, _) => Step::from(run).with(Effect::WaitOut(obstruction)),
        (Nature::Lasting | Nature::Lost, _) => hold(run, obstruction.holding()).into(),
    }
}

/// Says what a cancelled run has left as it was.
fn unfinished(run: &RunRecord, Obstruction { what, remedy, .. }: &Obstruction) -> StopReason {
    let message = format!(
        "cancelled by the user, and its last iteration could not be brought to its end: {what}; what is not committed \
         stays as it is in {}",
        run.path
    );
    StopReason::new(message, Ways::from(remedy).then(Command::start_again(&run.id)))
}

fn hold(run: RunRecord, why: StopReason) -> RunRecord {
    RunRecord { state: State::Held, reason: Some(why), ..run }
}

fn paused(run: RunRecord, why: StopReason) -> RunRecord {
    RunRecord { state: State::Paused, reason: Some(why), asked: None, ..run }
}

fn end(mut run: RunRecord, end: End, why: StopReason, now: Timestamp) -> RunRecord {
    run.uncommitted.outages.clear();
    RunRecord { state: State::Over { end, at: now }, reason: Some(why), asked: None, ..run }
}
