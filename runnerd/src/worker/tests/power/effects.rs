//! The effects of a scripted iteration on the machine of the power cuts: each the writes of the real one in their order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use protocol::answer::{AgentAnswer, AnswerStatus};
use runner_core::iteration::{Event, GuardEnd, GuardHow, Outcome, Phase};
use runner_core::obstacle::{Nature, Obstruction};
use runner_core::policy::Policy;
use runner_core::verdict::{SessionHow, StopCause, Task};
use tokio_util::sync::CancellationToken;

use super::machine::{BRANCH, Machine, STATE, Shared, WORK, id_of, lock, object};
use super::{ITERATIONS, TRIES};
use crate::obstruction::obstruction;
use crate::repo::disk::Disk as _;
use crate::repo::durable::{self, Access};
use crate::repo::simulated_disk::SimulatedDisk;
use crate::worker::iteration::log::JournalLog;
use crate::worker::iteration::world::{Control, Log, World};
use crate::worker::journal::JournalError;
use crate::worker::simulation;

/// The effects, each the writes of the real one in their order.
pub(super) struct Scripted {
    machine: Machine,
    policy: Policy,
    pub(super) held: Option<String>,
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

/// Runs a life that may end because of damage.
pub(super) fn caught(live: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(live)) {
        Ok(ended) => ended,
        Err(cause) if cause.is::<Damaged>() => Err("the repository is damaged or held".into()),
        Err(cause) => std::panic::resume_unwind(cause),
    }
}

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
    pub(super) fn new(machine: Machine, policy: Policy) -> Self {
        Self { machine, policy, held: None, obstacles: 0 }
    }

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
                    machine.disk.sync_all("/tree".as_ref())?;
                }
                self.keep(&format!("r-{:04}-tree", task.iter), "the tree")?;
                Ok(Event::Inspected(simulation::finding(false)))
            }
            Phase::Guard { .. } => Ok(Event::GuardEnded(GuardEnd::new(GuardHow::Exited(0)))),
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
            durable::on(&machine.disk).remove_leftovers("/tree".as_ref())?;
            durable::on(&machine.disk).put(STATE.as_ref(), format!("{iter}").as_bytes(), Access::Repository)?;
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
            self.flush(&ids)?;
        }
        let disk = &self.machine.disk;
        durable::on(disk).replace(BRANCH.as_ref(), ids[1].as_bytes(), Access::Private)?;
        if self.machine.mistakes.ref_before_objects {
            self.flush(&ids)?;
        }
        Ok(ids[1].clone())
    }

    /// Flushes work and objects, which are on one file system; where that fails each object by itself.
    fn flush(&self, ids: &[String]) -> Result<(), Trouble> {
        if self.machine.mistakes.unflushed_work {
            return self.flush_objects(ids);
        }
        let disk = &self.machine.disk;
        let flushed = ["/tree", "/git/objects"].iter().try_for_each(|folder| disk.sync_all(folder.as_ref()));
        if flushed.is_err() {
            self.flush_objects(ids)?;
        }
        Ok(flushed?)
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
pub(super) struct Kept {
    log: JournalLog<SimulatedDisk>,
    outside: Shared,
    session: String,
}

impl Kept {
    pub(super) fn new(log: JournalLog<SimulatedDisk>, outside: &Shared) -> Self {
        Self { log, outside: Arc::clone(outside), session: String::new() }
    }
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
pub(super) struct Nobody;

impl Control for Nobody {
    async fn stop(&mut self) -> StopCause {
        std::future::pending().await
    }

    fn is_leaving(&self) -> bool {
        false
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn entered(&mut self, _: &Phase) {}

    fn obstructed(&mut self, _: &Obstruction) {}

    async fn wait(&mut self, _: Duration) -> Option<StopCause> {
        None
    }
}
