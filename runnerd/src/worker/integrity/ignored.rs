//! Remembers the ignored files of the guard's definition, and those in submodules, as they were before a session, in the
//! daemon's own state, since no commit has them.
//!
//! `runner_core::guard::ignored_files` decides which of them deviate.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use runner_core::guard::definition::{DefinitionDiff, GuardDefinition};
use runner_core::guard::ignored_files::IgnoredDefinition;
use runner_git::{EntryKind, Id, Repository};
use serde::{Deserialize, Serialize};

use crate::repo::durable::{self, FileAccess};
use crate::repo::sealed::Sealable;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::definition::{self, CommitDefinition, DefinitionFile};
use crate::worker::integrity::path_content::{self, PathContent};
use crate::worker::load::CommittedState;

/// Size limit in bytes of a copied file; a larger one is compared by size and time, and cannot be restored.
const MAX_COPIED: u64 = 256 * 1024;
/// Size limit in bytes of all copies together.
const MAX_COPIES: usize = 4 * 1024 * 1024;

/// Form of a file that a submodule lacks: there, a removal departs like any other change.
const ABSENT: &str = "absent";

/// The sealed note of a run.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IgnoredFiles {
    files: IgnoredDefinition,
    /// Contents of accepted files in base64, by form.
    copies: BTreeMap<String, String>,
}

impl Sealable for IgnoredFiles {
    const KIND: &'static str = "ignored";
    const VERSION: u32 = 1;
}

/// Records the ignored files of the definition before a session.
pub(crate) fn save_before_session(context: &RunContext, loaded: &CommittedState) -> Result<(), EffectError> {
    let repository = context.repository()?;
    let before = read_note(context)?;
    let missing = missing_files(&repository, loaded)?;
    let files = before.files.before_session(&read_ignored_forms(context, &repository, loaded)?, missing);
    let mut copies = BTreeMap::new();
    let mut budget = MAX_COPIES;
    for (path, form) in &files.accepted {
        let copy = match before.copies.get(form) {
            Some(copy) => Some(copy.clone()),
            None if files.departed.contains(path) => None,
            None => copy_file(context, path, form)?,
        };
        if let Some(copy) = copy.filter(|copy| copy.len() <= budget) {
            budget -= copy.len();
            copies.insert(form.clone(), copy);
        }
    }
    write_note(context, &before, &IgnoredFiles { files, copies })
}

/// Compares them with their state at the end of a session.
pub(crate) fn compare_after_session(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
) -> Result<(), EffectError> {
    let before = read_note(context)?;
    open_closed_files(context, repository, loaded, &before.files)?;
    let missing = missing_files(repository, loaded)?;
    let files = before.files.after_session(&read_ignored_forms(context, repository, loaded)?, missing);
    let copies = before.copies.clone();
    write_note(context, &before, &IgnoredFiles { files, copies })
}

/// Opens those of them that a session has closed: no scan does, and the guard could not read them.
fn open_closed_files(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
    before: &IgnoredDefinition,
) -> Result<(), EffectError> {
    let known = definition::known_definition(repository, loaded)?;
    let paths = definition::paths_in_work_tree(context, repository, loaded)?;
    let mut paths = select_ignored(context, repository, known, &paths)?;
    paths.retain(|path| before.accepted.get(path).is_none_or(|form| form != definition::UNREADABLE));
    Ok(repository.open_closed_files(paths.iter().map(String::as_str))?)
}

/// Returns the files that a session has added or changed.
pub(crate) fn changed_files(context: &RunContext) -> Result<BTreeSet<String>, EffectError> {
    Ok(read_note(context)?.files.departed)
}

fn missing_files<'l>(repository: &Repository, loaded: &'l CommittedState) -> Result<&'l BTreeSet<String>, EffectError> {
    Ok(&definition::known_definition(repository, loaded)?.watched_files.missing)
}

/// Returns those of these definition files that are neither accepted, nor committed, nor about to be committed, and the
/// files that the guard reads and that no commit has.
pub(super) fn select_ignored(
    context: &RunContext,
    repository: &Repository,
    known: &CommitDefinition,
    paths: &BTreeSet<String>,
) -> Result<BTreeSet<String>, EffectError> {
    let CommitDefinition { watched_files: watched, definition: guarded } = known;
    let is_known = |path: &String| guarded.accepted.contains_key(path) || guarded.committed.contains_key(path);
    let mut others: BTreeSet<String> = paths.union(&watched.missing).filter(|path| !is_known(path)).cloned().collect();
    if others.is_empty() {
        return Ok(others);
    }
    if let Some(head) = repository.head()?.commit() {
        let committed = definition::read_from_commit(repository, &head, &definition::watch_patterns(watched))?;
        others.retain(|path| !committed.contains_key(path));
    }
    for change in context.cached_changes()? {
        others.remove(&*String::from_utf8_lossy(&change.path));
    }
    if !watched.missing.is_empty() {
        // Such a file stays accepted as it was, even if a session has it committed.
        let IgnoredFiles { files, .. } = read_note(context)?;
        others.extend(watched.missing.iter().filter(|path| files.accepted.contains_key(*path)).cloned());
    }
    Ok(others)
}

/// Returns the accepted bytes of the deviating files; `None` for a file that did not exist.
pub(super) fn accepted_files(
    context: &RunContext,
    diff: &DefinitionDiff,
) -> Result<BTreeMap<String, DefinitionFile>, EffectError> {
    let IgnoredFiles { files, copies } = read_note(context)?;
    let mut accepted = BTreeMap::new();
    for path in diff.paths.iter().filter(|path| files.departed.contains(*path)) {
        let Some(form) = files.accepted.get(path).filter(|form| *form != ABSENT) else { continue };
        let kind = match form.split_once(':').map(|(mode, _)| mode) {
            None => EntryKind::File,
            Some("100755") => EntryKind::Executable,
            Some(_) => EntryKind::Symlink,
        };
        let bytes = copies.get(form).and_then(|copy| BASE64.decode(copy).ok());
        let bytes = bytes.ok_or_else(|| EffectError::InvalidBlob(form.clone()))?;
        accepted.insert(path.clone(), DefinitionFile { kind, bytes });
    }
    Ok(accepted)
}

/// Returns the first deviating file that existed and cannot be restored.
pub(crate) fn find_uncopied(context: &RunContext, diff: &DefinitionDiff) -> Result<Option<String>, EffectError> {
    let IgnoredFiles { files, copies } = read_note(context)?;
    let is_uncopied = |path: &&String| {
        let is_copied = |form: &String| form == ABSENT || copies.contains_key(form);
        files.departed.contains(*path) && files.accepted.get(*path).is_some_and(|form| !is_copied(form))
    };
    Ok(diff.paths.iter().find(is_uncopied).cloned())
}

fn read_ignored_forms(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
) -> Result<GuardDefinition, EffectError> {
    let known = definition::known_definition(repository, loaded)?;
    let paths = definition::paths_in_work_tree(context, repository, loaded)?;
    let mut forms = GuardDefinition::new();
    for path in select_ignored(context, repository, known, &paths)? {
        let metadata = std::fs::symlink_metadata(context.layout.path(&path));
        let form = match metadata {
            Ok(found) if found.is_file() && found.len() > MAX_COPIED => {
                let ino = found.ino();
                let len = found.len();
                let time = (found.ctime(), found.ctime_nsec());
                Some(format!("stat:{ino}:{len}:{}.{:09}", time.0, time.1))
            }
            _ => definition::work_tree_form(context, repository, &path)?,
        };
        let form = match form {
            None if definition::is_in_submodule(repository, loaded, &path)? => Some(ABSENT.to_owned()),
            form => form,
        };
        forms.extend(form.map(|form| (path, form)));
    }
    Ok(forms)
}

/// Returns the content of a file, if it still has the given form and is not too large.
fn copy_file(context: &RunContext, path: &str, form: &str) -> Result<Option<String>, EffectError> {
    let file = context.layout.path(path);
    if form.starts_with("120000:") {
        let target = std::fs::read_link(&file).map_err(EffectError::io_error("reading", &file))?;
        return Ok(Some(BASE64.encode(target.as_os_str().as_bytes())));
    }
    let is_object = form.rsplit(':').next().is_some_and(|id| id.parse::<Id>().is_ok());
    Ok(match path_content::read_content(&file)? {
        PathContent::File(bytes) if is_object && bytes.len() as u64 <= MAX_COPIED => Some(BASE64.encode(bytes)),
        _ => None,
    })
}

fn read_note(context: &RunContext) -> Result<IgnoredFiles, EffectError> {
    let (note, _) = context.store.ignored_file::<IgnoredFiles>(&context.run);
    Ok(note.read()?.unwrap_or_default())
}

/// Writes the note if it changes: a run without such files has none.
fn write_note(context: &RunContext, before: &IgnoredFiles, now: &IgnoredFiles) -> Result<(), EffectError> {
    if before == now {
        return Ok(());
    }
    let (note, folder) = context.store.ignored_file(&context.run);
    durable::create_dir(&folder, FileAccess::Private)?;
    Ok(note.write(now)?)
}
