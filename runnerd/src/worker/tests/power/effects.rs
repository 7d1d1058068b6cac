//! The effects of a scripted iteration on the simulated machine: each makes the writes of the real one in the same
//! order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use protocol::answer::{AgentAnswer, AnswerStatus};
use runner_core::iteration::{GuardEnd, GuardEndKind, IterationEvent, IterationOutcome, Phase};
use runner_core::policy::Policy;
use runner_core::run::blocker::{Blocker, Transience};
use runner_core::verdict::{SessionEndKind, SessionTask, StopCause};
use runner_os::retryable::describe_blocker;
use tokio_util::sync::CancellationToken;

use super::machine::{BRANCH, STATE, SharedOutside, SimulatedMachine, WORK, id_of, lock_outside, object_path};
use super::{ITERATIONS, TRIES};
use crate::repo::disk::Disk as _;
use crate::repo::durable::{self, FileAccess};
use crate::repo::simulated_disk::SimulatedDisk;
use crate::worker::iteration::log::JournalLog;
use crate::worker::iteration::world::{DriveControl, EffectWorld, EventLog};
use crate::worker::journal::JournalError;
use crate::worker::simulation;

/// The effects, each making the writes of the real one in the same order.
pub(super) struct ScriptedEffects {
    machine: SimulatedMachine,
    policy: Policy,
    pub(super) held: Option<String>,
    obstacles: u32,
}

impl EffectWorld for ScriptedEffects {
    async fn perform_effect(&mut self, phase: &Phase, _: &CancellationToken) -> IterationEvent {
        match self.effect(phase) {
            Ok(event) => event,
            Err(EffectTrouble::Obstacle(error)) if self.obstacles < TRIES => {
                self.obstacles += 1;
                IterationEvent::Obstructed(Blocker { nature: Transience::Passing, ..describe_blocker(&error) })
            }
            Err(EffectTrouble::Obstacle(_)) => panic_out(),
            Err(EffectTrouble::Hold(why)) => {
                self.held = Some(why);
                panic_out()
            }
        }
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }
}

/// Ends a daemon process whose repository is damaged: only an event leads out of a phase.
fn panic_out() -> ! {
    std::panic::resume_unwind(Box::new(DamagedDisk))
}

struct DamagedDisk;

/// Runs a daemon process that may end because of damage.
pub(super) fn catch_panic(live: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(live)) {
        Ok(ended) => ended,
        Err(cause) if cause.is::<DamagedDisk>() => Err("the repository is damaged or held".into()),
        Err(cause) => std::panic::resume_unwind(cause),
    }
}

enum EffectTrouble {
    Obstacle(io::Error),
    Hold(String),
}

impl From<io::Error> for EffectTrouble {
    fn from(error: io::Error) -> Self {
        Self::Obstacle(error)
    }
}

impl From<durable::DurableError> for EffectTrouble {
    fn from(error: durable::DurableError) -> Self {
        Self::Obstacle(io::Error::other(error))
    }
}

impl From<String> for EffectTrouble {
    fn from(why: String) -> Self {
        Self::Hold(why)
    }
}

impl ScriptedEffects {
    pub(super) fn new(machine: SimulatedMachine, policy: Policy) -> Self {
        Self { machine, policy, held: None, obstacles: 0 }
    }

    fn effect(&mut self, phase: &Phase) -> Result<IterationEvent, EffectTrouble> {
        let machine = &self.machine;
        match phase {
            Phase::Open => self.open(),
            Phase::Brief { .. } => Ok(IterationEvent::Briefed),
            Phase::Work { stop, .. } => {
                let how = match stop {
                    Some(_) => SessionEndKind::Cut,
                    None => self.work()?,
                };
                Ok(IterationEvent::SessionEnded(simulation::sample_session(how)))
            }
            Phase::Inspect { task, .. } => {
                if !machine.mistakes.unflushed_work {
                    machine.disk.sync_all("/tree".as_ref())?;
                }
                self.save_note(&format!("r-{:04}-tree", task.iter), "the tree")?;
                Ok(IterationEvent::Inspected(simulation::sample_finding(false)))
            }
            Phase::Guard { .. } => Ok(IterationEvent::GuardEnded(GuardEnd::new(GuardEndKind::Exited(0)))),
            Phase::Settle { outcome } => self.settle(outcome),
            Phase::Review { .. } | Phase::Over { .. } => unreachable!("nobody reviews"),
        }
    }

    fn open(&mut self) -> Result<IterationEvent, EffectTrouble> {
        let head = self.machine.read_head()?;
        let (done, committed) = match head.as_str() {
            "" => (0, String::new()),
            head => {
                let commit = self.machine.read_commit(head)?;
                (commit.iter, commit.work)
            }
        };
        if self.machine.read_work() != committed {
            return Err(EffectTrouble::Hold("the working tree has changes that are not committed".into()));
        }
        if done == ITERATIONS {
            return Ok(IterationEvent::Declined);
        }
        Ok(IterationEvent::Opened(SessionTask {
            iter: done + 1,
            from: head,
            run: "r".into(),
            ..simulation::sample_task()
        }))
    }

    /// The session: appends a line without flushing it.
    fn work(&self) -> io::Result<SessionEndKind> {
        let number = {
            let mut outside = lock_outside(&self.machine.outside);
            outside.sessions += 1;
            outside.sessions
        };
        let text = format!("{}<session {number}>", self.machine.read_work());
        self.machine.disk.write_plainly(WORK.as_ref(), text.as_bytes())?;
        let summary = format!("session {number}");
        Ok(SessionEndKind::Answered(AgentAnswer { status: AnswerStatus::Done, summary, children: None }))
    }

    /// Returns what was saved for repeating an effect, saving it the first time.
    fn save_note(&self, name: &str, text: &str) -> Result<String, EffectTrouble> {
        let path = self.machine.store().live_dir().join(name);
        let disk = durable::with_disk(&self.machine.disk);
        if let Some(kept) = disk.read(&path)? {
            return Ok(String::from_utf8_lossy(&kept).into_owned());
        }
        disk.replace(&path, text.as_bytes(), FileAccess::Private)?;
        Ok(text.to_owned())
    }

    fn settle(&self, outcome: &IterationOutcome) -> Result<IterationEvent, EffectTrouble> {
        let machine = &self.machine;
        let iter = outcome.work.task.iter;
        let head = machine.read_head()?;
        let parent = self.save_note(&format!("r-{iter:04}-upon"), &head)?;
        let commit = if head == parent {
            durable::with_disk(&machine.disk).remove_leftovers("/tree".as_ref())?;
            durable::with_disk(&machine.disk).replace_unsynced(
                STATE.as_ref(),
                format!("{iter}").as_bytes(),
                FileAccess::Repository,
            )?;
            self.commit(&head, iter)?
        } else {
            if !machine.mistakes.trusts_ref {
                self.flush_branch()?;
            }
            head
        };
        Ok(IterationEvent::Settled { commit: Some(commit) })
    }

    fn commit(&self, head: &str, iter: u32) -> Result<String, EffectTrouble> {
        let blob = self.machine.read_work();
        let commit = format!("{head} {iter} {}", id_of(&blob));
        let ids = [id_of(&blob), id_of(&commit)];
        for text in [&blob, &commit] {
            self.write_object(text)?;
        }
        if !self.machine.mistakes.ref_before_objects {
            self.flush(&ids)?;
        }
        let disk = &self.machine.disk;
        durable::with_disk(disk).replace(BRANCH.as_ref(), ids[1].as_bytes(), FileAccess::Private)?;
        if self.machine.mistakes.ref_before_objects {
            self.flush(&ids)?;
        }
        Ok(ids[1].clone())
    }

    /// Flushes work and objects, which are on one file system; if that fails, each object separately.
    fn flush(&self, ids: &[String]) -> Result<(), EffectTrouble> {
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

    /// Writes an object as the library does: without flushing, and not at all if an intact one exists.
    fn write_object(&self, text: &str) -> io::Result<()> {
        use std::io::Write as _;
        let id = id_of(text);
        if self.machine.read_object(&id).is_ok() {
            return Ok(());
        }
        let disk = &self.machine.disk;
        let (mut file, temporary) = disk.create_temporary("/git/objects".as_ref(), "tmp".as_ref())?;
        file.write_all(text.as_bytes())?;
        disk.rename(&temporary, &object_path(&id))
    }

    /// Flushes objects; rewrites those that cannot be flushed.
    fn flush_objects(&self, ids: &[String]) -> Result<(), EffectTrouble> {
        use crate::repo::disk::{DiskFile as _, OpenMode};
        let disk = &self.machine.disk;
        for id in ids {
            if disk.open(&object_path(id), OpenMode::Append)?.sync().is_err() {
                let text = self.machine.read_object(id)?;
                durable::with_disk(disk).replace(&object_path(id), text.as_bytes(), FileAccess::Private)?;
            }
        }
        Ok(disk.sync_folder("/git/objects".as_ref())?)
    }

    fn flush_branch(&self) -> io::Result<()> {
        self.machine.disk.sync_folder("/git/heads".as_ref())
    }
}

/// The real journal; a recorded inspection is a promise that the work is durable.
pub(super) struct RecordingLog {
    log: JournalLog<SimulatedDisk>,
    outside: SharedOutside,
    session: String,
}

impl RecordingLog {
    pub(super) fn new(log: JournalLog<SimulatedDisk>, outside: &SharedOutside) -> Self {
        Self { log, outside: Arc::clone(outside), session: String::new() }
    }
}

impl EventLog for RecordingLog {
    fn record_event(&mut self, event: &IterationEvent, policy: &Policy) -> Result<(), JournalError> {
        if let IterationEvent::SessionEnded(end) = event
            && let SessionEndKind::Answered(answer) = &end.how
        {
            self.session = format!("<{}>", answer.summary);
        }
        self.log.append_event(event, policy)?;
        if matches!(event, IterationEvent::Inspected(_)) && !self.session.is_empty() {
            lock_outside(&self.outside).work.push(std::mem::take(&mut self.session));
        }
        Ok(())
    }
}

/// Never requests anything.
pub(super) struct NoControl;

impl DriveControl for NoControl {
    async fn wait_for_stop(&mut self) -> StopCause {
        std::future::pending().await
    }

    fn is_shutting_down(&self) -> bool {
        false
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn on_phase_entered(&mut self, _: &Phase) {}

    fn on_blocked(&mut self, _: &Blocker) {}

    async fn wait_for_retry(&mut self, _: Duration) -> Option<StopCause> {
        None
    }
}
