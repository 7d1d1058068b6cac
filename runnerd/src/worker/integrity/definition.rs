//! The guard's definition in a commit and in the work tree, each file as git would store it.
//!
//! What follows from a difference is `runner_core::definition`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use runner_core::definition::{Definition, Departure, Guarded};
use runner_core::watched::Watched;

use crate::config::{PatternPlace as Place, Patterns};
use crate::git::{CommitEntry, EntryKind, GitError, Id, Repository};
use crate::repo::kept::{Kept, Note};
use crate::repo::layout::Layout;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::ignored;
use crate::worker::integrity::restore::{self, Standing};
use crate::worker::integrity::watched;
use crate::worker::load::{LoadError, Loaded};

/// The name of files by which git lays out others.
const ATTRIBUTES: &str = ".gitattributes";

/// What is watched at a commit, and what the commit has of it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// What is watched.
    pub(crate) watched: Watched,
    /// What was accepted of it, and what is committed.
    pub(crate) guarded: Guarded,
}

/// Reads the definition at a commit, and what was accepted as the commit tells it.
pub(crate) fn at(repository: &Repository, loaded: &Loaded) -> Result<Guarded, LoadError> {
    Ok(known(repository, loaded)?.guarded.clone())
}

/// Returns the files of the definition that a commit has otherwise than a person has accepted them, each with what was
/// accepted; nothing for one that is not to be there.
pub(crate) fn departed(repository: &Repository, loaded: &Loaded) -> Result<Vec<(String, Option<String>)>, LoadError> {
    let guarded = at(repository, loaded)?;
    let Departure { paths, has_accepted } = guarded.departure(&guarded.committed);
    let paths = paths.into_iter().filter(|_| has_accepted);
    Ok(paths
        .map(|path| {
            let accepted = guarded.accepted.get(&path).cloned();
            (path, accepted)
        })
        .collect())
}

/// Reads what is watched at a commit.
pub(crate) fn known<'l>(repository: &Repository, loaded: &'l Loaded) -> Result<&'l Known, LoadError> {
    if let Some(known) = loaded.guarded.get() {
        return Ok(known);
    }
    let watched = watched::at(repository, loaded.commit, (&loaded.config, &loaded.run_state))?;
    let committed = in_commit(repository, &loaded.commit, &patterns(&watched))?;
    let (accepted, is_absence_accepted) = (watched.accepted.clone(), watched.is_absence_accepted);
    let committed = watched.checks.settle(&accepted, committed, is_of_definition);
    let guarded = Guarded { accepted, committed, is_absence_accepted };
    Ok(loaded.guarded.get_or_init(|| Known { watched, guarded }))
}

/// Returns the definition in a commit.
pub(super) fn in_commit(repository: &Repository, commit: &Id, patterns: &Patterns) -> Result<Definition, GitError> {
    let mut entries = Vec::new();
    for place in patterns.places() {
        match place {
            Place::File(path) => entries.extend(repository.entry(commit, &path)?),
            Place::Folder(folder) => entries.extend(repository.entries(commit, &folder)?),
        }
    }
    let file = |entry: CommitEntry| Some((String::from_utf8(entry.path.clone()).ok()?, form(&entry)?));
    Ok(entries.into_iter().filter_map(file).filter(|(path, _)| is_part(path, patterns)).collect())
}

/// Compares the work tree with what was accepted before a guard runs, and keeps what was found: where it is done again,
/// it finds what has not been put back meanwhile.
pub(crate) fn look(context: &RunContext, loaded: &Loaded, iter: u32) -> Result<Departure, Obstacle> {
    let found = departure(context, &context.repository()?, loaded)?;
    note(context, iter).write(&noted(context, iter)?.and(&found))?;
    Ok(found)
}

/// Returns all that was found before the guards of this iteration; nothing where nobody has looked yet.
pub(crate) fn noted(context: &RunContext, iter: u32) -> Result<Departure, Obstacle> {
    Ok(note(context, iter).read()?.unwrap_or_default())
}

fn note(context: &RunContext, iter: u32) -> Kept<Departure> {
    context.note(iter, "definition")
}

impl Note for Departure {
    const KIND: &'static str = "definition";
    const VERSION: u32 = 1;
}

/// Has the files of the definition, and the runner's own, be read by every look, whatever their times say.
pub(crate) fn watch(repository: &Repository, loaded: &Loaded) -> Result<(), LoadError> {
    let Guarded { accepted, committed, .. } = at(repository, loaded)?;
    let own = format!("{}/", Layout::FOLDER);
    let definition: Vec<String> = accepted.into_keys().chain(committed.into_keys()).collect();
    // The records of iterations and what a session is given are not tracked.
    let state = format!("{}/", Layout::STATE);
    repository.keep_tracked(definition.iter().cloned().chain([state]));
    repository.always_read(definition.into_iter().chain([own]));
    Ok(())
}

/// Compares the work tree with what was accepted, byte for byte, ignored files and all: a guard sees them too.
///
/// A file is as accepted where it has the bytes that are stored, or those that a checkout makes of them by the accepted rules.
pub(crate) fn departure(context: &RunContext, repository: &Repository, loaded: &Loaded) -> Result<Departure, Obstacle> {
    watch(repository, loaded)?;
    let Known { watched, guarded } = known(repository, loaded)?;
    let accepted = &guarded.accepted;
    let paths = paths_in_work_tree(context, repository, loaded)?;
    let ignored = ignored::among(context, repository, known(repository, loaded)?, &paths)?;
    let mut standing = forms(context, repository, paths.difference(&ignored))?;
    if !repository.has_executable_bit()? {
        for (path, form) in &mut standing {
            if let Some(other) = accepted.get(path).filter(|other| blob_of(other) == blob_of(form)) {
                form.clone_from(other);
            }
        }
    }
    let doubtful = |path: &&String| accepted.get(*path) != standing.get(*path) && standing.contains_key(*path);
    let doubtful: Vec<&String> = accepted.keys().filter(doubtful).collect();
    let mut checks = watched.checks.clone();
    for path in standing.keys().filter(|path| accepted.get(*path) != standing.get(*path)) {
        if let (Some(form), Standing::File(bytes)) =
            (standing.get(path), restore::standing(&context.layout.path(path))?)
        {
            checks.add(path, form, &bytes);
        }
    }
    for (path, file) in laid_out(repository, accepted, doubtful)? {
        let is_laid_out = standing.get(&path) == Some(&file.form(repository)?);
        standing.extend(accepted.get(&path).filter(|_| is_laid_out).map(|form| (path.clone(), form.clone())));
    }
    let is_as_accepted = |path: &&String| accepted.get(*path) == standing.get(*path);
    let alike: Vec<String> = accepted.keys().filter(is_as_accepted).cloned().collect();
    let found = guarded.departure(&checks.settle(accepted, standing, is_of_definition));
    let departed = ignored::departed(context)?.intersection(&ignored).cloned().collect();
    let found = found.and(&Departure { paths: departed, ..found.clone() });
    if !found.paths.iter().any(|path| path.ends_with(ATTRIBUTES)) {
        return Ok(found);
    }
    // By other rules the same bytes are stored as something else.
    let changed = changed(repository)?;
    let paths = alike.into_iter().filter(|path| changed.contains(path.as_bytes())).collect();
    Ok(found.and(&Departure { paths, ..found.clone() }))
}

/// Returns those of the files that depart of which no commit would tell: git takes them for what is accepted and committed.
pub(crate) fn hidden(repository: &Repository, loaded: &Loaded, found: &Departure) -> Result<Departure, Obstacle> {
    let (accepted, changed) = (&known(repository, loaded)?.guarded.accepted, changed(repository)?);
    let head = repository.head()?.commit();
    let mut paths = Vec::new();
    for path in found.paths.iter().filter(|path| !changed.contains(path.as_bytes())) {
        let committed = head.map(|head| repository.entry(&head, path)).transpose()?.flatten();
        if committed.as_ref().and_then(form).is_some_and(|form| accepted.get(path) == Some(&form)) {
            paths.push(path.clone());
        }
    }
    Ok(Departure { paths, ..found.clone() })
}

fn changed(repository: &Repository) -> Result<BTreeSet<Vec<u8>>, GitError> {
    Ok(repository.changes()?.into_iter().map(|change| change.path).collect())
}

/// An accepted file as a checkout makes it.
pub(crate) struct DefinitionFile {
    pub(crate) kind: EntryKind,
    pub(crate) bytes: Vec<u8>,
}

impl DefinitionFile {
    /// Returns its form, of the bytes that it has.
    pub(crate) fn form(&self, repository: &Repository) -> Result<String, GitError> {
        let entry = CommitEntry { path: Vec::new(), id: repository.hash_blob(&self.bytes)?, kind: self.kind };
        Ok(form(&entry).unwrap_or_default())
    }
}

/// Returns accepted files as a checkout makes them by the accepted rules; none for what is accepted as no object.
pub(crate) fn laid_out<'p>(
    repository: &Repository,
    accepted: &Definition,
    paths: impl IntoIterator<Item = &'p String>,
) -> Result<BTreeMap<String, DefinitionFile>, GitError> {
    let entry_of = |path: &'p String| Some((path, entry(path, accepted.get(path)?)?));
    let entries: BTreeMap<&String, CommitEntry> = paths.into_iter().filter_map(entry_of).collect();
    if entries.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rules = accepted.iter().filter(|(path, _)| path.ends_with(ATTRIBUTES) && !entries.contains_key(path));
    let rules: Vec<CommitEntry> = rules.filter_map(|(path, form)| entry(path, form)).collect();
    let made = repository.laid_out(entries.values().chain(&rules))?;
    let mut laid_out = BTreeMap::new();
    for (path, CommitEntry { path: name, id, kind }) in entries {
        // What git cannot lay out stands as it is stored.
        let bytes = made.read(&name).map_or_else(|| repository.blob(&id), Ok)?;
        laid_out.insert(path.clone(), DefinitionFile { kind, bytes });
    }
    Ok(laid_out)
}

/// Returns those files of a commit that are as it says they were accepted, links aside, as a checkout makes them by the accepted
/// rules.
pub(crate) fn laid_out_at(repository: &Repository, commit: &Id) -> Result<BTreeMap<String, DefinitionFile>, LoadError> {
    if repository.entry(commit, Layout::RUN_STATE)?.is_none() {
        return Ok(BTreeMap::new());
    }
    let accepted = watched::state_at(repository, commit)?.guard_definition;
    let mut paths = Vec::new();
    for path in accepted.keys() {
        let committed = repository.entry(commit, path)?;
        if committed.as_ref().and_then(form).as_ref() == accepted.get(path) {
            paths.push(path);
        }
    }
    let files = laid_out(repository, &accepted, paths)?.into_iter();
    Ok(files.filter(|(_, file)| file.kind != EntryKind::Symlink).collect())
}

/// Reads a form.
fn entry(path: &str, form: &str) -> Option<CommitEntry> {
    let kind = match form.split_once(':').map(|(mode, _)| mode) {
        None => EntryKind::File,
        Some("100755") => EntryKind::Executable,
        Some(_) => EntryKind::Symlink,
    };
    Some(CommitEntry { path: path.as_bytes().to_vec(), id: blob_of(form).parse().ok()?, kind })
}

fn blob_of(form: &str) -> &str {
    form.rsplit(':').next().unwrap_or(form)
}

/// Returns the globs of what is watched.
pub(super) fn patterns(watched: &Watched) -> Patterns {
    Patterns::new(watched.globs.iter().cloned())
}

/// Returns the watched paths that may stand in the work tree. No link is followed, and submodules are left out: those of the
/// commit that the run began from, for a session can commit any folder as one.
pub(super) fn paths_in_work_tree(
    context: &RunContext,
    repository: &Repository,
    loaded: &Loaded,
) -> Result<BTreeSet<String>, Obstacle> {
    let patterns = &patterns(&known(repository, loaded)?.watched);
    let base = loaded.run_state.base.as_ref().and_then(|base| base.parse().ok()).unwrap_or(loaded.commit);
    let places: BTreeSet<Place> = patterns.places().into_iter().collect();
    // All other folders are below the root.
    let is_all = places.contains(&Place::Folder(String::new()));
    let is_submodule =
        |folder: &str| Ok(repository.entry(&base, folder)?.is_some_and(|entry| entry.kind == EntryKind::Submodule));
    context.last_load.with_listing(|listing| {
        let mut paths = BTreeSet::new();
        for place in places {
            match place {
                Place::File(path) => paths.extend([path]),
                Place::Folder(folder) if is_all && !folder.is_empty() => {}
                Place::Folder(folder) => {
                    paths.extend(listing.files_below((&context.layout, folder), patterns, is_submodule)?);
                }
            }
        }
        paths.retain(|path| is_part(path, patterns));
        Ok(paths)
    })
}

/// Returns what stands at these paths of the work tree.
pub(super) fn forms<'p>(
    context: &RunContext,
    repository: &Repository,
    paths: impl IntoIterator<Item = &'p String>,
) -> Result<Definition, Obstacle> {
    let mut definition = Definition::new();
    for path in paths {
        if let Some(form) = standing_form(context, repository, path)? {
            definition.insert(path.clone(), form);
        }
    }
    Ok(definition)
}

/// Tells whether a path belongs to the definition that these globs name.
pub fn is_of_definition(globs: &[String], path: &str) -> bool {
    is_part(path, &Patterns::new(globs.iter().cloned()))
}

/// What the runner owns is none of a definition's business, nor is git's own folder.
fn is_part(path: &str, patterns: &Patterns) -> bool {
    let is_under =
        |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !is_under(Layout::FOLDER) && !is_under(".git") && patterns.matches_path(path)
}

/// Returns where attributes that concern a path may stand.
pub(super) fn rules_above(path: &str) -> impl Iterator<Item = String> {
    let folders = [""].into_iter().chain(path.match_indices('/').map(|(at, _)| &path[..=at]));
    folders.map(|folder| format!("{folder}{ATTRIBUTES}"))
}

pub(super) fn form(entry: &CommitEntry) -> Option<String> {
    match entry.kind {
        EntryKind::File => Some(entry.id.to_string()),
        EntryKind::Executable => Some(format!("100755:{}", entry.id)),
        EntryKind::Symlink => Some(format!("120000:{}", entry.id)),
        EntryKind::Submodule => None,
    }
}

/// Returns what a file of the work tree is; none where there is neither file nor link on a way without links.
pub(crate) fn standing_form(
    context: &RunContext,
    repository: &Repository,
    path: &str,
) -> Result<Option<String>, Obstacle> {
    let file = context.layout.path(path);
    if leads_elsewhere(context, path) {
        return Ok(None);
    }
    let found = match looked_at(&file) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        // The guard cannot read it either.
        Err(Obstacle::System { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            return Ok(Some("unreadable".to_owned()));
        }
        Err(error) => return Err(error),
    };
    if found.is_symlink() {
        let target = std::fs::read_link(&file).map_err(Obstacle::system("reading", &file))?;
        return Ok(Some(format!("120000:{}", repository.hash_blob(target.as_os_str().as_bytes())?)));
    }
    let bytes = match restore::standing(&file) {
        Ok(Standing::File(bytes)) => bytes,
        Ok(Standing::NoFile) => return Ok(None),
        Ok(Standing::TooLarge) => return Ok(Some("too large".to_owned())),
        // The guard cannot read it either.
        Err(Obstacle::System { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            return Ok(Some("unreadable".to_owned()));
        }
        Err(error) => return Err(error),
    };
    let mode = if found.permissions().mode() & 0o100 == 0 { "" } else { "100755:" };
    Ok(Some(format!("{mode}{}", repository.hash_blob(&bytes)?)))
}

/// Whether something else than a folder stands on the way to a path.
fn leads_elsewhere(context: &RunContext, path: &str) -> bool {
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    let is_folder = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    folders.into_iter().any(|folder| !is_folder(&context.layout.path(folder)))
}

/// Looks at what stands at a path, where anything does.
///
/// A file that is there for the guard must not be compared as if it were not: what the system refuses is told.
fn looked_at(file: &Path) -> Result<Option<Metadata>, Obstacle> {
    match std::fs::symlink_metadata(file) {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Obstacle::system("looking at", file)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_the_system_refuses_to_show_is_not_taken_for_absent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("guard.sh");
        assert!(looked_at(&file).unwrap().is_none());
        std::fs::write(&file, "").unwrap();
        assert!(looked_at(&file).unwrap().is_some());
        assert!(looked_at(&file.join("below")).unwrap().is_none());
        looked_at(&folder.path().join("x".repeat(300))).unwrap_err();
    }
}
