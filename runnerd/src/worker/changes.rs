//! What a person asks of a run's files: queued durably, acknowledged, and committed before the next session.
//!
//! Each request is one commit with `Runner-Human`, upon the tip of the run's branch. What it makes of the files is
//! `runner_core::change`'s; here is when it is done, and that it is done once.

use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use protocol::reply::ChangeReply;
use protocol::view::StopReason;
use runner_core::change::{self, Change, Changed, Refusal};
use runner_core::digest::sha256_hex;
use runner_core::{message, notes, tree};
use tokio::task::block_in_place;

use super::ChangeOrder;
use super::begin::BeginError;
use super::claim::Claim;
use super::desk::{Desk, reason};
use super::ground::{Ground, Made, documents_of_head};
use super::requests::held_error;
use super::setting;
use super::site::{Obstacle, Site};
use crate::causes::in_one_line;
use crate::git::Id;
use crate::store::{Queued, StoreError};
use runner_core::run::{Request, RunRecord};

/// Most requests of a repository that wait.
const MAX_WAITING: usize = 100;
/// Most bytes of their texts, beyond which no other is taken: with one more, the file can still be read.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// How a request ended.
struct Ended {
    number: u64,
    how: Result<(Id, Changed), Refusal>,
}

impl Desk {
    /// Takes a request: it is durable before it is acknowledged, and committed at once where no session runs.
    pub(super) fn take_change(&mut self, order: ChangeOrder) -> Result<ChangeReply, ErrorData> {
        if let Some(held) = &self.held {
            return Err(held_error(held));
        }
        let run = self.find(order.run.as_deref())?.clone();
        block_in_place(|| self.take_for(&run, order))
    }

    fn take_for(&mut self, run: &RunRecord, order: ChangeOrder) -> Result<ChangeReply, ErrorData> {
        self.ask(&run.id, Request::Change(order.change.subject()))?;
        if self.changes.queue.len() >= MAX_WAITING {
            let message = format!("{MAX_WAITING} requests wait for the session to end");
            return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl pause --now"));
        }
        if self.changes.bytes() > MAX_BYTES {
            let message = "the requests that wait for the session to end are too large for another one";
            return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl pause --now"));
        }
        let ground = Ground::of(&self.store, run).map_err(|error| told(&error))?;
        let (change, tried) = self.try_change(run, ground.as_ref(), order)?;
        if let Some(ground) = ground.as_ref().filter(|_| self.is_at_rest()) {
            ground.refuse_uncommitted(&tried).map_err(|error| told(&error))?;
        }
        let number = self.changes.next;
        let mut changes = self.changes.clone();
        changes.next += 1;
        changes.queue.push(Queued { number, run: run.id.clone(), change: change.clone(), from: None });
        self.keep_changes(changes).map_err(|error| told(&error.into()))?;
        if let Some(digest) = setting::confirms(&change, &self.file.confirmed) {
            self.confirm(digest)?;
        }
        self.acknowledge(run, number, (&change, tried))
    }

    /// Tries a request upon what is committed and what waits before it; returns it as it is to be queued.
    fn try_change(
        &self,
        run: &RunRecord,
        ground: Option<&Ground>,
        order: ChangeOrder,
    ) -> Result<(Change, Changed), ErrorData> {
        let mut documents = match ground {
            Some(ground) => ground.documents(),
            None if order.change.may_precede_the_run() => documents_of_head(run),
            None => {
                let message = format!("run {} has not begun: there is no branch runner/{} yet", run.id, run.id);
                return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl status"));
            }
        };
        let opened = documents.tree.clone();
        for waiting in self.changes.queue.iter().filter(|waiting| waiting.run == run.id) {
            if let Ok(changed) = waiting.change.apply(&documents) {
                documents = changed.documents;
            }
        }
        let change = match order.change {
            Change::Note { text, .. } => Change::Note { id: notes::next_id(&documents.notes), text },
            Change::Edit { edited, .. } => {
                let base = tree::canonical(&opened);
                if order.opened.is_some_and(|digest| digest != sha256_hex(base.as_bytes())) {
                    let message = "the task tree has changed since it was opened";
                    return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl edit"));
                }
                Change::Edit { base, edited }
            }
            Change::Config { key, value, .. } => setting::change(&documents.config, key, value.as_deref())?,
            Change::Accept { files } => {
                let files = change::to_accept(&documents.guarded, files.keys());
                Change::Accept { files: files.map_err(|refusal| refused(&refusal))? }
            }
            other => other,
        };
        let change = self.without_secrets(change).map_err(|error| told(&error.into()))?;
        let tried = change.apply(&documents).map_err(|refusal| refused(&refusal))?;
        Ok((change, tried))
    }

    /// Commits what waits where that can be done now, and says what became of one request.
    fn acknowledge(
        &mut self,
        run: &RunRecord,
        number: u64,
        (change, tried): (&Change, Changed),
    ) -> Result<ChangeReply, ErrorData> {
        let (mut ended, waits_for) = self.commit_at_rest();
        let own = ended.iter().position(|ended| ended.number == number).map(|at| ended.swap_remove(at).how);
        let (commit, changed) = match own {
            Some(Err(refusal)) => return Err(refused(&refusal)),
            Some(Ok((commit, changed))) => (Some(commit.to_string()), Some(changed)),
            None => (None, None),
        };
        // A session may give away the id of a node meanwhile, but not that of a note or a question.
        let is_certain = changed.is_some() || !matches!(change, Change::Add(_));
        let changed = changed.unwrap_or(tried);
        let run = self.run(&run.id).map_or_else(|| super::snapshot::summary(run), |run| self.summary(run));
        Ok(ChangeReply {
            run,
            command: change.command().to_owned(),
            id: changed.id.filter(|_| is_certain),
            summary: changed.summary,
            pending: commit.is_none(),
            waits_for: waits_for.filter(|_| commit.is_none()),
            commit,
        })
    }

    /// Whether no session runs, and none has left something that was not looked at.
    fn is_at_rest(&self) -> bool {
        self.live.is_none() && self.unfinished.is_none()
    }

    /// Commits what waits if no session runs; what cannot be committed now waits on, and why is returned.
    fn commit_at_rest(&mut self) -> (Vec<Ended>, Option<String>) {
        if self.held.is_some() || self.changes.queue.is_empty() {
            return (Vec::new(), None);
        }
        if !self.is_at_rest() {
            return (Vec::new(), Some("a session is at work".to_owned()));
        }
        let _claim = match Claim::take(self.file.common_dir.as_path()) {
            Ok(claim) => claim,
            Err(taken) => return (Vec::new(), Some(taken.to_string())),
        };
        let mut ended = Vec::new();
        let committed = self.commit_waiting(&mut ended);
        if !ended.is_empty() {
            self.view = None;
            self.show();
        }
        let waits_for = match &committed {
            Ok(()) if self.changes.queue.is_empty() => None,
            Ok(()) => Some("the run has not begun".to_owned()),
            Err(error) => {
                tracing::warn!(repo = self.file.id, error = in_one_line(error), "a person's request waits");
                Some(in_one_line(error))
            }
        };
        (ended, waits_for)
    }

    /// Commits what waits, if no session runs; what cannot be committed is tried again before the next one.
    pub(super) fn commit_changes_at_rest(&mut self) {
        if !self.changes.queue.is_empty() {
            block_in_place(|| drop(self.commit_at_rest()));
        }
    }

    /// Commits what waits, by whoever drives, between two sessions.
    pub(super) fn commit_changes(&mut self) -> Result<(), BeginError> {
        if self.changes.queue.is_empty() {
            return Ok(());
        }
        block_in_place(|| self.commit_waiting(&mut Vec::new()))
    }

    fn commit_waiting(&mut self, ended: &mut Vec<Ended>) -> Result<(), BeginError> {
        let numbers: Vec<u64> = self.changes.queue.iter().map(|waiting| waiting.number).collect();
        for number in numbers {
            let Some(waiting) = self.changes.queue.iter().find(|waiting| waiting.number == number) else { continue };
            ended.extend(self.commit_one(&waiting.clone())?);
        }
        Ok(())
    }

    /// Makes the commit of one request, unless it is made; nothing where its run has not begun.
    fn commit_one(&mut self, waiting: &Queued) -> Result<Option<Ended>, BeginError> {
        let Some(run) = self.run(&waiting.run).cloned() else {
            let gone = Refusal::NotFound(format!("run {} is not listed any more", waiting.run));
            return self.give_up(waiting, gone).map(Some);
        };
        let Some(ground) = Ground::of(&self.store, &run)? else { return Ok(None) };
        if let Some(made) = ground.made(waiting)? {
            return self.conclude(waiting, &ground, made).map(Some);
        }
        self.keep_from(waiting.number, ground.loaded.commit)?;
        let before = ground.documents();
        let changed = match waiting.change.apply(&before) {
            Ok(changed) => changed,
            Err(refusal) => return self.give_up(waiting, refusal).map(Some),
        };
        ground.refuse_uncommitted(&changed)?;
        let commit = ground.commit(&run.id, &waiting.change, &changed)?;
        self.conclude(waiting, &ground, Made { commit, before, changed }).map(Some)
    }

    /// Keeps the commit upon which a request is done, before it is.
    fn keep_from(&mut self, number: u64, from: Id) -> Result<(), BeginError> {
        let mut changes = self.changes.clone();
        for waiting in changes.queue.iter_mut().filter(|waiting| waiting.number == number) {
            waiting.from = Some(from.to_string());
        }
        Ok(self.keep_changes(changes)?)
    }

    /// Takes a request out of the queue whose commit is made, and tells of it.
    fn conclude(&mut self, waiting: &Queued, ground: &Ground, made: Made) -> Result<Ended, BeginError> {
        ground.lay_out(&made)?;
        let Made { commit, before, changed } = made;
        self.forget(waiting.number)?;
        let subject = message::compose_human(&waiting.run, waiting.change.command(), "");
        let subject = subject.lines().next().unwrap_or_default().to_owned();
        self.tell(&waiting.run, None, EventKind::Commit { commit: commit.to_string(), subject });
        let (leaves_passed, leaves_total) = changed.documents.tree.root.leaves();
        if changed.documents.tree != before.tree {
            self.tell(&waiting.run, None, EventKind::Tree { leaves_passed, leaves_total });
        }
        Ok(Ended { number: waiting.number, how: Ok((commit, changed)) })
    }

    /// Takes a request out of the queue that has become impossible; its text is kept and its end is told.
    fn give_up(&mut self, waiting: &Queued, refusal: Refusal) -> Result<Ended, BeginError> {
        let (end, text) = match &waiting.change {
            Change::Note { text, .. } | Change::Answer { text, .. } => ("md", text.clone()),
            Change::Edit { edited, .. } => ("json", edited.clone()),
            Change::Retry { node } => ("txt", node.clone()),
            Change::Accept { files } => ("json", runner_core::json::canonical(files)),
            Change::Add(addition) => ("json", runner_core::json::canonical(addition)),
            Change::Config { text, .. } => ("toml", text.clone()),
        };
        let command = waiting.change.command().replace(' ', "-");
        let kept = self.store.keep_refused(&format!("{}-{command}.{end}", waiting.number), &text)?;
        self.forget(waiting.number)?;
        let message = format!("`{command}` could not be done: {refusal}; what it said is in {}", kept.display());
        tracing::warn!(repo = self.file.id, run = waiting.run, message, "a person's request was given up");
        self.tell(&waiting.run, None, EventKind::Warning { message });
        Ok(Ended { number: waiting.number, how: Err(refusal) })
    }

    fn forget(&mut self, number: u64) -> Result<(), StoreError> {
        let mut changes = self.changes.clone();
        changes.queue.retain(|waiting| waiting.number != number);
        self.keep_changes(changes)
    }

    fn keep_changes(&mut self, changes: crate::store::Changes) -> Result<(), StoreError> {
        self.store.save_changes(&changes)?;
        self.changes = changes;
        self.show();
        Ok(())
    }

    /// Takes the secrets that are known out of what gets into the repository.
    fn without_secrets(&self, change: Change) -> Result<Change, StoreError> {
        let secrets = Site::secrets_in(&self.store.load_env()?);
        let clean = |text: String| secrets.redact(&text).into_owned();
        Ok(match change {
            Change::Note { id, text } => Change::Note { id, text: clean(text) },
            Change::Answer { question, text } => Change::Answer { question, text: clean(text) },
            Change::Edit { base, edited } => Change::Edit { base, edited: clean(edited) },
            Change::Add(mut addition) => {
                addition.title = clean(addition.title);
                addition.goal = clean(addition.goal);
                addition.acceptance = addition.acceptance.into_iter().map(clean).collect();
                Change::Add(addition)
            }
            Change::Config { key, value, base, text } => {
                Change::Config { key, value: value.map(clean), base, text: clean(text) }
            }
            unchanged @ (Change::Retry { .. } | Change::Accept { .. }) => unchanged,
        })
    }
}

impl From<StoreError> for BeginError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Disk(error) => error.into(),
            error => {
                Self::Hold(reason(in_one_line(&error), "put that file back or take it away, and: runnerctl resume"))
            }
        }
    }
}

pub(super) fn told(error: &BeginError) -> ErrorData {
    match error {
        BeginError::Hold(StopReason { message, command }) => {
            let error = ErrorData::new(ErrorKind::Held, message.clone());
            command.iter().fold(error, |error, command| error.hint(command.clone()))
        }
        BeginError::Obstacle(obstacle) => fault(obstacle),
    }
}

fn fault(obstacle: &Obstacle) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, obstacle.to_string()).caused_by(obstacle)
}

fn refused(refusal: &Refusal) -> ErrorData {
    let kind = match refusal {
        Refusal::NotFound(_) => ErrorKind::NotFound,
        Refusal::Invalid(_) => ErrorKind::InvalidRequest,
        Refusal::Rule(_) | Refusal::Conflict(_) => ErrorKind::WrongState,
    };
    ErrorData::new(kind, refusal.to_string())
}
