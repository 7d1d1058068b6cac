//! What people ask of a run, and what it is answered in each state.

use jiff::Timestamp;
use protocol::command::Command;
use protocol::path::WirePath;
use protocol::view::StopReason;

use super::next::{Standing, ends_again};
use super::record::{Asked, Beginning, End, ResumeOrder, RunRecord, State};
use super::refusal::Refusal;
use super::{Effect, Step, end, paused};
use crate::approval::{self, Decision, Pending, PersonDecision};
use crate::change::Subject;
use crate::message::WordSignature;
use crate::obstacle::Obstruction;
use crate::select::{Selection, select};
use crate::verdict::StopCause;

/// What a person asks of a run that is in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// To begin it, or to go on with it.
    Start(Start),
    /// To run one iteration.
    Step,
    /// To stop after the iteration.
    Pause {
        /// To end the session now.
        now: bool,
    },
    /// To go on.
    Resume {
        /// To ask services again at once.
        now: bool,
        /// Iterations to grant.
        more: Option<u32>,
        /// The repository was looked at again for it.
        looked: bool,
    },
    /// To end.
    Cancel,
    /// To take a person's word on what is done.
    Review {
        /// What was decided.
        decision: Decision,
        /// The person's signature of it, where they have signed.
        signature: Option<WordSignature>,
    },
    /// To change its files.
    Change(Subject),
}

/// How a run is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The work tree.
    pub path: WirePath,
    /// What its goal is called, as far as that is known.
    pub goal: Option<String>,
    /// How it begins, where it is not in the queue.
    pub beginning: Beginning,
    /// Not to begin yet.
    pub queue_only: bool,
    /// Whether it has a branch.
    pub is_begun: bool,
}

/// What is under way of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    Nothing,
    /// It is being driven.
    Live,
    /// An iteration that a life of the daemon before this one has begun.
    Unfinished,
}

/// What a request is decided from beside the record.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// Why nothing may be done with the repository.
    pub held: Option<&'a StopReason>,
    /// What is under way of the run.
    pub work: Work,
    /// A run of the repository that is being driven, or was when the daemon died.
    pub driven: Option<&'a str>,
    /// What keeps the run that is driven from going on.
    pub obstacle: Option<&'a Obstruction>,
    /// What is committed, where the request asks for it and it can be read.
    pub standing: Option<Standing<'a>>,
    /// The time.
    pub now: Timestamp,
}

impl Situation<'_> {
    /// Returns what waits for a person's review.
    fn pending(&self) -> Option<Pending> {
        self.standing.as_ref().and_then(approval::pending)
    }
}

impl Request {
    /// Whether what is committed has a say in the answer to this.
    pub fn reads_commit(&self, state: State) -> bool {
        matches!(
            (self, state),
            (Self::Resume { .. } | Self::Step, State::WaitsForPerson)
                | (Self::Review { .. }, _)
                | (Self::Resume { .. } | Self::Step | Self::Start(_), State::Over { .. })
        )
    }
}

/// Returns what a request makes of a run, or why it is refused.
pub fn ask(run: &RunRecord, request: Request, situation: &Situation<'_>) -> Result<Step, Refusal> {
    let held = || situation.held.map_or(Ok(()), |held| Err(Refusal::RepositoryHeld(held.clone())));
    match request {
        Request::Pause { now } => pause(run.clone(), now, situation),
        Request::Cancel => cancel(run.clone(), situation),
        Request::Resume { looked: false, .. } if situation.held.is_some() => {
            Ok(Step::from(run.clone()).with(Effect::LookAgain))
        }
        Request::Resume { now, more, looked } => {
            held()?;
            if looked && run.state == State::Running {
                return Ok(run.clone().into());
            }
            may_resume(run, now, more, situation)?;
            Ok(resume(run.clone(), now, more, situation.now))
        }
        Request::Start(order) => {
            held()?;
            start(run.clone(), order, situation)
        }
        Request::Step => {
            held()?;
            may_step(run, situation)?;
            Ok(Step::from(run.clone()).with(Effect::AwaitStep))
        }
        Request::Review { decision, signature } => {
            held()?;
            review(run.clone(), (decision, signature), situation)
        }
        Request::Change(subject) => {
            held()?;
            may_change(run.state, subject)?;
            Ok(run.clone().into())
        }
    }
}

/// Returns a run that is not in the list yet.
pub fn begin(id: &str, start: Start, now: Timestamp) -> Step {
    let Start { path, goal, beginning, queue_only, is_begun } = start;
    let run = RunRecord::queued(id, path, now);
    // The counters that have stopped another run do not stop its fork.
    let resume = (is_begun || beginning.fork).then(|| ResumeOrder::upon(None, 0, true));
    let run = RunRecord { goal, beginning: Some(beginning), resume, ..run };
    let why = || StopReason::new("paused until you resume it", "runnerctl resume");
    Step::from(if queue_only { paused(run, why()) } else { run }).with(Effect::Tell)
}

/// A run that is in the queue goes on where a person had stopped it; one that is over begins anew behind the others.
fn start(run: RunRecord, start: Start, situation: &Situation<'_>) -> Result<Step, Refusal> {
    let now = situation.now;
    match run.state {
        _ if start.beginning.fork => Err(Refusal::IsThere),
        State::Over { end, .. } => {
            let may_begin = |standing| match end {
                End::Completed => may_begin_again(standing),
                // It may end at once: then it says why, and what that says can be done, as it cannot to a cancelled run.
                End::Cancelled => Ok(()),
                End::Stuck | End::Limit | End::TimedOut | End::Failed => may_go_on(standing, 0),
            };
            situation.standing.as_ref().map_or(Ok(()), may_begin)?;
            let Step { record, effects } = begin(&run.id, Start { is_begun: true, ..start }, now);
            let record = RunRecord { uncommitted: run.uncommitted, ..record };
            Ok(Step { record, effects }.with(Effect::GoLast))
        }
        State::Paused | State::Held if !start.queue_only => Ok(resume(run, false, None, now)),
        State::Queued | State::Running | State::Paused | State::Held => Ok(run.into()),
        State::WaitsForService(_) | State::WaitsForPerson => Ok(run.into()),
    }
}

/// Refuses to begin a run again of which this is committed: it has reached its goal, or would end at once.
pub fn may_begin_again(standing: &Standing<'_>) -> Result<(), Refusal> {
    if select(standing.tree) == Selection::Complete {
        return Err(Refusal::IsCompleted);
    }
    may_go_on(standing, 0)
}

/// Refuses to let a run go on that has ended and would end again at once.
fn may_go_on(standing: &Standing<'_>, more: u32) -> Result<(), Refusal> {
    match ends_again(standing, more) {
        Some((End::Limit, why)) => Err(Refusal::StillAtLimit(why)),
        Some((_, why)) => Err(Refusal::StillStuck(why)),
        None => Ok(()),
    }
}

fn may_step(run: &RunRecord, situation: &Situation<'_>) -> Result<(), Refusal> {
    match (run.state, situation.driven) {
        (State::Running, Some(driven)) => Err(Refusal::IsDriven(driven.to_owned())),
        (_, Some(driven)) if driven != run.id => Err(Refusal::IsDriven(driven.to_owned())),
        (State::Over { end, .. }, _) => may_leave(end, 0, situation),
        (State::WaitsForPerson, _) => situation.pending().map_or(Ok(()), |on| Err(Refusal::WaitsForReview(on))),
        _ => Ok(()),
    }
}

/// Refuses to let a run go on from its end where that leads nowhere.
fn may_leave(end: End, more: u32, situation: &Situation<'_>) -> Result<(), Refusal> {
    match end {
        End::Completed => Err(Refusal::IsCompleted),
        End::Cancelled => Err(Refusal::IsCancelled),
        End::Stuck | End::Limit | End::TimedOut | End::Failed => {
            situation.standing.as_ref().map_or(Ok(()), |standing| may_go_on(standing, more))
        }
    }
}

fn pause(run: RunRecord, now: bool, situation: &Situation<'_>) -> Result<Step, Refusal> {
    match (run.state, situation.work) {
        (State::Over { end, .. }, _) => Err(Refusal::IsOver(end.status())),
        (_, Work::Live) | (State::Running, Work::Unfinished) => {
            let asked = run.asked.filter(|asked| *asked == Asked::Cancel).or(Some(Asked::Pause));
            let step = Step::from(RunRecord { asked, ..run });
            Ok(if now { step.with(Effect::Stop(StopCause::Pause)) } else { step })
        }
        _ => {
            let why = StopReason::new("paused by the user", "runnerctl resume");
            Ok(Step::from(paused(run, why)).with(Effect::AnswerSteps))
        }
    }
}

/// What a session has left is committed before its run ends.
fn cancel(run: RunRecord, situation: &Situation<'_>) -> Result<Step, Refusal> {
    match (run.state, situation.work) {
        (State::Over { end, .. }, _) => Err(Refusal::IsOver(end.status())),
        (_, Work::Live | Work::Unfinished) => {
            let run = RunRecord { asked: Some(Asked::Cancel), state: State::Running, reason: None, ..run };
            Ok(Step::from(run).with(Effect::Stop(StopCause::Cancel)))
        }
        (_, Work::Nothing) => {
            let why = StopReason::new("cancelled by the user", Command::start_again(&run.id));
            let mut run = end(run, End::Cancelled, why, situation.now);
            run.uncommitted.word = None;
            Ok(Step::from(run).with(Effect::AnswerSteps))
        }
    }
}

fn may_resume(run: &RunRecord, now: bool, more: Option<u32>, situation: &Situation<'_>) -> Result<(), Refusal> {
    let refused = match run.state {
        State::Over { end, .. } => may_leave(end, more.unwrap_or(0), situation).err(),
        State::WaitsForPerson => situation.pending().map(Refusal::WaitsForReview),
        State::WaitsForService(_) => (!now).then_some(Refusal::WaitsForService),
        State::Running if run.asked.is_none() && more.is_none() => {
            let obstacle = situation.obstacle.map(|obstacle| Refusal::IsObstructed(obstacle.waiting()));
            Some(obstacle.unwrap_or(Refusal::IsRunning))
        }
        State::Queued | State::Running | State::Paused | State::Held => None,
    };
    refused.map_or(Ok(()), Err)
}

fn resume(mut run: RunRecord, now: bool, more: Option<u32>, time: Timestamp) -> Step {
    if now {
        run.uncommitted.ask_at_once(time);
    }
    if run.state != State::Running || more.is_some() {
        run.resume = Some(ResumeOrder::upon(run.resume, more.unwrap_or(0), run.state.is_over()));
    }
    queued(run)
}

/// A run that the user had paused is paused again after a person's word.
fn review(
    mut run: RunRecord,
    (decision, signature): (Decision, Option<WordSignature>),
    situation: &Situation<'_>,
) -> Result<Step, Refusal> {
    decision.check().map_err(Refusal::InvalidWord)?;
    if situation.work != Work::Nothing {
        return Err(Refusal::IsAtWork);
    }
    if matches!(run.state, State::Over { end: End::Cancelled, .. }) {
        return Err(Refusal::IsCancelled);
    }
    let on = situation.pending().ok_or_else(|| Refusal::NothingToReview(run.state.status()))?;
    let word = PersonDecision { on, decision, signature };
    let policy = situation.standing.as_ref().map(|standing| standing.policy);
    if !policy.is_some_and(|policy| word.counts_for(Some(&word.on), policy)) {
        return Err(Refusal::Unsigned(word.on));
    }
    let asked = (run.state == State::Paused).then_some(Asked::Step);
    run.uncommitted.word = Some(word);
    let Step { record, effects } = queued(run);
    Ok(Step { record: RunRecord { asked, ..record }, effects })
}

fn may_change(state: State, subject: Subject) -> Result<(), Refusal> {
    match (subject, state) {
        (Subject::Note, State::Over { end: End::Completed | End::Cancelled, .. }) => {
            Err(Refusal::NoReader(state.status()))
        }
        (Subject::Tree, State::Over { end: End::Completed, .. }) => Err(Refusal::AllPassed),
        (Subject::Note | Subject::Tree | Subject::Files, _) => Ok(()),
    }
}

/// Puts a run that is not being driven into the queue, one that was over behind the others.
fn queued(run: RunRecord) -> Step {
    let was_over = run.state.is_over();
    let state = if run.state == State::Running { State::Running } else { State::Queued };
    let step = Step::from(RunRecord { state, asked: None, reason: None, ..run }).with(Effect::Tell);
    if was_over { step.with(Effect::GoLast) } else { step }
}
