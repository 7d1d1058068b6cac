//! The real world: each effect of an iteration, performed on a site.
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

use super::journal::Entry;
use super::load::Loaded;
use super::open::{self, Found};
use super::session::{Check, Surroundings};
use super::site::{Obstacle, Site};
use super::world::World;
use super::{brief, inspect, review, session, settle};
use crate::agent;
use crate::obstruction::obstruction;

/// The real world around one iteration.
pub(super) struct Scene {
    /// Where it takes place.
    pub site: Site,
    /// Mark of the iteration's processes.
    pub mark: String,
    /// What Open found instead of a leaf.
    pub found: Option<Found>,
    policy: Policy,
    loaded: Option<Arc<Loaded>>,
    /// The phases of which a program may have been started before.
    begun: Vec<PhaseName>,
    /// The events so far, for the record.
    entries: super::log::Entries,
}

impl Scene {
    /// Sets up the scene; `policy` is From's if the iteration was begun by a previous life.
    pub(super) fn new(site: Site, mark: String, policy: Policy, entries: super::log::Entries) -> Self {
        let is_taken_over = !entries.lock().is_empty();
        let begun = if is_taken_over { vec![PhaseName::Guard, PhaseName::Review] } else { Vec::new() };
        Self { site, mark, found: None, policy, loaded: None, begun, entries }
    }

    async fn effect(&mut self, phase: &Phase, stop: &CancellationToken) -> Result<Event, Obstacle> {
        let Some(effect) = phase.effect() else { return Ok(Event::Declined) };
        // Notes that a session has moved away look as if they had never been written.
        self.site.launcher.refuse_moved()?;
        match (effect, phase) {
            (Effect::Open, _) => block_in_place(|| self.open()),
            (Effect::Brief, Phase::Brief { task }) => {
                let loaded = self.loaded(task)?;
                block_in_place(|| brief::brief(&self.site, &loaded, task))?;
                Ok(Event::Briefed)
            }
            (Effect::RunSession, Phase::Work { task, .. }) => {
                let loaded = self.loaded(task)?;
                let end = session::work(self.around(&loaded, stop), task).await?;
                Ok(Event::SessionEnded(end))
            }
            (Effect::EndSession, Phase::Work { task, .. }) => {
                let loaded = self.loaded(task)?;
                let survivors = block_in_place(|| session::sweep(&self.site, &self.mark, PhaseName::Work))?;
                let executor = session::executor(&loaded, task);
                Ok(Event::SessionEnded(agent::interrupted(&executor, survivors, &self.site.launcher)))
            }
            (Effect::Inspect, Phase::Inspect { task, session, .. }) => {
                let loaded = self.loaded(task)?;
                block_in_place(|| {
                    // From here on the session's work is not lost by a power cut either.
                    self.site.repository()?.flush()?;
                    inspect::inspect(&self.site, &loaded, task, session).map(Event::Inspected)
                })
            }
            (Effect::RunGuard | Effect::RunAccepted, Phase::Guard { work, .. }) => {
                let loaded = self.loaded(&work.task)?;
                self.sweep_before(PhaseName::Guard)?;
                let check = Check { spent_ms: phase.spent_ms(), with_accepted: effect == Effect::RunAccepted };
                let end = session::check(self.around(&loaded, stop), work, check).await?;
                Ok(Event::GuardEnded(end))
            }
            (Effect::EndGuard, Phase::Guard { work, .. }) => {
                let loaded = self.loaded(&work.task)?;
                block_in_place(|| {
                    session::sweep(&self.site, &self.mark, PhaseName::Guard)?;
                    session::cut(&self.site, &loaded, work).map(Event::GuardEnded)
                })
            }
            (Effect::Settle, Phase::Settle { outcome }) => {
                let loaded = self.loaded(&outcome.work.task)?;
                let entries: Vec<Entry> = self.entries.lock();
                let commit = block_in_place(|| settle::settle(&self.site, &loaded, outcome, &entries))?;
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
                let loaded = self.loaded(&work.task)?;
                block_in_place(|| {
                    session::sweep(&self.site, &self.mark, PhaseName::Review)?;
                    review::cut(&self.site, &loaded, work).map(Event::ReviewEnded)
                })
            }
            (effect, phase) => unreachable!("BUG: {effect:?} is not the effect of {}", phase.name()),
        }
    }

    /// Ends what is left of a phase before a program of it is started, if it is not the first.
    fn sweep_before(&mut self, phase: PhaseName) -> Result<(), Obstacle> {
        if self.begun.contains(&phase) {
            block_in_place(|| session::sweep(&self.site, &self.mark, phase))?;
        } else {
            self.begun.push(phase);
        }
        Ok(())
    }

    fn around<'a>(&'a self, loaded: &'a Loaded, stop: &'a CancellationToken) -> Surroundings<'a> {
        Surroundings { site: &self.site, loaded, mark: &self.mark, stop }
    }

    fn open(&mut self) -> Result<Event, Obstacle> {
        match open::open(&self.site)? {
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
            let repository = self.site.repository()?;
            self.site.shelf.load(&repository, from).map_err(Obstacle::from)
        })?;
        self.loaded = Some(Arc::clone(&loaded));
        Ok(loaded)
    }
}

impl World for Scene {
    async fn perform(&mut self, phase: &Phase, stop: &CancellationToken) -> Event {
        match self.effect(phase, stop).await {
            Ok(event) => event,
            Err(obstacle) => {
                let obstruction = obstruction(&obstacle);
                let what = self.site.secrets.redact(&obstruction.what).into_owned();
                Event::Obstructed(Obstruction { what, ..obstruction })
            }
        }
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }
}
