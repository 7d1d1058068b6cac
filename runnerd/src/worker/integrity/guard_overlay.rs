//! Puts the accepted definition of the guard in the place of what a session left: for one run of the guard, or for
//! good. Hides what an agent's program would obey, for one session.
//!
//! Files in the way are moved to `live/`, which no guard touches, so that they return exactly as they were. A list is
//! written before anything is moved: if the list exists, everything in it is moved back first.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use runner_core::guard::definition::{DefinitionDiff, GuardDefinition, is_within};
use runner_git::{EntryKind, GitError, Id};
use runner_os::dir_permissions::OpenedDirs;
use serde::{Deserialize, Serialize};

use crate::repo::durable::{self, FileAccess};
use crate::repo::sealed::{Sealable, SealedFile};
use crate::worker::cleanup::remove_path;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::definition::{
    DefinitionFile, attribute_files_above, checkout_files, entry_form, work_tree_form,
};
use crate::worker::integrity::ignored;
use crate::worker::integrity::move_path::{move_path, sync_parent};
use crate::worker::integrity::path_content::put_file;
use crate::worker::integrity::quarantine::Quarantine;

/// Files that are moved away for one run of the guard, or for one session.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardOverlay {
    /// Number of the iteration.
    iter: u32,
    /// Paths that were moved away; the n-th is stored under the name n.
    moved: Vec<String>,
    /// The files that were written in their place, each with its form.
    laid: GuardDefinition,
    /// Folders that were created for them, outermost first.
    #[serde(rename = "made")]
    created_folders: Vec<String>,
}

impl Sealable for GuardOverlay {
    const KIND: &'static str = "swap";
    const VERSION: u32 = 1;
}

/// Puts the accepted files in the place of those that deviate, until [`revert`].
pub(crate) fn apply(
    context: &RunContext,
    iter: u32,
    accepted: &GuardDefinition,
    diff: &DefinitionDiff,
) -> Result<(), EffectError> {
    let repository = context.repository()?;
    let files = accepted_files(context, accepted, diff)?;
    let _open = open_parents(context, &diff.paths);
    let missing = |folder: &&str| std::fs::symlink_metadata(context.layout.path(folder)).is_err();
    let created: BTreeSet<&str> = files.keys().flat_map(|path| parent_dirs(path)).filter(missing).collect();
    let created = created.into_iter().map(str::to_owned).collect();
    let form = |(path, file): (&String, &DefinitionFile)| Ok::<_, GitError>((path.clone(), file.form(&repository)?));
    let placed = files.iter().map(form).collect::<Result<_, _>>()?;
    move_away(
        context,
        &GuardOverlay {
            iter,
            moved: find_blocking_paths(context, &diff.paths),
            laid: placed,
            created_folders: created,
        },
    )?;
    write_files(context, &files)
}

/// Moves these paths away until [`revert`], whatever is there; returns those that exist.
pub(crate) fn hide(context: &RunContext, iter: u32, paths: &[&str]) -> Result<Vec<String>, EffectError> {
    revert(context)?;
    let mut moved = Vec::new();
    for path in paths {
        if path_exists(&context.layout.path(path))? {
            moved.push((*path).to_owned());
        }
    }
    if !moved.is_empty() {
        let overlay =
            GuardOverlay { iter, moved: moved.clone(), laid: GuardDefinition::new(), created_folders: Vec::new() };
        move_away(context, &overlay)?;
    }
    Ok(moved)
}

fn move_away(context: &RunContext, overlay: &GuardOverlay) -> Result<(), EffectError> {
    let folder = overlay_dir(context);
    durable::create_dir(&folder, FileAccess::Private)?;
    overlay_note(context).write(overlay)?;
    for (number, path) in overlay.moved.iter().enumerate() {
        move_path(&context.layout.path(path), &folder.join(number.to_string()))?;
    }
    Ok(())
}

/// Puts the accepted files there for good; what was in the way is saved in the record.
pub(crate) fn restore_accepted(
    context: &RunContext,
    iter: u32,
    accepted: &GuardDefinition,
    diff: &DefinitionDiff,
) -> Result<(), EffectError> {
    let _open = open_parents(context, &diff.paths);
    for path in find_blocking_paths(context, &diff.paths) {
        quarantine_path(context, iter, "definition", &path)?;
    }
    write_files(context, &accepted_files(context, accepted, diff)?)
}

/// Moves back what [`apply`] has moved away, if anything. Idempotent.
///
/// A list that cannot be trusted holds the run, and everything is left where it is: nothing else records what belongs
/// where.
pub(crate) fn revert(context: &RunContext) -> Result<(), EffectError> {
    let Some(swap) = overlay_note(context).read()? else { return Ok(()) };
    let folder = overlay_dir(context);
    let _open = open_parents(context, swap.moved.iter().chain(swap.laid.keys()));
    for (number, path) in swap.moved.iter().enumerate() {
        let saved = folder.join(number.to_string());
        if !path_exists(&saved)? {
            continue;
        }
        remove_placed(context, &swap, path)?;
        create_parents(context, path)?;
        remove_leftovers(context, path)?;
        move_path(&saved, &context.layout.path(path))?;
    }
    let is_moved = |path: &&String| swap.moved.iter().any(|moved| is_within(path, moved));
    for path in swap.laid.keys().filter(|path| !is_moved(path)) {
        remove_placed(context, &swap, path)?;
        remove_leftovers(context, path)?;
    }
    for folder in swap.created_folders.iter().rev() {
        // Anything the guard has written there stays, and so does its folder.
        let _ = std::fs::remove_dir(context.layout.path(folder));
    }
    overlay_note(context).remove()?;
    // Empty by now.
    let _ = std::fs::remove_dir(&folder);
    Ok(())
}

/// Resets these paths to their state in a commit. Anything but a file or a link in their place is moved to the record.
pub(crate) fn restore_paths(context: &RunContext, iter: u32, commit: &Id, paths: &[String]) -> Result<(), EffectError> {
    let files = files_at(context, commit, paths)?;
    let _open = open_parents(context, paths);
    for path in paths.iter().filter(|path| !files.contains_key(*path)) {
        // The change removed it; From has what was there.
        remove_path(&context.layout.path(path))?;
    }
    for path in files.keys() {
        clear_way(context, iter, path)?;
    }
    write_files(context, &files)
}

/// Resets these paths to their state in a commit, whatever is in the way of their files; what is there must be kept
/// elsewhere. A folder in the way may hold files that git ignores: it is saved in the record.
pub(crate) fn restore_changed_paths(
    context: &RunContext,
    iter: u32,
    commit: &Id,
    paths: &[String],
) -> Result<(), EffectError> {
    let files = files_at(context, commit, paths)?;
    let _open = open_parents(context, paths);
    for path in find_blocking_paths(context, paths) {
        let file = context.layout.path(&path);
        if std::fs::symlink_metadata(&file).is_ok_and(|found| found.is_dir()) {
            quarantine_path(context, iter, "scope", &path)?;
        } else {
            remove_path(&file)?;
            sync_parent(&file)?;
        }
    }
    for path in paths.iter().filter(|path| !files.contains_key(*path)) {
        for folder in parent_dirs(path).collect::<Vec<_>>().into_iter().rev() {
            // Anything else that is there stays, and so does its folder.
            let _ = std::fs::remove_dir(context.layout.path(folder));
        }
    }
    write_files(context, &files)
}

/// Returns those of these paths that have a file in a commit, each as a checkout by the commit's attributes writes it.
fn files_at(
    context: &RunContext,
    commit: &Id,
    paths: &[String],
) -> Result<BTreeMap<String, DefinitionFile>, EffectError> {
    let repository = context.repository()?;
    let mut expected = GuardDefinition::new();
    for path in paths {
        let rules = attribute_files_above(path);
        for path in rules.chain([path.clone()]) {
            let entry = repository.find_entry(commit, &path)?;
            expected.extend(entry.as_ref().and_then(entry_form).map(|form| (path, form)));
        }
    }
    Ok(checkout_files(&repository, &expected, paths.iter().filter(|path| expected.contains_key(*path)))?)
}

/// Moves to the record what keeps a file from being written: a folder or the like in its place, anything but a folder on
/// the way to it.
fn clear_way(context: &RunContext, iter: u32, path: &str) -> Result<(), EffectError> {
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    for part in ends.map(|end| &path[..end]) {
        let Ok(found) = std::fs::symlink_metadata(context.layout.path(part)) else { return Ok(()) };
        let is_in_way = if part == path { !found.is_file() && !found.is_symlink() } else { !found.is_dir() };
        if is_in_way {
            return quarantine_path(context, iter, "swapped", part);
        }
    }
    Ok(())
}

/// Removes what was put at a path; if the guard has changed it, that is saved in the record.
fn remove_placed(context: &RunContext, overlay: &GuardOverlay, path: &str) -> Result<(), EffectError> {
    let repository = context.repository()?;
    let is_as_placed = |form: &String| overlay.laid.get(path) == Some(form);
    match work_tree_form(context, &repository, path)? {
        Some(form) if is_as_placed(&form) => remove_path(&context.layout.path(path)),
        _ => quarantine_path(context, overlay.iter, "swapped", path),
    }
}

/// Saves the content of a path in the record, apart from other saved files.
fn quarantine_path(context: &RunContext, iter: u32, kind: &str, path: &str) -> Result<(), EffectError> {
    let file = context.layout.path(path);
    if std::fs::symlink_metadata(&file).is_err() {
        return Ok(());
    }
    Quarantine::for_iteration(context, iter).move_file(&format!("{kind}/{path}"), &file)?;
    sync_parent(&file)
}

/// Returns the accepted files among those that deviate.
fn accepted_files(
    context: &RunContext,
    accepted: &GuardDefinition,
    diff: &DefinitionDiff,
) -> Result<BTreeMap<String, DefinitionFile>, EffectError> {
    let mut files = checkout_files(&context.repository()?, accepted, &diff.paths)?;
    let expected = diff.paths.iter().filter_map(|path| Some((path, accepted.get(path)?)));
    if let Some((_, form)) = expected.into_iter().find(|(path, _)| !files.contains_key(*path)) {
        return Err(EffectError::InvalidBlob(form.clone()));
    }
    files.extend(ignored::accepted_files(context, diff)?);
    Ok(files)
}

/// Lists what is in the way of the accepted files: at their paths, or in the place of a folder on the way to one.
fn find_blocking_paths(context: &RunContext, paths: &[String]) -> Vec<String> {
    let mut blocking: Vec<String> = Vec::new();
    for path in paths {
        let is_folder =
            |path: &str| std::fs::symlink_metadata(context.layout.path(path)).is_ok_and(|found| found.is_dir());
        let first = parent_dirs(path).find(|folder| !is_folder(folder)).unwrap_or(path);
        let exists = std::fs::symlink_metadata(context.layout.path(first)).is_ok();
        if exists && !blocking.iter().any(|known| is_within(first, known)) {
            blocking.push(first.to_owned());
        }
    }
    blocking
}

/// Writes files as a checkout would.
fn write_files(context: &RunContext, files: &BTreeMap<String, DefinitionFile>) -> Result<(), EffectError> {
    for (path, file) in files {
        create_parents(context, path)?;
        remove_leftovers(context, path)?;
        write_file(&context.layout.path(path), file)?;
    }
    Ok(())
}

fn write_file(file: &Path, DefinitionFile { kind, bytes }: &DefinitionFile) -> Result<(), EffectError> {
    if *kind == EntryKind::Symlink {
        return symlink(OsStr::from_bytes(bytes), file).map_err(EffectError::io_error("linking", file));
    }
    put_file(file, *kind, bytes)
}

/// Opens folders that a process has closed on the way to these paths, until the result is dropped.
fn open_parents<'p>(context: &RunContext, paths: impl IntoIterator<Item = &'p String>) -> OpenedDirs {
    OpenedDirs::open_parents(context.layout.root(), paths)
}

fn create_parents(context: &RunContext, path: &str) -> Result<(), EffectError> {
    if let Some((folder, _)) = path.rsplit_once('/') {
        durable::create_dir_below_unsynced(context.layout.root(), folder, FileAccess::Repository)?;
    }
    Ok(())
}

/// Removes the temporary file that a killed write leaves next to a path.
fn remove_leftovers(context: &RunContext, path: &str) -> Result<(), EffectError> {
    let file = context.layout.path(path);
    let folder = file.parent().filter(|folder| folder.is_dir());
    Ok(folder.map_or(Ok(0), durable::remove_leftovers).map(drop)?)
}

/// Whether the file is still in `live/`: otherwise it has been moved back, or was never moved.
fn path_exists(path: &Path) -> Result<bool, EffectError> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(EffectError::io_error("looking at", path)(error)),
    }
}

/// Returns the folders on the way to a path, outermost first.
fn parent_dirs(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Not named after the iteration: like the files it lists, it survives the removal of an iteration's notes.
fn overlay_note(context: &RunContext) -> SealedFile<GuardOverlay> {
    context.run_note("swap")
}

fn overlay_dir(context: &RunContext) -> PathBuf {
    context.store.live_dir().join(format!("{}-swapped", context.run))
}
