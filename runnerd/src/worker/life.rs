//! The life of a worker: recover, then take turns with the queue until the daemon leaves.
//!
//! What a run does after an iteration is decided by `runner_core::run`; here it is written down.

use std::sync::{Arc, Mutex, PoisonError};

use protocol::event::EventKind;
use protocol::view::{PhaseView, RunView, StatusView, StopReason};
use protocol::words::RunStatus;
use runner_core::iteration::{Event, Over, Phase};
use runner_core::policy::Policy;
use runner_core::run::{self, Asked, Ended, Next, Standing};
use runner_core::verdict::{StopCause, Verdict};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::desk::{self, Desk, Turn, Wires, reason};
use super::drive::{Drive, DriveError, Drove};
use super::journal::{self, Entry, Header, Journal, JournalError, Recorded};
use super::load::load;
use super::open::Found;
use super::scene::Scene;
use super::site::Site;
use super::world::{Control, Log};
use super::{Handle, baseline, begin, snapshot};
use crate::causes::in_one_line;
use crate::clock;
use crate::events::Events;
use crate::process::Launcher;
use crate::repo::layout::Layout;
use crate::store::{AskedFor, RepoFile, RunRecord, Store};

/// Requests that may wait for a worker.
const MAILBOX: usize = 64;
/// Version of the journal's format.
const JOURNAL_VERSION: u32 = 1;

/// What all workers share.
#[derive(Debug, Clone)]
pub struct Means {
    /// Starts processes.
    pub launcher: Launcher,
    /// The daemon's stream of events.
    pub events: Events,
    /// As many permits as repositories may be driven at once.
    pub slots: Arc<Semaphore>,
    /// Everything is to end now.
    pub shutdown: CancellationToken,
    /// Nothing new is to begin.
    pub drain: CancellationToken,
}

/// Sets up the worker of a repository; the future is its life.
pub fn spawn(means: Means, store: Store, file: RepoFile) -> (Handle, impl Future<Output = ()> + Send) {
    employ(means, store, file, false)
}

/// Sets up the worker of a repository whose record cannot be read: it is held, and its files stay as they are.
pub fn spawn_held(means: Means, store: Store) -> (Handle, impl Future<Output = ()> + Send) {
    let file = RepoFile::unknown(store.id());
    employ(means, store, file, true)
}

fn employ(means: Means, store: Store, file: RepoFile, frozen: bool) -> (Handle, impl Future<Output = ()> + Send) {
    let (sender, mailbox) = mpsc::channel(MAILBOX);
    let id = file.id.clone();
    let run = desk::current(&file).map(snapshot::blank);
    let (status, seen) = watch::channel(Arc::new(StatusView { repo: desk::repo_view(&file, None), run }));
    let wires = Wires {
        mailbox,
        status,
        events: means.events.clone(),
        shutdown: means.shutdown.clone(),
        drain: means.drain.clone(),
    };
    let mut desk = Desk::new(store, file, wires);
    desk.frozen = frozen;
    (Handle { id, mailbox: sender, status: seen }, Life { desk, means, recorded: None }.live())
}

/// The events of the live iteration, shared with the world for its record.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries(Arc<Mutex<Vec<Entry>>>);

impl Entries {
    /// Returns the events so far.
    pub(super) fn lock(&self) -> Vec<Entry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, entries: &[Entry]) {
        entries.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

struct Life {
    desk: Desk,
    means: Means,
    /// The journal of a previous life, until its run has its turn.
    recorded: Option<Recorded>,
}

/// How far a run is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    OneIteration,
}

/// Whether a run goes on after an iteration.
enum Then {
    GoOn,
    Rest,
}

impl Life {
    async fn live(mut self) {
        self.recover();
        loop {
            match self.desk.turn(clock::now()) {
                Turn::Run(run) => self.take_turn(&run, Extent::Whole).await,
                Turn::Step(run) => self.take_turn(&run, Extent::OneIteration).await,
                Turn::Rest(until) => self.desk.rest(until).await,
                Turn::Leave => return,
            }
            if self.desk.take_recheck() {
                self.recover();
            }
        }
    }

    /// Reads what a previous life has left; what cannot be read holds the repository.
    fn recover(&mut self) {
        self.desk.held = self.read_left().err().map(|error| {
            tracing::error!(repo = self.desk.file.id, error = in_one_line(&*error), "repository held");
            let message = format!("the daemon's state of this repository cannot be read: {}", in_one_line(&*error));
            reason(message, "look at the file, move it away, and: runnerctl resume")
        });
        self.refresh();
    }

    fn read_left(&mut self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if self.desk.frozen {
            self.desk.file = self.desk.store.load()?.ok_or("repo.json is gone")?;
            self.desk.frozen = false;
        }
        self.recorded = block_in_place(|| journal::read(&self.desk.store.journal()))?;
        if self.recorded.as_ref().is_some_and(|recorded| self.is_done_with(recorded)) {
            journal::remove(&self.desk.store.journal())?;
            self.recorded = None;
        }
        Ok(())
    }

    /// Whether an iteration is over and what follows from it has been written down.
    fn is_done_with(&self, recorded: &Recorded) -> bool {
        let is_running = self.desk.run(&recorded.header.run).is_some_and(|run| run.state == RunStatus::Running);
        let phase = journal::replay(&self.desk.store.journal(), recorded);
        !is_running && matches!(phase, Ok(Phase::Over { .. }))
    }

    /// Makes the view anew from what is committed.
    fn refresh(&mut self) {
        let seen = self.desk.current().map(|run| block_in_place(|| snapshot::of_run(run)));
        self.desk.budget_ms = seen.as_ref().map_or(0, |seen| seen.budget_ms);
        self.desk.view = seen.map(|seen| seen.view);
        self.desk.show();
    }

    async fn take_turn(&mut self, run: &str, extent: Extent) {
        let slots = Arc::clone(&self.means.slots);
        let _slot = tokio::select! {
            slot = slots.acquire_owned() => slot,
            () = self.desk.rest(None) => return,
        };
        self.desk.set_live(Some(run));
        let prior = self.desk.run(run).map(|run| run.state);
        let driven = self.drive_run(run, extent).await;
        self.desk.set_live(None);
        if let Err(error) = driven {
            tracing::error!(repo = self.desk.file.id, run, error = in_one_line(&*error), "run held");
            let message = format!("the daemon could not go on: {}", in_one_line(&*error));
            self.write(run, |run| hold(run, reason(message, "runnerctl resume"))).await;
        }
        if extent == Extent::OneIteration && prior.is_some() && !self.desk.is_leaving() {
            self.rest_after_step(run).await;
        }
        self.refresh();
    }

    /// After a step a run that would go on is paused, and whoever asked for it is answered.
    async fn rest_after_step(&mut self, run: &str) {
        self.write(run, |run| {
            if run.state == RunStatus::Running {
                run.state = RunStatus::Paused;
                run.reason = Some(reason("one iteration was asked for and is done", "runnerctl resume"));
            }
        })
        .await;
        self.refresh();
        let iteration = self.desk.view.as_ref().and_then(|view| view.recent.first().cloned());
        self.desk.stepped(run, iteration.filter(|iteration| Some(iteration.iter) == self.desk.stepped_iter));
    }

    async fn drive_run(&mut self, id: &str, extent: Extent) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.desk.stepped_iter = None;
        self.write(id, |run| {
            run.state = RunStatus::Running;
            run.reason = None;
            run.wait_until = None;
        })
        .await;
        if !self.begin(id).await? {
            return Ok(());
        }
        loop {
            self.refresh();
            let Then::GoOn = self.iterate(id).await? else { return Ok(()) };
            if extent == Extent::OneIteration || self.desk.is_leaving() {
                return Ok(());
            }
        }
    }

    fn site(&self, run: &RunRecord) -> Result<Site, crate::store::StoreError> {
        Ok(Site {
            run: run.id.clone(),
            layout: Layout::new(run.path.as_path()),
            store: self.desk.store.clone(),
            launcher: self.means.launcher.clone(),
            events: self.means.events.clone(),
            env: self.desk.store.load_env()?,
        })
    }

    /// Begins or resumes a run; false if it cannot go on now.
    async fn begin(&mut self, id: &str) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        let Some(run) = self.desk.run(id).cloned() else { return Ok(false) };
        if self.recorded.as_ref().is_some_and(|recorded| recorded.header.run == id) {
            return Ok(true);
        }
        let site = self.site(&run)?;
        let run = self.mark_resume(run, &site).await?;
        let mut tries = 0;
        loop {
            let stop = CancellationToken::new();
            let previous = self.previous(id);
            let (result, cause) = attend(&mut self.desk, prepare(&site, &run, previous, &stop), &stop).await;
            let result = match (cause, result) {
                (Some(StopCause::Shutdown), _) => return Ok(false),
                (Some(_), _) => {
                    self.stopped_before_work(id).await;
                    return Ok(false);
                }
                (None, result) => result,
            };
            match result {
                Ok(()) => break,
                Err(begin::BeginError::Hold(why)) => {
                    self.write(id, |run| hold(run, why)).await;
                    return Ok(false);
                }
                Err(begin::BeginError::Obstacle(obstacle)) => {
                    tries += 1;
                    let stopped = self.wait_for_obstacle(id, &in_one_line(&obstacle), tries).await;
                    if stopped {
                        return Ok(false);
                    }
                }
            }
        }
        self.write(id, |run| {
            run.beginning = None;
            run.resume = None;
        })
        .await;
        Ok(true)
    }

    /// Keeps the commit upon which a run is resumed, so that doing it twice is recognised.
    async fn mark_resume(
        &mut self,
        run: RunRecord,
        site: &Site,
    ) -> Result<RunRecord, Box<dyn std::error::Error + Send + Sync>> {
        if run.resume.as_ref().is_none_or(|order| order.from.is_some()) {
            return Ok(run);
        }
        let tip = block_in_place(|| site.repository()?.branch(&site.branch()))?;
        self.write(&run.id, |run| {
            if let Some(order) = &mut run.resume {
                order.from = tip.map(|tip| tip.to_string());
            }
        })
        .await;
        Ok(self.desk.run(&run.id).cloned().unwrap_or(run))
    }

    /// Shows what is in the way and waits; true if the run was stopped meanwhile.
    async fn wait_for_obstacle(&mut self, id: &str, what: &str, tries: usize) -> bool {
        let mut pilot = Pilot { desk: &mut self.desk, run: id.to_owned(), iter: None };
        pilot.obstructed(what);
        tokio::select! {
            cause = pilot.stop() => {
                if cause != StopCause::Shutdown {
                    self.stopped_before_work(id).await;
                }
                true
            }
            () = tokio::time::sleep(super::drive::retry_after(tries)) => false,
        }
    }

    /// Returns the run before this one in the list, whose end may be its base.
    fn previous(&self, id: &str) -> Option<String> {
        let at = self.desk.file.runs.iter().position(|run| run.id == id)?;
        let before = &self.desk.file.runs[..at];
        before.iter().rev().find(|run| run.state.is_terminal()).map(|run| run.id.clone())
    }

    /// Runs one iteration and writes down what follows from it.
    async fn iterate(&mut self, id: &str) -> Result<Then, Box<dyn std::error::Error + Send + Sync>> {
        let Some(run) = self.desk.run(id).cloned() else { return Ok(Then::Rest) };
        let site = self.site(&run)?;
        let entries = Entries::default();
        let mine = self.recorded.take_if(|recorded| recorded.header.run == id);
        let (phase, mut log) = match mine {
            Some(recorded) => JournalLog::reopen(&self.desk.store, recorded, entries.clone())?,
            None => (Phase::Open, JournalLog::new(&self.desk.store, &site.run, entries.clone())),
        };
        let mut scene = Scene::new(site.clone(), log.header.mark.clone(), log.header.policy.clone(), entries);
        let mut pilot = Pilot { desk: &mut self.desk, run: id.to_owned(), iter: None };
        let drove = Drive { world: &mut scene, control: &mut pilot, log: &mut log }.run(phase).await;
        match drove? {
            Drove::Left => Ok(Then::Rest),
            Drove::Over(Over::Untouched) => {
                let then = self.untouched(id, scene.found.take()).await;
                journal::remove(&self.desk.store.journal())?;
                Ok(then)
            }
            Drove::Over(Over::Settled { verdict, commit }) => {
                let then = self.settled(id, &site, &log, &verdict, commit.as_deref()).await?;
                journal::remove(&self.desk.store.journal())?;
                Ok(then)
            }
        }
    }

    async fn untouched(&mut self, id: &str, found: Option<Found>) -> Then {
        match found {
            Some(Found::Next(next)) => self.follow(id, next).await,
            Some(Found::Hold(why)) => {
                self.write(id, |run| hold(run, why)).await;
                Then::Rest
            }
            Some(Found::Task(..)) | None => {
                self.stopped_before_work(id).await;
                Then::Rest
            }
        }
    }

    /// Writes down a stop that was asked for before anything was begun.
    async fn stopped_before_work(&mut self, id: &str) {
        self.write(id, |run| match run.asked {
            Some(AskedFor::Cancel) => {
                desk::end(run, RunStatus::Cancelled, reason("cancelled by the user", "runnerctl start"))
            }
            Some(AskedFor::Pause) => pause(run, reason("paused by the user", "runnerctl resume")),
            None => {}
        })
        .await;
    }

    async fn settled(
        &mut self,
        id: &str,
        site: &Site,
        log: &JournalLog,
        verdict: &Verdict,
        commit: Option<&str>,
    ) -> Result<Then, Box<dyn std::error::Error + Send + Sync>> {
        let loaded = block_in_place(|| -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
            let repository = site.repository()?;
            let head = repository.head()?.commit().ok_or("HEAD has no commit")?;
            Ok(load(&repository, head)?)
        })?;
        self.tell_settled(id, &loaded, log, verdict, commit);
        let Some(run) = self.desk.run(id) else { return Ok(Then::Rest) };
        let asked = match run.asked {
            None => Asked::Nothing,
            Some(AskedFor::Pause) => Asked::Pause,
            Some(AskedFor::Cancel) => Asked::Cancel,
        };
        let standing = Standing { policy: &loaded.policy, tree: &loaded.tree, run_state: &loaded.run_state };
        let ended = Ended { verdict, now: clock::now(), waits: run.waits };
        let next = run::next(&standing, Some(ended), asked);
        let is_wait = matches!(verdict, Verdict::Unavailable { .. });
        let waits = if is_wait { run.waits.saturating_add(1) } else { 0 };
        self.write(id, |run| run.waits = waits).await;
        Ok(self.follow(id, next).await)
    }

    fn tell_settled(
        &mut self,
        id: &str,
        loaded: &super::load::Loaded,
        log: &JournalLog,
        verdict: &Verdict,
        commit: Option<&str>,
    ) {
        let Some(task) = log.task() else { return };
        self.desk.stepped_iter = Some(task.iter);
        let node = runner_core::tree::find(&loaded.tree, &task.node);
        let row = runner_core::verdict::row(verdict.name());
        let iter = Some(task.iter);
        if let Some(commit) = commit {
            let subject = format!("chore(loop): run {id} iter {:04} node {}", task.iter, task.node);
            self.desk.tell(id, iter, EventKind::Commit { commit: commit.to_owned(), subject });
        }
        if !loaded.run_state.reverted.is_empty() && commit.is_some() {
            self.desk.tell(id, iter, EventKind::Reverted { paths: loaded.run_state.reverted.clone() });
        }
        let (leaves_passed, leaves_total) = runner_core::tree::leaves(&loaded.tree);
        self.desk.tell(id, iter, EventKind::Tree { leaves_passed, leaves_total });
        let guard = if commit.is_some() { loaded.run_state.last_guard } else { None };
        let kind = EventKind::Iteration {
            node: task.node.clone(),
            verdict: verdict.name(),
            status: row.status,
            guard: guard.or(row.guard).unwrap_or(protocol::words::GuardOutcome::Skipped),
            attempts: node.map_or(task.attempts, |node| node.attempts),
            max_attempts: task.max_attempts,
        };
        self.desk.tell(id, iter, kind);
    }

    /// Writes down what a run does next.
    async fn follow(&mut self, id: &str, next: Next) -> Then {
        match next {
            Next::GoOn(_) => return Then::GoOn,
            Next::Wait { until, reason } => {
                self.write(id, |run| {
                    run.state = RunStatus::Waiting;
                    run.reason = Some(reason);
                    run.wait_until = Some(until);
                })
                .await;
            }
            Next::WaitForPerson(reason) => {
                self.write(id, |run| {
                    run.state = RunStatus::Waiting;
                    run.reason = Some(reason);
                })
                .await;
            }
            Next::Pause(reason) => self.write(id, |run| pause(run, reason)).await,
            Next::End { status, reason } => self.write(id, |run| desk::end(run, status, reason)).await,
        }
        Then::Rest
    }

    /// Changes a run's record, however long the disk refuses: going on without it would forget a decision.
    async fn write(&mut self, id: &str, change: impl FnOnce(&mut RunRecord)) {
        let Some(mut run) = self.desk.run(id).cloned() else { return };
        change(&mut run);
        let mut tries = 0;
        while let Err(error) = self.desk.change(id, |record| run.clone_into(record)) {
            tries += 1;
            tracing::warn!(run = id, error = in_one_line(&error), "the state cannot be written");
            tokio::time::sleep(super::drive::retry_after(tries)).await;
            if self.desk.is_shutting_down() {
                return;
            }
        }
    }
}

/// Prepares a run for its first or next iteration: branch, start, resume, baseline.
async fn prepare(
    site: &Site,
    run: &RunRecord,
    previous: Option<String>,
    stop: &CancellationToken,
) -> Result<(), begin::BeginError> {
    block_in_place(|| {
        if let Some(beginning) = &run.beginning {
            begin::begin(site, beginning, previous.as_deref())?;
        }
        run.resume.as_ref().map_or(Ok(()), |order| begin::resume(site, order))
    })?;
    let needed = block_in_place(|| baseline::needed(site))?;
    if let Some(loaded) = needed.filter(|_| !stop.is_cancelled()) {
        baseline::baseline(site, &loaded, stop).await?;
    }
    Ok(())
}

/// Lets something come to its end while requests are answered; a stop that is asked for is passed on.
async fn attend<T>(
    desk: &mut Desk,
    running: impl Future<Output = T>,
    stop: &CancellationToken,
) -> (T, Option<StopCause>) {
    let mut running = std::pin::pin!(running);
    let mut asked = None;
    loop {
        tokio::select! {
            biased;
            result = running.as_mut() => return (result, asked),
            cause = desk.stop(), if asked.is_none() => {
                asked = Some(cause);
                stop.cancel();
            }
        }
    }
}

fn pause(run: &mut RunRecord, why: StopReason) {
    run.state = RunStatus::Paused;
    run.reason = Some(why);
    run.asked = None;
}

fn hold(run: &mut RunRecord, why: StopReason) {
    run.state = RunStatus::Held;
    run.reason = Some(why);
}

/// Steers an iteration from the desk, and shows where it is.
struct Pilot<'a> {
    desk: &'a mut Desk,
    run: String,
    iter: Option<u32>,
}

impl Control for Pilot<'_> {
    async fn stop(&mut self) -> StopCause {
        self.desk.stop().await
    }

    fn is_leaving(&self) -> bool {
        self.desk.is_shutting_down()
    }

    fn entered(&mut self, phase: &Phase) {
        let now = clock::now();
        if let Some(task) = phase.task() {
            self.iter = Some(task.iter);
        }
        let budget_ms = self.desk.budget_ms;
        if let Some(view) = &mut self.desk.view {
            let began =
                view.phase.as_ref().filter(|_| !matches!(phase, Phase::Open)).map(|phase| phase.iteration_since);
            view.phase = Some(PhaseView {
                name: phase.name(),
                since: now,
                iteration_since: began.unwrap_or(now),
                budget_ms,
                obstacle: None,
            });
            show_task(view, phase);
        }
        self.desk.show();
        let node = phase.task().map(|task| task.node.clone());
        self.desk.tell(&self.run, self.iter, EventKind::Phase { phase: phase.name(), node });
    }

    fn obstructed(&mut self, what: &str) {
        tracing::warn!(run = self.run, what, "obstructed; tried again");
        if let Some(phase) = self.desk.view.as_mut().and_then(|view| view.phase.as_mut()) {
            phase.obstacle = Some(what.to_owned());
        }
        self.desk.show();
        self.desk.tell(&self.run, self.iter, EventKind::Obstacle { message: what.to_owned() });
    }
}

fn show_task(view: &mut RunView, phase: &Phase) {
    let Some(task) = phase.task() else { return };
    view.iteration = task.iter;
    if let Some(node) = &mut view.node {
        node.role = Some(task.role);
    }
}

/// The journal as the loop sees it: begun with the first event that matters.
struct JournalLog {
    path: std::path::PathBuf,
    header: Header,
    journal: Option<Journal>,
    entries: Entries,
}

impl JournalLog {
    fn new(store: &Store, run: &str, entries: Entries) -> Self {
        let nonce = clock::now().as_nanosecond();
        let header = Header {
            version: JOURNAL_VERSION,
            run: run.to_owned(),
            mark: format!("{}-{run}-{nonce:x}", store.id()),
            policy: Policy::default(),
        };
        Self { path: store.journal(), header, journal: None, entries }
    }

    /// Goes on with the journal of a previous life: replays it, and tells it that life began anew.
    fn reopen(store: &Store, recorded: Recorded, entries: Entries) -> Result<(Phase, Self), DriveError> {
        let path = store.journal();
        let phase = journal::replay(&path, &recorded)?;
        let header = recorded.header.clone();
        let journal = Journal::reopen(&path, recorded)?;
        let mut log = Self { path, header, journal: Some(journal), entries };
        let policy = log.header.policy.clone();
        log.record(&Event::Restarted, &policy)?;
        Ok((runner_core::iteration::decide(&policy, phase, Event::Restarted)?, log))
    }

    /// Returns what the iteration is about.
    fn task(&self) -> Option<runner_core::verdict::Task> {
        self.entries.lock().into_iter().find_map(|entry| match entry.event {
            Event::Opened(task) => Some(task),
            _ => None,
        })
    }
}

impl Log for JournalLog {
    fn record(&mut self, event: &Event, policy: &Policy) -> Result<(), JournalError> {
        let entry = Entry { at: clock::now(), event: event.clone() };
        match (&mut self.journal, event) {
            (Some(journal), _) => block_in_place(|| journal.append(entry))?,
            (None, Event::Opened(_)) => {
                self.header.policy = policy.clone();
                let header = self.header.clone();
                self.journal = Some(block_in_place(|| Journal::begin(&self.path, header, entry))?);
            }
            (None, _) => return Ok(()),
        }
        if let Some(journal) = &self.journal {
            self.entries.set(&journal.recorded().entries);
        }
        Ok(())
    }
}
