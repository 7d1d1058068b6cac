//! Loses power at every write of two iterations, and again while that is recovered: the real store, the real journal and
//! the real loop of an iteration on a simulated disk, with a scripted session, and git as the order of its writes.
//!
//! `STATES` is how many states are looked at for one crash, `SEED` with which numbers they are picked.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nix::errno::Errno;
use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::path::WirePath;
use protocol::words::RunStatus;
use runner_core::digest::sha256_hex;
use runner_core::iteration::{Event, GuardHow, Outcome, Over, Phase};
use runner_core::obstacle::{Nature, Obstruction};
use runner_core::policy::Policy;
use runner_core::verdict::{SessionHow, StopCause, Task};
use runner_testkit::Random;
use tokio_util::sync::CancellationToken;

use super::drive::{Drive, Drove};
use super::journal::{self, JournalError};
use super::log::{Entries, JournalLog};
use super::obstruction::{nature, obstruction};
use super::simulation;
use super::world::{Control, Log, World};
use crate::guard;
use crate::repo::disk::Disk as _;
use crate::repo::durable::{self, Access};
use crate::repo::simulated_disk::{Crash, Failure, Fault, Flaws, SimulatedDisk, until_crash};
use crate::store::{RepoFile, RunRecord, Store, StoreError};

/// Iterations of the run.
const ITERATIONS: u32 = 2;
/// Tries of a write that a faulty disk refuses.
const TRIES: u32 = 10;
const CRASHES: [Crash; 3] = [Crash::Kill, Crash::Ordered, Crash::Unordered];

/// What a program that looks almost right would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Mistakes {
    disk: Flaws,
    /// The branch moves before the objects are flushed.
    ref_before_objects: bool,
    /// The session's files are not flushed before they are committed.
    unflushed_work: bool,
    /// A branch that has the commit already is taken for flushed.
    trusts_ref: bool,
}

/// What was said or done outside of the machine, and cannot be taken back.
#[derive(Debug, Clone, Default)]
struct Outside {
    is_queued: bool,
    is_completed: bool,
    sessions: u32,
    commits: BTreeMap<u32, String>,
    /// Work of sessions that were inspected.
    work: Vec<String>,
}

type Shared = Arc<Mutex<Outside>>;

fn lock(outside: &Shared) -> MutexGuard<'_, Outside> {
    outside.lock().unwrap()
}

/// The machine: its disk, and what the world knows of it.
#[derive(Debug, Clone)]
struct Machine {
    disk: SimulatedDisk,
    outside: Shared,
    mistakes: Mistakes,
}

const WORK: &str = "/work/log.txt";
const STATE: &str = "/work/state.json";
const BRANCH: &str = "/git/heads/r";

impl Machine {
    fn new(mistakes: Mistakes) -> Self {
        let machine = Self { disk: SimulatedDisk::default(), outside: Shared::default(), mistakes };
        for folder in ["/state", "/state/repos", "/work", "/git", "/git/objects", "/git/heads"] {
            durable::on(&machine.disk).create_dir(folder.as_ref(), Access::Private).unwrap();
        }
        machine.disk.set_flaws(mistakes.disk);
        machine
    }

    fn fork(&self) -> Self {
        self.with(self.disk.fork())
    }

    fn with(&self, disk: SimulatedDisk) -> Self {
        let outside = Arc::new(Mutex::new(lock(&self.outside).clone()));
        Self { disk, outside, mistakes: self.mistakes }
    }

    fn store(&self) -> Store<SimulatedDisk> {
        Store::on(self.disk.clone(), "/state".as_ref(), "repo")
    }

    /// One life of the daemon; the error says why it holds the repository.
    fn live(&self) -> Result<(), String> {
        let store = self.store();
        let mut file = self.registered(&store)?;
        if file.runs[0].state == RunStatus::Completed {
            return Ok(());
        }
        change(&store, &mut file, |run| run.state = RunStatus::Running)?;
        let path = store.journal();
        loop {
            let recorded = insist(|| journal::read(&self.disk, &path), JournalError::is_obstacle)?;
            let entries = Entries::default();
            let (phase, log) = match recorded {
                Some(recorded) => insist(
                    || JournalLog::reopen(&store, recorded.clone(), entries.clone()),
                    |error| matches!(error, super::drive::DriveError::Journal(error) if error.is_obstacle()),
                )?,
                None => (Phase::Open, JournalLog::new(&store, "r", entries.clone())),
            };
            match self.drive(phase, log)? {
                Over::Untouched => {
                    change(&store, &mut file, |run| run.state = RunStatus::Completed)?;
                    lock(&self.outside).is_completed = true;
                    let _ = journal::remove(&self.disk, &path);
                    return Ok(());
                }
                Over::Settled { commit, .. } => {
                    let commit = commit.ok_or("an iteration left no commit")?;
                    lock(&self.outside).commits.insert(self.commit(&commit)?.iter, commit);
                    for name in self.disk.list(&store.live()).unwrap_or_default() {
                        let _ = self.disk.remove(&store.live().join(name));
                    }
                    let _ = journal::remove(&self.disk, &path);
                }
            }
        }
    }

    /// Reads the queue, and does what a client asks that has not been answered.
    fn registered(&self, store: &Store<SimulatedDisk>) -> Result<RepoFile, String> {
        let mut file = match insist(|| store.load(), passes)? {
            Some(file) => file,
            None => RepoFile {
                version: RepoFile::VERSION,
                id: "repo".into(),
                common_dir: WirePath(PathBuf::from("/git")),
                path: WirePath(PathBuf::from("/work")),
                confirmed: Vec::new(),
                runs: Vec::new(),
            },
        };
        if file.runs.is_empty() {
            if lock(&self.outside).is_queued {
                return Err("a run that was queued is forgotten".into());
            }
            file.runs.push(queued());
            insist(|| store.create(), passes)?;
            insist(|| store.save(&mut file), passes)?;
            lock(&self.outside).is_queued = true;
        }
        Ok(file)
    }

    fn drive(&self, phase: Phase, log: JournalLog<SimulatedDisk>) -> Result<Over, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let mut world = Scripted { machine: self.clone(), policy: log.header.policy.clone(), held: None, obstacles: 0 };
        let mut log = Kept { log, outside: Arc::clone(&self.outside), session: String::new() };
        let mut control = Nobody;
        let drove = runtime
            .block_on(Drive { world: &mut world, control: &mut control, log: &mut log }.run(phase))
            .map_err(|error| error.to_string())?;
        match (drove, world.held) {
            (_, Some(why)) => Err(why),
            (Drove::Over(end), None) => Ok(end),
            (Drove::Left, None) => Err("it left although nobody asked".into()),
        }
    }

    fn object(&self, id: &str) -> Result<String, String> {
        let bytes = self.disk.read_whole(&object(id)).ok_or_else(|| format!("object {id} is missing"))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if id_of(&text) == id { Ok(text) } else { Err(format!("object {id} is damaged")) }
    }

    fn commit(&self, id: &str) -> Result<Commit, String> {
        let text = self.object(id)?;
        let mut parts = text.split(' ');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (parent, iter, blob) = (next(), next().parse().map_err(|_| "a commit is damaged")?, next());
        Ok(Commit { parent, iter, work: self.object(&blob)? })
    }

    /// Returns the tip of the branch; empty before the first commit.
    fn head(&self) -> Result<String, String> {
        let Some(bytes) = self.disk.read_whole(BRANCH.as_ref()) else { return Ok(String::new()) };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.len() == 40 { Ok(text) } else { Err("the branch is damaged".into()) }
    }

    fn work(&self) -> String {
        String::from_utf8_lossy(&self.disk.read_whole(WORK.as_ref()).unwrap_or_default()).into_owned()
    }

    /// Checks a machine on which a life has come to its end.
    fn check(&self) -> Result<(), String> {
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
        let file = self.store().load().map_err(|error| error.to_string())?.ok_or("the queue is gone")?;
        let names = self.disk.list("/work".as_ref()).unwrap();
        match names.iter().find(|name| durable::is_leftover(name)) {
            Some(left) => Err(format!("{left:?} would be committed")),
            None if file.runs[0].state != RunStatus::Completed => Err("the run is not over".into()),
            None => Ok(()),
        }
    }
}

struct Commit {
    parent: String,
    iter: u32,
    work: String,
}

fn object(id: &str) -> PathBuf {
    Path::new("/git/objects").join(id)
}

fn id_of(text: &str) -> String {
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
    nature(error) == Nature::Passing
}

fn change(
    store: &Store<SimulatedDisk>,
    file: &mut RepoFile,
    change: impl FnOnce(&mut RunRecord),
) -> Result<(), String> {
    change(&mut file.runs[0]);
    insist(|| store.save(file), passes)
}

fn queued() -> RunRecord {
    RunRecord {
        id: "r".into(),
        path: WirePath(PathBuf::from("/work")),
        state: RunStatus::Queued,
        reason: None,
        queued_at: jiff::Timestamp::UNIX_EPOCH,
        ended_at: None,
        beginning: None,
        resume: None,
        asked: None,
        wait: None,
        outages: Vec::new(),
        followed: None,
    }
}

/// The effects, each the writes of the real one in their order.
struct Scripted {
    machine: Machine,
    policy: Policy,
    held: Option<String>,
    obstacles: u32,
}

impl World for Scripted {
    async fn perform(&mut self, phase: &Phase, _: &CancellationToken) -> Event {
        match self.effect(phase) {
            Ok(event) => event,
            Err(Trouble::Obstacle(error)) if self.obstacles < TRIES => {
                self.obstacles += 1;
                Event::Obstructed(Obstruction { nature: Nature::Passing, ..obstruction(&error) })
            }
            Err(Trouble::Obstacle(_)) => panic_out(),
            Err(Trouble::Hold(why)) => {
                self.held = Some(why);
                panic_out()
            }
        }
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }
}

/// Ends a life in which the repository is damaged: nothing leads out of a phase but its event.
fn panic_out() -> ! {
    std::panic::resume_unwind(Box::new(Damaged))
}

struct Damaged;

enum Trouble {
    Obstacle(io::Error),
    Hold(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Obstacle(error)
    }
}

impl From<durable::DurableError> for Trouble {
    fn from(error: durable::DurableError) -> Self {
        Self::Obstacle(io::Error::other(error))
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Hold(why)
    }
}

impl Scripted {
    fn effect(&mut self, phase: &Phase) -> Result<Event, Trouble> {
        let machine = &self.machine;
        match phase {
            Phase::Open => self.open(),
            Phase::Brief { .. } => Ok(Event::Briefed),
            Phase::Work { stop, .. } => {
                let how = match stop {
                    Some(_) => SessionHow::Cut,
                    None => self.work()?,
                };
                Ok(Event::SessionEnded(simulation::session(how)))
            }
            Phase::Inspect { task, .. } => {
                if !machine.mistakes.unflushed_work {
                    machine.disk.sync_all("/work".as_ref())?;
                }
                self.keep(&format!("r-{:04}-tree", task.iter), "the tree")?;
                Ok(Event::Inspected(simulation::finding(false)))
            }
            Phase::Guard { .. } => Ok(Event::GuardEnded(guard::end(GuardHow::Exited(0)))),
            Phase::Settle { outcome } => self.settle(outcome),
            Phase::Review { .. } | Phase::Over { .. } => unreachable!("nobody reviews"),
        }
    }

    fn open(&mut self) -> Result<Event, Trouble> {
        let head = self.machine.head()?;
        let (done, committed) = match head.as_str() {
            "" => (0, String::new()),
            head => {
                let commit = self.machine.commit(head)?;
                (commit.iter, commit.work)
            }
        };
        if self.machine.work() != committed {
            return Err(Trouble::Hold("the work tree has changes that are not committed".into()));
        }
        if done == ITERATIONS {
            return Ok(Event::Declined);
        }
        Ok(Event::Opened(Task { iter: done + 1, from: head, run: "r".into(), ..simulation::task() }))
    }

    /// The session: one more line, which it does not flush.
    fn work(&self) -> io::Result<SessionHow> {
        let number = {
            let mut outside = lock(&self.machine.outside);
            outside.sessions += 1;
            outside.sessions
        };
        let text = format!("{}<session {number}>", self.machine.work());
        self.machine.disk.write_plainly(WORK.as_ref(), text.as_bytes())?;
        let summary = format!("session {number}");
        Ok(SessionHow::Answered(AgentAnswer { status: AnswerStatus::Done, summary, children: None }))
    }

    /// Returns what was kept for an effect that is done again, keeping it the first time.
    fn keep(&self, name: &str, text: &str) -> Result<String, Trouble> {
        let path = self.machine.store().live().join(name);
        let disk = durable::on(&self.machine.disk);
        if let Some(kept) = disk.read(&path)? {
            return Ok(String::from_utf8_lossy(&kept).into_owned());
        }
        disk.replace(&path, text.as_bytes(), Access::Private)?;
        Ok(text.to_owned())
    }

    fn settle(&self, outcome: &Outcome) -> Result<Event, Trouble> {
        let (machine, iter) = (&self.machine, outcome.work.task.iter);
        let head = machine.head()?;
        let upon = self.keep(&format!("r-{iter:04}-upon"), &head)?;
        let commit = if head == upon {
            durable::on(&machine.disk).remove_leftovers("/work".as_ref())?;
            durable::on(&machine.disk).replace(STATE.as_ref(), format!("{iter}").as_bytes(), Access::Repository)?;
            if !machine.mistakes.unflushed_work {
                machine.disk.sync_all("/work".as_ref())?;
            }
            self.commit(&head, iter)?
        } else {
            if !machine.mistakes.trusts_ref {
                self.flush_branch()?;
            }
            head
        };
        Ok(Event::Settled { commit: Some(commit) })
    }

    fn commit(&self, head: &str, iter: u32) -> Result<String, Trouble> {
        let blob = self.machine.work();
        let commit = format!("{head} {iter} {}", id_of(&blob));
        let ids = [id_of(&blob), id_of(&commit)];
        for text in [&blob, &commit] {
            self.write_object(text)?;
        }
        if !self.machine.mistakes.ref_before_objects {
            self.flush_objects(&ids)?;
        }
        let disk = &self.machine.disk;
        durable::on(disk).replace(BRANCH.as_ref(), ids[1].as_bytes(), Access::Private)?;
        if self.machine.mistakes.ref_before_objects {
            self.flush_objects(&ids)?;
        }
        Ok(ids[1].clone())
    }

    /// Writes an object as the library does: not flushed, and not at all where there is one that is whole.
    fn write_object(&self, text: &str) -> io::Result<()> {
        use std::io::Write as _;
        let id = id_of(text);
        if self.machine.object(&id).is_ok() {
            return Ok(());
        }
        let disk = &self.machine.disk;
        let (mut file, temporary) = disk.create_temporary("/git/objects".as_ref(), "tmp".as_ref())?;
        file.write_all(text.as_bytes())?;
        disk.rename(&temporary, &object(&id))
    }

    /// Flushes objects; one that cannot be is written anew.
    fn flush_objects(&self, ids: &[String]) -> Result<(), Trouble> {
        use crate::repo::disk::{DiskFile as _, How};
        let disk = &self.machine.disk;
        for id in ids {
            if disk.open(&object(id), How::Append)?.sync().is_err() {
                let text = self.machine.object(id)?;
                durable::on(disk).replace(&object(id), text.as_bytes(), Access::Private)?;
            }
        }
        Ok(disk.sync_folder("/git/objects".as_ref())?)
    }

    fn flush_branch(&self) -> io::Result<()> {
        self.machine.disk.sync_folder("/git/heads".as_ref())
    }
}

/// The real journal; what it keeps of an inspection is a promise.
struct Kept {
    log: JournalLog<SimulatedDisk>,
    outside: Shared,
    session: String,
}

impl Log for Kept {
    fn record(&mut self, event: &Event, policy: &Policy) -> Result<(), JournalError> {
        if let Event::SessionEnded(end) = event
            && let SessionHow::Answered(answer) = &end.how
        {
            self.session = format!("<{}>", answer.summary);
        }
        self.log.keep(event, policy)?;
        if matches!(event, Event::Inspected(_)) && !self.session.is_empty() {
            lock(&self.outside).work.push(std::mem::take(&mut self.session));
        }
        Ok(())
    }
}

/// Nobody steers.
struct Nobody;

impl Control for Nobody {
    async fn stop(&mut self) -> StopCause {
        std::future::pending().await
    }

    fn is_leaving(&self) -> bool {
        false
    }

    fn entered(&mut self, _: &Phase) {}

    fn obstructed(&mut self, _: &Obstruction) {}

    async fn wait(&mut self, _: Duration) -> Option<StopCause> {
        None
    }
}

/// What an enumeration has seen.
#[derive(Debug, Default)]
struct Seen {
    states: u64,
    violations: u64,
    /// The first of them, with what makes it come again.
    first: Option<String>,
}

impl Seen {
    /// Lets a machine come to its end and checks it; returns how many writes that took.
    fn recover(&mut self, machine: &Machine, how: &dyn Fn() -> String) -> u64 {
        self.states += 1;
        machine.disk.crash_at(None);
        let ended = caught(|| machine.live());
        let writes = machine.disk.writes();
        let ended = ended.and_then(|()| machine.check());
        if let Err(why) = ended {
            self.violations += 1;
            self.first.get_or_insert_with(|| format!("{why}; {}", how()));
        }
        writes
    }
}

/// Runs a life that may end because of damage.
fn caught(live: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(live)) {
        Ok(ended) => ended,
        Err(cause) if cause.is::<Damaged>() => Err("the repository is damaged or held".into()),
        Err(cause) => std::panic::resume_unwind(cause),
    }
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Crashes at every write, looks at what may be found, and crashes once more in each recovery.
///
/// With a mistake it ends at the first violation, unless `STATES` is given.
fn enumerate(mistakes: Mistakes, states: u64) -> Seen {
    let is_whole = mistakes == Mistakes::default() || env::var_os("STATES").is_some();
    let (first_seed, states) = (number("SEED", 1), number("STATES", states));
    let mut seen = Seen::default();
    let begun = Machine::new(mistakes);
    let total = seen.recover(&begun.fork(), &|| "undisturbed".into());
    let mut random = Random::new(first_seed);
    for at in 1..=total {
        if seen.violations > 0 && !is_whole {
            break;
        }
        let crashed = begun.fork();
        crashed.disk.crash_at(Some(at));
        assert!(until_crash(|| crashed.live()).is_none(), "there are {total} writes");
        for crash in CRASHES {
            let how = move || format!("SEED={first_seed} STATES={states}: {crash:?} before write {at}");
            for found in crashed.disk.after(crash, first_seed + at, states) {
                let found = crashed.with(found);
                let left = seen.recover(&found.fork(), &how);
                let again = 1 + random.below(left.max(1));
                let second = found.fork();
                second.disk.crash_at(Some(again));
                if until_crash(|| caught(|| second.live())).is_some() {
                    continue;
                }
                for next in CRASHES {
                    for found in second.disk.after(next, first_seed + again, 2) {
                        let how = || format!("{}, then {next:?} before write {again}", how());
                        seen.recover(&second.with(found), &how);
                    }
                }
            }
        }
    }
    seen
}

/// Notes a figure for whoever looks.
#[expect(clippy::print_stderr, reason = "the harness captures it")]
fn note(figure: &str) {
    eprintln!("{figure}");
}

#[track_caller]
fn assert_none(seen: &Seen) {
    note(&format!("{} states, {} violations", seen.states, seen.violations));
    assert_eq!(seen.first, None);
}

#[track_caller]
fn assert_some(mistakes: Mistakes) {
    let seen = enumerate(mistakes, 3);
    note(&format!("{mistakes:?}: {} states, {} violations", seen.states, seen.violations));
    assert!(seen.violations > 0, "a program with a mistake passes: the model finds nothing");
}

#[test]
fn row_55_whenever_power_is_lost_nothing_that_was_promised_is() {
    assert_none(&enumerate(Mistakes::default(), 3));
}

#[test]
fn files_that_are_not_flushed_are_lost() {
    assert_some(Mistakes { disk: Flaws { no_file_sync: true, ..Flaws::default() }, ..Mistakes::default() });
}

#[test]
fn names_that_are_not_flushed_are_lost() {
    assert_some(Mistakes { disk: Flaws { no_folder_sync: true, ..Flaws::default() }, ..Mistakes::default() });
}

#[test]
fn temporary_file_that_is_used_again_mixes_old_and_new() {
    assert_some(Mistakes { disk: Flaws { fixed_temporary: true, ..Flaws::default() }, ..Mistakes::default() });
}

#[test]
fn branch_that_moves_before_its_objects_are_flushed_points_to_nothing() {
    assert_some(Mistakes { ref_before_objects: true, ..Mistakes::default() });
}

#[test]
fn work_that_is_committed_and_not_flushed_is_taken_for_changed() {
    assert_some(Mistakes { unflushed_work: true, ..Mistakes::default() });
}

#[test]
fn branch_that_a_killed_daemon_has_moved_is_not_flushed() {
    assert_some(Mistakes { trusts_ref: true, ..Mistakes::default() });
}

#[test]
fn whichever_call_the_disk_refuses_the_run_comes_to_the_same_end() {
    let ways = [Errno::ENOSPC, Errno::EIO, Errno::EMFILE].map(Failure::Error).into_iter().chain([Failure::ShortWrite]);
    for (how, count) in ways.flat_map(|how| [(how, 1), (how, 3)]) {
        let mut calls = 0;
        for at in 1.. {
            let machine = Machine::new(Mistakes::default());
            machine.disk.fail(Some(Fault { at, count, how }));
            let how = || format!("{how:?} {count} times from call {at}");
            assert_eq!(caught(|| machine.live()), Ok(()), "{}", how());
            let made = machine.disk.calls();
            machine.disk.fail(None);
            assert_eq!(machine.check(), Ok(()), "{}", how());
            if made < at {
                break;
            }
            // The copy of what could not be flushed is refused too: nobody can tell that it was not.
            let lost = if count > 1 { Vec::new() } else { machine.disk.after(Crash::Unordered, at, 2) };
            for found in lost {
                let found = machine.with(found);
                let ended = caught(|| found.live()).and_then(|()| found.check());
                assert_eq!(ended, Ok(()), "{}, then power is lost", how());
            }
            calls = at;
        }
        note(&format!("{how:?}, {count} in a row: {calls} calls"));
        assert!(calls > 50, "few calls were made to fail");
    }
}
