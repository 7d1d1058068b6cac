//! Requests of people to change a run's files: queued durably, acknowledged, and committed before the next session.
//!
//! Each request is one commit with `Runner-Human` on top of the run's branch. What it changes is decided by
//! `runner_core::files::change`; this module decides when, and ensures that it happens once.

use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use protocol::reply::ChangeReply;
use runner_core::files::change::{self, ChangeRefusal, ChangeRequest, ChangeResult};
use runner_core::files::notes;
use runner_core::message;
use runner_core::run::{self, RunRecord, RunRequest};
use runner_core::text::digest::sha256_hex;
use runner_core::tree;
use runner_git::Id;
use runner_os::error_chain::display_chain;
use tokio::task::block_in_place;

use super::decide::apply_request;
use crate::store::{QueuedChange, RunSettings, StoreError};
use crate::worker::ChangeOrder;
use crate::worker::claim::RepoClaim;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::prepare_error::PrepareError;
use crate::worker::publication::publish_when_idle;
use crate::worker::queue::RepoQueue;
use crate::worker::queue_errors::{held_error_data, unbegun_run_error};
use crate::worker::requests::branch_tip::{BranchTip, CommittedRequest, documents_at_head};
use crate::worker::requests::config_change;

/// Maximum number of pending requests of a repository.
const MAX_QUEUED: usize = 100;
/// Size limit in bytes of their texts; at the limit no more are accepted, which keeps the file small enough to read.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The result of a request.
struct ChangeEnd {
    number: u64,
    result: Result<(Id, ChangeResult), ChangeRefusal>,
}

/// Accepts a request: it is durable before it is acknowledged, and committed at once if no session runs.
pub(crate) fn take_change(queue: &mut RepoQueue, order: ChangeOrder) -> Result<ChangeReply, ErrorData> {
    if let Some(held) = &queue.held {
        return Err(held_error_data(held));
    }
    let run = queue.resolve_run(order.run.as_deref())?.clone();
    block_in_place(|| queue_change(queue, &run, order))
}

fn queue_change(queue: &mut RepoQueue, run: &RunRecord, order: ChangeOrder) -> Result<ChangeReply, ErrorData> {
    apply_request(queue, &run.id, RunRequest::Change(order.change.subject()))?;
    if queue.changes.queue.len() >= MAX_QUEUED {
        let message = format!("{MAX_QUEUED} requests wait for the session to end");
        return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl pause --now"));
    }
    if queue.changes.queued_bytes() > MAX_BYTES {
        let message = "the requests that wait for the session to end are too large for another one";
        return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl pause --now"));
    }
    let tip = BranchTip::read_tip(&queue.store, run).map_err(|error| error.to_error_data())?;
    let (change, preview) = try_change(queue, run, tip.as_ref(), order)?;
    if let Some(tip) = tip.as_ref().filter(|_| queue.is_idle()) {
        tip.refuse_uncommitted(&preview).map_err(|error| error.to_error_data())?;
    }
    let number = queue.changes.next;
    let mut changes = queue.changes.clone();
    changes.next += 1;
    changes.queue.push(QueuedChange { number, run: run.id.clone(), change: change.clone(), from: None });
    save_changes(queue, changes).map_err(|error| PrepareError::from(error).to_error_data())?;
    if let Some(digest) = config_change::confirmed_digest(&change, &queue.file.confirmed) {
        queue.confirm_commands(digest, None)?;
    }
    acknowledge_change(queue, run, number, &change, preview)
}

/// Applies a request to the committed state and the requests queued before it; returns it as it is to be queued.
fn try_change(
    queue: &RepoQueue,
    run: &RunRecord,
    tip: Option<&BranchTip>,
    order: ChangeOrder,
) -> Result<(ChangeRequest, ChangeResult), ErrorData> {
    let mut documents = match tip {
        Some(ground) => ground.documents(),
        None if order.change.may_precede_run() => documents_at_head(run),
        None => return Err(unbegun_run_error(run)),
    };
    let opened = documents.tree.clone();
    for queued in queue.changes.queue.iter().filter(|waiting| waiting.run == run.id) {
        if let Ok(changed) = queued.change.apply(&documents) {
            documents = changed.documents;
        }
    }
    let change = match order.change {
        ChangeRequest::Note { text, .. } => ChangeRequest::Note { id: notes::next_id(&documents.notes), text },
        ChangeRequest::Edit { edited, .. } => {
            let base = tree::canonical(&opened);
            if order.opened.is_some_and(|digest| digest != sha256_hex(base.as_bytes())) {
                let message = "the task tree has changed since it was opened";
                return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl edit"));
            }
            ChangeRequest::Edit { base, edited }
        }
        ChangeRequest::Config { key, value, .. } => {
            config_change::key_change(&documents.config, key, value.as_deref())?
        }
        ChangeRequest::Settings { text, .. } => {
            config_change::text_change(&documents.config, text, order.opened.as_deref())?
        }
        ChangeRequest::Accept { files } => {
            let files = change::select_files_to_accept(&documents.definition_state, files.keys());
            ChangeRequest::Accept { files: files.map_err(|refusal| refusal_error_data(&refusal))? }
        }
        other => other,
    };
    let change = redact_change(queue, change).map_err(|error| PrepareError::from(error).to_error_data())?;
    let tried = change.apply(&documents).map_err(|refusal| refusal_error_data(&refusal))?;
    Ok((change, tried))
}

/// Commits pending requests if that is possible now, and returns the result of one of them.
fn acknowledge_change(
    queue: &mut RepoQueue,
    run: &RunRecord,
    number: u64,
    change: &ChangeRequest,
    preview: ChangeResult,
) -> Result<ChangeReply, ErrorData> {
    let (mut ended, waits_for) = commit_when_idle(queue);
    publish_when_idle(queue);
    let own_result = ended.iter().position(|ended| ended.number == number).map(|at| ended.swap_remove(at).result);
    let (commit, changed) = match own_result {
        Some(Err(refusal)) => return Err(refusal_error_data(&refusal)),
        Some(Ok((commit, changed))) => (Some(commit.to_string()), Some(changed)),
        None => (None, None),
    };
    // A session may take the id of a node meanwhile, but not that of a note or a question.
    let is_certain = changed.is_some() || !matches!(change, ChangeRequest::Add(_));
    let changed = changed.unwrap_or(preview);
    let run = queue
        .find_run(&run.id)
        .map_or_else(|| crate::worker::view::snapshot::run_summary(run), |run| queue.run_summary(run));
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

/// Commits pending requests if no session runs; also returns why the remaining ones are still waiting.
fn commit_when_idle(queue: &mut RepoQueue) -> (Vec<ChangeEnd>, Option<String>) {
    if queue.held.is_some() || queue.changes.queue.is_empty() {
        return (Vec::new(), None);
    }
    if !queue.is_idle() {
        return (Vec::new(), Some("a session is running".to_owned()));
    }
    let _claim = match RepoClaim::acquire(queue.file.common_dir.as_path()) {
        Ok(claim) => claim,
        Err(taken) => return (Vec::new(), Some(taken.to_string())),
    };
    let mut ended = Vec::new();
    let committed = commit_queued(queue, &mut ended);
    if !ended.is_empty() {
        queue.view = None;
        queue.publish_view();
    }
    let waits_for = match &committed {
        Ok(()) if queue.changes.queue.is_empty() => None,
        Ok(()) => Some("the run has not begun".to_owned()),
        Err(error) => {
            tracing::warn!(repo = queue.file.id, error = display_chain(error), "a person's request is queued");
            Some(display_chain(error))
        }
    };
    (ended, waits_for)
}

/// Commits pending requests if no session runs; what fails is retried before the next session.
pub(crate) fn commit_changes_when_idle(queue: &mut RepoQueue) {
    if !queue.changes.queue.is_empty() {
        block_in_place(|| drop(commit_when_idle(queue)));
    }
}

/// Commits pending requests between two sessions of the run being driven.
pub(crate) fn commit_changes(queue: &mut RepoQueue) -> Result<(), PrepareError> {
    if queue.changes.queue.is_empty() {
        return Ok(());
    }
    block_in_place(|| commit_queued(queue, &mut Vec::new()))
}

fn commit_queued(queue: &mut RepoQueue, ended: &mut Vec<ChangeEnd>) -> Result<(), PrepareError> {
    let numbers: Vec<u64> = queue.changes.queue.iter().map(|waiting| waiting.number).collect();
    for number in numbers {
        let Some(queued) = queue.changes.queue.iter().find(|waiting| waiting.number == number) else { continue };
        ended.extend(commit_request(queue, &queued.clone())?);
    }
    Ok(())
}

/// Commits one request, unless that was done; `None` if its run has not begun.
fn commit_request(queue: &mut RepoQueue, queued: &QueuedChange) -> Result<Option<ChangeEnd>, PrepareError> {
    let Some(run) = queue.find_run(&queued.run).cloned() else {
        let not_listed = ChangeRefusal::NotFound(format!("run {} is not listed any more", queued.run));
        return drop_change(queue, queued, not_listed).map(Some);
    };
    let Some(tip) = BranchTip::read_tip(&queue.store, &run)? else { return Ok(None) };
    if let Some(committed) = tip.find_request_commit(queued)? {
        return finish_change(queue, queued, &tip, committed).map(Some);
    }
    save_base(queue, queued.number, tip.loaded.commit)?;
    let before = tip.documents();
    let changed = match queued.change.apply(&before) {
        Ok(changed) => changed,
        Err(refusal) => return drop_change(queue, queued, refusal).map(Some),
    };
    tip.refuse_uncommitted(&changed)?;
    let commit = tip.commit_change(&run.id, &queued.change, &changed)?;
    finish_change(queue, queued, &tip, CommittedRequest { commit, before, changed }).map(Some)
}

/// Saves the commit that a request is applied to, before committing it.
fn save_base(queue: &mut RepoQueue, number: u64, from: Id) -> Result<(), PrepareError> {
    let mut changes = queue.changes.clone();
    for queued in changes.queue.iter_mut().filter(|waiting| waiting.number == number) {
        queued.from = Some(from.to_string());
    }
    Ok(save_changes(queue, changes)?)
}

/// Removes a committed request from the queue, and publishes its events.
fn finish_change(
    queue: &mut RepoQueue,
    queued: &QueuedChange,
    tip: &BranchTip,
    committed: CommittedRequest,
) -> Result<ChangeEnd, PrepareError> {
    tip.update_work_tree(&committed)?;
    if matches!(queued.change, ChangeRequest::Config { .. } | ChangeRequest::Settings { .. }) {
        remember_settings(queue, &queued.run, &committed.changed.documents.config)?;
    }
    let CommittedRequest { commit, before, changed } = committed;
    remove_queued(queue, queued.number)?;
    refresh_stop_reason(queue, &queued.run, tip)?;
    let subject = message::compose_human(&queued.run, queued.change.command(), "");
    let subject = subject.lines().next().unwrap_or_default().to_owned();
    queue.publish_event(&queued.run, None, EventKind::Commit { commit: commit.to_string(), subject });
    let (leaves_passed, leaves_total) = changed.documents.tree.root.leaves();
    if changed.documents.tree != before.tree {
        queue.publish_event(&queued.run, None, EventKind::Tree { leaves_passed, leaves_total });
    }
    Ok(ChangeEnd { number: queued.number, result: Ok((commit, changed)) })
}

/// Remembers the settings of a run for the next one, if none has begun since.
fn remember_settings(queue: &RepoQueue, run: &str, text: &str) -> Result<(), PrepareError> {
    let note = queue.store.start_store(queue.file.source.as_ref()).settings_file();
    let is_newest = note.read().map_err(EffectError::from)?.is_some_and(|newest| newest.run == run);
    if is_newest {
        let settings = RunSettings { run: run.to_owned(), text: text.to_owned() };
        note.write(&settings).map_err(EffectError::from)?;
    }
    Ok(())
}

/// Updates the reason why a run has ended, if the request has changed it.
fn refresh_stop_reason(queue: &mut RepoQueue, id: &str, before: &BranchTip) -> Result<(), PrepareError> {
    let Some(run) = queue.find_run(id).filter(|run| run.state.is_over()).cloned() else { return Ok(()) };
    let Some(after) = BranchTip::read_tip(&queue.store, &run)? else { return Ok(()) };
    let before = before.loaded.run_inputs(&run.uncommitted);
    let after = after.loaded.run_inputs(&run.uncommitted);
    let Some(reason) = run::reason_after_change(&before, &after) else { return Ok(()) };
    queue.store_step(RunRecord { reason: Some(reason), ..run.clone() }.into())?;
    Ok(())
}

/// Removes a request that has become impossible; its text is saved and its failure reported.
fn drop_change(
    queue: &mut RepoQueue,
    queued: &QueuedChange,
    refusal: ChangeRefusal,
) -> Result<ChangeEnd, PrepareError> {
    let (end, text) = match &queued.change {
        ChangeRequest::Note { text, .. } | ChangeRequest::Answer { text, .. } => ("md", text.clone()),
        ChangeRequest::Edit { edited, .. } => ("json", edited.clone()),
        ChangeRequest::Retry { node } => ("txt", node.clone()),
        ChangeRequest::Accept { files } => ("json", runner_core::text::json::to_canonical_json(files)),
        ChangeRequest::Add(addition) => ("json", runner_core::text::json::to_canonical_json(addition)),
        ChangeRequest::Config { text, .. } | ChangeRequest::Settings { text, .. } => ("toml", text.clone()),
    };
    let command = queued.change.command().replace(' ', "-");
    let file = queue.store.save_refused_text(&format!("{}-{command}.{end}", queued.number), &text)?;
    remove_queued(queue, queued.number)?;
    let message = format!("`{command}` could not be done: {refusal}; what it said is in {}", file.display());
    tracing::warn!(repo = queue.file.id, run = queued.run, message, "a person's request was dropped");
    queue.publish_event(&queued.run, None, EventKind::Warning { message });
    Ok(ChangeEnd { number: queued.number, result: Err(refusal) })
}

fn remove_queued(queue: &mut RepoQueue, number: u64) -> Result<(), StoreError> {
    let mut changes = queue.changes.clone();
    changes.queue.retain(|waiting| waiting.number != number);
    save_changes(queue, changes)
}

/// Moves what waits for a run to its new id.
pub(crate) fn rename_run(queue: &mut RepoQueue, id: &str, settled: &str) -> Result<(), StoreError> {
    let mut changes = queue.changes.clone();
    for waiting in changes.queue.iter_mut().filter(|waiting| waiting.run == id) {
        settled.clone_into(&mut waiting.run);
    }
    if changes == queue.changes { Ok(()) } else { save_changes(queue, changes) }
}

fn save_changes(queue: &mut RepoQueue, changes: crate::store::ChangeQueue) -> Result<(), StoreError> {
    queue.store.save_changes(&changes)?;
    queue.changes = changes;
    queue.publish_view();
    Ok(())
}

/// Redacts known secrets from what gets into the repository.
fn redact_change(queue: &RepoQueue, change: ChangeRequest) -> Result<ChangeRequest, StoreError> {
    let secrets = RunContext::find_secrets(&queue.store.load_env()?);
    let redact = |text: String| secrets.redact(&text).into_owned();
    Ok(match change {
        ChangeRequest::Note { id, text } => ChangeRequest::Note { id, text: redact(text) },
        ChangeRequest::Answer { question, text } => ChangeRequest::Answer { question, text: redact(text) },
        ChangeRequest::Edit { base, edited } => ChangeRequest::Edit { base, edited: redact(edited) },
        ChangeRequest::Add(mut addition) => {
            addition.title = redact(addition.title);
            addition.goal = redact(addition.goal);
            addition.acceptance = addition.acceptance.into_iter().map(redact).collect();
            ChangeRequest::Add(addition)
        }
        ChangeRequest::Config { key, value, base, text } => {
            ChangeRequest::Config { key, value: value.map(redact), base, text: redact(text) }
        }
        ChangeRequest::Settings { keys, base, text } => ChangeRequest::Settings { keys, base, text: redact(text) },
        unchanged @ (ChangeRequest::Retry { .. } | ChangeRequest::Accept { .. }) => unchanged,
    })
}

fn refusal_error_data(refusal: &ChangeRefusal) -> ErrorData {
    let kind = match refusal {
        ChangeRefusal::NotFound(_) => ErrorKind::NotFound,
        ChangeRefusal::Invalid(_) => ErrorKind::InvalidRequest,
        ChangeRefusal::Rule(_) | ChangeRefusal::Conflict(_) => ErrorKind::WrongState,
    };
    ErrorData::new(kind, refusal.to_string())
}
