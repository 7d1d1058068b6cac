//! The record of an iteration under `.runner/iterations/`: for people, not for recovery.
//!
//! Written without flushing: no decision is ever based on it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jiff::Timestamp;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use protocol::meta::{IterationMeta, PhaseTime};
use protocol::words::PhaseName;
use runner_core::iteration::{IterationEvent, IterationOutcome};
use runner_core::text::json;
use runner_core::verdict::SessionTask;
use runner_git::{Id, Repository};

use crate::log_redactor::LogRedactor;
use crate::repo::durable::{self, FileAccess};
use crate::repo::layout::Layout;
use crate::worker::cleanup;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::journal::JournalEntry;

/// Size limit in bytes of a patch in a record.
const MAX_PATCH_BYTES: usize = 1024 * 1024;

/// Begins the record of an iteration; whatever a previous attempt left there is set aside.
pub(crate) fn begin_record(
    context: &RunContext,
    task: &SessionTask,
    tree: &str,
    prompt: Option<&str>,
) -> Result<(), EffectError> {
    let folder = context.layout.iteration(&context.run, task.iter);
    if folder.join("meta.json").exists() {
        move_record(context, task.iter)?;
    } else if folder.exists() {
        cleanup::remove_path(&folder)?;
    }
    create_record_dir(context, &folder)?;
    write_file(context, &folder.join("tree.before.json"), tree.as_bytes())?;
    prompt.map_or(Ok(()), |prompt| write_file(context, &folder.join("prompt.md"), prompt.as_bytes()))
}

/// Creates a folder of records. Removes what an agent has put in the way, such as a link to elsewhere.
pub(crate) fn create_record_dir(context: &RunContext, folder: &Path) -> Result<(), EffectError> {
    let relative = folder.strip_prefix(context.layout.root()).unwrap_or(folder);
    cleanup::clear_path_for_dir(context, relative)?;
    durable::create_dir_below_unsynced(context.layout.root(), relative, FileAccess::Private)?;
    Ok(())
}

/// Appends an event to the list of its run, once the run has records; for people, so errors are only logged.
pub(crate) fn append_event(work_tree: &Path, run: &str, event: &protocol::event::Event, hidden: &LogRedactor) {
    let folder = Layout::new(work_tree).run_records(run);
    let is_folder = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    if !folder.parent().is_some_and(is_folder) || !is_folder(&folder) {
        return;
    }
    let file = folder.join("events.jsonl");
    let Ok(mut line) = serde_json::to_vec(event) else { return };
    line.push(b'\n');
    let opened =
        OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(&file);
    if let Err(error) = opened.and_then(|mut file| file.write_all(&hidden.redact(&line))) {
        tracing::debug!(path = %file.display(), %error, "failed to append an event to the run's list");
    }
}

/// Moves the record of an attempt that left no commit to `<iter>.w<k>`.
pub(crate) fn move_record(context: &RunContext, iter: u32) -> Result<(), EffectError> {
    let folder = context.layout.iteration(&context.run, iter);
    let unused = (1..=u32::MAX)
        .map(|wait| context.layout.waited_iteration(&context.run, iter, wait))
        .find(|path| !path.exists());
    match unused {
        Some(aside) if folder.exists() => {
            std::fs::rename(&folder, &aside).map_err(EffectError::io_error("moving", &folder))
        }
        _ => Ok(()),
    }
}

/// The inputs of a settled iteration's record.
#[derive(Debug)]
pub(crate) struct RecordInput<'a> {
    /// How the iteration ended.
    pub outcome: &'a IterationOutcome,
    /// The events, oldest first.
    pub entries: &'a [JournalEntry],
    /// The prompt; `None` if there was no session.
    pub prompt: Option<&'a str>,
    /// A person's review as JSON.
    pub review_json: Option<String>,
    /// The task tree at From.
    pub tree_before: &'a str,
    /// The task tree as the agent left it; `None` if it was not read.
    pub agent_tree: Option<&'a [u8]>,
    /// The task tree as it was committed.
    pub tree: &'a str,
    /// The iteration's metadata.
    pub meta: &'a IterationMeta,
    /// The iteration's commit, if it has one.
    pub commit: Option<Id>,
}

/// Completes the record.
pub(crate) fn complete_record(
    context: &RunContext,
    repository: &Repository,
    input: &RecordInput<'_>,
) -> Result<(), EffectError> {
    let folder = context.layout.iteration(&context.run, input.outcome.work.task.iter);
    create_record_dir(context, &folder)?;
    // An interrupted session has left its answer unredacted.
    for answer in ["output.json", "review.json"] {
        runner_agents::redact_answer(&folder.join(answer), &context.secrets);
    }
    // The session may have removed the files that the record began with.
    if let Some(prompt) = input.prompt {
        write_file(context, &folder.join("prompt.md"), prompt.as_bytes())?;
    }
    if let Some(word) = &input.review_json {
        write_file(context, &folder.join("review.json"), word.as_bytes())?;
    }
    write_file(context, &folder.join("tree.before.json"), input.tree_before.as_bytes())?;
    write_file(context, &folder.join("tree.after.json"), input.tree.as_bytes())?;
    if let Some(tree) = input.agent_tree {
        let file = folder.join("tree.agent.json");
        let is_untouched = tree == input.tree_before.as_bytes();
        if !is_untouched || link_file(&folder.join("tree.before.json"), &file).is_err() {
            write_file(context, &file, tree)?;
        }
    }
    let lines: Vec<String> = input.entries.iter().filter_map(|entry| serde_json::to_string(entry).ok()).collect();
    write_file(context, &folder.join("events.jsonl"), format!("{}\n", lines.join("\n")).as_bytes())?;
    if let (Some(commit), Ok(from)) = (input.commit, input.outcome.work.task.from.parse::<Id>()) {
        let limit = MAX_PATCH_BYTES + context.secrets.max_spelling_len();
        let is_bookkeeping = |path: &[u8]| path.starts_with(b".runner/");
        // The work first: truncation then removes the runner's own files, and readers need not scroll past them.
        let mut patch = repository.diff_paths(&from, &commit, |path| !is_bookkeeping(path), limit)?;
        patch.extend(repository.diff_paths(&from, &commit, is_bookkeeping, limit.saturating_sub(patch.len()))?);
        let end = context.secrets.end_of_secret_at(&patch, patch.len().min(MAX_PATCH_BYTES));
        write_file(context, &folder.join("diff.patch"), &patch[..end])?;
    }
    write_file(context, &folder.join("meta.json"), json::to_canonical_json(input.meta).as_bytes())
}

/// Returns the duration of each phase, from the event times to the end of the current settlement; they add up to the
/// time from the first event to `now`.
pub(crate) fn phase_times(entries: &[JournalEntry], now: Timestamp) -> Vec<PhaseTime> {
    let ended_phase = |event: &IterationEvent| match event {
        IterationEvent::Opened(_) => Some(PhaseName::Open),
        IterationEvent::Briefed => Some(PhaseName::Brief),
        IterationEvent::SessionEnded(_) => Some(PhaseName::Work),
        IterationEvent::Inspected(_) => Some(PhaseName::Inspect),
        IterationEvent::GuardEnded(_) => Some(PhaseName::Guard),
        IterationEvent::ReviewEnded(_) => Some(PhaseName::Review),
        IterationEvent::Settled { .. } => Some(PhaseName::Settle),
        IterationEvent::Declined
        | IterationEvent::Obstructed(_)
        | IterationEvent::Stop(_)
        | IterationEvent::Restarted => None,
    };
    let Some(began) = entries.first().map(|entry| entry.at) else { return Vec::new() };
    let ends = entries.iter().skip(1).filter_map(|entry| Some((ended_phase(&entry.event)?, entry.at)));
    let is_settled = entries.iter().any(|entry| matches!(entry.event, IterationEvent::Settled { .. }));
    let settling = (!is_settled).then_some((PhaseName::Settle, now));
    let mut before = 0;
    let time = |(phase, at): (PhaseName, Timestamp)| {
        // Measured from the beginning each time: rounding each phase would lose time in the sum.
        let until = u64::try_from(at.duration_since(began).as_millis()).unwrap_or(0).max(before);
        let duration_ms = until - before;
        before = until;
        PhaseTime { phase, duration_ms }
    };
    ends.chain(settling).map(time).collect()
}

/// Hard-links a record file instead of writing identical bytes.
fn link_file(file: &Path, name: &Path) -> Result<(), EffectError> {
    cleanup::remove_path(name)?;
    std::fs::hard_link(file, name).map_err(EffectError::io_error("linking", name))
}

/// Writes a file without the known secrets. Replaces rather than truncates: the agent may have planted a hard link.
pub(crate) fn write_file(context: &RunContext, path: &Path, bytes: &[u8]) -> Result<(), EffectError> {
    cleanup::remove_path(path)?;
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(&context.secrets.redact_bytes(bytes)));
    written.map_err(EffectError::io_error("writing", path))
}

/// Appends to a record file that the runner has written.
pub(crate) fn append_file(context: &RunContext, path: &Path, bytes: &[u8]) -> Result<(), EffectError> {
    let opened =
        OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path);
    let written = opened.and_then(|mut file| file.write_all(&context.secrets.redact_bytes(bytes)));
    written.map_err(EffectError::io_error("writing", path))
}
