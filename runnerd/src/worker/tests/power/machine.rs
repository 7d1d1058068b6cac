//! The machine of the power cuts: its disk, one life of the daemon on it, and what must hold when that is over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use protocol::path::WirePath;
use runner_core::digest::sha256_hex;
use runner_core::iteration::{Over, Phase};
use runner_core::run::{End, RunRecord, State};

use super::effects::{Kept, Nobody, Scripted};
use super::{ITERATIONS, Mistakes, TRIES};
use crate::obstruction::Obstructs as _;
use crate::repo::disk::Disk as _;
use crate::repo::durable::{self, Access};
use crate::repo::kept::Vault;
use crate::repo::seal::Key;
use crate::repo::simulated_disk::SimulatedDisk;
use crate::store::{RepoFile, Store, StoreError};
use crate::worker::iteration::drive::{Drive, DriveError, Drove};
use crate::worker::iteration::log::{Entries, JournalLog};
use crate::worker::journal::{JournalError, Place};

const COMPLETED: State = State::Over { end: End::Completed, at: jiff::Timestamp::UNIX_EPOCH };

/// What was said or done outside of the machine, and cannot be taken back.
#[derive(Debug, Clone, Default)]
pub(super) struct Outside {
    pub(super) is_queued: bool,
    pub(super) is_completed: bool,
    pub(super) sessions: u32,
    pub(super) commits: BTreeMap<u32, String>,
    /// Work of sessions that were inspected.
    pub(super) work: Vec<String>,
}

pub(super) type Shared = Arc<Mutex<Outside>>;

pub(super) fn lock(outside: &Shared) -> MutexGuard<'_, Outside> {
    outside.lock().unwrap()
}

/// The machine: its disk, and what the world knows of it.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) disk: SimulatedDisk,
    pub(super) outside: Shared,
    pub(super) mistakes: Mistakes,
    vault: Vault,
}

pub(super) const WORK: &str = "/tree/log.txt";
pub(super) const STATE: &str = "/tree/state.json";
pub(super) const BRANCH: &str = "/git/heads/r";

impl Machine {
    pub(super) fn new(mistakes: Mistakes) -> Self {
        let vault = Vault::new("/state".into(), Key::random().unwrap());
        let machine = Self { disk: SimulatedDisk::default(), outside: Shared::default(), mistakes, vault };
        for folder in ["/state", "/state/repos", "/tree", "/git", "/git/objects", "/git/heads"] {
            durable::on(&machine.disk).create_dir(folder.as_ref(), Access::Private).unwrap();
        }
        machine.disk.set_flaws(mistakes.disk);
        machine
    }

    pub(super) fn fork(&self) -> Self {
        self.with(self.disk.fork())
    }

    pub(super) fn with(&self, disk: SimulatedDisk) -> Self {
        let outside = Arc::new(Mutex::new(lock(&self.outside).clone()));
        Self { disk, outside, mistakes: self.mistakes, vault: self.vault.clone() }
    }

    pub(super) fn store(&self) -> Store<SimulatedDisk> {
        Store::on(self.disk.clone(), &self.vault, "repo")
    }

    /// One life of the daemon; the error says why it holds the repository.
    pub(super) fn live(&self) -> Result<(), String> {
        let store = self.store();
        let mut file = self.registered(&store)?;
        if file.runs[0].state == COMPLETED {
            return Ok(());
        }
        change(&store, &mut file, |run| run.state = State::Running)?;
        let place = Place::of(&store);
        loop {
            let recorded = insist(|| place.read(), JournalError::is_obstacle)?;
            let entries = Entries::default();
            let (phase, log) = match recorded {
                Some(recorded) => insist(
                    || JournalLog::reopen(&store, recorded.clone(), entries.clone()),
                    |error| matches!(error, DriveError::Journal(error) if error.is_obstacle()),
                )?,
                None => (Phase::Open, JournalLog::new(&store, "r", entries.clone())),
            };
            match self.drive(phase, log)? {
                Over::Untouched => {
                    change(&store, &mut file, |run| run.state = COMPLETED)?;
                    lock(&self.outside).is_completed = true;
                    let _ = place.remove();
                    return Ok(());
                }
                Over::Settled { commit, .. } => {
                    let commit = commit.ok_or("an iteration left no commit")?;
                    lock(&self.outside).commits.insert(self.commit(&commit)?.iter, commit);
                    for name in self.disk.list(&store.live()).unwrap_or_default() {
                        let _ = self.disk.remove(&store.live().join(name));
                    }
                    let _ = place.remove();
                }
            }
        }
    }

    /// Reads the queue, and does what a client asks that has not been answered.
    fn registered(&self, store: &Store<SimulatedDisk>) -> Result<RepoFile, String> {
        let mut file = match insist(|| store.take_over(), passes)? {
            Some(file) => file,
            None => RepoFile {
                id: "repo".into(),
                common_dir: WirePath(PathBuf::from("/git")),
                path: WirePath(PathBuf::from("/tree")),
                confirmed: Vec::new(),
                hooks: crate::store::Hooks::default(),
                source: None,
                runs: Vec::new(),
            },
        };
        if file.runs.is_empty() {
            if lock(&self.outside).is_queued {
                return Err("a run that was queued is forgotten".into());
            }
            file.runs.push(RunRecord::queued("r", WirePath(PathBuf::from("/tree")), jiff::Timestamp::UNIX_EPOCH));
            insist(|| store.create(), passes)?;
            insist(|| store.save(&mut file), passes)?;
            lock(&self.outside).is_queued = true;
        }
        Ok(file)
    }

    fn drive(&self, phase: Phase, log: JournalLog<SimulatedDisk>) -> Result<Over, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let mut world = Scripted::new(self.clone(), log.header.policy.clone());
        let mut log = Kept::new(log, &self.outside);
        let mut control = Nobody;
        let drove = runtime
            .block_on(Drive { world: &mut world, control: &mut control, log: &mut log, heard: None }.run(phase))
            .map_err(|error| error.to_string())?;
        match (drove, world.held) {
            (_, Some(why)) => Err(why),
            (Drove::Over(end), None) => Ok(end),
            (Drove::Left, None) => Err("it left although nobody asked".into()),
        }
    }

    pub(super) fn object(&self, id: &str) -> Result<String, String> {
        let bytes = self.disk.read_whole(&object(id)).ok_or_else(|| format!("object {id} is missing"))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if id_of(&text) == id { Ok(text) } else { Err(format!("object {id} is damaged")) }
    }

    pub(super) fn commit(&self, id: &str) -> Result<Commit, String> {
        let text = self.object(id)?;
        let mut parts = text.split(' ');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (parent, iter, blob) = (next(), next().parse().map_err(|_| "a commit is damaged")?, next());
        Ok(Commit { parent, iter, work: self.object(&blob)? })
    }

    /// Returns the tip of the branch; empty before the first commit.
    pub(super) fn head(&self) -> Result<String, String> {
        let Some(bytes) = self.disk.read_whole(BRANCH.as_ref()) else { return Ok(String::new()) };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.len() == 40 { Ok(text) } else { Err("the branch is damaged".into()) }
    }

    pub(super) fn work(&self) -> String {
        String::from_utf8_lossy(&self.disk.read_whole(WORK.as_ref()).unwrap_or_default()).into_owned()
    }

    /// Checks a machine on which a life has come to its end.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut chain = BTreeMap::new();
        let mut at = self.head()?;
        let work = if at.is_empty() { String::new() } else { self.commit(&at)?.work };
        while !at.is_empty() {
            let commit = self.commit(&at)?;
            if chain.insert(commit.iter, at).is_some() {
                return Err(format!("number {} is used twice", commit.iter));
            }
            at = commit.parent;
        }
        let outside = lock(&self.outside);
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
        let file = self.store().read().map_err(|error| error.to_string())?.ok_or("the queue is gone")?;
        let names = self.disk.list("/tree".as_ref()).unwrap();
        match names.iter().find(|name| crate::temporary::is_one(name)) {
            Some(left) => Err(format!("{left:?} would be committed")),
            None if file.runs[0].state != COMPLETED => Err("the run is not over".into()),
            None => Ok(()),
        }
    }
}

pub(super) struct Commit {
    pub(super) parent: String,
    pub(super) iter: u32,
    pub(super) work: String,
}

pub(super) fn object(id: &str) -> PathBuf {
    Path::new("/git/objects").join(id)
}

pub(super) fn id_of(text: &str) -> String {
    sha256_hex(text.as_bytes())[..40].to_owned()
}

/// Calls until it works, or fails in a way that will not pass.
fn insist<T, E: std::error::Error>(
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

fn passes(error: &StoreError) -> bool {
    error.passes()
}

fn change(
    store: &Store<SimulatedDisk>,
    file: &mut RepoFile,
    change: impl FnOnce(&mut RunRecord),
) -> Result<(), String> {
    change(&mut file.runs[0]);
    insist(|| store.save(file), passes)
}
