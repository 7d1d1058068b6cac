//! The accepted definition of the guard in the place of the one that a session has left: for one run of the guard, or for
//! good.
//!
//! What stands in the way is moved to `live/`, where no guard has any business, so that it comes back exactly as it was.
//! Before anything is moved, a list of it is there: whoever finds the list puts everything back first.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use runner_core::definition::{Definition, Departure};
use serde::{Deserialize, Serialize};

use crate::folders::Opened;
use crate::git::{EntryKind, GitError, Id};
use crate::repo::durable::{self, Access};
use crate::repo::kept::{Kept, Note};
use crate::worker::clear::remove;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::definition::{DefinitionFile, form, laid_out, rules_above, standing_form};
use crate::worker::integrity::ignored;
use crate::worker::integrity::quarantine::Quarantine;
use crate::worker::integrity::relocate::{relocate, sync_folder_of};
use crate::worker::integrity::restore::put_file;

/// What is out of its place for one run of the guard.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Swap {
    /// Number of the iteration.
    iter: u32,
    /// What stood in the way; the n-th is kept under the name n.
    moved: Vec<String>,
    /// The files that were put there, each with its form.
    laid: Definition,
    /// Folders that were made for them, the outermost first.
    made: Vec<String>,
}

impl Note for Swap {
    const KIND: &'static str = "swap";
    const VERSION: u32 = 1;
}

/// Puts the accepted files in the place of those that depart, until [`back`].
pub(crate) fn lay(
    context: &RunContext,
    iter: u32,
    accepted: &Definition,
    departure: &Departure,
) -> Result<(), Obstacle> {
    let repository = context.repository()?;
    let files = files_of(context, accepted, departure)?;
    let _open = open_ways(context, &departure.paths);
    let missing = |folder: &&str| std::fs::symlink_metadata(context.layout.path(folder)).is_err();
    let made: BTreeSet<&str> = files.keys().flat_map(|path| folders(path)).filter(missing).collect();
    let made = made.into_iter().map(str::to_owned).collect();
    let form = |(path, file): (&String, &DefinitionFile)| Ok::<_, GitError>((path.clone(), file.form(&repository)?));
    let laid = files.iter().map(form).collect::<Result<_, _>>()?;
    let swap = Swap { iter, moved: in_the_way(context, departure), laid, made };
    let folder = kept_in(context);
    durable::create_dir(&folder, Access::Private)?;
    list(context).write(&swap)?;
    for (number, path) in swap.moved.iter().enumerate() {
        relocate(&context.layout.path(path), &folder.join(number.to_string()))?;
    }
    put(context, &files)
}

/// Puts the accepted files there for good; what stood in the way is kept in the record.
pub(crate) fn revert(
    context: &RunContext,
    iter: u32,
    accepted: &Definition,
    departure: &Departure,
) -> Result<(), Obstacle> {
    let _open = open_ways(context, &departure.paths);
    for path in in_the_way(context, departure) {
        keep(context, iter, ("definition", &path))?;
    }
    put(context, &files_of(context, accepted, departure)?)
}

/// Puts back what [`lay`] has moved, if anything is out of its place. Done again it finds nothing.
///
/// A list that cannot be trusted holds the run, and everything stays where it is: nobody else knows what belongs where.
pub(crate) fn back(context: &RunContext) -> Result<(), Obstacle> {
    let Some(swap) = list(context).read()? else { return Ok(()) };
    let folder = kept_in(context);
    let _open = open_ways(context, swap.moved.iter().chain(swap.laid.keys()));
    for (number, path) in swap.moved.iter().enumerate() {
        let kept = folder.join(number.to_string());
        if !is_kept(&kept)? {
            continue;
        }
        clear(context, &swap, path)?;
        make_folders(context, path)?;
        remove_leftovers(context, path)?;
        relocate(&kept, &context.layout.path(path))?;
    }
    let is_moved = |path: &&String| swap.moved.iter().any(|moved| is_below(path, moved));
    for path in swap.laid.keys().filter(|path| !is_moved(path)) {
        clear(context, &swap, path)?;
        remove_leftovers(context, path)?;
    }
    for folder in swap.made.iter().rev() {
        // What the guard has written there stays, and its folder with it.
        let _ = std::fs::remove_dir(context.layout.path(folder));
    }
    list(context).remove()?;
    // Empty by now.
    let _ = std::fs::remove_dir(&folder);
    Ok(())
}

/// Makes these paths what a commit has there.
pub(crate) fn restore(context: &RunContext, commit: &Id, paths: &[String]) -> Result<(), Obstacle> {
    let repository = context.repository()?;
    let mut wanted = Definition::new();
    for path in paths {
        let rules = rules_above(path);
        for path in rules.chain([path.clone()]) {
            let entry = repository.entry(commit, &path)?;
            wanted.extend(entry.as_ref().and_then(form).map(|form| (path, form)));
        }
    }
    let _open = open_ways(context, paths);
    for path in paths.iter().filter(|path| !wanted.contains_key(*path)) {
        // The change has removed it, and From has what stands there.
        remove(&context.layout.path(path))?;
    }
    put(context, &laid_out(&repository, &wanted, paths.iter().filter(|path| wanted.contains_key(*path)))?)
}

/// Takes away what was put at a path; what the guard has made of it is kept in the record.
fn clear(context: &RunContext, swap: &Swap, path: &str) -> Result<(), Obstacle> {
    let repository = context.repository()?;
    let is_as_laid = |form: &String| swap.laid.get(path) == Some(form);
    match standing_form(context, &repository, path)? {
        Some(form) if is_as_laid(&form) => remove(&context.layout.path(path)),
        _ => keep(context, swap.iter, ("swapped", path)),
    }
}

/// Keeps what stands at a path in the record, apart from what others keep there.
fn keep(context: &RunContext, iter: u32, (as_what, path): (&str, &str)) -> Result<(), Obstacle> {
    let file = context.layout.path(path);
    if std::fs::symlink_metadata(&file).is_err() {
        return Ok(());
    }
    Quarantine::of(context, iter).take(&format!("{as_what}/{path}"), &file)?;
    sync_folder_of(&file)
}

/// Returns the accepted files among those that depart.
fn files_of(
    context: &RunContext,
    accepted: &Definition,
    departure: &Departure,
) -> Result<BTreeMap<String, DefinitionFile>, Obstacle> {
    let mut files = laid_out(&context.repository()?, accepted, &departure.paths)?;
    let wanted = departure.paths.iter().filter_map(|path| Some((path, accepted.get(path)?)));
    if let Some((_, form)) = wanted.into_iter().find(|(path, _)| !files.contains_key(*path)) {
        return Err(Obstacle::NoBlob(form.clone()));
    }
    files.extend(ignored::accepted(context, departure)?);
    Ok(files)
}

/// Names what stands where the accepted files go: at their paths, or in the place of a folder on the way to one.
fn in_the_way(context: &RunContext, departure: &Departure) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for path in &departure.paths {
        let is_folder =
            |path: &str| std::fs::symlink_metadata(context.layout.path(path)).is_ok_and(|found| found.is_dir());
        let first = folders(path).find(|folder| !is_folder(folder)).unwrap_or(path);
        let stands = std::fs::symlink_metadata(context.layout.path(first)).is_ok();
        if stands && !found.iter().any(|known| is_below(first, known)) {
            found.push(first.to_owned());
        }
    }
    found
}

/// Writes files as a checkout makes them.
fn put(context: &RunContext, files: &BTreeMap<String, DefinitionFile>) -> Result<(), Obstacle> {
    for (path, file) in files {
        make_folders(context, path)?;
        remove_leftovers(context, path)?;
        put_one(&context.layout.path(path), file)?;
    }
    Ok(())
}

fn put_one(file: &Path, DefinitionFile { kind, bytes }: &DefinitionFile) -> Result<(), Obstacle> {
    if *kind == EntryKind::Symlink {
        return symlink(OsStr::from_bytes(bytes), file).map_err(Obstacle::system("linking", file));
    }
    put_file(file, *kind, bytes)
}

/// Opens the folders on the way to paths that a process has closed, for as long as something is done there.
fn open_ways<'p>(context: &RunContext, paths: impl IntoIterator<Item = &'p String>) -> Opened {
    Opened::ways(context.layout.root(), paths)
}

fn make_folders(context: &RunContext, path: &str) -> Result<(), Obstacle> {
    if let Some((folder, _)) = path.rsplit_once('/') {
        durable::put_dir_below(context.layout.root(), folder, Access::Repository)?;
    }
    Ok(())
}

/// A write that was cut short by a kill leaves a file beside its own.
fn remove_leftovers(context: &RunContext, path: &str) -> Result<(), Obstacle> {
    let file = context.layout.path(path);
    let folder = file.parent().filter(|folder| folder.is_dir());
    Ok(folder.map_or(Ok(0), durable::remove_leftovers).map(drop)?)
}

/// Whether something is kept there: what is not is back in its place, or was not moved yet.
fn is_kept(path: &Path) -> Result<bool, Obstacle> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Obstacle::system("looking at", path)(error)),
    }
}

/// Returns the folders on the way to a path, the outermost first.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Not named by the iteration: it outlives all that is forgotten with one. What it lists does, too.
fn list(context: &RunContext) -> Kept<Swap> {
    context.note_of_run("swap")
}

fn kept_in(context: &RunContext) -> PathBuf {
    context.store.live().join(format!("{}-swapped", context.run))
}
