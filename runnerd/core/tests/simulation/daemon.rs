//! A daemon of its own making around the rules: lives that end at any write, turns of one run, and what it keeps.
//!
//! What is durable outlives a death; everything else is read again. The order of the writes is that of the real daemon.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use protocol::view::StopReason;
use protocol::words::RunStatus;
use runner_core::approval::PersonDecision;
use runner_core::change::Change;
use runner_core::definition::Departure;
use runner_core::examine::Examined;
use runner_core::fallback::Outage;
use runner_core::iteration::{Event, Over, Phase, decide};
use runner_core::policy::Policy;
use runner_core::run::{self, Asked, Next};
use runner_core::usage::Spent;
use runner_core::verdict::{StopCause, Task, Verdict};
use runner_core::{fallback, tree};

use super::approval::is_still_said;
use super::definition::Moved;
use super::drive::Drove;
use super::fork::Known;
use super::habits::Habits;
use super::loaded::Loaded;
use super::mischief::Found;
use super::mistake::Mistake;
use super::random::Random;
use super::repository::{Files, Repository};
use super::witness::{Claim, Witness};

/// Turns after which a course is cut short; a healthy one needs a few per iteration.
const MAX_TURNS: u32 = 2_000;

/// Of so many courses one is forked when it is over.
const FORKS: u64 = 8;
/// That there was a fork.
pub(crate) const FORKED: &str = "a fork";

/// Why something did not come to its end.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The daemon died.
    Death,
    /// A promise is broken, and which.
    Broken(String),
}

/// What comes of something during which the daemon may die.
pub(crate) type Lived<T> = Result<T, Halt>;

/// Fails with what is broken, unless it holds.
pub(crate) fn promise(holds: bool, broken: impl FnOnce() -> String) -> Lived<()> {
    if holds { Ok(()) } else { Err(Halt::Broken(broken())) }
}

/// What is known of a run's sessions that no commit holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uncommitted {
    /// Services that were not available.
    pub(crate) outages: Vec<Outage>,
    /// What tries of the next iteration have spent.
    pub(crate) tried: Spent,
    /// A person's word that no commit holds yet.
    pub(crate) word: Option<PersonDecision>,
    /// Mark of the last iteration that has changed this.
    followed: u32,
}

/// How a run is to go on.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The commit that was the tip when it was begun.
    pub(crate) from: Option<String>,
    /// Iterations that are granted.
    pub(crate) more: u32,
    /// Whether the run had ended.
    pub(crate) reset: bool,
}

/// What the daemon has written down of the run.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) state: RunStatus,
    pub(crate) reason: Option<StopReason>,
    pub(crate) wait: Option<runner_core::wait::Wait>,
    pub(crate) asked: Asked,
    pub(crate) is_begun: bool,
    pub(crate) resume: Option<Order>,
    pub(crate) uncommitted: Uncommitted,
    /// What people have asked for, and the tip at which each was begun.
    pub(crate) changes: Vec<(Change, Option<String>)>,
}

/// The events of the iteration that is under way.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    pub(crate) mark: u32,
    pub(crate) policy: Policy,
    pub(crate) events: Vec<Event>,
}

/// The task tree as a session has left it: none where there is none.
pub(crate) type Left = Option<Vec<u8>>;

/// What effects have kept of the iteration that is under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    pub(crate) upon: Option<String>,
    /// The task tree as the session has left it.
    pub(crate) tree: Option<Left>,
    /// What the rules say of it.
    pub(crate) examined: Option<Examined>,
    pub(crate) found: BTreeMap<&'static str, Found>,
    /// Tip and work tree as the guard has found them, the first time that it was run.
    pub(crate) before_guard: Option<(String, Files)>,
    /// How the guard's definition differed from the accepted one.
    pub(crate) departure: Departure,
    /// What stands aside while a guard runs with the accepted definition.
    pub(crate) moved: Option<Moved>,
    /// Tip and work tree as the reviewer has found them.
    pub(crate) scenery: Option<(String, Files)>,
}

/// Whether a run goes on after an iteration.
#[derive(Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Rest,
}

/// One run from its seed: the daemon, its repository, and everybody around it.
pub(crate) struct Course {
    pub(crate) random: Random,
    pub(crate) habits: Habits,
    pub(crate) mistake: Option<Mistake>,
    pub(crate) repository: Repository,
    pub(crate) record: Record,
    pub(crate) journal: Option<Journal>,
    pub(crate) live: Live,
    pub(crate) now: Timestamp,
    /// Marks that were given.
    pub(crate) marks: u32,
    pub(crate) witness: Witness,
    /// What a life of the daemon has in memory: the state at From, what Open found, and who wants it to end.
    pub(crate) loaded: Option<Arc<Loaded>>,
    pub(crate) declined: Option<Declined>,
    /// The commit that was read last: reading is most of what a course does.
    pub(crate) read: RefCell<Option<Arc<Loaded>>>,
    pub(crate) stop: Option<StopCause>,
    pub(crate) is_leaving: bool,
    /// What a session has claimed to be done and a guard has passed, as long as it waits for a person.
    pub(crate) claim: Option<Claim>,
    /// Id of the run.
    pub(crate) run: &'static str,
    /// What the witness knew after each iteration.
    pub(crate) known: BTreeMap<String, Known>,
    /// What it was like at the start: nobody is calm any more when a fork begins.
    pub(crate) lively: Habits,
    /// The justfile that a person has accepted last.
    pub(crate) accepted: Option<String>,
    /// What the last end of the run has said, until an iteration is settled.
    pub(crate) said: Option<String>,
    /// What puts right what a person may not have done: files as they should be.
    pub(crate) amends: Option<Files>,
    /// What the course has come across: verdicts, rules that were broken, roles, states of the run.
    pub(crate) seen: BTreeSet<String>,
    /// Iterations that were settled.
    pub(crate) settled: u32,
}

/// Why Open found nothing to begin.
#[derive(Debug)]
pub(crate) enum Declined {
    Next(Next),
    Hold(StopReason),
}

impl Course {
    /// Plays a course to its end; what is broken comes back as a sentence.
    pub(crate) fn play(seed: u64, mistake: Option<Mistake>) -> Result<Self, String> {
        let mut course = Self::new(seed, mistake);
        let mut played = course.play_out();
        if seed.is_multiple_of(FORKS) && played.is_ok() && course.fork() {
            course.seen.insert(FORKED.to_owned());
            played = course.play_out();
        }
        played.map_err(|why| format!("seed {seed}, {} iterations settled: {why}", course.settled))?;
        Ok(course)
    }

    /// Goes on until the run is over or it is enough, and audits its branch.
    fn play_out(&mut self) -> Result<(), String> {
        for _ in 0..MAX_TURNS {
            match self.turn() {
                Ok(true) => return self.audit(),
                Ok(false) => {}
                Err(Halt::Death) => self.rise(),
                Err(Halt::Broken(why)) => return Err(why),
            }
        }
        Err(format!("P13: it does not come to an end; it is {}: {:?}", self.record.state, self.record.reason))
    }

    /// Does what is next; true when the course is over.
    fn turn(&mut self) -> Lived<bool> {
        let is_enough = self.settled >= self.habits.iterations;
        if is_enough {
            self.habits.calm();
        }
        if self.record.state == RunStatus::Completed || is_enough && self.journal.is_none() {
            return Ok(self.make_amends());
        }
        self.seen.insert(self.record.state.to_string());
        match self.record.state {
            RunStatus::Queued | RunStatus::Running => self.drive_run()?,
            _ => self.at_rest()?,
        }
        Ok(false)
    }

    /// Begins the next life: only what is durable is known.
    pub(crate) fn rise(&mut self) {
        (self.loaded, self.declined, self.stop, self.is_leaving) = (None, None, None, false);
        self.read = RefCell::default();
        let Some(journal) = &mut self.journal else { return };
        if self.mistake == Some(Mistake::LoseEvent) {
            journal.events.pop();
        }
        let is_over = matches!(replay(journal), Ok(Phase::Over { .. }));
        let state = self.record.state;
        if state != RunStatus::Running && (is_over || state.is_terminal()) {
            self.journal = None;
        }
    }

    /// Reads the state at the tip of the branch; an error is a sentence.
    pub(crate) fn tip(&self) -> Result<Arc<Loaded>, String> {
        let mut read = self.read.borrow_mut();
        if let Some(loaded) = read.as_ref().filter(|loaded| loaded.commit == self.repository.tip) {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(Loaded::of(self.repository.head())?);
        *read = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Dies now and then: whatever was written before is durable, and nothing else.
    pub(crate) fn may_die(&mut self) -> Lived<()> {
        if self.random.one_in(self.habits.deaths) { Err(Halt::Death) } else { Ok(()) }
    }

    fn drive_run(&mut self) -> Lived<()> {
        (self.record.state, self.record.reason, self.record.wait) = (RunStatus::Running, None, None);
        self.may_die()?;
        let mut is_first = true;
        while self.begin(is_first)? {
            is_first = false;
            self.ask_meanwhile();
            if self.iterate()? == Then::Rest || self.settled >= self.habits.iterations {
                break;
            }
            self.commit_by_hand();
        }
        if self.is_leaving {
            self.rise();
        }
        Ok(())
    }

    /// Does what is to be done before an iteration; false if the run cannot go on now.
    fn begin(&mut self, is_first: bool) -> Lived<bool> {
        let mut needs_baseline = is_first;
        while self.journal.is_none() {
            if self.stopped_before_work() {
                return Ok(false);
            }
            match (self.record.is_begun, &mut self.record.resume) {
                (false, _) => {
                    self.start()?;
                    self.record.is_begun = true;
                }
                (true, Some(order)) if order.from.is_none() => order.from = Some(self.repository.tip.clone()),
                (true, Some(order)) => {
                    let order = order.clone();
                    self.resume(&order)?;
                    self.record.resume = None;
                }
                (true, None) if needs_baseline => {
                    needs_baseline = false;
                    if !self.baseline()? {
                        return Ok(false);
                    }
                }
                (true, None) => {
                    self.commit_changes()?;
                    return Ok(true);
                }
            }
            self.may_die()?;
        }
        Ok(true)
    }

    fn stopped_before_work(&mut self) -> bool {
        let reason = |message: &str, command: &str| StopReason {
            message: message.to_owned(),
            command: Some(command.to_owned()),
        };
        match self.record.asked {
            Asked::Nothing | Asked::Step => return false,
            Asked::Pause => self.pause(reason("paused by the user", "runnerctl resume")),
            Asked::Cancel => self.end(RunStatus::Cancelled, reason("cancelled by the user", "runnerctl start")),
        }
        true
    }

    fn pause(&mut self, reason: StopReason) {
        (self.record.state, self.record.reason) = (RunStatus::Paused, Some(reason));
        (self.record.asked, self.stop) = (Asked::Nothing, None);
    }

    fn end(&mut self, state: RunStatus, reason: StopReason) {
        (self.record.state, self.record.reason) = (state, Some(reason));
        (self.record.asked, self.stop) = (Asked::Nothing, None);
    }

    /// Holds the run until somebody looks.
    pub(crate) fn hold(&mut self, reason: StopReason) {
        (self.record.state, self.record.reason) = (RunStatus::Held, Some(reason));
    }

    fn iterate(&mut self) -> Lived<Then> {
        let phase = match &self.journal {
            None => Phase::Open,
            Some(journal) => {
                let phase = replay(journal).map_err(Halt::Broken)?;
                if self.mistake == Some(Mistake::ForgetRestart) { phase } else { self.take(phase, Event::Restarted)? }
            }
        };
        match self.drive(phase)? {
            Drove::Left => Ok(Then::Rest),
            Drove::Held(reason) => {
                self.hold(reason);
                Ok(Then::Rest)
            }
            Drove::Over(Over::Untouched) => {
                let then = self.untouched()?;
                self.journal = None;
                Ok(then)
            }
            Drove::Over(Over::Settled { verdict, commit }) => {
                let then = self.followed(&verdict, commit.as_deref())?;
                self.may_die()?;
                (self.live, self.journal) = (Live::default(), None);
                Ok(then)
            }
        }
    }

    fn untouched(&mut self) -> Lived<Then> {
        match self.declined.take() {
            Some(Declined::Next(Next::Wait(..))) if self.stopped_before_work() => Ok(Then::Rest),
            Some(Declined::Next(next)) => self.follow(&next),
            Some(Declined::Hold(reason)) => {
                self.hold(reason);
                Ok(Then::Rest)
            }
            None => {
                self.stopped_before_work();
                Ok(Then::Rest)
            }
        }
    }

    /// Follows an iteration that was settled.
    fn followed(&mut self, verdict: &Verdict, commit: Option<&str>) -> Lived<Then> {
        let journal = self.journal.clone().ok_or_else(|| Halt::Broken("settled without a journal".to_owned()))?;
        check_memory(&journal)?;
        let tip = self.tip().map_err(|why| Halt::Broken(format!("P2: {why}")))?;
        let (task, spent) = facts(&journal.events)?;
        if self.record.uncommitted.followed != journal.mark {
            self.witness.check(&self.repository, &tip, (verdict, commit)).map_err(Halt::Broken)?;
            if let Some(commit) = commit {
                self.claim = self.witness.claim(&self.repository, verdict);
                let known = Known { claim: self.claim.clone(), accepted: self.accepted.clone() };
                self.known.insert(commit.to_owned(), known);
            }
            self.settled += 1;
            // What a person did was allowed after all.
            (self.said, self.amends) = (None, None);
            self.see(&task, verdict);
        }
        self.learn(&journal, &task, (verdict, commit, &spent));
        self.may_die()?;
        let next = run::next(&tip.standing(&self.record.uncommitted, self.now), Some(verdict), self.record.asked);
        self.follow(&next)
    }

    fn see(&mut self, task: &Task, verdict: &Verdict) {
        self.seen.extend([verdict.name().to_string(), format!("role {}", task.role)]);
        if let Verdict::Broken(breach) = verdict {
            self.seen.insert(breach.rule.as_str().to_owned());
        }
    }

    /// Keeps what no commit holds of an iteration, once.
    fn learn(&mut self, journal: &Journal, task: &Task, (verdict, commit, spent): (&Verdict, Option<&str>, &Spent)) {
        let before = &self.record.uncommitted;
        if before.followed == journal.mark {
            return;
        }
        let kind = |kind: &Option<String>| kind.clone().unwrap_or_default();
        let (worker, reviewer) = (kind(&task.kind), kind(&task.reviewer));
        let outages = if journal.events.iter().any(|event| matches!(event, Event::ReviewEnded(_))) {
            fallback::after_review(&before.outages, (&worker, &reviewer), verdict, self.now)
        } else {
            fallback::after(&before.outages, &worker, verdict, self.now)
        };
        let tried = if commit.is_some() { Spent::default() } else { before.tried.and(spent) };
        let word = before.word.clone().filter(|_| is_still_said(verdict, commit));
        self.record.uncommitted = Uncommitted { outages, tried, word, followed: journal.mark };
    }

    /// Writes down what a run does next.
    fn follow(&mut self, next: &Next) -> Lived<Then> {
        let reason = match next {
            Next::GoOn(_) => return Ok(Then::GoOn),
            Next::Wait(_, reason) | Next::WaitForPerson(reason) | Next::Pause(reason) | Next::End { reason, .. } => {
                reason.clone()
            }
        };
        let is_completed = matches!(next, Next::End { status: RunStatus::Completed, .. });
        let has_command = reason.command.as_deref().is_some_and(|command| command.contains("runnerctl"));
        promise(!reason.message.is_empty() && (has_command || is_completed), || {
            format!("P13: it stops without saying why or what goes on: {reason:?}")
        })?;
        match next {
            Next::GoOn(_) => {}
            Next::Wait(wait, _) => {
                promise(!wait.is_over(self.now), || format!("P13: it waits for what is over: {reason:?}"))?;
                (self.record.state, self.record.reason) = (RunStatus::Waiting, Some(reason));
                self.record.wait = Some(*wait);
            }
            Next::WaitForPerson(_) => (self.record.state, self.record.reason) = (RunStatus::Waiting, Some(reason)),
            Next::Pause(_) => self.pause(reason),
            Next::End { status, .. } => {
                let is_said = self.said.as_ref() == Some(&reason.message) && *status != RunStatus::Cancelled;
                promise(!is_said, || format!("P13: it was resumed as it said, and says the same again: {reason:?}"))?;
                self.said = Some(reason.message.clone());
                self.end(*status, reason);
            }
        }
        Ok(Then::Rest)
    }
}

/// Folds a journal; an error is a sentence.
pub(crate) fn replay(journal: &Journal) -> Result<Phase, String> {
    journal.events.iter().try_fold(Phase::Open, |phase, event| {
        decide(&journal.policy, phase, event.clone()).map_err(|illegal| illegal.to_string())
    })
}

/// What memory has is what the journal leads to.
fn check_memory(journal: &Journal) -> Lived<()> {
    let is_over = matches!(replay(journal), Ok(Phase::Over { end: Over::Settled { .. } }));
    promise(is_over, || format!("the journal does not lead to where the iteration is: {:?}", journal.events))
}

/// Returns what was asked of the session, and what it has spent.
fn facts(events: &[Event]) -> Lived<(Task, Spent)> {
    let task = events.iter().find_map(|event| if let Event::Opened(task) = event { Some(task.clone()) } else { None });
    let task = task.ok_or_else(|| Halt::Broken("settled what was never opened".to_owned()))?;
    let spent = events.iter().fold(Spent::default(), |spent, event| {
        let more = match event {
            Event::SessionEnded(end) => Spent { usage: (&end.usage).into(), elapsed_ms: end.elapsed_ms },
            Event::GuardEnded(end) => Spent { elapsed_ms: end.elapsed_ms, ..Spent::default() },
            Event::ReviewEnded(end) => Spent { usage: end.usage.clone(), elapsed_ms: end.elapsed_ms },
            _ => Spent::default(),
        };
        spent.and(&more)
    });
    Ok((task, spent))
}

/// Returns the leaves of a tree that are open.
pub(crate) fn open_leaves(tree: &protocol::tree::TaskTree) -> Vec<String> {
    let nodes = tree::walk(tree).into_iter().map(|placed| placed.node);
    nodes.filter(|node| node.is_leaf() && !node.passes).map(|node| node.id.clone()).collect()
}
