//! The life of a worker: recover, then take turns with the queue until the daemon leaves.
//!
//! One iteration is `drive`'s; what follows from it is `aftermath`'s.

use std::sync::Arc;

use protocol::event::EventKind;
use protocol::view::{StatusView, StopReason};
use protocol::words::{GuardOutcome, PhaseName, RunStatus};
use runner_core::iteration::{Over, Phase};
use runner_core::obstacle::{Nature, Obstruction};
use runner_core::run;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, block_in_place};
use tokio_util::sync::CancellationToken;

use super::aftermath::{Seen, Settled, hold, pause};
use super::claim::Claim;
use super::desk::{self, Desk, Turn, Wires, reason};
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
use crate::store::{AskedFor, RepoFile, ResumeOrder, RunRecord, Store};

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
    let run = desk::current(&file).map(|run| snapshot::blank(run, containment));
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
                Turn::Run(run) => Box::pin(self.take_turn(&run, false)).await,
                Turn::Step(run) => Box::pin(self.take_turn(&run, true)).await,
                Turn::Rest(until) => self.desk.rest(until).await,
                Turn::Leave => return self.leave().await,
            }
            if let Some(message) = self.desk.take_recheck() {
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
        if self.desk.run(run).is_none_or(|run| run.state != RunStatus::Running) {
            let iteration = self.desk.view.as_ref().and_then(|view| view.recent.first().cloned());
            let iteration = iteration.filter(|iteration| Some(iteration.iter) == self.desk.stepped_iter);
            self.desk.stepped(run, iteration.as_ref());
        }
    }

    /// Waits if what has ended a turn passes by itself, else holds the run: what is journaled is gone through again.
    ///
    /// A run that is to end does so if its repository is lost: there is nothing that its work could be committed to.
    async fn stopped_by(&mut self, id: &str, error: &Failure) {
        self.tries = self.tries.saturating_add(1);
        let obstruction = obstruction(error);
        let is_to_end = self.desk.run(id).is_some_and(|run| run.asked == Some(AskedFor::Cancel));
        match obstruction.nature {
            Nature::Passing => _ = self.wait_for_obstacle(id, &obstruction, self.tries).await,
            Nature::Lost if is_to_end => {
                let why = reason(format!("cancelled by the user; {}", obstruction.what), "runnerctl start");
                self.write(id, |run| desk::end(run, RunStatus::Cancelled, why.clone())).await;
                self.close_journal();
            }
            Nature::Lasting | Nature::Lost => {
                tracing::error!(repo = self.desk.file.id, run = id, what = obstruction.what, "run held");
                self.write(id, |run| hold(run, obstruction.holding())).await;
            }
        }
        self.recover();
    }

    async fn drive_run(&mut self, id: &str, is_step: bool) -> Result<(), Failure> {
        self.desk.stepped_iter = None;
        self.write(id, |run| {
            if is_step {
                // Who asks for a session now does not want to wait for one.
                run.uncommitted.ask_at_once(clock::now());
                run.asked = Some(AskedFor::Step);
                let reset = run.state.is_terminal();
                run.resume = run.resume.take().or(Some(ResumeOrder::upon(None, 0, reset)));
            }
            run.state = RunStatus::Running;
            run.reason = None;
            run.wait = None;
            run.ended_at = None;
        })
        .await;
        let Some(_claim) = self.claim(id).await else { return Ok(()) };
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
    async fn claim(&mut self, id: &str) -> Option<Claim> {
        let folder = self.desk.file.common_dir.clone();
        for tries in 1.. {
            // An iteration that a previous life has left is brought to its end before a run ends.
            if self.desk.is_shutting_down() || self.recorded.is_none() && self.stopped_before_work(id).await {
                return None;
            }
            match Claim::take(folder.as_path()) {
                Ok(claim) => return Some(claim),
                Err(taken) => {
                    self.wait_for_obstacle(id, &obstruction(&taken), tries).await;
                }
            }
        }
        None
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
            if self.stopped_before_work(id).await || self.desk.is_shutting_down() {
                return Ok(false);
            }
            let Some(run) = self.desk.run(id).cloned() else { return Ok(false) };
            let is_prepared = run.beginning.is_none() && run.resume.is_none();
            let result = match (is_prepared, needs_baseline) {
                (true, false) => match self.desk.commit_changes() {
                    Ok(()) => return Ok(true),
                    Err(error) => Err(error),
                },
                (true, true) => self.baseline(&self.site(&run)?).await.map(|is_done| needs_baseline = !is_done),
                (false, _) => self.prepare(&self.site(&run)?, &run).await,
            };
            match result {
                Ok(()) => {}
                Err(begin::BeginError::Hold(why)) => {
                    self.write(id, |run| hold(run, why.clone())).await;
                    return Ok(false);
                }
                Err(begin::BeginError::Obstacle(obstacle)) => {
                    tries += 1;
                    if !self.wait_for_obstacle(id, &obstruction(&*obstacle), tries).await {
                        return Err(obstacle.into());
                    }
                }
            }
        }
    }

    /// Does the next step of a beginning, and writes down that it is done before the one after it.
    async fn prepare(&mut self, site: &Site, run: &RunRecord) -> Result<(), begin::BeginError> {
        let previous = self.previous(&run.id);
        let (mut beginning, mut resume) = (run.beginning.clone(), run.resume.clone());
        block_in_place(|| -> Result<(), begin::BeginError> {
            match (&beginning, &mut resume) {
                (Some(order), _) => begin::begin(site, order, previous.as_deref())?,
                (None, Some(order)) if order.from.is_none() => {
                    order.from = begin::take_up(site)?.map(|head| head.to_string());
                    return Ok(());
                }
                (None, Some(order)) => begin::resume(site, order)?,
                (None, None) => {}
            }
            if beginning.take().is_none() {
                resume = resume.as_ref().and_then(ResumeOrder::rest);
            }
            Ok(())
        })?;
        self.write(&run.id, |run| (run.beginning, run.resume) = (beginning.clone(), resume.clone())).await;
        Ok(())
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
        before.iter().rev().find(|run| run.state.is_terminal()).map(|run| run.id.clone())
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
                let then = self.untouched(id, scene.found.take()).await;
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

    /// Writes down a stop that was asked for before anything was begun, if one was.
    pub(super) async fn stopped_before_work(&mut self, id: &str) -> bool {
        let asked = self.desk.run(id).and_then(|run| run.asked);
        let stop = asked.filter(|asked| *asked != AskedFor::Step);
        let Some(stop) = stop else { return false };
        self.write(id, |run| match stop {
            AskedFor::Cancel => {
                desk::end(run, RunStatus::Cancelled, reason("cancelled by the user", "runnerctl start"));
            }
            AskedFor::Pause | AskedFor::Step => pause(run, reason("paused by the user", "runnerctl resume")),
        })
        .await;
        true
    }

    /// Changes a run's record, however long the disk refuses: going on without it would forget a decision.
    ///
    /// Requests are answered meanwhile, and what they change stays changed.
    pub(super) async fn write(&mut self, id: &str, change: impl Fn(&mut RunRecord)) {
        let mut tries = 0;
        while let Err(error) = self.desk.change(id, &change) {
            if self.desk.is_shutting_down() {
                return;
            }
            tries += 1;
            self.wait_for_obstacle(id, &Obstruction { nature: Nature::Passing, ..obstruction(&error) }, tries).await;
        }
        if tries > 0 {
            self.desk.obstacle = None;
            self.desk.show();
        }
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
