//! A simulated daemon around the rules: processes that die at any write, the steps of one run, and its stored state.
//!
//! Durable state survives a death; everything else is read again. Writes happen in the same order as in the real
//! daemon.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use protocol::view::StopReason;
use runner_core::files::change::ChangeRequest;
use runner_core::guard::definition::DefinitionDiff;
use runner_core::iteration::tree_examination::TreeExamination;
use runner_core::iteration::{IterationEnd, IterationEvent, Phase, decide};
use runner_core::policy::Policy;
use runner_core::run::usage::ResourceUsage;
use runner_core::run::{
    self, NextStep, QueueInput, QueueTurn, RecordState, RequestContext, RequestRefusal, RunAction, RunActivity, RunEnd,
    RunPreparation, RunRecord, RunRequest, RunTransition, SettledIteration,
};
use runner_core::verdict::{SessionTask, StopCause, Verdict};

use super::definition::MovedFiles;
use super::drive::DriveEnd;
use super::fork::ForkOrigin;
use super::habits::AgentHabits;
use super::loaded::LoadedState;
use super::mischief::MischiefFinding;
use super::mistake::PlantedMistake;
use super::random::RandomSource;
use super::repository::{FileMap, SimulatedRepository};
use super::witness::{RunWitness, TaskClaim};

/// Steps after which a simulated run is cut short; a healthy one needs a few per iteration.
const MAX_TURNS: u32 = 2_000;

/// One in this many simulated runs is forked when it is over.
const FORKS: u64 = 8;
/// Marks that there was a fork.
pub(crate) const FORKED: &str = "a fork";

/// Why something was interrupted.
#[derive(Debug)]
pub(crate) enum DaemonHalt {
    /// The daemon died.
    Death,
    /// A promise is broken; says which.
    Broken(String),
}

/// The result of an action during which the daemon may die.
pub(crate) type StepResult<T> = Result<T, DaemonHalt>;

/// Fails with this violation unless the condition holds.
pub(crate) fn promise(holds: bool, broken: impl FnOnce() -> String) -> StepResult<()> {
    if holds { Ok(()) } else { Err(DaemonHalt::Broken(broken())) }
}

/// The events of the current iteration.
#[derive(Debug, Clone)]
pub(crate) struct JournalState {
    pub(crate) mark: u32,
    pub(crate) policy: Policy,
    pub(crate) events: Vec<IterationEvent>,
}

/// The task tree that a session left; `None` if it left none.
pub(crate) type LeftTree = Option<Vec<u8>>;

/// What effects have stored for the current iteration.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveState {
    pub(crate) parent: Option<String>,
    /// The task tree that the session left.
    pub(crate) tree: Option<LeftTree>,
    /// What the rules say about it.
    pub(crate) examined: Option<TreeExamination>,
    pub(crate) found: BTreeMap<&'static str, MischiefFinding>,
    /// What was restored outside of the scope, by phase.
    pub(crate) outside: BTreeMap<&'static str, Vec<String>>,
    /// Tip and work tree when the guard first ran.
    pub(crate) before_guard: Option<(String, FileMap)>,
    /// How the guard's definition differed from the accepted one.
    pub(crate) departure: DefinitionDiff,
    /// Files set aside while a guard runs with the accepted definition.
    pub(crate) moved: Option<MovedFiles>,
    /// Tip and work tree when the reviewer started.
    pub(crate) reviewed: Option<(String, FileMap)>,
}

/// Whether a run continues after an iteration.
#[derive(Debug, PartialEq, Eq)]
enum AfterIteration {
    GoOn,
    Rest,
}

/// One run, determined by its seed: the daemon, its repository, and the people and programs around it.
pub(crate) struct SimulatedRun {
    pub(crate) random: RandomSource,
    pub(crate) habits: AgentHabits,
    pub(crate) mistake: Option<PlantedMistake>,
    pub(crate) repository: SimulatedRepository,
    pub(crate) record: RunRecord,
    /// Requested changes to its files, each with the tip at which it was begun.
    pub(crate) changes: Vec<(ChangeRequest, Option<String>)>,
    pub(crate) journal: Option<JournalState>,
    pub(crate) live: LiveState,
    pub(crate) now: Timestamp,
    /// Marks that have been assigned.
    pub(crate) marks: u32,
    pub(crate) witness: RunWitness,
    /// Whether the run ended because its repository was lost.
    pub(crate) is_lost: bool,
    /// Whether the run is being driven, and the steps that callers are waiting for.
    pub(crate) is_driving: bool,
    pub(crate) steps: Vec<String>,
    /// Mark of the last iteration whose consequences the witness has checked.
    pub(crate) followed: u32,
    /// What a daemon process has in memory: the state at From, the result of Open, and any stop request.
    pub(crate) loaded: Option<Arc<LoadedState>>,
    pub(crate) declined: Option<OpenRefusal>,
    /// The most recently read commit: reading takes most of a simulation's time.
    pub(crate) read: RefCell<Option<Arc<LoadedState>>>,
    pub(crate) stop: Option<StopCause>,
    pub(crate) is_leaving: bool,
    /// Node that a session claimed as done and a guard passed, while it is pending a person's review.
    pub(crate) claim: Option<TaskClaim>,
    /// Id of the run.
    pub(crate) run: &'static str,
    /// What the witness knew after each iteration.
    pub(crate) known: BTreeMap<String, ForkOrigin>,
    /// The settings at the start; by the time of a fork all disturbances are off.
    pub(crate) lively: AgentHabits,
    /// The justfile that a person accepted last.
    pub(crate) accepted: Option<String>,
    /// What the last end of the run said, until an iteration is settled.
    pub(crate) last_end: Option<String>,
    /// What the last refusal to continue said.
    pub(crate) advised: Option<StopReason>,
    /// The files that undo what a person should not have done.
    pub(crate) amends: Option<FileMap>,
    /// What the run has covered: verdicts, broken rules, roles, states.
    pub(crate) coverage: BTreeSet<String>,
    /// Iterations that were settled.
    pub(crate) settled: u32,
}

/// Why Open found nothing to do.
#[derive(Debug)]
pub(crate) enum OpenRefusal {
    Next(NextStep),
    Hold(StopReason),
}

impl SimulatedRun {
    /// Runs the simulation to its end; returns a violation as a sentence.
    pub(crate) fn play(seed: u64, mistake: Option<PlantedMistake>) -> Result<Self, String> {
        let mut course = Self::new(seed, mistake);
        let mut played = course.play_out();
        if seed.is_multiple_of(FORKS) && played.is_ok() && course.fork() {
            course.coverage.insert(FORKED.to_owned());
            played = course.play_out();
        }
        played.map_err(|why| format!("seed {seed}, {} iterations settled: {why}", course.settled))?;
        Ok(course)
    }

    /// Continues until the run is over or has reached the limit, and audits its branch.
    fn play_out(&mut self) -> Result<(), String> {
        for _ in 0..MAX_TURNS {
            match self.turn() {
                Ok(true) => return self.audit(),
                Ok(false) => {}
                Err(DaemonHalt::Death) => self.rise(),
                Err(DaemonHalt::Broken(why)) => return Err(why),
            }
        }
        Err(format!("P13: it does not come to an end; it is {:?}: {:?}", self.record.state, self.record.reason))
    }

    /// Takes the next step; true if the simulated run is over.
    fn turn(&mut self) -> StepResult<bool> {
        if self.is_lost {
            return Ok(true);
        }
        let is_enough = self.settled >= self.habits.iterations;
        if is_enough {
            self.habits.calm();
        }
        let is_completed = matches!(self.record.state, RecordState::Over { end: RunEnd::Completed, .. });
        if is_completed || is_enough && self.journal.is_none() {
            return Ok(self.make_amends());
        }
        self.coverage.insert(self.record.state.status().to_string());
        let input = QueueInput { steps: &self.steps, unfinished: self.journal.as_ref().map(|_| self.run) };
        match run::choose_turn(std::slice::from_ref(&self.record), input, self.now) {
            QueueTurn::Run(_) => self.drive_run(false)?,
            QueueTurn::Step(_) => self.drive_run(true)?,
            QueueTurn::Idle(_) => self.at_rest()?,
        }
        Ok(false)
    }

    /// Starts the next daemon process, which knows only what is durable.
    pub(crate) fn rise(&mut self) {
        (self.loaded, self.declined, self.stop, self.is_leaving) = (None, None, None, false);
        self.steps.clear();
        self.read = RefCell::default();
        let Some(journal) = &mut self.journal else { return };
        if self.mistake == Some(PlantedMistake::LoseEvent) {
            journal.events.pop();
        }
        let is_over = matches!(replay(journal), Ok(Phase::Over { .. }));
        let step = run::decide(&self.record, run::RunEvent::Restarted { is_over }, self.now);
        if step.is_ok_and(|step| step.effects.contains(&RunAction::RemoveJournal)) {
            self.journal = None;
        }
    }

    /// Applies an event to the run; returns the actions that remain to be done.
    pub(crate) fn happens(&mut self, event: run::RunEvent) -> StepResult<Vec<RunAction>> {
        let step =
            run::decide(&self.record, event, self.now).map_err(|illegal| DaemonHalt::Broken(illegal.to_string()))?;
        self.come_to(step)
    }

    /// Makes a request to the run; returns the actions that remain to be done, or the refusal.
    pub(crate) fn ask(&mut self, request: RunRequest) -> StepResult<Result<Vec<RunAction>, RequestRefusal>> {
        let tip = self.tip().ok().filter(|_| request.needs_commit(self.record.state));
        let situation = RequestContext {
            hold_reason: None,
            work: match (self.is_driving, &self.journal) {
                (true, _) => RunActivity::Active,
                (false, Some(_)) => RunActivity::Unfinished,
                (false, None) => RunActivity::Nothing,
            },
            driven_run: (self.is_driving || self.journal.is_some()).then_some(self.run),
            blocker: None,
            inputs: tip.as_ref().map(|tip| tip.run_inputs(&self.record.uncommitted, self.now)),
            now: self.now,
        };
        match run::handle_request(&self.record, request, &situation) {
            Ok(step) => Ok(Ok(self.come_to(step)?)),
            Err(refusal) => {
                let message = refusal.message(self.run);
                promise(!message.is_empty(), || format!("P13: it is refused without a word: {refusal:?}"))?;
                Ok(Err(refusal))
            }
        }
    }

    /// Stores the state of the run; a run that stops also says why, and how to continue.
    fn come_to(&mut self, step: RunTransition) -> StepResult<Vec<RunAction>> {
        let run = step.record;
        let stands = !matches!(run.state, RecordState::Queued | RecordState::Running);
        if stands && run.state != self.record.state {
            let why = || DaemonHalt::Broken(format!("P13: it stops without a reason: {:?}", run.state));
            let reason = run.reason.clone().ok_or_else(why)?;
            let is_completed = matches!(run.state, RecordState::Over { end: RunEnd::Completed, .. });
            let has_command = reason.command.as_deref().is_some_and(|command| command.contains("runnerctl"));
            promise(!reason.message.is_empty() && (has_command || is_completed), || {
                format!("P13: it stops without saying why or which command continues: {reason:?}")
            })?;
        }
        promise(stands || run.reason.is_none(), || format!("P13: it continues, and says why it does not: {run:?}"))?;
        self.record = run;
        Ok(step.effects)
    }

    /// Reads the state at the tip of the branch; an error is a sentence.
    pub(crate) fn tip(&self) -> Result<Arc<LoadedState>, String> {
        let mut read = self.read.borrow_mut();
        if let Some(loaded) = read.as_ref().filter(|loaded| loaded.commit == self.repository.tip) {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(LoadedState::of(self.repository.head())?);
        *read = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Sometimes dies: everything written before is durable, and nothing else.
    pub(crate) fn may_die(&mut self) -> StepResult<()> {
        if self.random.one_in(self.habits.deaths) { Err(DaemonHalt::Death) } else { Ok(()) }
    }

    fn drive_run(&mut self, step: bool) -> StepResult<()> {
        self.happens(run::RunEvent::Turn { step })?;
        self.steps.clear();
        self.may_die()?;
        self.is_driving = true;
        let driven = self.drive_on();
        self.is_driving = false;
        driven?;
        if self.is_leaving {
            self.rise();
        }
        Ok(())
    }

    fn drive_on(&mut self) -> StepResult<()> {
        let mut is_first = true;
        while self.begin(is_first)? {
            is_first = false;
            self.ask_meanwhile()?;
            if self.iterate()? == AfterIteration::Rest || self.settled >= self.habits.iterations {
                break;
            }
            self.commit_by_hand();
        }
        Ok(())
    }

    /// Does what is due before an iteration; false if the run cannot continue now.
    fn begin(&mut self, is_first: bool) -> StepResult<bool> {
        let mut needs_baseline = is_first;
        while self.journal.is_none() {
            if self.stopped_before_work()? {
                return Ok(false);
            }
            match self.record.preparation() {
                Some(RunPreparation::SettleId(id)) => drop(self.happens(run::RunEvent::IdSettled { id })?),
                Some(RunPreparation::Begin(_)) => {
                    self.start()?;
                    self.happens(run::RunEvent::Started)?;
                }
                Some(RunPreparation::AnchorResume) => {
                    let from = self.repository.tip.clone();
                    self.happens(run::RunEvent::ResumeAnchored { from })?;
                }
                Some(RunPreparation::Resume(order)) => {
                    self.resume(&order)?;
                    self.happens(run::RunEvent::Resumed)?;
                }
                None if needs_baseline => {
                    needs_baseline = false;
                    if !self.baseline()? {
                        return Ok(false);
                    }
                }
                None => {
                    self.commit_changes()?;
                    return Ok(true);
                }
            }
            self.may_die()?;
        }
        Ok(true)
    }

    fn stopped_before_work(&mut self) -> StepResult<bool> {
        self.happens(run::RunEvent::BetweenIterations)?;
        Ok(self.is_stopped())
    }

    /// Whether the run stops here; a pending stop request is then used up.
    fn is_stopped(&mut self) -> bool {
        let is_stopped = self.record.state != RecordState::Running;
        if is_stopped {
            self.stop = None;
        }
        is_stopped
    }

    /// Holds the run until a person intervenes.
    pub(crate) fn hold(&mut self, reason: StopReason) -> StepResult<()> {
        self.happens(run::RunEvent::Hold(reason)).map(drop)
    }

    fn iterate(&mut self) -> StepResult<AfterIteration> {
        let phase = match &self.journal {
            None => Phase::Open,
            Some(journal) => {
                let phase = replay(journal).map_err(DaemonHalt::Broken)?;
                if self.mistake == Some(PlantedMistake::ForgetRestart) {
                    phase
                } else {
                    self.take(phase, IterationEvent::Restarted)?
                }
            }
        };
        match self.drive(phase)? {
            DriveEnd::Left => Ok(AfterIteration::Rest),
            DriveEnd::Obstructed(obstruction) => {
                let effects = self.happens(run::RunEvent::Blocked(obstruction))?;
                // The repository no longer exists.
                self.is_lost = effects.contains(&RunAction::RemoveJournal);
                Ok(AfterIteration::Rest)
            }
            DriveEnd::Over(IterationEnd::Untouched) => {
                let then = self.untouched()?;
                self.journal = None;
                Ok(then)
            }
            DriveEnd::Over(IterationEnd::Settled { verdict, commit }) => {
                let then = self.followed(&verdict, commit.as_deref())?;
                self.may_die()?;
                (self.live, self.journal) = (LiveState::default(), None);
                Ok(then)
            }
        }
    }

    fn untouched(&mut self) -> StepResult<AfterIteration> {
        let event = match self.declined.take() {
            Some(OpenRefusal::Next(next)) => return self.follow(next, run::RunEvent::Declined),
            Some(OpenRefusal::Hold(reason)) => run::RunEvent::Hold(reason),
            None => run::RunEvent::BetweenIterations,
        };
        self.happens(event)?;
        self.is_stopped();
        Ok(AfterIteration::Rest)
    }

    /// Handles the consequences of a settled iteration.
    fn followed(&mut self, verdict: &Verdict, commit: Option<&str>) -> StepResult<AfterIteration> {
        let journal = self.journal.clone().ok_or_else(|| DaemonHalt::Broken("settled without a journal".to_owned()))?;
        check_memory(&journal)?;
        let tip = self.tip().map_err(|why| DaemonHalt::Broken(format!("P2: {why}")))?;
        let (task, spent) = facts(&journal.events)?;
        if self.followed != journal.mark {
            self.followed = journal.mark;
            self.witness.check(&self.repository, &tip, (verdict, commit)).map_err(DaemonHalt::Broken)?;
            if let Some(commit) = commit {
                self.claim = self.witness.claim(&self.repository, verdict);
                let known = ForkOrigin { claim: self.claim.clone(), accepted: self.accepted.clone() };
                self.known.insert(commit.to_owned(), known);
            }
            self.settled += 1;
            // The person's action was allowed after all.
            (self.last_end, self.amends) = (None, None);
            self.see(&task, verdict);
        }
        let mark = journal.mark.to_string();
        let settled = SettledIteration {
            mark: &mark,
            task: &task,
            verdict,
            is_reviewed: journal.events.iter().any(|event| matches!(event, IterationEvent::ReviewEnded(_))),
            usage: &spent,
            is_committed: commit.is_some(),
        };
        if let Some(after) = self.record.uncommitted.after_iteration(settled, self.now) {
            self.happens(run::RunEvent::ScratchChanged(after))?;
        }
        self.may_die()?;
        let next = run::decide_next(
            &tip.run_inputs(&self.record.uncommitted, self.now),
            Some(verdict),
            self.record.stop_request,
        );
        self.follow(next, run::RunEvent::IterationSettled)
    }

    fn see(&mut self, task: &SessionTask, verdict: &Verdict) {
        self.coverage.extend([verdict.name().to_string(), format!("role {}", task.role)]);
        if let Verdict::Broken(breach) = verdict {
            self.coverage.insert(breach.rule.as_str().to_owned());
        }
    }

    /// Stores what the run does next.
    fn follow(&mut self, next: NextStep, event: impl FnOnce(NextStep) -> run::RunEvent) -> StepResult<AfterIteration> {
        let goes_on = matches!(next, NextStep::Continue(_));
        if let NextStep::Wait(wait, reason) = &next {
            promise(!wait.is_over(self.now), || format!("P13: it waits for what is over: {reason:?}"))?;
        }
        self.happens(event(next))?;
        self.is_stopped();
        if let (RecordState::Over { end, .. }, Some(reason)) = (self.record.state, &self.record.reason) {
            let is_repeated = self.last_end.as_ref() == Some(&reason.message) && end != RunEnd::Cancelled;
            promise(!is_repeated, || format!("P13: it was resumed as it said, and says the same again: {reason:?}"))?;
            self.last_end = Some(reason.message.clone());
        }
        Ok(if goes_on { AfterIteration::GoOn } else { AfterIteration::Rest })
    }
}

/// Replays a journal; the error is a sentence.
pub(crate) fn replay(journal: &JournalState) -> Result<Phase, String> {
    journal.events.iter().try_fold(Phase::Open, |phase, event| {
        decide(&journal.policy, phase, event.clone()).map_err(|illegal| illegal.to_string())
    })
}

/// Asserts that the state in memory equals the replayed journal.
fn check_memory(journal: &JournalState) -> StepResult<()> {
    let is_over = matches!(replay(journal), Ok(Phase::Over { end: IterationEnd::Settled { .. } }));
    promise(is_over, || format!("the journal does not lead to where the iteration is: {:?}", journal.events))
}

/// Returns the session's task, and its usage.
fn facts(events: &[IterationEvent]) -> StepResult<(SessionTask, ResourceUsage)> {
    let task = events
        .iter()
        .find_map(|event| if let IterationEvent::Opened(task) = event { Some(task.clone()) } else { None });
    let task = task.ok_or_else(|| DaemonHalt::Broken("settled what was never opened".to_owned()))?;
    let spent = events.iter().fold(ResourceUsage::default(), |spent, event| {
        let more = match event {
            IterationEvent::SessionEnded(end) => {
                ResourceUsage { usage: (&end.usage).into(), elapsed_ms: end.elapsed_ms }
            }
            IterationEvent::GuardEnded(end) => ResourceUsage { elapsed_ms: end.elapsed_ms, ..ResourceUsage::default() },
            IterationEvent::ReviewEnded(end) => ResourceUsage { usage: end.usage.clone(), elapsed_ms: end.elapsed_ms },
            _ => ResourceUsage::default(),
        };
        spent.plus(&more)
    });
    Ok((task, spent))
}
