//! Compares git's own folder before and after a session, and restores it.
//!
//! The snapshot is saved in `live/` before anything runs, so that a crash does not lose it. Branches that a session
//! moved are left where they are; what they no longer reach is kept and recorded.

use std::path::PathBuf;

use runner_core::publish;
use runner_git::{GitDirSnapshot, GitError, Id, KnownObjects, MovedRef, Repository, UserGitConfig};
use runner_os::retryable::Retryable as _;

use crate::repo::sealed::{Sealable, SealedFile};
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::quarantine::Quarantine;
use crate::worker::publication::exclude_published;

/// Attempts at restoring: a folder that became a link hides its former content.
const MAX_ROUNDS: usize = 3;
/// Maximum number of references kept after a session has moved or removed them.
const MAX_RECORDED_REFS: usize = 200;
/// Maximum number of references shown to people; the record has them all.
const MAX_SHOWN_REFS: usize = 20;

impl Sealable for GitDirSnapshot {
    const KIND: &'static str = "git-folder";
    const VERSION: u32 = 1;
}

impl Sealable for UserGitConfig {
    const KIND: &'static str = "users-configuration";
    const VERSION: u32 = 1;
}

/// Takes the snapshot of git's own folder before the processes of an iteration, unless it exists, and keeps a reference
/// to the commit from which they begin: a branch that a session moves no longer holds it, and restoring needs it.
pub(crate) fn save_snapshot(context: &RunContext, from: Id, iter: u32) -> Result<(), EffectError> {
    let note = snapshot_note(context, iter);
    if note.read()?.is_some() {
        return Ok(());
    }
    let repository = context.repository()?;
    repository.force_runner_ref(&starting_ref(context), &from)?;
    // The iteration's record has just been created.
    Ok(note.write(&repository.snapshot_git_dir(&context.layout.run_records(&context.run))?)?)
}

/// Returns the reference that keeps alive the commit from which the current iteration began, with all its history.
fn starting_ref(context: &RunContext) -> String {
    format!("refs/runner/from/{}", context.run)
}

/// Returns the snapshot taken before the processes of an iteration; `None` if none was started.
///
/// A note that cannot be trusted holds the run: otherwise a session's changes to git's own folder would remain
/// unchecked.
pub(crate) fn read_snapshot(context: &RunContext, iter: u32) -> Result<Option<GitDirSnapshot>, EffectError> {
    Ok(snapshot_note(context, iter).read()?)
}

fn snapshot_note(context: &RunContext, iter: u32) -> SealedFile<GitDirSnapshot> {
    context.iteration_note(iter, "git")
}

/// Restores everything that differs from the snapshot, and saves what was found.
pub(crate) fn restore_git_dir(
    repository: &Repository,
    before: &GitDirSnapshot,
    quarantine: &Quarantine<'_>,
) -> Result<(), EffectError> {
    for _ in 0..MAX_ROUNDS {
        let tampered = repository.find_changed_git_files(before)?;
        if tampered.is_empty() {
            break;
        }
        for name in tampered {
            quarantine.move_git_file(&name, &repository.watched_path(&name))?;
            repository.restore_git_file(before, &name)?;
        }
    }
    Ok(())
}

/// Moves files that are too large to be read into the record, before anything reads them.
pub(crate) fn restore_large_files(
    repository: &Repository,
    before: &GitDirSnapshot,
    large: &[PathBuf],
    quarantine: &Quarantine<'_>,
) -> Result<(), EffectError> {
    for file in large {
        quarantine.move_git_file(&repository.display_git_path(file), file)?;
        repository.restore_large_git_file(before, file)?;
    }
    Ok(())
}

/// What the check inside git's own folder has found.
#[derive(Debug)]
pub(crate) struct GitDirReport {
    /// Names of what was restored.
    pub(crate) restored: Vec<String>,
    /// References that were moved, each with its old and new target.
    pub(crate) moved_refs: Vec<String>,
}

/// Restores replacement objects, the files that git reads, and unreadable references.
///
/// References that a session moved in other ways are recorded, and what they no longer reach is kept.
pub(crate) fn restore_refs_and_index(
    context: &RunContext,
    repository: &Repository,
    before: &GitDirSnapshot,
    from: Id,
    iter: u32,
) -> Result<GitDirReport, EffectError> {
    let hidden = repository.unhide_files(before)?;
    let mut restored: Vec<String> = hidden.into_iter().map(|path| format!(".git/index: {path}")).collect();
    restored.extend(repository.list_wrongly_tracked()?.into_iter().map(|folder| format!(".git/index: {folder}")));
    let pin = starting_ref(context);
    if repository.force_runner_ref(&pin, &from)? {
        restored.push(pin);
    }
    let own_branch = format!("refs/heads/{}", context.branch());
    let mut moved = Vec::new();
    let others = exclude_published(&context.store, repository, repository.find_moved_refs(before)?)?;
    for other in others.into_iter().filter(|moved| moved.name != own_branch) {
        if repository.restore_replace_ref(&other)? || repository.restore_garbled_ref(&other)? {
            restored.push(other.name);
        } else {
            moved.push(other);
        }
    }
    save_moved_refs(context, repository, &moved, iter)?;
    Ok(GitDirReport { restored, moved_refs: moved.iter().take(MAX_SHOWN_REFS).map(describe_moved_ref).collect() })
}

fn describe_moved_ref(MovedRef { name, before, after }: &MovedRef) -> String {
    let value_or_nothing = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("{name}: {} -> {}", value_or_nothing(before), value_or_nothing(after))
}

/// Describes how the run's branch was rewritten, if it was: it must contain `from`.
pub(crate) fn describe_rewrite(
    branch: &str,
    repository: &Repository,
    from: Id,
    tip: Option<Id>,
) -> Result<Option<String>, EffectError> {
    let Some(tip) = tip else { return Ok(Some(format!("branch {branch} was removed"))) };
    match repository.is_ancestor(&from, &tip) {
        Ok(true) => {}
        Ok(false) => {
            return Ok(Some(format!("branch {branch} does not contain the commit at which the session began")));
        }
        // `from` was read before the session: what cannot be read was committed since.
        Err(error @ GitError::Corrupt { .. }) if !error.is_transient() => {
            return Ok(Some(format!("branch {branch} has a commit that cannot be read")));
        }
        Err(error) => return Err(error.into()),
    }
    if let Some(missing) = find_missing_object(repository, from, tip)? {
        return Ok(Some(format!("branch {branch} has a commit that needs object {missing}, which is missing")));
    }
    // An audit follows first parents: as another parent, the whole run would be invisible.
    let is_first_parent = repository.is_first_parent_ancestor(&from, &tip)?;
    Ok((!is_first_parent)
        .then(|| format!("on branch {branch} the commit at which the session began is no first parent any more")))
}

/// Returns an object that commits since `from` need and that is missing. In a partial clone, a remote may have it.
fn find_missing_object(repository: &Repository, from: Id, tip: Id) -> Result<Option<String>, GitError> {
    if tip == from || repository.is_partial()? {
        return Ok(None);
    }
    repository.find_missing_object(&[tip], KnownObjects::Commit(from))
}

/// Makes HEAD and the run's branch readable again before they are moved back to `tip`. Keeps the branch's own tip, unless
/// HEAD is there: a rescue keeps that one. Returns whether the commits there are complete.
pub(crate) fn repair_branch(
    context: &RunContext,
    repository: &Repository,
    before: Option<&GitDirSnapshot>,
    tip: Id,
    iter: u32,
) -> Result<bool, EffectError> {
    let branch = context.branch();
    repository.repair_refs(&branch, &tip, before)?;
    // Nothing can be compared with an incomplete commit, and a reference to one would keep git from packing.
    let is_complete = |commit: Option<Id>| {
        commit.map_or(Ok(true), |commit| Ok::<_, GitError>(find_missing_object(repository, tip, commit)?.is_none()))
    };
    let is_head_complete = is_complete(repository.head()?.commit())?;
    if !is_head_complete {
        repository.detach_head(&tip)?;
    }
    let found = repository.find_branch_tip(&branch)?;
    let head = repository.head()?.commit();
    if !is_complete(found)? {
        return Ok(false);
    }
    if let Some(found) = found.filter(|found| *found != tip && Some(*found) != head) {
        repository.force_runner_ref(&format!("{}-branch", publish::rescue_ref(&context.run, iter)), &found)?;
    }
    Ok(is_head_complete)
}

/// Records how a session left the user's own git configuration, so that it is not obeyed before a person agrees.
pub(crate) fn save_suspects(context: &RunContext, before: &GitDirSnapshot) -> Result<(), EffectError> {
    let now = UserGitConfig::read()?;
    let changed = now.changed_files(before.user_config());
    if changed.is_empty() {
        return Ok(());
    }
    tracing::warn!(run = context.run, files = ?changed, "the user's git configuration changed during a session");
    Ok(context.store.suspects_file().write(&now)?)
}

/// Records which references a session has moved, and keeps what they no longer reach.
fn save_moved_refs(
    context: &RunContext,
    repository: &Repository,
    moved: &[MovedRef],
    iter: u32,
) -> Result<(), EffectError> {
    if moved.is_empty() {
        return Ok(());
    }
    let text: String = moved.iter().map(|moved| describe_moved_ref(moved) + "\n").collect();
    Quarantine::for_iteration(context, iter).save("refs.txt", context.secrets.redact(&text).as_bytes())?;
    tracing::warn!(run = context.run, iter, refs = moved.len(), "a session moved references that are not its own");
    for MovedRef { name, before, .. } in moved.iter().take(MAX_RECORDED_REFS) {
        let Some(id) = before.as_ref().and_then(|before| before.parse::<Id>().ok()) else { continue };
        let short = name.strip_prefix("refs/").unwrap_or(name);
        repository.set_runner_ref(&format!("refs/runner/moved/{}/{iter:04}/{short}", context.run), &id)?;
    }
    Ok(())
}
