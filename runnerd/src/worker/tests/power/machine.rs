//! The simulated machine: its disk, one daemon process on it, and what must hold afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use protocol::path::WirePath;
use runner_core::iteration::{IterationEnd, Phase};
use runner_core::run::{RecordState, RunEnd, RunRecord};
use runner_core::text::digest::sha256_hex;
use runner_os::retryable::Retryable as _;

use super::effects::{NoControl, RecordingLog, ScriptedEffects};
use super::{ITERATIONS, InjectedMistakes, TRIES};
use crate::repo::disk::Disk as _;
use crate::repo::durable::{self, FileAccess};
use crate::repo::seal::SealKey;
use crate::repo::sealed::StateDir;
use crate::repo::simulated_disk::SimulatedDisk;
use crate::store::{RepoFile, RepoStore, StoreError};
use crate::worker::iteration::drive::{DriveError, DriveOutcome, IterationDriver};
use crate::worker::iteration::log::{JournalLog, SharedEntries};
use crate::worker::journal::{JournalError, JournalFile};

const COMPLETED: RecordState = RecordState::Over { end: RunEnd::Completed, at: jiff::Timestamp::UNIX_EPOCH };

/// What was said or done outside the machine, and cannot be taken back.
#[derive(Debug, Clone, Default)]
pub(super) struct OutsideState {
    pub(super) is_queued: bool,
    pub(super) is_completed: bool,
    pub(super) sessions: u32,
    pub(super) commits: BTreeMap<u32, String>,
    /// Work of sessions that were inspected.
    pub(super) work: Vec<String>,
}

pub(super) type SharedOutside = Arc<Mutex<OutsideState>>;

pub(super) fn lock_outside(outside: &SharedOutside) -> MutexGuard<'_, OutsideState> {
    outside.lock().unwrap()
}

/// The machine: its disk, and what the outside world knows.
#[derive(Debug, Clone)]
pub(super) struct SimulatedMachine {
    pub(super) disk: SimulatedDisk,
    pub(super) outside: SharedOutside,
    pub(super) mistakes: InjectedMistakes,
    vault: StateDir,
}

pub(super) const WORK: &str = "/tree/log.txt";
pub(super) const STATE: &str = "/tree/state.json";
pub(super) const BRANCH: &str = "/git/heads/r";

impl SimulatedMachine {
    pub(super) fn new(mistakes: InjectedMistakes) -> Self {
        let vault = StateDir::new("/state".into(), SealKey::random().unwrap());
        let machine = Self { disk: SimulatedDisk::default(), outside: SharedOutside::default(), mistakes, vault };
        for folder in ["/state", "/state/repos", "/tree", "/git", "/git/objects", "/git/heads"] {
            durable::with_disk(&machine.disk).create_dir(folder.as_ref(), FileAccess::Private).unwrap();
        }
        machine.disk.set_flaws(mistakes.disk);
        machine
    }

    pub(super) fn fork(&self) -> Self {
        self.with_disk(self.disk.fork())
    }

    pub(super) fn with_disk(&self, disk: SimulatedDisk) -> Self {
        let outside = Arc::new(Mutex::new(lock_outside(&self.outside).clone()));
        Self { disk, outside, mistakes: self.mistakes, vault: self.vault.clone() }
    }

    pub(super) fn store(&self) -> RepoStore<SimulatedDisk> {
        RepoStore::on_disk(self.disk.clone(), &self.vault, "repo")
    }

    /// Runs one daemon process; the error says why it holds the repository.
    pub(super) fn live_once(&self) -> Result<(), String> {
        let store = self.store();
        let mut file = self.register_repo(&store)?;
        if file.runs[0].state == COMPLETED {
            return Ok(());
        }
        change_run(&store, &mut file, |run| run.state = RecordState::Running)?;
        let place = JournalFile::for_store(&store);
        loop {
            let recorded = retry_until_done(|| place.read(), JournalError::is_retryable)?;
            let entries = SharedEntries::default();
            let (phase, log) = match recorded {
                Some(recorded) => retry_until_done(
                    || JournalLog::reopen_journal(&store, recorded.clone(), entries.clone()),
                    |error| matches!(error, DriveError::Journal(error) if error.is_retryable()),
                )?,
                None => (Phase::Open, JournalLog::new(&store, "r", entries.clone())),
            };
            match self.drive(phase, log)? {
                IterationEnd::Untouched => {
                    change_run(&store, &mut file, |run| run.state = COMPLETED)?;
                    lock_outside(&self.outside).is_completed = true;
                    let _ = place.remove();
                    return Ok(());
                }
                IterationEnd::Settled { commit, .. } => {
                    let commit = commit.ok_or("an iteration left no commit")?;
                    lock_outside(&self.outside).commits.insert(self.read_commit(&commit)?.iter, commit);
                    for name in self.disk.list(&store.live_dir()).unwrap_or_default() {
                        let _ = self.disk.remove(&store.live_dir().join(name));
                    }
                    let _ = place.remove();
                }
            }
        }
    }

    /// Reads the queue, and performs client requests that have not been answered.
    fn register_repo(&self, store: &RepoStore<SimulatedDisk>) -> Result<RepoFile, String> {
        let mut file = match retry_until_done(|| store.take_over(), is_transient)? {
            Some(file) => file,
            None => RepoFile {
                id: "repo".into(),
                common_dir: WirePath(PathBuf::from("/git")),
                path: WirePath(PathBuf::from("/tree")),
                confirmed: Vec::new(),
                hooks: crate::store::HookQueue::default(),
                source: None,
                runs: Vec::new(),
            },
        };
        if file.runs.is_empty() {
            if lock_outside(&self.outside).is_queued {
                return Err("a run that was queued is forgotten".into());
            }
            file.runs.push(RunRecord::queued("r", WirePath(PathBuf::from("/tree")), jiff::Timestamp::UNIX_EPOCH));
            retry_until_done(|| store.create(), is_transient)?;
            retry_until_done(|| store.save_repo_file(&mut file), is_transient)?;
            lock_outside(&self.outside).is_queued = true;
        }
        Ok(file)
    }

    fn drive(&self, phase: Phase, log: JournalLog<SimulatedDisk>) -> Result<IterationEnd, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let mut world = ScriptedEffects::new(self.clone(), log.header.policy.clone());
        let mut log = RecordingLog::new(log, &self.outside);
        let mut control = NoControl;
        let drove = runtime
            .block_on(
                IterationDriver { world: &mut world, control: &mut control, log: &mut log, pending_stop: None }
                    .drive_iteration(phase),
            )
            .map_err(|error| error.to_string())?;
        match (drove, world.held) {
            (_, Some(why)) => Err(why),
            (DriveOutcome::Finished(end), None) => Ok(end),
            (DriveOutcome::Suspended, None) => Err("it left although nobody asked".into()),
        }
    }

    pub(super) fn read_object(&self, id: &str) -> Result<String, String> {
        let bytes = self.disk.read_whole(&object_path(id)).ok_or_else(|| format!("object {id} is missing"))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if id_of(&text) == id { Ok(text) } else { Err(format!("object {id} is damaged")) }
    }

    pub(super) fn read_commit(&self, id: &str) -> Result<SimulatedCommit, String> {
        let text = self.read_object(id)?;
        let mut parts = text.split(' ');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let parent = next();
        let iter = next().parse().map_err(|_| "a commit is damaged")?;
        let blob = next();
        Ok(SimulatedCommit { parent, iter, work: self.read_object(&blob)? })
    }

    /// Returns the tip of the branch; empty before the first commit.
    pub(super) fn read_head(&self) -> Result<String, String> {
        let Some(bytes) = self.disk.read_whole(BRANCH.as_ref()) else { return Ok(String::new()) };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.len() == 40 { Ok(text) } else { Err("the branch is damaged".into()) }
    }

    pub(super) fn read_work(&self) -> String {
        String::from_utf8_lossy(&self.disk.read_whole(WORK.as_ref()).unwrap_or_default()).into_owned()
    }

    /// Checks a machine after a daemon process has ended.
    pub(super) fn check_promises(&self) -> Result<(), String> {
        let mut chain = BTreeMap::new();
        let mut at = self.read_head()?;
        let work = if at.is_empty() { String::new() } else { self.read_commit(&at)?.work };
        while !at.is_empty() {
            let commit = self.read_commit(&at)?;
            if chain.insert(commit.iter, at).is_some() {
                return Err(format!("number {} is used twice", commit.iter));
            }
            at = commit.parent;
        }
        let outside = lock_outside(&self.outside);
        let numbers: Vec<u32> = chain.keys().copied().collect();
        if numbers != (1..=ITERATIONS).collect::<Vec<_>>() {
            return Err(format!("the numbers are {numbers:?}"));
        }
        if let Some((iter, _)) = outside.commits.iter().find(|(iter, id)| chain.get(*iter) != Some(*id)) {
            return Err(format!("the commit of iteration {iter} that was told is another now"));
        }
        if let Some(lost) = outside.work.iter().find(|line| work.matches(line.as_str()).count() != 1) {
            return Err(format!("lost, or there twice: {lost:?} in {work:?}"));
        }
        let file = self.store().read_repo_file().map_err(|error| error.to_string())?.ok_or("the queue is gone")?;
        let names = self.disk.list("/tree".as_ref()).unwrap();
        match names.iter().find(|name| runner_os::temp_file::is_temp_name(name)) {
            Some(left) => Err(format!("{left:?} would be committed")),
            None if file.runs[0].state != COMPLETED => Err("the run is not over".into()),
            None => Ok(()),
        }
    }
}

pub(super) struct SimulatedCommit {
    pub(super) parent: String,
    pub(super) iter: u32,
    pub(super) work: String,
}

pub(super) fn object_path(id: &str) -> PathBuf {
    Path::new("/git/objects").join(id)
}

pub(super) fn id_of(text: &str) -> String {
    sha256_hex(text.as_bytes())[..40].to_owned()
}

/// Retries until it works, or fails in a way that is not transient.
fn retry_until_done<T, E: std::error::Error>(
    mut call: impl FnMut() -> Result<T, E>,
    is_obstacle: impl Fn(&E) -> bool,
) -> Result<T, String> {
    for _ in 1..TRIES {
        match call() {
            Err(error) if is_obstacle(&error) => {}
            done => return done.map_err(|error| error.to_string()),
        }
    }
    call().map_err(|error| error.to_string())
}

fn is_transient(error: &StoreError) -> bool {
    error.is_transient()
}

fn change_run(
    store: &RepoStore<SimulatedDisk>,
    file: &mut RepoFile,
    change: impl FnOnce(&mut RunRecord),
) -> Result<(), String> {
    change(&mut file.runs[0]);
    retry_until_done(|| store.save_repo_file(file), is_transient)
}
