//! The life of a worker: recover, then take turns with the queue until the daemon leaves.
//!
//! One iteration is `drive`'s; what follows from it is `aftermath`'s.

use std::sync::Arc;

use protocol::event::EventKind;
use protocol::view::{StatusView, StopReason};
use protocol::words::{GuardOutcome, PhaseName, RunStatus};
use runner_core::iteration::{Over, Phase};
use runner_core::obstacle::{Nature, Obstruction};
use runner_core::run::{self, Effect, Event, IllegalEvent, Preparation, RunRecord, State, Turn};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, block_in_place};
use tokio_util::sync::CancellationToken;

use super::aftermath::{Seen, Settled};
use super::begin::BeginError;
use super::claim::Claim;
use super::desk::{Desk, Wires, reason};
use super::drive::{Drive, Drove, pause_before};
use super::failure::Failure;
use super::journal::Recorded;
use super::log::{Entries, JournalLog};
use super::look::LastLook;
use super::pilot::Pilot;
use super::scene::Scene;
use super::site::Site;
use super::{Handle, baseline, begin, snapshot};
use crate::causes::in_one_line;
use crate::clock;
use crate::events::Events;
use crate::hidden::Hidden;
use crate::obstruction::obstruction;
use crate::process::{Inhibitor, Launcher};
use crate::repo::layout::Layout;
use crate::store::{RepoFile, Store};

/// Requests that may wait for a worker.
const MAILBOX: usize = 64;

/// What all workers share.
#[derive(Debug, Clone)]
pub struct Means {
    /// Starts processes.
    pub launcher: Launcher,
    /// The daemon's stream of events.
    pub events: Events,
    /// What takes the secrets that must not be in the daemon's log.
    pub hidden: Hidden,
    /// Keeps the machine awake.
    pub inhibitor: Inhibitor,
    /// As many permits as repositories may be driven at once.
    pub slots: Arc<Semaphore>,
    /// Everything is to end now.
    pub shutdown: CancellationToken,
    /// Nothing new is to begin.
    pub drain: CancellationToken,
}

/// Sets up the worker of a repository; the future is its life.
pub fn spawn(means: Means, store: Store, file: RepoFile) -> (Handle, impl Future<Output = ()> + Send) {
    let (handle, life) = employ(means, store, Some(file));
    (handle, life.live())
}

/// Sets up the worker of a repository whose record cannot be read: it is held, and its files stay as they are.
pub fn spawn_held(means: Means, store: Store) -> (Handle, impl Future<Output = ()> + Send) {
    let (handle, life) = employ(means, store, None);
    (handle, life.live())
}

/// Sets up the worker of a repository whose last one met a bug: it is held until somebody resumes it.
pub fn spawn_after_bug(means: Means, store: Store, what: &str) -> (Handle, impl Future<Output = ()> + Send + use<>) {
    let file = store.take_over().ok().flatten();
    let (handle, mut life) = employ(means, store, file);
    let message = format!("a bug of the daemon ended the work on this repository: {what}");
    life.bug =
        Some(reason(message, "the daemon's log has more; nothing is lost, and it goes on with: runnerctl resume"));
    (handle, life.live())
}

/// Sets up a worker; without a record it must write none.
fn employ(means: Means, store: Store, file: Option<RepoFile>) -> (Handle, Life) {
    let frozen = file.is_none();
    let file = file.unwrap_or_else(|| RepoFile::unknown(store.id().to_owned()));
    let (sender, mailbox) = mpsc::channel(MAILBOX);
    let id = file.id.clone();
    let containment = means.launcher.offer().level();
    let run = run::current(&file.runs).map(|run| snapshot::blank(run, containment));
    let (status, seen) = watch::channel(Arc::new(StatusView { repo: snapshot::repo_view(&file, None), run }));
    let wires = Wires {
        own: sender.downgrade(),
        mailbox,
        status,
        events: means.events.clone(),
        hidden: means.hidden.clone(),
        shutdown: means.shutdown.clone(),
        drain: means.drain.clone(),
        containment,
        inhibitor: means.inhibitor.clone(),
        slots: Arc::clone(&means.slots),
    };
    let mut desk = Desk::new(store, file, wires);
    desk.frozen = frozen;
    let (drain, shutdown) = (means.drain.clone(), means.shutdown.clone());
    (
        Handle { id, mailbox: sender, status: seen, drain, shutdown },
        Life { desk, means, recorded: None, tries: 0, bug: None, hook: None },
    )
}

pub(super) struct Life {
    pub(super) desk: Desk,
    pub(super) means: Means,
    /// The journal of a previous life, until its run has its turn.
    pub(super) recorded: Option<Recorded>,
    /// Obstacles in a row that ended a turn.
    tries: u32,
    /// The bug that ended the worker before this one.
    bug: Option<StopReason>,
    /// The hook that was started last; the worker ends after it.
    pub(super) hook: Option<JoinHandle<()>>,
}

/// Whether a run goes on after an iteration.
pub(super) enum Then {
    GoOn,
    Rest,
}

impl Life {
    async fn live(mut self) {
        if let Some(bug) = self.bug.take() {
            self.desk.held = Some(bug.clone());
            self.refresh();
            // Whoever waits for the run has heard of nothing yet.
            if let Some(run) = self.desk.current().map(|run| run.id.clone()) {
                let held = EventKind::RunState { state: RunStatus::Held, reason: Some(bug), until: None };
                self.desk.tell(&run, None, held);
            }
        } else {
            self.recover();
            self.desk.commit_changes_at_rest();
            self.give_up_begun_hooks();
        }
        loop {
            self.desk.mind_sleep();
            self.start_hook();
            match self.desk.turn(clock::now()) {
                None => return self.leave().await,
                Some(Turn::Run(run)) => Box::pin(self.take_turn(&run, false)).await,
                Some(Turn::Step(run)) => Box::pin(self.take_turn(&run, true)).await,
                Some(Turn::Rest(until)) => self.desk.rest(until).await,
            }
            if let Some(message) = self.desk.recheck.take() {
                self.recover();
                self.desk.answer_rechecked(message);
            } else if self.desk.look_again.is_some_and(|wait| wait.is_over(clock::now())) {
                self.recover();
            }
        }
    }

    /// Ends when the hook has: none of its processes outlives the daemon.
    async fn leave(self) {
        let Self { desk, hook, .. } = self;
        // Nobody reads its report any more, and it must not wait for that.
        drop(desk);
        if let Some(hook) = hook
            && let Err(error) = hook.await
        {
            tracing::error!(error = in_one_line(&error), "a hook met a bug");
        }
    }

    /// Makes the view anew from what is committed.
    pub(super) fn refresh(&mut self) {
        let current = self.desk.current().cloned();
        let seen = current.map(|run| self.desk.look_at(&run));
        self.desk.budget_ms = seen.as_ref().map_or(0, |seen| seen.budget_ms);
        self.desk.view = seen.map(|seen| seen.view);
        self.desk.show();
    }

    async fn take_turn(&mut self, run: &str, is_step: bool) {
        let slots = Arc::clone(&self.means.slots);
        let slot = tokio::select! {
            slot = slots.acquire_owned() => slot,
            () = self.desk.rest(None) => return,
        };
        if !self.read_again() {
            return;
        }
        self.desk.slot = slot.ok();
        self.desk.set_live(Some(run));
        let driven = Box::pin(self.drive_run(run, is_step)).await;
        match driven {
            Ok(()) => self.tries = 0,
            Err(error) if self.desk.is_shutting_down() => {
                tracing::warn!(repo = self.desk.file.id, run, error = in_one_line(&error), "left as it is");
                return;
            }
            Err(error) => self.stopped_by(run, &error).await,
        }
        self.desk.slot = None;
        self.desk.set_live(None);
        self.desk.shelf.clear();
        self.desk.commit_changes_at_rest();
        self.refresh();
        if !self.is_running(run) {
            let iteration = self.desk.view.as_ref().and_then(|view| view.recent.first().cloned());
            let iteration = iteration.filter(|iteration| Some(iteration.iter) == self.desk.stepped_iter);
            self.desk.stepped(run, iteration.as_ref());
        }
    }

    /// Waits if what has ended a turn passes by itself, else holds the run: what is journaled is gone through again.
    async fn stopped_by(&mut self, id: &str, error: &Failure) {
        self.tries = self.tries.saturating_add(1);
        let obstruction = obstruction(error);
        let what = &obstruction.what;
        match self.happens(id, Event::Obstructed(obstruction.clone())).await {
            Ok(effects) if effects.contains(&Effect::RemoveJournal) => self.close_journal(),
            Ok(effects) if effects.iter().any(|effect| matches!(effect, Effect::WaitOut(_))) => {
                self.wait_for_obstacle(id, &obstruction, self.tries).await;
            }
            Ok(_) => tracing::error!(repo = self.desk.file.id, run = id, what, "run held"),
            Err(illegal) => {
                let bug = in_one_line(&illegal);
                tracing::error!(repo = self.desk.file.id, run = id, what, bug, "the run has come to rest before");
            }
        }
        self.recover();
    }

    async fn drive_run(&mut self, id: &str, is_step: bool) -> Result<(), Failure> {
        self.desk.stepped_iter = None;
        self.happens(id, Event::Turn { step: is_step }).await?;
        let Some(_claim) = self.claim(id).await? else { return Ok(()) };
        let mut is_first = true;
        while self.begin(id, is_first).await? {
            is_first = false;
            self.start_hook();
            self.refresh();
            let Then::GoOn = Box::pin(self.iterate(id)).await? else { return Ok(()) };
            if self.desk.is_leaving() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes the repository, waiting until no other daemon drives it; nothing if the turn is to end before that.
    async fn claim(&mut self, id: &str) -> Result<Option<Claim>, IllegalEvent> {
        let folder = self.desk.file.common_dir.clone();
        for tries in 1.. {
            // An iteration that a previous life has left is brought to its end before a run ends.
            if self.desk.is_shutting_down() || self.recorded.is_none() && self.stopped_before_work(id).await? {
                break;
            }
            match Claim::take(folder.as_path()) {
                Ok(claim) => return Ok(Some(claim)),
                Err(taken) => {
                    self.wait_for_obstacle(id, &obstruction(&taken), tries).await;
                }
            }
        }
        Ok(None)
    }

    pub(super) fn site(&self, run: &RunRecord) -> Result<Site, crate::store::StoreError> {
        let env = self.desk.store.load_env()?;
        let secrets = Site::secrets_in(&env);
        self.desk.shelf.forget_objects();
        self.means.hidden.set(self.desk.store.id(), secrets.clone());
        Ok(Site {
            secrets,
            run: run.id.clone(),
            layout: Layout::new(run.path.as_path()),
            store: self.desk.store.clone(),
            launcher: self.means.launcher.clone(),
            events: self.means.events.clone(),
            env,
            seen: LastLook::default(),
            shelf: self.desk.shelf.clone(),
            uncommitted: run.uncommitted.clone(),
        })
    }

    /// Does what is to be done before the next iteration; false if the run cannot go on now.
    async fn begin(&mut self, id: &str, is_first: bool) -> Result<bool, Failure> {
        if self.recorded.as_ref().is_some_and(|recorded| recorded.header.run == id) {
            return Ok(true);
        }
        let mut needs_baseline = is_first;
        let mut tries = 0;
        loop {
            if self.desk.is_shutting_down() || self.stopped_before_work(id).await? {
                return Ok(false);
            }
            let Some(run) = self.desk.run(id).cloned() else { return Ok(false) };
            let done = match run.preparation() {
                Some(step) => self.prepare(&run, &step).map(Some),
                None if needs_baseline => {
                    let is_done = self.baseline(&self.site(&run)?).await;
                    is_done.map(|is_done| needs_baseline = !is_done).map(|()| None)
                }
                None => match self.desk.commit_changes() {
                    Ok(()) => return Ok(true),
                    Err(error) => Err(error),
                },
            };
            match done {
                Ok(None) => {}
                Ok(Some(event)) => drop(self.happens(id, event).await?),
                Err(BeginError::Hold(why)) => {
                    self.happens(id, Event::Hold(why)).await?;
                    return Ok(false);
                }
                Err(BeginError::Obstacle(obstacle)) => {
                    tries += 1;
                    if !self.wait_for_obstacle(id, &obstruction(&*obstacle), tries).await {
                        return Err(obstacle.into());
                    }
                }
            }
        }
    }

    /// Does the next step of a beginning; it is written down before the one after it.
    fn prepare(&mut self, run: &RunRecord, step: &Preparation) -> Result<Event, BeginError> {
        let (site, previous) = (self.site(run)?, self.previous(&run.id));
        block_in_place(|| {
            Ok(match step {
                Preparation::Begin(order) => {
                    begin::begin(&site, order, previous.as_deref())?;
                    Event::Begun
                }
                Preparation::TakeUp => Event::TakenUp { from: begin::take_up(&site)?.to_string() },
                Preparation::Resume(order) => {
                    begin::resume(&site, order)?;
                    Event::Resumed
                }
            })
        })
    }

    /// Runs the guard on the base, if that has not been done; false if it was stopped before its end.
    async fn baseline(&mut self, site: &Site) -> Result<bool, begin::BeginError> {
        let Some(loaded) = block_in_place(|| baseline::needed(site))? else { return Ok(true) };
        self.refresh();
        self.desk.show_baseline();
        self.desk.tell(&site.run, None, EventKind::Phase { phase: PhaseName::Guard, node: None });
        let stop = CancellationToken::new();
        let ended = attend(&mut self.desk, Box::pin(baseline::baseline(site, &loaded, &stop)), &stop).await;
        self.refresh();
        let result = self.desk.view.as_ref().and_then(|view| view.baseline);
        if matches!(result, Some(GuardOutcome::Fail | GuardOutcome::Skipped)) {
            let log = site.layout.run_records(&site.run).join("baseline.log");
            let message = format!("the guard is not green on the base, before any session; see {}", log.display());
            self.desk.tell(&site.run, None, EventKind::Warning { message });
        }
        ended
    }

    /// Shows what is in the way and waits, no longer than until somebody wants to stop; false if a person must look.
    pub(super) async fn wait_for_obstacle(&mut self, id: &str, obstruction: &Obstruction, tries: u32) -> bool {
        let Some(pause) = pause_before(obstruction.nature, tries) else { return false };
        self.desk.obstructed(id, None, obstruction);
        // Who wants to stop has it written down.
        let _ = self.desk.wait_out(pause).await;
        true
    }

    /// Returns the run before this one in the list, whose end may be its base.
    fn previous(&self, id: &str) -> Option<String> {
        let at = self.desk.file.runs.iter().position(|run| run.id == id)?;
        let before = &self.desk.file.runs[..at];
        before.iter().rev().find(|run| run.state.is_over()).map(|run| run.id.clone())
    }

    /// Runs one iteration and writes down what follows from it.
    async fn iterate(&mut self, id: &str) -> Result<Then, Failure> {
        let Some(run) = self.desk.run(id).cloned() else { return Ok(Then::Rest) };
        let site = self.site(&run)?;
        let entries = Entries::default();
        let (phase, mut log) = match self.recorded.clone().filter(|recorded| recorded.header.run == id) {
            Some(recorded) => self.reopen(&site, recorded, &entries).await?,
            None => (Phase::Open, JournalLog::new(&self.desk.store, &site.run, entries.clone())),
        };
        let mut scene = Scene::new(site.clone(), log.header.mark.clone(), log.header.policy.clone(), entries);
        let mut pilot = Pilot::new(&mut self.desk, id);
        let drove = Drive { world: &mut scene, control: &mut pilot, log: &mut log }.run(phase).await;
        match drove? {
            Drove::Left => Ok(Then::Rest),
            Drove::Over(Over::Untouched) => {
                let then = self.untouched(id, scene.found.take()).await?;
                self.close_journal();
                Ok(then)
            }
            Drove::Over(Over::Settled { verdict, commit }) => {
                let task = log.task().ok_or(Failure::NotOpened)?;
                let seen = Seen { secrets: log.secrets_seen(), moved_refs: log.moved_refs() };
                let commit = commit.as_deref();
                let mark = log.header.mark.as_str();
                let facts = log.session_facts();
                let settled =
                    Settled { site: &site, mark, task: &task, verdict: &verdict, facts: &facts, seen: &seen, commit };
                let then = self.settled(id, settled).await?;
                self.sweep_live();
                self.close_journal();
                keep_small(&site, task.iter);
                Ok(then)
            }
        }
    }

    /// Lets a stop that was asked for take effect before anything is begun; whether one did.
    pub(super) async fn stopped_before_work(&mut self, id: &str) -> Result<bool, IllegalEvent> {
        self.happens(id, Event::Between).await?;
        Ok(!self.is_running(id))
    }

    fn is_running(&self, id: &str) -> bool {
        self.desk.run(id).is_some_and(|run| run.state == State::Running)
    }

    /// Writes down what an event makes of a run, however long the disk refuses: going on without it would forget a decision.
    ///
    /// Requests are answered meanwhile, and what they change stays changed.
    pub(super) async fn happens(&mut self, id: &str, event: Event) -> Result<Vec<Effect>, IllegalEvent> {
        for tries in 1.. {
            let Some(run) = self.desk.run(id) else { break };
            let step = run::decide(run, event.clone(), clock::now())?;
            match self.desk.come_to(step) {
                Ok(effects) if tries == 1 => return Ok(effects),
                Ok(effects) => {
                    self.desk.obstacle = None;
                    self.desk.show();
                    return Ok(effects);
                }
                Err(_) if self.desk.is_shutting_down() => break,
                Err(error) => {
                    let passing = Obstruction { nature: Nature::Passing, ..obstruction(&error) };
                    self.wait_for_obstacle(id, &passing, tries).await;
                }
            }
        }
        Ok(Vec::new())
    }
}

/// Packs what the commits of many iterations have left one by one; the run goes on without where that fails.
fn keep_small(site: &Site, iter: u32) {
    if !run::is_packed_after(iter) {
        return;
    }
    let packed = block_in_place(|| site.repository()?.pack_objects());
    if let Err(error) = packed {
        tracing::warn!(run = site.run, iter, error = in_one_line(&error), "git's objects are not packed");
    }
}

/// Lets something come to its end while requests are answered; a stop that is asked for is passed on.
async fn attend<T>(desk: &mut Desk, running: impl Future<Output = T>, stop: &CancellationToken) -> T {
    let mut running = std::pin::pin!(running);
    loop {
        tokio::select! {
            biased;
            result = running.as_mut() => return result,
            _ = desk.stop() => stop.cancel(),
        }
    }
}
