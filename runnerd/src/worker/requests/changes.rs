//! What a person asks of a run's files: queued durably, acknowledged, and committed before the next session.
//!
//! Each request is one commit with `Runner-Human`, upon the tip of the run's branch. What it makes of the files is
//! `runner_core::change`'s; here is when it is done, and that it is done once.

use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use protocol::reply::ChangeReply;
use runner_core::change::{self, Change, Changed, Refusal};
use runner_core::digest::sha256_hex;
use runner_core::run::{self, Request, RunRecord};
use runner_core::{message, notes, tree};
use tokio::task::block_in_place;

use super::ask::ask;
use crate::causes::in_one_line;
use crate::git::Id;
use crate::store::{Queued, StoreError};
use crate::worker::ChangeOrder;
use crate::worker::claim::Claim;
use crate::worker::context::RunContext;
use crate::worker::publication::publish_at_rest;
use crate::worker::queue::RepoQueue;
use crate::worker::queue::held_error;
use crate::worker::requests::branch_tip::{BranchTip, Made, documents_of_head};
use crate::worker::requests::setting;
use crate::worker::unready::Unready;

/// Most requests of a repository that wait.
const MAX_WAITING: usize = 100;
/// Most bytes of their texts, beyond which no other is taken: with one more, the file can still be read.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// How a request ended.
struct Ended {
    number: u64,
    how: Result<(Id, Changed), Refusal>,
}

/// Takes a request: it is durable before it is acknowledged, and committed at once where no session runs.
pub(crate) fn take(queue: &mut RepoQueue, order: ChangeOrder) -> Result<ChangeReply, ErrorData> {
    if let Some(held) = &queue.held {
        return Err(held_error(held));
    }
    let run = queue.find(order.run.as_deref())?.clone();
    block_in_place(|| take_for(queue, &run, order))
}

fn take_for(queue: &mut RepoQueue, run: &RunRecord, order: ChangeOrder) -> Result<ChangeReply, ErrorData> {
    ask(queue, &run.id, Request::Change(order.change.subject()))?;
    if queue.changes.queue.len() >= MAX_WAITING {
        let message = format!("{MAX_WAITING} requests wait for the session to end");
        return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl pause --now"));
    }
    if queue.changes.bytes() > MAX_BYTES {
        let message = "the requests that wait for the session to end are too large for another one";
        return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl pause --now"));
    }
    let ground = BranchTip::of(&queue.store, run).map_err(|error| error.told())?;
    let (change, tried) = try_change(queue, run, ground.as_ref(), order)?;
    if let Some(ground) = ground.as_ref().filter(|_| queue.is_at_rest()) {
        ground.refuse_uncommitted(&tried).map_err(|error| error.told())?;
    }
    let number = queue.changes.next;
    let mut changes = queue.changes.clone();
    changes.next += 1;
    changes.queue.push(Queued { number, run: run.id.clone(), change: change.clone(), from: None });
    keep_changes(queue, changes).map_err(|error| Unready::from(error).told())?;
    if let Some(digest) = setting::confirms(&change, &queue.file.confirmed) {
        queue.confirm(digest)?;
    }
    acknowledge(queue, run, number, (&change, tried))
}

/// Tries a request upon what is committed and what waits before it; returns it as it is to be queued.
fn try_change(
    queue: &RepoQueue,
    run: &RunRecord,
    ground: Option<&BranchTip>,
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
    for waiting in queue.changes.queue.iter().filter(|waiting| waiting.run == run.id) {
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
        Change::Settings { text, .. } => setting::edited(&documents.config, (text, order.opened.as_deref()))?,
        Change::Accept { files } => {
            let files = change::to_accept(&documents.guarded, files.keys());
            Change::Accept { files: files.map_err(|refusal| refused(&refusal))? }
        }
        other => other,
    };
    let change = without_secrets(queue, change).map_err(|error| Unready::from(error).told())?;
    let tried = change.apply(&documents).map_err(|refusal| refused(&refusal))?;
    Ok((change, tried))
}

/// Commits what waits where that can be done now, and says what became of one request.
fn acknowledge(
    queue: &mut RepoQueue,
    run: &RunRecord,
    number: u64,
    (change, tried): (&Change, Changed),
) -> Result<ChangeReply, ErrorData> {
    let (mut ended, waits_for) = commit_at_rest(queue);
    publish_at_rest(queue);
    let own = ended.iter().position(|ended| ended.number == number).map(|at| ended.swap_remove(at).how);
    let (commit, changed) = match own {
        Some(Err(refusal)) => return Err(refused(&refusal)),
        Some(Ok((commit, changed))) => (Some(commit.to_string()), Some(changed)),
        None => (None, None),
    };
    // A session may give away the id of a node meanwhile, but not that of a note or a question.
    let is_certain = changed.is_some() || !matches!(change, Change::Add(_));
    let changed = changed.unwrap_or(tried);
    let run = queue.run(&run.id).map_or_else(|| crate::worker::view::snapshot::summary(run), |run| queue.summary(run));
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

/// Commits what waits if no session runs; what cannot be committed now waits on, and why is returned.
fn commit_at_rest(queue: &mut RepoQueue) -> (Vec<Ended>, Option<String>) {
    if queue.held.is_some() || queue.changes.queue.is_empty() {
        return (Vec::new(), None);
    }
    if !queue.is_at_rest() {
        return (Vec::new(), Some("a session is running".to_owned()));
    }
    let _claim = match Claim::take(queue.file.common_dir.as_path()) {
        Ok(claim) => claim,
        Err(taken) => return (Vec::new(), Some(taken.to_string())),
    };
    let mut ended = Vec::new();
    let committed = commit_waiting(queue, &mut ended);
    if !ended.is_empty() {
        queue.view = None;
        queue.show();
    }
    let waits_for = match &committed {
        Ok(()) if queue.changes.queue.is_empty() => None,
        Ok(()) => Some("the run has not begun".to_owned()),
        Err(error) => {
            tracing::warn!(repo = queue.file.id, error = in_one_line(error), "a person's request waits");
            Some(in_one_line(error))
        }
    };
    (ended, waits_for)
}

/// Commits what waits, if no session runs; what cannot be committed is tried again before the next one.
pub(crate) fn commit_changes_at_rest(queue: &mut RepoQueue) {
    if !queue.changes.queue.is_empty() {
        block_in_place(|| drop(commit_at_rest(queue)));
    }
}

/// Commits what waits, by whoever drives, between two sessions.
pub(crate) fn commit_changes(queue: &mut RepoQueue) -> Result<(), Unready> {
    if queue.changes.queue.is_empty() {
        return Ok(());
    }
    block_in_place(|| commit_waiting(queue, &mut Vec::new()))
}

fn commit_waiting(queue: &mut RepoQueue, ended: &mut Vec<Ended>) -> Result<(), Unready> {
    let numbers: Vec<u64> = queue.changes.queue.iter().map(|waiting| waiting.number).collect();
    for number in numbers {
        let Some(waiting) = queue.changes.queue.iter().find(|waiting| waiting.number == number) else { continue };
        ended.extend(commit_one(queue, &waiting.clone())?);
    }
    Ok(())
}

/// Makes the commit of one request, unless it is made; nothing where its run has not begun.
fn commit_one(queue: &mut RepoQueue, waiting: &Queued) -> Result<Option<Ended>, Unready> {
    let Some(run) = queue.run(&waiting.run).cloned() else {
        let gone = Refusal::NotFound(format!("run {} is not listed any more", waiting.run));
        return give_up(queue, waiting, gone).map(Some);
    };
    let Some(ground) = BranchTip::of(&queue.store, &run)? else { return Ok(None) };
    if let Some(made) = ground.made(waiting)? {
        return conclude(queue, waiting, &ground, made).map(Some);
    }
    keep_from(queue, waiting.number, ground.loaded.commit)?;
    let before = ground.documents();
    let changed = match waiting.change.apply(&before) {
        Ok(changed) => changed,
        Err(refusal) => return give_up(queue, waiting, refusal).map(Some),
    };
    ground.refuse_uncommitted(&changed)?;
    let commit = ground.commit(&run.id, &waiting.change, &changed)?;
    conclude(queue, waiting, &ground, Made { commit, before, changed }).map(Some)
}

/// Keeps the commit upon which a request is done, before it is.
fn keep_from(queue: &mut RepoQueue, number: u64, from: Id) -> Result<(), Unready> {
    let mut changes = queue.changes.clone();
    for waiting in changes.queue.iter_mut().filter(|waiting| waiting.number == number) {
        waiting.from = Some(from.to_string());
    }
    Ok(keep_changes(queue, changes)?)
}

/// Takes a request out of the queue whose commit is made, and tells of it.
fn conclude(queue: &mut RepoQueue, waiting: &Queued, ground: &BranchTip, made: Made) -> Result<Ended, Unready> {
    ground.lay_out(&made)?;
    let Made { commit, before, changed } = made;
    forget(queue, waiting.number)?;
    say_again(queue, &waiting.run, ground)?;
    let subject = message::compose_human(&waiting.run, waiting.change.command(), "");
    let subject = subject.lines().next().unwrap_or_default().to_owned();
    queue.tell(&waiting.run, None, EventKind::Commit { commit: commit.to_string(), subject });
    let (leaves_passed, leaves_total) = changed.documents.tree.root.leaves();
    if changed.documents.tree != before.tree {
        queue.tell(&waiting.run, None, EventKind::Tree { leaves_passed, leaves_total });
    }
    Ok(Ended { number: waiting.number, how: Ok((commit, changed)) })
}

/// Says anew why a run has ended, where the request has changed that.
fn say_again(queue: &mut RepoQueue, id: &str, before: &BranchTip) -> Result<(), Unready> {
    let Some(run) = queue.run(id).filter(|run| run.state.is_over()).cloned() else { return Ok(()) };
    let Some(after) = BranchTip::of(&queue.store, &run)? else { return Ok(()) };
    let (before, after) = (before.loaded.standing(&run.uncommitted), after.loaded.standing(&run.uncommitted));
    let Some(reason) = run::reason_after_change(&before, &after) else { return Ok(()) };
    queue.come_to(RunRecord { reason: Some(reason), ..run.clone() }.into())?;
    Ok(())
}

/// Takes a request out of the queue that has become impossible; its text is kept and its end is told.
fn give_up(queue: &mut RepoQueue, waiting: &Queued, refusal: Refusal) -> Result<Ended, Unready> {
    let (end, text) = match &waiting.change {
        Change::Note { text, .. } | Change::Answer { text, .. } => ("md", text.clone()),
        Change::Edit { edited, .. } => ("json", edited.clone()),
        Change::Retry { node } => ("txt", node.clone()),
        Change::Accept { files } => ("json", runner_core::json::canonical(files)),
        Change::Add(addition) => ("json", runner_core::json::canonical(addition)),
        Change::Config { text, .. } | Change::Settings { text, .. } => ("toml", text.clone()),
    };
    let command = waiting.change.command().replace(' ', "-");
    let kept = queue.store.keep_refused(&format!("{}-{command}.{end}", waiting.number), &text)?;
    forget(queue, waiting.number)?;
    let message = format!("`{command}` could not be done: {refusal}; what it said is in {}", kept.display());
    tracing::warn!(repo = queue.file.id, run = waiting.run, message, "a person's request was given up");
    queue.tell(&waiting.run, None, EventKind::Warning { message });
    Ok(Ended { number: waiting.number, how: Err(refusal) })
}

fn forget(queue: &mut RepoQueue, number: u64) -> Result<(), StoreError> {
    let mut changes = queue.changes.clone();
    changes.queue.retain(|waiting| waiting.number != number);
    keep_changes(queue, changes)
}

fn keep_changes(queue: &mut RepoQueue, changes: crate::store::Changes) -> Result<(), StoreError> {
    queue.store.save_changes(&changes)?;
    queue.changes = changes;
    queue.show();
    Ok(())
}

/// Takes the secrets that are known out of what gets into the repository.
fn without_secrets(queue: &RepoQueue, change: Change) -> Result<Change, StoreError> {
    let secrets = RunContext::secrets_in(&queue.store.load_env()?);
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
        Change::Settings { keys, base, text } => Change::Settings { keys, base, text: clean(text) },
        unchanged @ (Change::Retry { .. } | Change::Accept { .. }) => unchanged,
    })
}

fn refused(refusal: &Refusal) -> ErrorData {
    let kind = match refusal {
        Refusal::NotFound(_) => ErrorKind::NotFound,
        Refusal::Invalid(_) => ErrorKind::InvalidRequest,
        Refusal::Rule(_) | Refusal::Conflict(_) => ErrorKind::WrongState,
    };
    ErrorData::new(kind, refusal.to_string())
}
