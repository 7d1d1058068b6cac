//! Inspect: what a session has left, as facts; what it must not have changed is put back.
//!
//! The task tree is read once and kept in `live/`: the guard, the settlement and a redo after a crash
//! all see what was parsed here.

use std::io::Read as _;

use protocol::answer::AgentAnswer;
use protocol::tree::TaskTree;
use protocol::words::PhaseName;
use runner_core::examine::{self, Examined};
use runner_core::iteration::Worked;
use runner_core::redact::Secrets;
use runner_core::tree::{self, MAX_TREE_BYTES};
use runner_core::validate::TreeFault;
use runner_core::verdict::{Breach, Finding, SessionEnd, StopCause, Task, TreeFinding};

use crate::git::{Change, Id, Repository};
use crate::repo::layout::Layout;
use crate::store::LeftTree;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::exposure;
use crate::worker::integrity::ignored;
use crate::worker::integrity::restore::{self, After};
use crate::worker::load::Loaded;

/// Looks at what a session has left.
pub(crate) fn inspect(
    context: &RunContext,
    loaded: &Loaded,
    task: &Task,
    (session, stop): (&SessionEnd, Option<StopCause>),
) -> Result<Finding, Obstacle> {
    let repository = context.repository()?;
    let text = agents_tree(context, task)?;
    let after = After { from: loaded.commit, iter: task.iter, phase: PhaseName::Work, tree: None, scenery: None };
    let undone = restore::undo(context, &repository, loaded, after)?;
    let is_put_back = undone.history.is_some() || undone.elsewhere.is_some();
    let tree = if is_put_back {
        TreeFinding::UNTOUCHED
    } else {
        let text = text.as_deref();
        without_secrets(examine_tree(loaded, (task, session.answer()), text).finding, text, &context.secrets)
    };
    let head = repository.head()?.commit();
    let changes = look(context, &repository)?;
    ignored::look_after(context, &repository, loaded)?;
    let untracked = repository.kept_tracked();
    if stop != Some(StopCause::Cancel) {
        // What is claimed and checked is what is there, and a commit would be without it; the tree is written anew.
        let is_tree = |change: &&Change| change.path == Layout::TREE.as_bytes();
        let kept: Vec<Change> = changes.iter().filter(|change| !is_tree(change)).cloned().collect();
        repository.refuse_unstorable(&kept)?;
    }
    let uncommitted: Vec<Vec<u8>> = changes.into_iter().map(|change| change.path).collect();
    let committed = |commit: &Id| -> Result<Vec<Vec<u8>>, Obstacle> {
        let committed = head.map(|head| repository.changed_paths(commit, &head)).transpose()?;
        Ok(committed.unwrap_or_default())
    };
    let has_code = |paths: &[Vec<u8>]| paths.iter().any(|path| is_code(path));
    let changes = [uncommitted.clone(), committed(&loaded.commit)?].concat();
    let base = loaded.run_state.base.as_deref().and_then(|base| base.parse::<Id>().ok()).unwrap_or(loaded.commit);
    // Even a commit that changes nothing is one: what a session leaves on the branch belongs to a receipt.
    let has_moved = head != Some(loaded.commit);
    let mut reverted = undone.reverted;
    // Untracked by the session, and tracked still.
    reverted.extend(untracked);
    reverted.sort();
    reverted.dedup();
    let dirty_submodules = repository.dirty_submodules()?;
    Ok(Finding {
        secrets: exposure::look(context.layout.root(), &changes, &context.secrets),
        changed: has_moved
            || !changes.is_empty()
            || !reverted.is_empty()
            || is_put_back
            || !dirty_submodules.is_empty(),
        history: undone.history,
        elsewhere: undone.elsewhere,
        tree,
        changed_code: has_code(&changes),
        changed_since_base: has_code(&uncommitted) || has_code(&committed(&base)?),
        reverted,
        moved_refs: undone.moved_refs,
        dirty_submodules,
    })
}

/// Looks at what differs from HEAD. What can be stored by nobody, and holds nothing, counts as removed.
pub(crate) fn look(context: &RunContext, repository: &Repository) -> Result<Vec<Change>, Obstacle> {
    let changes = context.look()?;
    if !repository.remove_pipes_among(&changes)? {
        return Ok(changes);
    }
    context.last_scan.forget();
    Ok(context.look()?)
}

/// Takes the secrets out of what is told of a tree: it gets into feedback and prompts.
fn without_secrets(finding: TreeFinding, text: Option<&[u8]>, secrets: &Secrets) -> TreeFinding {
    let clean = |text: String| secrets.redact(&text).into_owned();
    match finding {
        TreeFinding::Legal { .. } => finding,
        TreeFinding::Illegal(breach) => {
            TreeFinding::Illegal(Breach { at: clean(breach.at), seen: clean(breach.seen), ..breach })
        }
        TreeFinding::Invalid { faults, blob, .. } => {
            let clean_fault = |fault: TreeFault| TreeFault { path: clean(fault.path), rule: clean(fault.rule) };
            // From the whole text: one that was cut may end within a secret.
            let text = examine::kept_text(&secrets.redact_bytes(text.unwrap_or_default()));
            TreeFinding::Invalid { faults: faults.into_iter().map(clean_fault).collect(), text, blob }
        }
    }
}

/// Judges the tree that a session has left, as it was kept.
fn examine_tree(loaded: &Loaded, (task, answer): (&Task, Option<&AgentAnswer>), text: Option<&[u8]>) -> Examined {
    let session = examine::LeftBySession {
        from: &loaded.tree,
        node: &task.node,
        text,
        answer,
        max_attempts: loaded.policy.max_attempts_default,
    };
    let is_untouched = text == Some(loaded.canonical_tree().as_bytes());
    if is_untouched { examine::examine_untouched(&session) } else { examine::examine(&session) }
}

/// Returns the tree of a session that can be taken, as it was kept; where a person has decided, nobody's is.
pub(crate) fn legal_tree(context: &RunContext, loaded: &Loaded, work: &Worked) -> Result<Option<TaskTree>, Obstacle> {
    if work.session().is_none() {
        return Ok(None);
    }
    let text = agents_tree(context, &work.task)?;
    Ok(examine_tree(loaded, (&work.task, work.answer()), text.as_deref()).tree)
}

/// Returns the canonical form of the tree that a session has left, or of From's where it cannot be taken.
pub(crate) fn tree_to_stand(context: &RunContext, loaded: &Loaded, work: &Worked) -> Result<String, Obstacle> {
    let legal = legal_tree(context, loaded, work)?.filter(|legal| *legal != loaded.tree);
    Ok(legal.map_or_else(|| loaded.canonical_tree().to_owned(), |legal| tree::canonical(&legal)))
}

/// Reads the tree as the session has left it, the first time from the work tree, then as it was kept.
///
/// None where there is no regular file.
pub(crate) fn agents_tree(context: &RunContext, task: &Task) -> Result<Option<Vec<u8>>, Obstacle> {
    let kept = context.note::<LeftTree>(task.iter, "tree");
    let left = if let Some(left) = kept.read()? {
        left
    } else {
        let left = read_left(&context.layout.tree())?.map_or(LeftTree::None, LeftTree::of);
        kept.write(&left)?;
        left
    };
    left.bytes().map_err(|error| Obstacle::Kept(kept.malformed(&error)))
}

/// Reads a file up to more than any legal tree has; a link or a pipe is no file.
fn read_left(path: &std::path::Path) -> Result<Option<Vec<u8>>, Obstacle> {
    if !std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let file = std::fs::File::open(path).map_err(Obstacle::system("reading", path))?;
    let mut text = Vec::new();
    let limit = 4 * MAX_TREE_BYTES as u64 + 1;
    file.take(limit).read_to_end(&mut text).map_err(Obstacle::system("reading", path))?;
    Ok(Some(text))
}

fn is_code(path: &[u8]) -> bool {
    !path.starts_with(b".runner/")
}
