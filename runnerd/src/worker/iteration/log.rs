//! The journal as the iteration loop sees it: created with the first event that matters.

use std::sync::{Arc, Mutex, PoisonError};

use protocol::answer::SessionUsage;
use protocol::meta::SecretFinding;
use runner_core::iteration::{IterationEvent, Phase, decide};
use runner_core::policy::Policy;
use runner_core::run::usage::ResourceUsage;
use runner_core::verdict::SessionTask;
use runner_os::clock;
use tokio::task::block_in_place;

use crate::repo::disk::{Disk, RealDisk};
use crate::store::RepoStore;
use crate::worker::iteration::drive::DriveError;
use crate::worker::iteration::world::EventLog;
use crate::worker::journal::{
    self, IterationJournal, JournalContents, JournalEntry, JournalError, JournalFile, JournalHeader,
};

/// The events of the live iteration, shared with the effects for the record.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedEntries(Arc<Mutex<Vec<JournalEntry>>>);

impl SharedEntries {
    /// Returns the events so far.
    pub(crate) fn snapshot(&self) -> Vec<JournalEntry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, entries: &[JournalEntry]) {
        entries.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Facts about an iteration's session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionFacts {
    /// Kind and version of the agent.
    pub(crate) agent: String,
    /// What the session consumed.
    pub(crate) usage: SessionUsage,
    /// Usage of the session and of reviewers, with the time of session, guard and review.
    pub(crate) consumed: ResourceUsage,
    /// Whether the iteration ended in a review.
    pub(crate) is_reviewed: bool,
}

/// A journal that is being created or continued.
pub(crate) struct JournalLog<D = RealDisk> {
    file: JournalFile<D>,
    /// Its first line, written with the first event.
    pub(crate) header: JournalHeader,
    journal: Option<IterationJournal<D>>,
    entries: SharedEntries,
}

impl<D: Disk> JournalLog<D> {
    /// Prepares a journal, which is created with the first event that matters.
    pub(crate) fn new(store: &RepoStore<D>, run: &str, entries: SharedEntries) -> Self {
        let nonce = clock::now().as_nanosecond();
        let header = JournalHeader {
            version: journal::VERSION,
            run: run.to_owned(),
            mark: format!("{}-{run}-{nonce:x}", store.id()),
            policy: Policy::default(),
        };
        Self { file: JournalFile::for_store(store), header, journal: None, entries }
    }

    /// Continues the journal of an earlier daemon process: replays it, and appends the event of a restart.
    pub(crate) fn reopen_journal(
        store: &RepoStore<D>,
        recorded: JournalContents,
        entries: SharedEntries,
    ) -> Result<(Phase, Self), DriveError> {
        let file = JournalFile::for_store(store);
        let phase = journal::replay(file.path(), &recorded)?;
        let header = recorded.header.clone();
        let journal = IterationJournal::reopen(&file, recorded)?;
        let mut log = Self { file, header, journal: Some(journal), entries };
        let policy = log.header.policy.clone();
        log.append_event(&IterationEvent::Restarted, &policy)?;
        Ok((decide(&policy, phase, IterationEvent::Restarted)?, log))
    }

    /// Returns the task of the iteration; `None` if it has not been opened.
    pub(crate) fn task(&self) -> Option<SessionTask> {
        self.entries.snapshot().into_iter().find_map(|entry| match entry.event {
            IterationEvent::Opened(task) => Some(task),
            _ => None,
        })
    }

    /// Returns the agent that ran the session, and what the iteration consumed.
    pub(crate) fn session_facts(&self) -> SessionFacts {
        let mut facts = SessionFacts::default();
        for entry in self.entries.snapshot() {
            match entry.event {
                IterationEvent::SessionEnded(end) => {
                    facts.usage = end.usage;
                    facts.consumed = ResourceUsage { usage: (&end.usage).into(), elapsed_ms: end.elapsed_ms };
                    facts.agent = end.agent;
                }
                IterationEvent::GuardEnded(guard) => {
                    facts.consumed.elapsed_ms = facts.consumed.elapsed_ms.saturating_add(guard.elapsed_ms);
                }
                IterationEvent::ReviewEnded(review) => {
                    facts.is_reviewed = true;
                    facts.consumed =
                        facts.consumed.plus(&ResourceUsage { usage: review.usage, elapsed_ms: review.elapsed_ms });
                }
                _ => {}
            }
        }
        facts
    }

    /// Returns which files of the session contain secrets.
    pub(crate) fn found_secrets(&self) -> Vec<SecretFinding> {
        let entries = self.entries.snapshot();
        let inspected = entries.into_iter().rev().find_map(|entry| match entry.event {
            IterationEvent::Inspected(finding) => Some(finding.secrets),
            _ => None,
        });
        inspected.unwrap_or_default()
    }

    /// Returns which references of others the processes moved, as of the last process.
    pub(crate) fn moved_refs(&self) -> Vec<String> {
        let entries = self.entries.snapshot();
        let moved = entries.into_iter().rev().find_map(|entry| match entry.event {
            IterationEvent::Inspected(finding) => Some(finding.moved_refs),
            IterationEvent::GuardEnded(guard) if !guard.moved_refs.is_empty() => Some(guard.moved_refs),
            IterationEvent::ReviewEnded(review) if !review.moved_refs.is_empty() => Some(review.moved_refs),
            _ => None,
        });
        moved.unwrap_or_default()
    }

    /// Records one event; blocks on the disk.
    pub(crate) fn append_event(&mut self, event: &IterationEvent, policy: &Policy) -> Result<(), JournalError> {
        let entry = JournalEntry { at: clock::now(), event: event.clone() };
        match (&mut self.journal, event) {
            // If it is opened again after a restart, the configuration may be different.
            (_, IterationEvent::Opened(_)) => {
                self.header.policy = policy.clone();
                self.journal = Some(IterationJournal::create(&self.file, self.header.clone(), entry)?);
            }
            (Some(journal), _) => journal.append(entry)?,
            (None, _) => return Ok(()),
        }
        if let Some(journal) = &self.journal {
            self.entries.set(&journal.contents().entries);
        }
        Ok(())
    }
}

impl<D: Disk> EventLog for JournalLog<D> {
    fn record_event(&mut self, event: &IterationEvent, policy: &Policy) -> Result<(), JournalError> {
        block_in_place(|| self.append_event(event, policy))
    }
}
