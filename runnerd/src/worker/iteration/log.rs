//! The journal as the loop of an iteration sees it: begun with the first event that matters.

use std::sync::{Arc, Mutex, PoisonError};

use protocol::answer::SessionUsage;
use protocol::meta::SecretSeen;
use runner_core::iteration::{Event, Phase, decide};
use runner_core::policy::Policy;
use runner_core::usage::Spent;
use runner_core::verdict::Task;
use tokio::task::block_in_place;

use crate::clock;
use crate::repo::disk::{Disk, RealDisk};
use crate::store::Store;
use crate::worker::iteration::drive::DriveError;
use crate::worker::iteration::world::Log;
use crate::worker::journal::{self, Entry, Header, Journal, JournalError, Place, Recorded};

/// The events of the live iteration, shared with the world for its record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries(Arc<Mutex<Vec<Entry>>>);

impl Entries {
    /// Returns the events so far.
    pub(crate) fn lock(&self) -> Vec<Entry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, entries: &[Entry]) {
        entries.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What is told of an iteration's session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionFacts {
    /// Kind and version of the agent.
    pub(crate) agent: String,
    /// What the session consumed.
    pub(crate) usage: SessionUsage,
    /// That and what reviewers consumed, with the time of session, guard and review.
    pub(crate) spent: Spent,
    /// Whether a reviewer was asked, whose end is the iteration's.
    pub(crate) is_reviewed: bool,
}

/// A journal that is begun or gone on with.
pub(crate) struct JournalLog<D = RealDisk> {
    place: Place<D>,
    /// Its first line, once it has one.
    pub(crate) header: Header,
    journal: Option<Journal<D>>,
    entries: Entries,
}

impl<D: Disk> JournalLog<D> {
    /// Begins a journal with the first event that matters.
    pub(crate) fn new(store: &Store<D>, run: &str, entries: Entries) -> Self {
        let nonce = clock::now().as_nanosecond();
        let header = Header {
            version: journal::VERSION,
            run: run.to_owned(),
            mark: format!("{}-{run}-{nonce:x}", store.id()),
            policy: Policy::default(),
        };
        Self { place: Place::of(store), header, journal: None, entries }
    }

    /// Goes on with the journal of a previous life: replays it, and tells it that life began anew.
    pub(crate) fn reopen(store: &Store<D>, recorded: Recorded, entries: Entries) -> Result<(Phase, Self), DriveError> {
        let place = Place::of(store);
        let phase = journal::replay(place.path(), &recorded)?;
        let header = recorded.header.clone();
        let journal = Journal::reopen(&place, recorded)?;
        let mut log = Self { place, header, journal: Some(journal), entries };
        let policy = log.header.policy.clone();
        log.keep(&Event::Restarted, &policy)?;
        Ok((decide(&policy, phase, Event::Restarted)?, log))
    }

    /// Returns what the iteration is about.
    pub(crate) fn task(&self) -> Option<Task> {
        self.entries.lock().into_iter().find_map(|entry| match entry.event {
            Event::Opened(task) => Some(task),
            _ => None,
        })
    }

    /// Returns who ran the session, and what the iteration spent.
    pub(crate) fn session_facts(&self) -> SessionFacts {
        let mut facts = SessionFacts::default();
        for entry in self.entries.lock() {
            match entry.event {
                Event::SessionEnded(end) => {
                    facts.usage = end.usage;
                    facts.spent = Spent { usage: (&end.usage).into(), elapsed_ms: end.elapsed_ms };
                    facts.agent = end.agent;
                }
                Event::GuardEnded(guard) => {
                    facts.spent.elapsed_ms = facts.spent.elapsed_ms.saturating_add(guard.elapsed_ms);
                }
                Event::ReviewEnded(review) => {
                    facts.is_reviewed = true;
                    facts.spent = facts.spent.and(&Spent { usage: review.usage, elapsed_ms: review.elapsed_ms });
                }
                _ => {}
            }
        }
        facts
    }

    /// Returns which files of the session hold secrets.
    pub(crate) fn secrets_seen(&self) -> Vec<SecretSeen> {
        let entries = self.entries.lock();
        let inspected = entries.into_iter().rev().find_map(|entry| match entry.event {
            Event::Inspected(finding) => Some(finding.secrets),
            _ => None,
        });
        inspected.unwrap_or_default()
    }

    /// Returns which references of others the processes moved, as they stood after the last of them.
    pub(crate) fn moved_refs(&self) -> Vec<String> {
        let entries = self.entries.lock();
        let looked = entries.into_iter().rev().find_map(|entry| match entry.event {
            Event::Inspected(finding) => Some(finding.moved_refs),
            Event::GuardEnded(guard) if !guard.moved_refs.is_empty() => Some(guard.moved_refs),
            Event::ReviewEnded(review) if !review.moved_refs.is_empty() => Some(review.moved_refs),
            _ => None,
        });
        looked.unwrap_or_default()
    }

    /// Keeps one event; blocks on the disk.
    pub(crate) fn keep(&mut self, event: &Event, policy: &Policy) -> Result<(), JournalError> {
        let entry = Entry { at: clock::now(), event: event.clone() };
        match (&mut self.journal, event) {
            // Opened anew after a restart, the configuration may be another.
            (_, Event::Opened(_)) => {
                self.header.policy = policy.clone();
                self.journal = Some(Journal::begin(&self.place, self.header.clone(), entry)?);
            }
            (Some(journal), _) => journal.append(entry)?,
            (None, _) => return Ok(()),
        }
        if let Some(journal) = &self.journal {
            self.entries.set(&journal.recorded().entries);
        }
        Ok(())
    }
}

impl<D: Disk> Log for JournalLog<D> {
    fn record(&mut self, event: &Event, policy: &Policy) -> Result<(), JournalError> {
        block_in_place(|| self.keep(event, policy))
    }
}
