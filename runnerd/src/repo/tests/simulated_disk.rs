//! A disk in memory that can lose power: it tracks which bytes and names were flushed, and generates every state that
//! may be found after a crash.
//!
//! Two models. *Ordered*, as ext4: names change in the order of the calls, so a prefix of them is found. *Unordered*,
//! as POSIX allows: any names that were not flushed may be missing, in any combination. In both, a file that was not
//! flushed may have its old bytes, its new ones, a part of them, or zeros. Calls can be made to fail.

#[path = "simulated_disk/calls.rs"]
mod calls;

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::panic;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, MutexGuard};

use nix::errno::Errno;
use runner_testkit::RandomSource;

/// Size in bytes of the units in which a file reaches the disk.
const SECTOR: usize = 512;

/// Type of crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CrashKind {
    /// The daemon is killed: what it wrote is there, but may still be lost later.
    Kill,
    /// Power is lost; names reach the disk in order.
    Ordered,
    /// Power is lost; names reach the disk in any order.
    Unordered,
}

/// Faults of a disk, or of a program on it. A test that detects nothing with one of these is useless.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DiskFlaws {
    /// Files are never flushed.
    pub(crate) no_file_sync: bool,
    /// Folders are never flushed.
    pub(crate) no_folder_sync: bool,
    /// Temporary files have one fixed name, and an existing one is overwritten.
    pub(crate) fixed_temporary: bool,
}

/// An injected failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskFault {
    /// Number of the first failing call, from 1.
    pub(crate) at: u64,
    /// Number of consecutive calls that fail.
    pub(crate) count: u64,
    /// How they fail.
    pub(crate) failure: DiskFailure,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskFailure {
    /// With this error.
    Error(Errno),
    /// A write accepts only a part of the bytes; other calls do not fail.
    ShortWrite,
}

/// The crash that a test requested, as it unwinds through the code under test.
#[derive(Debug)]
struct CrashedDisk;

/// The simulated disk; clones share its state.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedDisk(Arc<Mutex<DiskState>>);

#[derive(Debug, Clone, Default)]
struct DiskState {
    nodes: Vec<DiskNode>,
    /// Changes of names, oldest first.
    changes: Vec<NameChange>,
    flaws: DiskFlaws,
    fault: Option<DiskFault>,
    /// Number of calls so far, and of those that changed something.
    calls: u64,
    writes: u64,
    /// The change before which the daemon crashes.
    crash_at: Option<u64>,
}

#[derive(Debug, Clone)]
enum DiskNode {
    File { seen: Vec<u8>, flushed: Vec<u8>, between: Vec<Vec<u8>>, is_lost: bool },
    Folder { seen: BTreeMap<OsString, usize> },
}

/// One change of names in a folder; it reaches the disk completely or not at all.
#[derive(Debug, Clone)]
struct NameChange {
    folder: usize,
    removed: Option<OsString>,
    added: Option<(OsString, usize)>,
    is_flushed: bool,
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<OsString, usize>) {
        if let Some(name) = &self.removed {
            names.remove(name);
        }
        if let Some((name, node)) = &self.added {
            names.insert(name.clone(), *node);
        }
    }
}

impl Default for SimulatedDisk {
    fn default() -> Self {
        let root = DiskNode::Folder { seen: BTreeMap::new() };
        Self(Arc::new(Mutex::new(DiskState { nodes: vec![root], ..DiskState::default() })))
    }
}

impl SimulatedDisk {
    /// Sets the faults from now on.
    pub(crate) fn set_flaws(&self, flaws: DiskFlaws) {
        self.lock().flaws = flaws;
    }

    /// Returns an independent copy.
    pub(crate) fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    /// Makes the daemon crash before the `at`-th change, from 1.
    pub(crate) fn crash_at(&self, at: Option<u64>) {
        let mut state = self.lock();
        state.writes = 0;
        state.crash_at = at;
    }

    /// Makes calls fail.
    pub(crate) fn fail(&self, fault: Option<DiskFault>) {
        let mut state = self.lock();
        (state.calls, state.fault) = (0, fault);
    }

    /// Returns the number of calls since the fault was set.
    pub(crate) fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Returns the number of changes since the crash was set.
    pub(crate) fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// Flushes everything below a folder, as one call does for a whole file system.
    pub(crate) fn sync_all(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.call(true)?;
        let Some(folder) = state.find(folder) else { return Err(Errno::ENOENT.into()) };
        let mut left = vec![folder];
        while let Some(at) = left.pop() {
            if let DiskNode::Folder { seen } = &state.nodes[at] {
                left.extend(seen.values());
                state.flush_names(at);
            } else {
                state.flush(at);
            }
        }
        Ok(())
    }

    /// Writes a file without regard to durability, as ordinary programs do.
    pub(crate) fn write_plainly(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.call(true)?;
        let (folder, name) = state.place(path)?;
        let node = match state.find(path) {
            Some(node) => node,
            None => state.create(folder, &name),
        };
        state.write(node, bytes.to_vec());
        Ok(())
    }

    /// Reads a whole file; `None` if there is none.
    pub(crate) fn read_whole(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.lock();
        match &state.nodes[state.find(path)?] {
            DiskNode::File { seen, .. } => Some(seen.clone()),
            DiskNode::Folder { .. } => None,
        }
    }

    /// Returns the states that may be found after a crash now: all, or a sample of `most` determined by `seed`.
    pub(crate) fn states_after(&self, crash: CrashKind, seed: u64, most: u64) -> Vec<Self> {
        let state = self.lock();
        if crash == CrashKind::Kill {
            let mut same = state.clone();
            (same.crash_at, same.fault) = (None, None);
            return vec![Self(Arc::new(Mutex::new(same)))];
        }
        let choices = state.choices(crash);
        let count = choices.iter().try_fold(1_u64, |all, of| all.checked_mul(*of)).unwrap_or(u64::MAX);
        let picked: Vec<Vec<u64>> = if count <= most {
            (0..count).map(|number| digits(number, &choices)).collect()
        } else {
            let mut random = RandomSource::new(seed);
            (0..most).map(|_| choices.iter().map(|of| random.below(*of)).collect()).collect()
        };
        picked.into_iter().map(|choice| Self(Arc::new(Mutex::new(state.state_after(crash, &choice))))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap()
    }

    /// Counts a call, which may fail or be the one before which the daemon crashes.
    fn call(&self, is_change: bool) -> io::Result<MutexGuard<'_, DiskState>> {
        let mut state = self.lock();
        if is_change {
            state.writes += 1;
            if state.crash_at.is_some_and(|at| state.writes >= at) {
                drop(state);
                panic::resume_unwind(Box::new(CrashedDisk) as Box<dyn Any + Send>);
            }
        }
        state.calls += 1;
        match state.take_failure() {
            Some(DiskFailure::Error(errno)) => Err(errno.into()),
            Some(DiskFailure::ShortWrite) | None => Ok(state),
        }
    }
}

/// Runs something that may crash; `None` if it did.
pub(crate) fn run_until_crash<T>(run: impl FnOnce() -> T) -> Option<T> {
    match panic::catch_unwind(panic::AssertUnwindSafe(run)) {
        Ok(done) => Some(done),
        Err(cause) if cause.is::<CrashedDisk>() => None,
        Err(cause) => panic::resume_unwind(cause),
    }
}

impl DiskState {
    fn take_failure(&self) -> Option<DiskFailure> {
        let fault = self.fault?;
        (fault.at..fault.at + fault.count).contains(&self.calls).then_some(fault.failure)
    }

    fn find(&self, path: &Path) -> Option<usize> {
        let names = path.components().filter(|part| *part != Component::RootDir);
        names.into_iter().try_fold(0, |at, name| match &self.nodes[at] {
            DiskNode::Folder { seen } => seen.get(name.as_os_str()).copied(),
            DiskNode::File { .. } => None,
        })
    }

    /// Returns the folder of a path, and the name in it.
    fn place(&self, path: &Path) -> io::Result<(usize, OsString)> {
        let folder = path.parent().and_then(|folder| self.find(folder)).ok_or(Errno::ENOENT)?;
        Ok((folder, path.file_name().unwrap().to_owned()))
    }

    fn change(&mut self, change: NameChange) {
        if let DiskNode::Folder { seen } = &mut self.nodes[change.folder] {
            change.apply(seen);
        }
        self.changes.push(change);
    }

    fn create(&mut self, folder: usize, name: &OsStr) -> usize {
        self.add(
            folder,
            name,
            DiskNode::File { seen: Vec::new(), flushed: Vec::new(), between: Vec::new(), is_lost: false },
        )
    }

    fn add(&mut self, folder: usize, name: &OsStr, node: DiskNode) -> usize {
        self.nodes.push(node);
        let node = self.nodes.len() - 1;
        self.change(NameChange { folder, removed: None, added: Some((name.to_owned(), node)), is_flushed: false });
        node
    }

    fn write(&mut self, node: usize, bytes: Vec<u8>) {
        if let DiskNode::File { seen, between, .. } = &mut self.nodes[node] {
            between.push(std::mem::replace(seen, bytes));
        }
    }

    fn flush(&mut self, node: usize) {
        if let DiskNode::File { seen, flushed, between, is_lost: false } = &mut self.nodes[node]
            && !self.flaws.no_file_sync
        {
            flushed.clone_from(seen);
            between.clear();
        }
    }

    fn flush_names(&mut self, folder: usize) {
        if !self.flaws.no_folder_sync {
            self.changes
                .iter_mut()
                .filter(|change| change.folder == folder)
                .for_each(|change| change.is_flushed = true);
        }
    }

    /// Returns the number of possible outcomes for each thing that a crash leaves open.
    fn choices(&self, crash: CrashKind) -> Vec<u64> {
        let open = self.changes.iter().filter(|change| !change.is_flushed).count() as u64;
        let names = match crash {
            CrashKind::Ordered => vec![(self.changes.len() - self.count_certain()) as u64 + 1],
            CrashKind::Kill | CrashKind::Unordered => vec![2; usize::try_from(open).unwrap()],
        };
        let files = self.nodes.iter().map(|node| leftovers(node).len() as u64).filter(|ways| *ways > 1);
        names.into_iter().chain(files).collect()
    }

    /// Returns how many changes of names are certainly on the disk, if they reach it in order.
    fn count_certain(&self) -> usize {
        self.changes.iter().rposition(|change| change.is_flushed).map_or(0, |last| last + 1)
    }

    /// Creates the state for a choice.
    fn state_after(&self, crash: CrashKind, choice: &[u64]) -> Self {
        let mut choice = choice.iter().copied();
        let kept: Vec<&NameChange> = if crash == CrashKind::Ordered {
            let more = usize::try_from(choice.next().unwrap()).unwrap();
            self.changes.iter().take(self.count_certain() + more).collect()
        } else {
            self.changes.iter().filter(|change| change.is_flushed || choice.next() == Some(1)).collect()
        };
        let mut nodes: Vec<DiskNode> = self
            .nodes
            .iter()
            .map(|node| match node {
                DiskNode::Folder { .. } => DiskNode::Folder { seen: BTreeMap::new() },
                file @ DiskNode::File { .. } => {
                    let mut ways = leftovers(file);
                    let way = if ways.len() > 1 { usize::try_from(choice.next().unwrap()).unwrap() } else { 0 };
                    let bytes = ways.swap_remove(way);
                    DiskNode::File { seen: bytes.clone(), flushed: bytes, between: Vec::new(), is_lost: false }
                }
            })
            .collect();
        let changes: Vec<NameChange> =
            kept.into_iter().map(|change| NameChange { is_flushed: true, ..change.clone() }).collect();
        for change in &changes {
            if let DiskNode::Folder { seen } = &mut nodes[change.folder] {
                change.apply(seen);
            }
        }
        Self { nodes, changes, flaws: self.flaws, ..Self::default() }
    }
}

/// Returns the possible contents of a file after a crash, without duplicates.
fn leftovers(node: &DiskNode) -> Vec<Vec<u8>> {
    let DiskNode::File { seen, flushed, between, .. } = node else { return Vec::new() };
    let mut ways = vec![flushed.clone()];
    if between.is_empty() {
        return ways;
    }
    let same = flushed.iter().zip(seen).take_while(|(old, new)| old == new).count();
    let half = same + (seen.len() - same) / 2;
    let zeros = |from: usize, to: usize| {
        let mut bytes = seen.clone();
        bytes[from..to].fill(0);
        bytes
    };
    ways.extend(between.iter().cloned());
    ways.extend([seen.clone(), seen[..half].to_vec(), zeros(same, seen.len())]);
    // A sector in the middle was lost, while the next one reached the disk.
    let lost = (same + 1).next_multiple_of(SECTOR).min(seen.len());
    ways.push(zeros(same, if lost < seen.len() { lost } else { half }));
    ways.sort();
    ways.dedup();
    ways
}

fn digits(mut number: u64, bases: &[u64]) -> Vec<u64> {
    bases
        .iter()
        .map(|base| {
            let digit = number % base;
            number /= base;
            digit
        })
        .collect()
}
