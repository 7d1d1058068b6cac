//! Tracks running git programs, and operations of the library that may run a filter: what each is waiting for, and who
//! terminates one that does not finish. Starts none.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use runner_os::clock::{now, since_boot};
use supervisor::table;

use crate::Repository;

/// Programs that run for less than this are not reported: most finish sooner.
const REPORT_DELAY: Duration = Duration::from_secs(10);
/// Requests are answered without the run once it has waited for another program for this long.
const BLOCKS_AFTER: Duration = Duration::from_secs(5);
/// How long a program may wait for another one after the work has been asked to end. The commit of a cancelled iteration
/// may wait for the same program again.
const ENDED_AFTER: Duration = Duration::from_secs(2);
/// Programs git uses to start others: these are not what it is waiting for.
const BETWEEN: [&str; 5] = ["git", "sh", "bash", "dash", "busybox"];

/// Beginning of the names of git's own programs for remotes, which start others too.
const TRANSPORT: &str = "git-remote-";

static AT_WORK: Mutex<Vec<Arc<Program>>> = Mutex::new(Vec::new());

/// Why a program was terminated before it finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ender {
    /// Its time limit was reached.
    Limit,
    /// A person cancelled the run.
    Cancel,
    /// The daemon is shutting down.
    Shutdown,
}

impl fmt::Display for Ender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit => "that is as long as one command of git may take",
            Self::Cancel => "the run was cancelled",
            Self::Shutdown => "runnerd was told to end",
        })
    }
}

/// A program that was terminated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The git subcommand.
    pub(crate) command: String,
    /// The program it was waiting for, if any.
    pub(crate) waited_for: Option<String>,
    /// How long it had been running.
    pub(crate) after: Duration,
    /// Why it was terminated.
    pub(crate) by: Ender,
}

/// A git program that has been running for long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitWait {
    /// The git subcommand.
    pub command: String,
    /// The program that git is waiting for; `None` if git itself is busy.
    pub program: Option<String>,
    /// When it was started.
    pub since: Timestamp,
}

/// One running program, or one operation of the library.
#[derive(Debug)]
struct Program {
    processes: Processes,
    command: String,
    common_dir: PathBuf,
    since: Timestamp,
    began: Duration,
    ended: OnceLock<Ended>,
}

/// The processes of a program.
#[derive(Debug)]
enum Processes {
    /// A child of the daemon that leads a group.
    Group(Pid),
    /// Filters that the library starts for this work tree, which are children of the daemon themselves.
    FiltersOf(PathBuf),
}

/// Registers a running program until it is dropped.
#[derive(Debug)]
pub struct AtWork(Arc<Program>);

impl AtWork {
    /// Registers a child that leads a process group.
    pub fn enter(child: &Child, command: &str, common_dir: &Path) -> Self {
        // No system has a larger process id.
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
        Self::register(Processes::Group(group), command, common_dir)
    }

    /// Registers an operation of the library, which does what this git command does.
    pub(super) fn enter_library(repository: &Repository, command: &str) -> Self {
        let filters = Processes::FiltersOf(repository.work_dir().to_owned());
        Self::register(filters, command, repository.common_dir())
    }

    fn register(processes: Processes, command: &str, common_dir: &Path) -> Self {
        let program = Arc::new(Program {
            processes,
            command: command.to_owned(),
            common_dir: common_dir.to_owned(),
            since: now(),
            began: since_boot(),
            ended: OnceLock::new(),
        });
        all().push(Arc::clone(&program));
        Self(program)
    }

    /// Terminates it together with everything it has started.
    pub fn end(&self, by: Ender) {
        self.0.end(by);
    }

    /// Says what it is waiting for.
    pub fn describe_wait(&self) -> String {
        let program = waited_for(&self.0.descendant_pids());
        let waits_for = program.map_or_else(|| "is not finished".to_owned(), |program| format!("waits for {program}"));
        format!("git {} {waits_for}, {} s", self.0.command, self.0.age().as_secs())
    }

    /// Says why it was terminated, if it was.
    pub fn describe_end(&self) -> Option<String> {
        let Ended { command, waited_for, after, by } = self.ended()?;
        let waited_on = waited_on(waited_for.as_deref());
        Some(format!("git {command} was ended after {} s{waited_on}: {by}", after.as_secs()))
    }

    /// Returns why it was terminated, if it was.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.0.ended.get().cloned()
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        all().retain(|program| !Arc::ptr_eq(program, &self.0));
    }
}

impl Program {
    fn age(&self) -> Duration {
        since_boot().saturating_sub(self.began)
    }

    /// Returns the processes that it has started, nearest first.
    fn descendant_pids(&self) -> Vec<i32> {
        match &self.processes {
            Processes::Group(group) => below(group.as_raw()),
            Processes::FiltersOf(work_dir) => filters_of(work_dir),
        }
    }

    fn end(&self, by: Ender) {
        let below = self.descendant_pids();
        let ended = Ended { command: self.command.clone(), waited_for: waited_for(&below), after: self.age(), by };
        if self.ended.set(ended).is_err() {
            return;
        }
        if let Processes::Group(group) = self.processes {
            let _ = killpg(group, Signal::SIGKILL);
        }
        // A process that has left the group would keep the pipes open, which are read to their end.
        for pid in below {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Returns the longest-running program in these repositories, if it has been running for long.
pub fn waits(is_of: impl Fn(&Path) -> bool) -> Option<GitWait> {
    find_wait(is_of, REPORT_DELAY)
}

/// Returns the longest-running program if it waits for another program and has kept its callers waiting for a while.
pub fn blocks(is_of: impl Fn(&Path) -> bool) -> Option<GitWait> {
    find_wait(is_of, BLOCKS_AFTER).filter(|wait| wait.program.is_some())
}

fn find_wait(is_of: impl Fn(&Path) -> bool, after: Duration) -> Option<GitWait> {
    let long = |program: &&Arc<Program>| program.age() >= after && is_of(&program.common_dir);
    let oldest = all().iter().filter(long).max_by_key(|program| program.age()).cloned()?;
    let program = waited_for(&oldest.descendant_pids());
    Some(GitWait { command: oldest.command.clone(), program, since: oldest.since })
}

/// Terminates the programs in these repositories that have been waiting for another one for a while. Those that are
/// busy themselves are left to finish.
pub fn end_waiting(is_of: impl Fn(&Path) -> bool, by: Ender) {
    let slow: Vec<Arc<Program>> = {
        let long = |program: &&Arc<Program>| program.age() >= ENDED_AFTER && is_of(&program.common_dir);
        all().iter().filter(long).cloned().collect()
    };
    for program in slow.iter().filter(|program| waited_for(&program.descendant_pids()).is_some()) {
        program.end(by);
    }
}

/// Names the program that was waited for, as part of a sentence.
pub(crate) fn waited_on(program: Option<&str>) -> String {
    program.map_or_else(String::new, |program| format!(" of waiting for {program}"))
}

fn all() -> MutexGuard<'static, Vec<Arc<Program>>> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the ids of the filters that the library runs for a work tree, which it names to them, and of what they have
/// started.
fn filters_of(work_dir: &Path) -> Vec<i32> {
    let groups: Vec<i32> = all()
        .iter()
        .filter_map(|program| match program.processes {
            Processes::Group(group) => Some(group.as_raw()),
            Processes::FiltersOf(_) => None,
        })
        .collect();
    let is_filter = |pid: &i32| {
        let named = table::variable(*pid, "GIT_WORK_TREE");
        !groups.contains(pid) && named.is_some_and(|named| named == work_dir.as_os_str().as_bytes())
    };
    let mut children = children_by_parent();
    let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    let filters = children.remove(&own).unwrap_or_default().into_iter().filter(is_filter).collect();
    with_descendants(filters, children)
}

fn children_by_parent() -> BTreeMap<i32, Vec<i32>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in table::entries().into_iter().flatten().filter(|entry| !entry.is_zombie) {
        children.entry(entry.parent).or_default().push(entry.pid);
    }
    children
}

/// Returns the ids of a process's descendants, nearest first.
fn below(of: i32) -> Vec<i32> {
    let mut children = children_by_parent();
    let found = children.remove(&of).unwrap_or_default();
    with_descendants(found, children)
}

fn with_descendants(mut found: Vec<i32>, mut children: BTreeMap<i32, Vec<i32>>) -> Vec<i32> {
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    found
}

/// Returns the name of the first descendant that does more than start another program.
fn waited_for(below: &[i32]) -> Option<String> {
    let names =
        || below.iter().filter_map(|pid| table::read_text(pid, "comm").ok()).map(|name| name.trim_end().to_owned());
    let is_between = |name: &str| BETWEEN.contains(&name) || name.starts_with(TRANSPORT);
    let other = names().find(|name| !is_between(name));
    other.or_else(|| names().find(|name| name != "git"))
}
