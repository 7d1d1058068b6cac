//! The real world: each effect of an iteration, performed on a context.
//!
//! Blocking work runs where blocking is allowed. What cannot be done for now is the event `Obstructed`.

use std::sync::Arc;

use protocol::words::PhaseName;
use runner_core::iteration::{Effect, Event, Phase};
use runner_core::obstacle::Obstruction;
use runner_core::policy::Policy;
use runner_core::verdict::Task;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use crate::agent;
use crate::obstruction::obstruction;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::access;
use crate::worker::iteration::brief;
use crate::worker::iteration::guard::{self, Check};
use crate::worker::iteration::inspect;
use crate::worker::iteration::open::{self, Found};
use crate::worker::iteration::review;
use crate::worker::iteration::session;
use crate::worker::iteration::session::Surroundings;
use crate::worker::iteration::settle;
use crate::worker::iteration::world::World;
use crate::worker::journal::Entry;
use crate::worker::load::Loaded;

/// The real world around one iteration.
pub(crate) struct Effects {
    /// Where it takes place.
    pub context: RunContext,
    /// Mark of the iteration's processes.
    pub mark: String,
    /// What Open found instead of a leaf.
    pub found: Option<Found>,
    policy: Policy,
    loaded: Option<Arc<Loaded>>,
    /// The phases of which a program may have been started before.
    begun: Vec<PhaseName>,
    /// The events so far, for the record.
    entries: crate::worker::iteration::log::Entries,
}

impl Effects {
    /// Sets up the scene; `policy` is From's if the iteration was begun by a previous life.
    pub(crate) fn new(
        context: RunContext,
        mark: String,
        policy: Policy,
        entries: crate::worker::iteration::log::Entries,
    ) -> Self {
        let is_taken_over = !entries.lock().is_empty();
        let begun = if is_taken_over { vec![PhaseName::Guard, PhaseName::Review] } else { Vec::new() };
        Self { context, mark, found: None, policy, loaded: None, begun, entries }
    }

    async fn effect(&mut self, phase: &Phase, stop: &CancellationToken) -> Result<Event, Obstacle> {
        let Some(effect) = phase.effect() else { return Ok(Event::Declined) };
        // Notes that a session has moved away look as if they had never been written.
        self.context.launcher.refuse_moved()?;
        match (effect, phase) {
            (Effect::Open, _) => block_in_place(|| self.open()),
            (Effect::Brief, Phase::Brief { task }) => {
                let loaded = self.loaded(task)?;
                block_in_place(|| brief::brief(&self.context, &loaded, task))?;
                Ok(Event::Briefed)
            }
            (Effect::RunSession, Phase::Work { task, .. }) => {
                let loaded = self.loaded(task)?;
                let end = session::work(self.around(&loaded, stop), task).await?;
                Ok(Event::SessionEnded(end))
            }
            (Effect::EndSession, Phase::Work { task, .. }) => {
                // What runs is ended, though what it was begun from cannot be read any more.
                let survivors = block_in_place(|| session::sweep(&self.context, &self.mark, PhaseName::Work))?;
                let loaded = self.loaded(task)?;
                let executor = session::executor(&loaded, task);
                Ok(Event::SessionEnded(agent::interrupted(&executor, survivors, &self.context.launcher)))
            }
            (Effect::Inspect, Phase::Inspect { task, session, stop: asked }) => {
                let loaded = self.loaded(task)?;
                block_in_place(|| {
                    access::regain(&self.context, (task.iter, PhaseName::Work))?;
                    // From here on the session's work is not lost by a power cut either.
                    self.context.repository()?.flush()?;
                    inspect::inspect(&self.context, &loaded, task, (session, *asked)).map(Event::Inspected)
                })
            }
            (Effect::RunGuard | Effect::RunAccepted, Phase::Guard { work, .. }) => {
                let loaded = self.loaded(&work.task)?;
                self.sweep_before(PhaseName::Guard)?;
                let check = Check { spent_ms: phase.spent_ms(), with_accepted: effect == Effect::RunAccepted };
                let end = guard::check(self.around(&loaded, stop), work, check).await?;
                Ok(Event::GuardEnded(end))
            }
            (Effect::EndGuard, Phase::Guard { work, .. }) => {
                block_in_place(|| session::sweep(&self.context, &self.mark, PhaseName::Guard))?;
                let loaded = self.loaded(&work.task)?;
                block_in_place(|| guard::cut(&self.context, &loaded, work)).map(Event::GuardEnded)
            }
            (Effect::Settle, Phase::Settle { outcome }) => {
                let loaded = self.loaded(&outcome.work.task)?;
                let entries: Vec<Entry> = self.entries.lock();
                let commit = block_in_place(|| settle::settle(&self.context, &loaded, outcome, &entries))?;
                Ok(Event::Settled { commit: commit.map(|commit| commit.to_string()) })
            }
            (Effect::RunReview, Phase::Review { work, failed, .. }) => {
                let loaded = self.loaded(&work.task)?;
                self.sweep_before(PhaseName::Review)?;
                let failed = failed.as_ref().map_or(0, |failed| failed.tries);
                let end = review::review(self.around(&loaded, stop), work, (phase.spent_ms(), failed)).await?;
                Ok(Event::ReviewEnded(end))
            }
            (Effect::EndReview, Phase::Review { work, .. }) => {
                block_in_place(|| session::sweep(&self.context, &self.mark, PhaseName::Review))?;
                let loaded = self.loaded(&work.task)?;
                block_in_place(|| review::cut(&self.context, &loaded, work)).map(Event::ReviewEnded)
            }
            (effect, phase) => unreachable!("BUG: {effect:?} is not the effect of {}", phase.name()),
        }
    }

    /// Ends what is left of a phase before a program of it is started, if it is not the first.
    fn sweep_before(&mut self, phase: PhaseName) -> Result<(), Obstacle> {
        if self.begun.contains(&phase) {
            block_in_place(|| session::sweep(&self.context, &self.mark, phase))?;
        } else {
            self.begun.push(phase);
        }
        Ok(())
    }

    fn around<'a>(&'a self, loaded: &'a Loaded, stop: &'a CancellationToken) -> Surroundings<'a> {
        Surroundings { context: &self.context, loaded, mark: &self.mark, stop }
    }

    fn open(&mut self) -> Result<Event, Obstacle> {
        match open::open(&self.context)? {
            Found::Task(loaded, task) => {
                self.policy = loaded.policy.clone();
                self.loaded = Some(loaded);
                Ok(Event::Opened(task))
            }
            found => {
                self.found = Some(found);
                Ok(Event::Declined)
            }
        }
    }

    /// Returns the state at From, read again if a previous life had opened the iteration.
    fn loaded(&mut self, task: &Task) -> Result<Arc<Loaded>, Obstacle> {
        if let Some(loaded) = &self.loaded {
            return Ok(Arc::clone(loaded));
        }
        let from = task.from.parse().map_err(|_| Obstacle::NoCommit(task.from.clone()))?;
        let loaded = block_in_place(|| {
            let repository = self.context.repository()?;
            self.context.last_load.load(&repository, from).map_err(Obstacle::from)
        })?;
        self.loaded = Some(Arc::clone(&loaded));
        Ok(loaded)
    }
}

impl World for Effects {
    async fn perform(&mut self, phase: &Phase, stop: &CancellationToken) -> Event {
        match self.effect(phase, stop).await {
            Ok(event) => event,
            Err(obstacle) => {
                let obstruction = obstruction(&obstacle);
                let what = self.context.secrets.redact(&obstruction.what).into_owned();
                Event::Obstructed(Obstruction { what, ..obstruction })
            }
        }
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }
}
