//! The real world: performs each effect of an iteration on a context.
//!
//! Blocking work runs where blocking is allowed. An effect that cannot be performed now ends in the event `Obstructed`.

use std::sync::Arc;

use protocol::words::PhaseName;
use runner_core::iteration::{IterationEffect, IterationEvent, Phase};
use runner_core::policy::Policy;
use runner_core::run::blocker::Blocker;
use runner_core::verdict::SessionTask;
use runner_os::retryable::describe_blocker;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::guard_overlay;
use crate::worker::integrity::unreadable;
use crate::worker::iteration::brief;
use crate::worker::iteration::guard::{self, GuardCheck};
use crate::worker::iteration::inspect;
use crate::worker::iteration::open::{self, OpenOutcome};
use crate::worker::iteration::review;
use crate::worker::iteration::session;
use crate::worker::iteration::session::ProcessContext;
use crate::worker::iteration::settle;
use crate::worker::iteration::world::EffectWorld;
use crate::worker::journal::JournalEntry;
use crate::worker::load::CommittedState;

/// The real world around one iteration.
pub(crate) struct LiveEffects {
    /// Where the iteration takes place.
    pub context: RunContext,
    /// Mark by which the iteration's processes are found.
    pub mark: String,
    /// What Open found if there is no leaf to work on.
    pub open_outcome: Option<OpenOutcome>,
    policy: Policy,
    loaded: Option<Arc<CommittedState>>,
    /// The phases of which a program may have been started already.
    started_phases: Vec<PhaseName>,
    /// The events so far, for the iteration's record.
    entries: crate::worker::iteration::log::SharedEntries,
}

impl LiveEffects {
    /// Sets up the effects; `policy` is From's if an earlier daemon process began the iteration.
    pub(crate) fn new(
        context: RunContext,
        mark: String,
        policy: Policy,
        entries: crate::worker::iteration::log::SharedEntries,
    ) -> Self {
        let is_taken_over = !entries.snapshot().is_empty();
        let started_phases = if is_taken_over { vec![PhaseName::Guard, PhaseName::Review] } else { Vec::new() };
        Self { context, mark, open_outcome: None, policy, loaded: None, started_phases, entries }
    }

    async fn perform_phase(&mut self, phase: &Phase, stop: &CancellationToken) -> Result<IterationEvent, EffectError> {
        let Some(effect) = phase.effect() else { return Ok(IterationEvent::Declined) };
        // Notes that a session has moved away look as if they had never been written.
        self.context.launcher.check_hidden_folder()?;
        match (effect, phase) {
            (IterationEffect::Open, _) => block_in_place(|| self.open_iteration()),
            (IterationEffect::Brief, Phase::Brief { task }) => {
                let loaded = self.state_at_start(task)?;
                block_in_place(|| brief::write_brief(&self.context, &loaded, task))?;
                Ok(IterationEvent::Briefed)
            }
            (IterationEffect::RunSession, Phase::Work { task, .. }) => {
                let loaded = self.state_at_start(task)?;
                let end = session::run_session(self.process_context(&loaded, stop), task).await?;
                Ok(IterationEvent::SessionEnded(end))
            }
            (IterationEffect::EndSession, Phase::Work { task, .. }) => {
                // Running processes are killed even if the state they started from is no longer readable.
                let survivors = block_in_place(|| session::end_leftovers(&self.context, &self.mark, PhaseName::Work))?;
                let loaded = self.state_at_start(task)?;
                let executor = session::executor_for_task(&loaded, task);
                Ok(IterationEvent::SessionEnded(runner_agents::interrupted_end(
                    &executor,
                    survivors,
                    &self.context.launcher,
                )))
            }
            (IterationEffect::Inspect, Phase::Inspect { task, session, stop: stop_cause }) => {
                let loaded = self.state_at_start(task)?;
                block_in_place(|| {
                    unreadable::clear_unreadable(&self.context, task.iter, PhaseName::Work)?;
                    guard_overlay::revert(&self.context)?;
                    // From here on, a power cut does not lose the session's work either.
                    self.context.repository()?.flush_work_tree()?;
                    inspect::inspect_session(&self.context, &loaded, task, session, *stop_cause)
                        .map(IterationEvent::Inspected)
                })
            }
            (
                IterationEffect::RunGuard | IterationEffect::RunAccepted | IterationEffect::RerunGuard,
                Phase::Guard { work, earlier, .. },
            ) => {
                let loaded = self.state_at_start(&work.task)?;
                self.end_leftovers_of(PhaseName::Guard)?;
                let check = GuardCheck {
                    spent_ms: phase.elapsed_ms(),
                    with_accepted: earlier.green.is_some(),
                    is_rerun: earlier.red.is_some(),
                };
                let end = guard::run_check(self.process_context(&loaded, stop), work, check).await?;
                Ok(IterationEvent::GuardEnded(end))
            }
            (IterationEffect::EndGuard, Phase::Guard { work, .. }) => {
                block_in_place(|| session::end_leftovers(&self.context, &self.mark, PhaseName::Guard))?;
                let loaded = self.state_at_start(&work.task)?;
                block_in_place(|| guard::finish_interrupted(&self.context, &loaded, work))
                    .map(IterationEvent::GuardEnded)
            }
            (IterationEffect::Settle, Phase::Settle { outcome }) => {
                let loaded = self.state_at_start(&outcome.work.task)?;
                let entries: Vec<JournalEntry> = self.entries.snapshot();
                let commit = block_in_place(|| settle::settle_iteration(&self.context, &loaded, outcome, &entries))?;
                Ok(IterationEvent::Settled { commit: commit.map(|commit| commit.to_string()) })
            }
            (IterationEffect::RunReview, Phase::Review { work, failed, .. }) => {
                let loaded = self.state_at_start(&work.task)?;
                self.end_leftovers_of(PhaseName::Review)?;
                let failed = failed.as_ref().map_or(0, |failed| failed.tries);
                let end =
                    review::run_review(self.process_context(&loaded, stop), work, phase.elapsed_ms(), failed).await?;
                Ok(IterationEvent::ReviewEnded(end))
            }
            (IterationEffect::EndReview, Phase::Review { work, .. }) => {
                block_in_place(|| session::end_leftovers(&self.context, &self.mark, PhaseName::Review))?;
                let loaded = self.state_at_start(&work.task)?;
                block_in_place(|| review::finish_interrupted(&self.context, &loaded, work))
                    .map(IterationEvent::ReviewEnded)
            }
            (effect, phase) => unreachable!("BUG: {effect:?} is not the effect of {}", phase.name()),
        }
    }

    /// Kills what is left of a phase before its next program is started, unless it is the first.
    fn end_leftovers_of(&mut self, phase: PhaseName) -> Result<(), EffectError> {
        if self.started_phases.contains(&phase) {
            block_in_place(|| session::end_leftovers(&self.context, &self.mark, phase))?;
        } else {
            self.started_phases.push(phase);
        }
        Ok(())
    }

    fn process_context<'a>(&'a self, loaded: &'a CommittedState, stop: &'a CancellationToken) -> ProcessContext<'a> {
        ProcessContext { context: &self.context, loaded, mark: &self.mark, stop }
    }

    fn open_iteration(&mut self) -> Result<IterationEvent, EffectError> {
        match open::open_iteration(&self.context)? {
            OpenOutcome::Task(loaded, task) => {
                self.policy = (*loaded.policy).clone();
                self.loaded = Some(loaded);
                Ok(IterationEvent::Opened(task))
            }
            found => {
                self.open_outcome = Some(found);
                Ok(IterationEvent::Declined)
            }
        }
    }

    /// Returns the state at From, reading it again if an earlier daemon process opened the iteration.
    fn state_at_start(&mut self, task: &SessionTask) -> Result<Arc<CommittedState>, EffectError> {
        if let Some(loaded) = &self.loaded {
            return Ok(Arc::clone(loaded));
        }
        let from = task.from.parse().map_err(|_| EffectError::InvalidCommit(task.from.clone()))?;
        let loaded = block_in_place(|| {
            let repository = self.context.repository()?;
            self.context.last_load.load(&repository, from).map_err(EffectError::from)
        })?;
        self.loaded = Some(Arc::clone(&loaded));
        Ok(loaded)
    }
}

impl EffectWorld for LiveEffects {
    async fn perform_effect(&mut self, phase: &Phase, stop: &CancellationToken) -> IterationEvent {
        match self.perform_phase(phase, stop).await {
            Ok(event) => event,
            Err(obstacle) => {
                let blocker = describe_blocker(&obstacle);
                let what = self.context.secrets.redact(&blocker.what).into_owned();
                IterationEvent::Obstructed(Blocker { what, ..blocker })
            }
        }
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }
}
