//! Git's own folder around a session: seen before it, put back after it.
//!
//! What was seen is kept in `live/` before anything runs, so that a crash does not forget it. Branches are left where a
//! session has moved them; what it took away is kept and written down.

use crate::git::{Fingerprint, Id, MovedRef, Repository, Tampered, UsersRules};
use crate::repo::kept::{Kept, Note};
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::quarantine::Quarantine;
use crate::worker::publication::not_published;

/// Times that putting back is tried: a folder that became a link hides what was in it.
const ROUNDS: usize = 3;
/// References that are kept where a session has moved or removed them.
const MAX_KEPT_REFS: usize = 200;
/// References that people are told of; the record has them all.
const MAX_TOLD_REFS: usize = 20;

impl Note for Fingerprint {
    const KIND: &'static str = "git-folder";
    const VERSION: u32 = 1;
}

impl Note for UsersRules {
    const KIND: &'static str = "users-configuration";
    const VERSION: u32 = 1;
}

/// Looks at git's own folder before the processes of an iteration, unless that was done, and keeps the commit at which
/// they begin: a branch that a session moves holds it no longer, and what is put back is put back from it.
pub(crate) fn look_before(context: &RunContext, (from, iter): (Id, u32)) -> Result<(), Obstacle> {
    let kept = kept_in(context, iter);
    if kept.read()?.is_some() {
        return Ok(());
    }
    let repository = context.repository()?;
    repository.pin(&from_ref(context), &from)?;
    // The record of the iteration was begun a moment ago.
    Ok(kept.write(&repository.fingerprint(&context.layout.run_records(&context.run))?)?)
}

/// Returns the reference that keeps the commit at which the iteration in hand began, and with it all that came before.
fn from_ref(context: &RunContext) -> String {
    format!("refs/runner/from/{}", context.run)
}

/// Returns what was seen before the processes of an iteration; none where none was begun.
///
/// A note that cannot be trusted holds the run: what a session did to git's own folder would go on uncompared.
pub(crate) fn seen_before(context: &RunContext, iter: u32) -> Result<Option<Fingerprint>, Obstacle> {
    Ok(kept_in(context, iter).read()?)
}

fn kept_in(context: &RunContext, iter: u32) -> Kept<Fingerprint> {
    context.note(iter, "git")
}

/// Puts everything back that is not as it was, keeping what was found.
pub(crate) fn put_back(
    repository: &Repository,
    before: &Fingerprint,
    quarantine: &Quarantine<'_>,
) -> Result<(), Obstacle> {
    for _ in 0..ROUNDS {
        let tampered = repository.tampered(before)?;
        if tampered.is_empty() {
            break;
        }
        for Tampered { name, found } in tampered {
            if let Some(found) = found {
                quarantine.keep(&name, &found)?;
            }
            repository.put_back(before, &name)?;
        }
    }
    Ok(())
}

/// What a look inside git's own folder has found.
#[derive(Debug)]
pub(crate) struct Inside {
    /// Names of what was put back.
    pub(crate) put_back: Vec<String>,
    /// References that were moved, each with where it was and where it is.
    pub(crate) moved: Vec<String>,
}

/// Puts back which objects stand for others, which files git looks at, and references that nothing can be read from.
///
/// References that a session has moved otherwise are written down, and what they no longer lead to is kept.
pub(crate) fn look_inside(
    context: &RunContext,
    repository: &Repository,
    before: &Fingerprint,
    (from, iter): (Id, u32),
) -> Result<Inside, Obstacle> {
    let hidden = repository.unhide(before)?;
    let mut put_back: Vec<String> = hidden.into_iter().map(|path| format!(".git/index: {path}")).collect();
    put_back.extend(repository.wrongly_tracked()?.into_iter().map(|folder| format!(".git/index: {folder}")));
    let pin = from_ref(context);
    if repository.pin(&pin, &from)? {
        put_back.push(pin);
    }
    let own = format!("refs/heads/{}", context.branch());
    let mut moved = Vec::new();
    let others = not_published(&context.store, repository, repository.moved_refs(before)?)?;
    for other in others.into_iter().filter(|moved| moved.name != own) {
        if repository.put_back_replaced(&other)? || repository.put_back_garbled(&other)? {
            put_back.push(other.name);
        } else {
            moved.push(other);
        }
    }
    keep_moved(context, repository, (&moved, iter))?;
    Ok(Inside { put_back, moved: moved.iter().take(MAX_TOLD_REFS).map(told).collect() })
}

fn told(MovedRef { name, before, after }: &MovedRef) -> String {
    let of = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("{name}: {} -> {}", of(before), of(after))
}

/// Remembers how a session has left the user's own git configuration, so that it is not obeyed before a person agrees.
pub(crate) fn suspect(context: &RunContext, before: &Fingerprint) -> Result<(), Obstacle> {
    let now = UsersRules::now()?;
    let changed = now.differing(before.users());
    if changed.is_empty() {
        return Ok(());
    }
    tracing::warn!(run = context.run, files = ?changed, "the user's git configuration was changed while a session ran");
    Ok(context.store.suspects().write(&now)?)
}

/// Writes down which references a session has moved, and keeps what they no longer lead to.
fn keep_moved(
    context: &RunContext,
    repository: &Repository,
    (moved, iter): (&[MovedRef], u32),
) -> Result<(), Obstacle> {
    if moved.is_empty() {
        return Ok(());
    }
    let text: String = moved.iter().map(|moved| told(moved) + "\n").collect();
    Quarantine::of(context, iter).keep("refs.txt", context.secrets.redact(&text).as_bytes())?;
    tracing::warn!(run = context.run, iter, refs = moved.len(), "a session has moved references of others");
    for MovedRef { name, before, .. } in moved.iter().take(MAX_KEPT_REFS) {
        let Some(id) = before.as_ref().and_then(|before| before.parse::<Id>().ok()) else { continue };
        let short = name.strip_prefix("refs/").unwrap_or(name);
        repository.keep(&format!("refs/runner/moved/{}/{iter:04}/{short}", context.run), &id)?;
    }
    Ok(())
}
