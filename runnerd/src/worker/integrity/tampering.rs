//! Git's own folder around a session: seen before it, put back after it.
//!
//! What was seen is kept in `live/` before anything runs, so that a crash does not forget it. Branches are left where a
//! session has moved them; what it took away is kept and written down.

use crate::git::{GitDirSnapshot, Id, MovedRef, Repository, ChangedGitFile, UserGitConfig};
use crate::repo::kept::{SealedFile, Sealable};
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::quarantine::Quarantine;
use crate::worker::publication::exclude_published;

/// Times that putting back is tried: a folder that became a link hides what was in it.
const MAX_ROUNDS: usize = 3;
/// References that are kept where a session has moved or removed them.
const MAX_KEPT_REFS: usize = 200;
/// References that people are told of; the record has them all.
const MAX_SHOWN_REFS: usize = 20;

impl Sealable for GitDirSnapshot {
    const KIND: &'static str = "git-folder";
    const VERSION: u32 = 1;
}

impl Sealable for UserGitConfig {
    const KIND: &'static str = "users-configuration";
    const VERSION: u32 = 1;
}

/// Looks at git's own folder before the processes of an iteration, unless that was done, and keeps the commit at which
/// they begin: a branch that a session moves holds it no longer, and what is put back is put back from it.
pub(crate) fn save_snapshot(context: &RunContext, (from, iter): (Id, u32)) -> Result<(), EffectError> {
    let note = snapshot_note(context, iter);
    if note.read()?.is_some() {
        return Ok(());
    }
    let repository = context.repository()?;
    repository.force_runner_ref(&starting_ref(context), &from)?;
    // The record of the iteration was begun a moment ago.
    Ok(note.write(&repository.snapshot_git_dir(&context.layout.run_records(&context.run))?)?)
}

/// Returns the reference that keeps the commit at which the iteration in hand began, and with it all that came before.
fn starting_ref(context: &RunContext) -> String {
    format!("refs/runner/from/{}", context.run)
}

/// Returns what was seen before the processes of an iteration; none where none was begun.
///
/// A note that cannot be trusted holds the run: what a session did to git's own folder would go on uncompared.
pub(crate) fn read_snapshot(context: &RunContext, iter: u32) -> Result<Option<GitDirSnapshot>, EffectError> {
    Ok(snapshot_note(context, iter).read()?)
}

fn snapshot_note(context: &RunContext, iter: u32) -> SealedFile<GitDirSnapshot> {
    context.iteration_note(iter, "git")
}

/// Puts everything back that is not as it was, keeping what was found.
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
        for ChangedGitFile { name, content: found } in tampered {
            if let Some(found) = found {
                quarantine.save(&name, &found)?;
            }
            repository.restore_git_file(before, &name)?;
        }
    }
    Ok(())
}

/// What a look inside git's own folder has found.
#[derive(Debug)]
pub(crate) struct GitDirReport {
    /// Names of what was put back.
    pub(crate) restored: Vec<String>,
    /// References that were moved, each with where it was and where it is.
    pub(crate) moved_refs: Vec<String>,
}

/// Puts back which objects stand for others, which files git looks at, and references that nothing can be read from.
///
/// References that a session has moved otherwise are written down, and what they no longer lead to is kept.
pub(crate) fn restore_refs_and_index(
    context: &RunContext,
    repository: &Repository,
    before: &GitDirSnapshot,
    (from, iter): (Id, u32),
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
    save_moved_refs(context, repository, (&moved, iter))?;
    Ok(GitDirReport { restored, moved_refs: moved.iter().take(MAX_SHOWN_REFS).map(describe_moved_ref).collect() })
}

fn describe_moved_ref(MovedRef { name, before, after }: &MovedRef) -> String {
    let value_or_nothing = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("{name}: {} -> {}", value_or_nothing(before), value_or_nothing(after))
}

/// Remembers how a session has left the user's own git configuration, so that it is not obeyed before a person agrees.
pub(crate) fn save_suspects(context: &RunContext, before: &GitDirSnapshot) -> Result<(), EffectError> {
    let now = UserGitConfig::read()?;
    let changed = now.changed_files(before.user_config());
    if changed.is_empty() {
        return Ok(());
    }
    tracing::warn!(run = context.run, files = ?changed, "the user's git configuration was changed while a session ran");
    Ok(context.store.suspects_file().write(&now)?)
}

/// Writes down which references a session has moved, and keeps what they no longer lead to.
fn save_moved_refs(
    context: &RunContext,
    repository: &Repository,
    (moved, iter): (&[MovedRef], u32),
) -> Result<(), EffectError> {
    if moved.is_empty() {
        return Ok(());
    }
    let text: String = moved.iter().map(|moved| describe_moved_ref(moved) + "\n").collect();
    Quarantine::for_iteration(context, iter).save("refs.txt", context.secrets.redact(&text).as_bytes())?;
    tracing::warn!(run = context.run, iter, refs = moved.len(), "a session has moved references of others");
    for MovedRef { name, before, .. } in moved.iter().take(MAX_KEPT_REFS) {
        let Some(id) = before.as_ref().and_then(|before| before.parse::<Id>().ok()) else { continue };
        let short = name.strip_prefix("refs/").unwrap_or(name);
        repository.set_runner_ref(&format!("refs/runner/moved/{}/{iter:04}/{short}", context.run), &id)?;
    }
    Ok(())
}
