//! Inspect: turns what a session has left into facts, and restores what it must not have changed.
//!
//! The task tree is read once and saved in `live/`: the guard, the settlement and a redo after a crash all see what was
//! parsed here.

use std::io::Read as _;

use protocol::answer::AgentAnswer;
use protocol::tree::TaskTree;
use protocol::words::PhaseName;
use runner_core::iteration::WorkResult;
use runner_core::iteration::tree_examination::{self, TreeExamination};
use runner_core::text::redact::Secrets;
use runner_core::tree::validate::TreeFault;
use runner_core::tree::{self, MAX_TREE_BYTES};
use runner_core::verdict::{RuleBreach, SessionEnd, SessionFinding, SessionTask, StopCause, TreeFinding};
use runner_git::{Id, Repository, WorktreeChange};

use crate::repo::layout::Layout;
use crate::store::SavedTree;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::ignored;
use crate::worker::integrity::restore::{self, RestoreRequest};
use crate::worker::integrity::scope::{self, ScopeRequest};
use crate::worker::integrity::secret_scan;
use crate::worker::load::CommittedState;

/// Inspects what a session has left.
pub(crate) fn inspect_session(
    context: &RunContext,
    loaded: &CommittedState,
    task: &SessionTask,
    session: &SessionEnd,
    stop: Option<StopCause>,
) -> Result<SessionFinding, EffectError> {
    let repository = context.repository()?;
    let text = read_agent_tree(context, task)?;
    let request =
        RestoreRequest { from: loaded.commit, iter: task.iter, phase: PhaseName::Work, tree: None, baseline: None };
    let report = restore::restore_after_process(context, &repository, loaded, request)?;
    let was_moved = report.history.is_some() || report.elsewhere.is_some();
    let tree = if was_moved {
        TreeFinding::UNTOUCHED
    } else {
        let text = text.as_deref();
        redact_finding(examine_agent_tree(loaded, task, session.answer(), text).finding, text, &context.secrets)
    };
    let outside = if was_moved {
        Vec::new()
    } else {
        scope::restore_outside(context, &repository, loaded, ScopeRequest::new(task.iter, PhaseName::Work))?
    };
    let head = repository.head()?.commit();
    let changes = scan_changes(context, &repository, loaded)?;
    ignored::compare_after_session(context, &repository, loaded)?;
    let untracked = repository.list_untracked_guarded();
    if stop != Some(StopCause::Cancel) {
        // The claim and the guard's check are about these files, and a commit would lack them; the tree is rewritten
        // anyway.
        let is_tree = |change: &&WorktreeChange| change.path == Layout::TREE.as_bytes();
        let others: Vec<WorktreeChange> = changes.iter().filter(|change| !is_tree(change)).cloned().collect();
        repository.check_storable(&others)?;
    }
    let uncommitted: Vec<Vec<u8>> = changes.into_iter().map(|change| change.path).collect();
    let committed = |commit: &Id| -> Result<Vec<Vec<u8>>, EffectError> {
        let committed = head.map(|head| repository.changed_paths(commit, &head)).transpose()?;
        Ok(committed.unwrap_or_default())
    };
    // A restored path may differ in a commit of the session.
    let is_code = |path: &Vec<u8>| is_code_path(path) && !outside.contains(&String::from_utf8_lossy(path).into_owned());
    let has_code = |paths: &[Vec<u8>]| paths.iter().any(is_code);
    let changes = [uncommitted.clone(), committed(&loaded.commit)?].concat();
    let base = loaded.run_state.base.as_deref().and_then(|base| base.parse::<Id>().ok()).unwrap_or(loaded.commit);
    // Even a commit that changes nothing counts: what a session leaves on the branch belongs to a receipt.
    let has_moved = head != Some(loaded.commit);
    let has_earlier_code = || {
        Ok::<_, EffectError>(
            !outside.is_empty()
                && repository.changed_paths(&base, &loaded.commit)?.iter().any(|path| is_code_path(path)),
        )
    };
    let mut reverted = report.reverted;
    // Untracked by the session, but still tracked by the runner.
    reverted.extend(untracked);
    reverted.extend_from_slice(&outside);
    reverted.sort();
    reverted.dedup();
    let dirty_submodules = repository.find_dirty_submodules()?;
    Ok(SessionFinding {
        secrets: secret_scan::scan_files(context.layout.root(), &changes, &context.secrets),
        changed: has_moved || !changes.is_empty() || !reverted.is_empty() || was_moved || !dirty_submodules.is_empty(),
        history: report.history,
        elsewhere: report.elsewhere,
        scope: None,
        tree,
        changed_code: has_code(&changes),
        changed_since_base: has_code(&uncommitted) || has_code(&committed(&base)?) || has_earlier_code()?,
        reverted,
        outside,
        moved_refs: report.moved_refs,
        dirty_submodules,
    })
}

/// Lists what differs from HEAD. A path that cannot be stored and holds nothing counts as removed, and so does one of the
/// accepted definition of the guard: a guard would wait for ever to read it.
pub(crate) fn scan_changes(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
) -> Result<Vec<WorktreeChange>, EffectError> {
    let changes = context.scan_changes()?;
    let definition = loaded.run_state.guard_definition.keys().map(String::as_str);
    if !repository.remove_pipes_among(&changes, definition)? {
        return Ok(changes);
    }
    context.last_scan.invalidate();
    Ok(context.scan_changes()?)
}

/// Removes secrets from a finding about a tree: it gets into feedback and prompts.
fn redact_finding(finding: TreeFinding, text: Option<&[u8]>, secrets: &Secrets) -> TreeFinding {
    let redact = |text: String| secrets.redact(&text).into_owned();
    match finding {
        TreeFinding::Legal { .. } => finding,
        TreeFinding::Illegal(breach) => {
            TreeFinding::Illegal(RuleBreach { at: redact(breach.at), details: redact(breach.details), ..breach })
        }
        TreeFinding::Invalid { faults, blob, .. } => {
            let clean_fault = |fault: TreeFault| TreeFault { path: redact(fault.path), rule: redact(fault.rule) };
            // Taken from the whole text: a truncated one may end inside a secret.
            let text = tree_examination::clip_invalid_text(&secrets.redact_bytes(text.unwrap_or_default()));
            TreeFinding::Invalid { faults: faults.into_iter().map(clean_fault).collect(), text, blob }
        }
    }
}

/// Judges the tree that a session has left, as it was saved.
fn examine_agent_tree(
    loaded: &CommittedState,
    task: &SessionTask,
    answer: Option<&AgentAnswer>,
    text: Option<&[u8]>,
) -> TreeExamination {
    let session = tree_examination::SessionTree {
        from: &loaded.tree,
        node: &task.node,
        role: task.role,
        text,
        answer,
        max_attempts: loaded.policy.max_attempts_default,
    };
    let is_untouched = text == Some(loaded.canonical_tree().as_bytes());
    if is_untouched {
        tree_examination::examine_unchanged_tree(&session)
    } else {
        tree_examination::examine_tree(&session)
    }
}

/// Returns a session's tree if it is acceptable, as it was saved; `None` if a person has decided instead.
pub(crate) fn read_legal_tree(
    context: &RunContext,
    loaded: &CommittedState,
    work: &WorkResult,
) -> Result<Option<TaskTree>, EffectError> {
    if work.session().is_none() {
        return Ok(None);
    }
    let text = read_agent_tree(context, &work.task)?;
    Ok(examine_agent_tree(loaded, &work.task, work.answer(), text.as_deref()).tree)
}

/// Returns the canonical form of the session's tree, or of From's if the session's is not acceptable.
pub(crate) fn final_tree_text(
    context: &RunContext,
    loaded: &CommittedState,
    work: &WorkResult,
) -> Result<String, EffectError> {
    let tree = read_legal_tree(context, loaded, work)?.filter(|legal| *legal != *loaded.tree);
    Ok(tree.map_or_else(|| loaded.canonical_tree().to_owned(), |legal| tree::canonical(&legal)))
}

/// Reads the tree that the session has left: the first time from the work tree, then as it was saved.
///
/// `None` if there is no regular file.
pub(crate) fn read_agent_tree(context: &RunContext, task: &SessionTask) -> Result<Option<Vec<u8>>, EffectError> {
    let note = context.iteration_note::<SavedTree>(task.iter, "tree");
    let agent_tree = if let Some(left) = note.read()? {
        left
    } else {
        let left = read_tree_file(&context.layout.tree())?.map_or(SavedTree::None, SavedTree::from_bytes);
        note.write(&left)?;
        left
    };
    agent_tree.into_bytes().map_err(|error| EffectError::SealedFile(note.malformed_error(&error)))
}

/// Reads a file up to more than the size of any legal tree; a link or a pipe counts as no file.
fn read_tree_file(path: &std::path::Path) -> Result<Option<Vec<u8>>, EffectError> {
    if !std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let file = std::fs::File::open(path).map_err(EffectError::io_error("reading", path))?;
    let mut text = Vec::new();
    let limit = 4 * MAX_TREE_BYTES as u64 + 1;
    file.take(limit).read_to_end(&mut text).map_err(EffectError::io_error("reading", path))?;
    Ok(Some(text))
}

fn is_code_path(path: &[u8]) -> bool {
    !path.starts_with(b".runner/")
}
