//! Finds and kills what an earlier daemon process left running.
//!
//! Normally there is nothing: a shim whose daemon is gone kills everything itself within a moment, so the first step is
//! to wait for its lock. What is left then is found by its [`Mark`]. Nothing here guesses by process id.

use std::{fs::File, io, path::Path, thread, time::Duration};

use runner_core::run::blocker::Transience;
use runner_os::retryable::Retryable;
use rustix::process::Signal;
use supervisor::{Mark, PidFd, groups_of, kill_and_remove_groups, kill_groups, since_boot, table};
use thiserror::Error;

/// Pause between attempts at the shim's lock, or passes over the process table.
const PAUSE: Duration = Duration::from_millis(10);
/// Pause between two attempts at processes that do not die.
const GONE_PAUSE: Duration = Duration::from_secs(5);
/// Number of consecutive empty passes that prove that nothing is left.
const EMPTY_PASSES: u32 = 2;

/// What a search found and killed.
#[derive(Debug, PartialEq, Eq)]
pub struct SweepReport {
    /// Ids of the processes, which are dead.
    pub ended: Vec<i32>,
}

/// Processes may still be alive.
#[derive(Debug, Error)]
pub enum StillAlive {
    /// Processes outlive SIGKILL by seconds: they hang in the kernel, or belong to another user.
    #[error("ending the processes marked {mark}: alive after SIGKILL: {pids:?}")]
    Processes {
        /// The mark by which they were found.
        mark: Mark,
        /// Their process ids.
        pids: Vec<i32>,
    },
    /// The process table could not be searched.
    #[error("searching for processes marked {mark}")]
    Unknown {
        /// The mark that was searched for.
        mark: Mark,
        /// The error of the system.
        source: io::Error,
    },
}

impl Retryable for StillAlive {
    fn transience(&self) -> Transience {
        match self {
            // A process that cannot be killed is waiting for a device.
            Self::Processes { .. } | Self::Unknown { .. } => Transience::Passing,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Processes { .. } => None,
            Self::Unknown { source, .. } => source.remedy(),
        }
    }
}

/// Kills every process that has the mark, and returns when there is none.
///
/// Waits for the shim that holds `lock`, at most half of `within`; a shim that keeps it is killed as well. Blocks the
/// calling thread. Processes of an earlier boot need no search: see [`boot_id`](runner_os::clock::boot_id).
pub fn end_survivors(mark: &Mark, lock: &Path, within: Duration) -> Result<SweepReport, StillAlive> {
    let began = since_boot();
    wait_for_shim(lock, began + within / 2);
    sweep_until(mark, began + within)
}

/// Waits, however long it takes, until no process is alive of a program whose end left some.
///
/// Until then, files that such a process can still write must be neither inspected nor committed.
pub async fn wait_until_gone(mark: &Mark, lock: &Path, remaining: Option<StillAlive>) {
    let mut remaining = remaining;
    while let Some(alive) = remaining.take() {
        tracing::error!(error = &alive as &dyn std::error::Error, "waiting for processes that do not exit");
        tokio::time::sleep(GONE_PAUSE).await;
        remaining = tokio::task::block_in_place(|| end_survivors(mark, lock, GONE_PAUSE)).err();
    }
}

/// Kills every process that has the mark, repeatedly until two passes in a row find none.
pub(super) fn sweep_until(mark: &Mark, until: Duration) -> Result<SweepReport, StillAlive> {
    let swept = sweep_marked(mark, until)?;
    kill_and_remove_groups(&groups_of(mark), until);
    Ok(swept)
}

fn sweep_marked(mark: &Mark, until: Duration) -> Result<SweepReport, StillAlive> {
    let groups = groups_of(mark);
    let mut ended = Vec::new();
    let mut empty = 0;
    while empty < EMPTY_PASSES {
        let is_last = since_boot() >= until;
        match find_marked(mark) {
            Ok(found) if found.is_empty() => empty += 1,
            Ok(found) if is_last => {
                let pids = found.iter().map(|process| process.pid).collect();
                return Err(StillAlive::Processes { mark: mark.clone(), pids });
            }
            Err(source) if is_last => return Err(StillAlive::Unknown { mark: mark.clone(), source }),
            Ok(found) => {
                empty = 0;
                kill_groups(&groups);
                ended.extend(kill_processes(&found, until));
            }
            Err(_) => {
                empty = 0;
                thread::sleep(PAUSE);
            }
        }
    }
    Ok(SweepReport { ended })
}

/// Kills the processes, and returns those alive at `until`. One that may not be signalled does not die, and is found
/// again until then.
fn kill_processes(found: &[PidFd], until: Duration) -> Vec<i32> {
    for process in found {
        let _ = process.signal(Signal::KILL);
    }
    let is_dead = |process: &&PidFd| process.wait(until.saturating_sub(since_boot()));
    found.iter().filter(is_dead).map(|process| process.pid).collect()
}

fn wait_for_shim(lock: &Path, until: Duration) {
    // Without the file there was no shim.
    let Ok(lock) = File::options().append(true).open(lock) else {
        return;
    };
    while lock.try_lock().is_err() && since_boot() < until {
        thread::sleep(PAUSE);
    }
}

/// Finds the processes with the mark. A pass that does not even see the calling process proves nothing.
fn find_marked(mark: &Mark) -> io::Result<Vec<PidFd>> {
    let own = nix::unistd::getpid().as_raw();
    let mut found = Vec::new();
    let mut saw_itself = false;
    for entry in table::entries()? {
        saw_itself |= entry.pid == own;
        if entry.pid != own && !entry.is_zombie && mark.is_on(entry.pid) {
            found.extend(PidFd::open(entry.pid, || mark.is_on(entry.pid))?);
        }
    }
    if saw_itself { Ok(found) } else { Err(io::Error::other("the table of processes cannot be read")) }
}
