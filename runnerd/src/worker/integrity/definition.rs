//! Reads the guard's definition in a commit and in the work tree, each file as git would store it.
//!
//! `runner_core::guard::definition` decides what follows from a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use runner_config::{PatternRoot as Place, Patterns};
use runner_core::guard::definition::{
    DefinitionDiff, DefinitionState, GuardDefinition, is_definition_path, is_in_definition, is_within,
};
use runner_core::guard::watched_files::WatchedFiles;
use runner_git::{CommitEntry, EntryKind, GitError, Id, Repository};

use crate::repo::layout::Layout;
use crate::repo::sealed::{Sealable, SealedFile};
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::ignored;
use crate::worker::integrity::path_content::{self, PathContent};
use crate::worker::integrity::watched;
use crate::worker::load::{CommittedState, LoadError};

/// The name of the files that control how git checks out others.
const ATTRIBUTES_FILE: &str = ".gitattributes";
/// Form of a file that its owner cannot read.
pub(super) const UNREADABLE: &str = "unreadable";

/// What is watched at a commit, and the commit's version of it.
#[derive(Debug, Clone)]
pub(crate) struct CommitDefinition {
    /// The watched files.
    pub(crate) watched_files: WatchedFiles,
    /// What was accepted of them, and what is committed.
    pub(crate) definition: DefinitionState,
}

/// Reads the definition at a commit, and what the commit records as accepted.
pub(crate) fn definition_at(repository: &Repository, loaded: &CommittedState) -> Result<DefinitionState, LoadError> {
    Ok(known_definition(repository, loaded)?.definition.clone())
}

/// Returns the definition files whose committed version differs from the one a person accepted, each with the accepted
/// version; `None` if the file should not exist.
pub(crate) fn changed_files(
    repository: &Repository,
    loaded: &CommittedState,
) -> Result<Vec<(String, Option<String>)>, LoadError> {
    let definition = definition_at(repository, loaded)?;
    let DefinitionDiff { paths, has_accepted } = definition.diff_from_accepted(&definition.committed);
    let paths = paths.into_iter().filter(|_| has_accepted);
    Ok(paths
        .map(|path| {
            let accepted = definition.accepted.get(&path).cloned();
            (path, accepted)
        })
        .collect())
}

/// Reads the watched files at a commit; cached in `loaded`.
pub(crate) fn known_definition<'l>(
    repository: &Repository,
    loaded: &'l CommittedState,
) -> Result<&'l CommitDefinition, LoadError> {
    if let Some(known) = loaded.definition.get() {
        return Ok(known);
    }
    let watched = watched::watched_with_config(repository, loaded.commit, &loaded.config, &loaded.run_state)?;
    let committed = read_from_commit(repository, &loaded.commit, &watch_patterns(&watched))?;
    let accepted = watched.accepted.clone();
    let is_absence_accepted = watched.is_absence_accepted;
    let committed = watched.checks.normalize_forms(&accepted, committed, is_in_definition);
    let definition = DefinitionState { accepted, committed, is_absence_accepted };
    Ok(loaded.definition.get_or_init(|| CommitDefinition { watched_files: watched, definition }))
}

/// Returns the definition in a commit.
pub(super) fn read_from_commit(
    repository: &Repository,
    commit: &Id,
    patterns: &Patterns,
) -> Result<GuardDefinition, GitError> {
    let mut entries = Vec::new();
    for place in patterns.roots() {
        match place {
            Place::File(path) => entries.extend(repository.find_entry(commit, &path)?),
            Place::Folder(folder) => entries.extend(repository.list_entries(commit, &folder)?),
        }
    }
    let file = |entry: CommitEntry| Some((String::from_utf8(entry.path.clone()).ok()?, entry_form(&entry)?));
    Ok(entries.into_iter().filter_map(file).filter(|(path, _)| is_definition_path(path, patterns)).collect())
}

/// Compares the work tree with the accepted definition before a guard runs, and notes the differences: a repeated check
/// would only find what has not been restored meanwhile.
pub(crate) fn compare_before_guard(
    context: &RunContext,
    loaded: &CommittedState,
    iter: u32,
) -> Result<DefinitionDiff, EffectError> {
    let diff = diff_work_tree(context, &context.repository()?, loaded)?;
    let noted = noted_diff(context, iter)?;
    let merged = noted.merged_with(&diff);
    if merged != noted {
        diff_note(context, iter).write(&merged)?;
    }
    Ok(diff)
}

/// Returns all differences found before the guards of this iteration; empty if no check has run yet.
pub(crate) fn noted_diff(context: &RunContext, iter: u32) -> Result<DefinitionDiff, EffectError> {
    Ok(diff_note(context, iter).read()?.unwrap_or_default())
}

fn diff_note(context: &RunContext, iter: u32) -> SealedFile<DefinitionDiff> {
    context.iteration_note(iter, "definition")
}

impl Sealable for DefinitionDiff {
    const KIND: &'static str = "definition";
    const VERSION: u32 = 1;
}

/// Makes every scan read the definition files and the runner's own, whatever their timestamps say.
pub(crate) fn watch_files(repository: &Repository, loaded: &CommittedState) -> Result<(), LoadError> {
    let DefinitionState { accepted, committed, .. } = definition_at(repository, loaded)?;
    let runner_dir = format!("{}/", Layout::FOLDER);
    let definition: Vec<String> = accepted.into_keys().chain(committed.into_keys()).collect();
    // Iteration records and a session's input are not tracked.
    let state = format!("{}/", Layout::STATE);
    repository.set_guarded(definition.iter().cloned().chain([state]));
    repository.set_always_read(definition.into_iter().chain([runner_dir]));
    Ok(())
}

/// Compares the work tree with the accepted definition byte for byte, including ignored files: the guard sees those
/// too.
///
/// A file matches if its bytes are the stored ones, or what a checkout by the accepted attributes makes of them.
pub(crate) fn diff_work_tree(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
) -> Result<DefinitionDiff, EffectError> {
    watch_files(repository, loaded)?;
    let CommitDefinition { watched_files: watched, definition: guarded } = known_definition(repository, loaded)?;
    let accepted = &guarded.accepted;
    let paths = paths_in_work_tree(context, repository, loaded)?;
    let ignored = ignored::select_ignored(context, repository, known_definition(repository, loaded)?, &paths)?;
    let mut present = read_forms(context, repository, paths.difference(&ignored))?;
    if !repository.has_executable_bit()? {
        for (path, form) in &mut present {
            if let Some(other) = accepted.get(path).filter(|other| form_blob(other) == form_blob(form)) {
                form.clone_from(other);
            }
        }
    }
    let doubtful = |path: &&String| accepted.get(*path) != present.get(*path) && present.contains_key(*path);
    let doubtful: Vec<&String> = accepted.keys().filter(doubtful).collect();
    let mut checks = watched.checks.clone();
    for path in present.keys().filter(|path| accepted.get(*path) != present.get(*path)) {
        if let (Some(form), PathContent::File(bytes)) =
            (present.get(path), path_content::read_content(&context.layout.path(path))?)
        {
            checks.add(path, form, &bytes);
        }
    }
    for (path, file) in checkout_files(repository, accepted, doubtful)? {
        let is_checkout = present.get(&path) == Some(&file.form(repository)?);
        present.extend(accepted.get(&path).filter(|_| is_checkout).map(|form| (path.clone(), form.clone())));
    }
    let is_as_accepted = |path: &&String| accepted.get(*path) == present.get(*path);
    let unchanged: Vec<String> = accepted.keys().filter(is_as_accepted).cloned().collect();
    let diff = guarded.diff_from_accepted(&checks.normalize_forms(accepted, present, is_in_definition));
    let departed = ignored::changed_files(context)?.intersection(&ignored).cloned().collect();
    let diff = diff.merged_with(&DefinitionDiff { paths: departed, ..diff.clone() });
    if !diff.paths.iter().any(|path| path.ends_with(ATTRIBUTES_FILE)) {
        return Ok(diff);
    }
    // Under other attributes the same bytes are stored differently.
    let changed = changed_paths(repository)?;
    let paths = unchanged.into_iter().filter(|path| changed.contains(path.as_bytes())).collect();
    Ok(diff.merged_with(&DefinitionDiff { paths, ..diff.clone() }))
}

/// Returns those of the deviating files that no commit would show: git considers them accepted and committed.
pub(crate) fn hidden_changes(
    repository: &Repository,
    loaded: &CommittedState,
    diff: &DefinitionDiff,
) -> Result<DefinitionDiff, EffectError> {
    let accepted = &known_definition(repository, loaded)?.definition.accepted;
    let changed = changed_paths(repository)?;
    let head = repository.head()?.commit();
    let mut paths = Vec::new();
    for path in diff.paths.iter().filter(|path| !changed.contains(path.as_bytes())) {
        let committed = head.map(|head| repository.find_entry(&head, path)).transpose()?.flatten();
        if committed.as_ref().and_then(entry_form).is_some_and(|form| accepted.get(path) == Some(&form)) {
            paths.push(path.clone());
        }
    }
    Ok(DefinitionDiff { paths, ..diff.clone() })
}

fn changed_paths(repository: &Repository) -> Result<BTreeSet<Vec<u8>>, GitError> {
    Ok(repository.list_changes()?.into_iter().map(|change| change.path).collect())
}

/// An accepted file as a checkout writes it.
pub(crate) struct DefinitionFile {
    pub(crate) kind: EntryKind,
    pub(crate) bytes: Vec<u8>,
}

impl DefinitionFile {
    /// Returns its form, computed from its bytes.
    pub(crate) fn form(&self, repository: &Repository) -> Result<String, GitError> {
        let entry = CommitEntry { path: Vec::new(), id: repository.hash_blob(&self.bytes)?, kind: self.kind };
        Ok(entry_form(&entry).unwrap_or_default())
    }
}

/// Returns accepted files as a checkout by the accepted attributes writes them; `None` for a path whose accepted form
/// is not an object.
pub(crate) fn checkout_files<'p>(
    repository: &Repository,
    accepted: &GuardDefinition,
    paths: impl IntoIterator<Item = &'p String>,
) -> Result<BTreeMap<String, DefinitionFile>, GitError> {
    let entry_of = |path: &'p String| Some((path, parse_form(path, accepted.get(path)?)?));
    let entries: BTreeMap<&String, CommitEntry> = paths.into_iter().filter_map(entry_of).collect();
    if entries.is_empty() {
        return Ok(BTreeMap::new());
    }
    let attribute_files =
        accepted.iter().filter(|(path, _)| path.ends_with(ATTRIBUTES_FILE) && !entries.contains_key(path));
    let attribute_files: Vec<CommitEntry> = attribute_files.filter_map(|(path, form)| parse_form(path, form)).collect();
    let checkout = repository.check_out_entries(entries.values().chain(&attribute_files))?;
    let mut files = BTreeMap::new();
    for (path, CommitEntry { path: name, id, kind }) in entries {
        // A file that git cannot check out is written as it is stored.
        let bytes = checkout.read_file(&name).map_or_else(|| repository.read_blob(&id), Ok)?;
        files.insert(path.clone(), DefinitionFile { kind, bytes });
    }
    Ok(files)
}

/// Returns the files of a commit that match their accepted version, links excluded, as a checkout by the accepted
/// attributes writes them.
pub(crate) fn checkout_files_at(
    repository: &Repository,
    commit: &Id,
) -> Result<BTreeMap<String, DefinitionFile>, LoadError> {
    if repository.find_entry(commit, Layout::RUN_STATE)?.is_none() {
        return Ok(BTreeMap::new());
    }
    let accepted = watched::read_run_state(repository, commit)?.guard_definition;
    let mut paths = Vec::new();
    for path in accepted.keys() {
        let committed = repository.find_entry(commit, path)?;
        if committed.as_ref().and_then(entry_form).as_ref() == accepted.get(path) {
            paths.push(path);
        }
    }
    let files = checkout_files(repository, &accepted, paths)?.into_iter();
    Ok(files.filter(|(_, file)| file.kind != EntryKind::Symlink).collect())
}

/// Parses a form into a commit entry.
fn parse_form(path: &str, form: &str) -> Option<CommitEntry> {
    let kind = match form.split_once(':').map(|(mode, _)| mode) {
        None => EntryKind::File,
        Some("100755") => EntryKind::Executable,
        Some(_) => EntryKind::Symlink,
    };
    Some(CommitEntry { path: path.as_bytes().to_vec(), id: form_blob(form).parse().ok()?, kind })
}

fn form_blob(form: &str) -> &str {
    form.rsplit(':').next().unwrap_or(form)
}

/// Returns the globs of what is watched.
pub(super) fn watch_patterns(watched: &WatchedFiles) -> Patterns {
    Patterns::new(watched.globs.iter().cloned())
}

/// Returns the watched paths that may exist in the work tree. Never follows links. Only submodules of the run's base
/// commit are left out, since a session can commit any folder as one, and only where no glob names a place in them.
pub(super) fn paths_in_work_tree(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
) -> Result<BTreeSet<String>, EffectError> {
    let patterns = &watch_patterns(&known_definition(repository, loaded)?.watched_files);
    let base = watched::base_of(&loaded.run_state).unwrap_or(loaded.commit);
    let search_roots: BTreeSet<Place> = patterns.roots().into_iter().collect();
    // All other folders are below the root.
    let includes_root = search_roots.contains(&Place::Folder(String::new()));
    let is_named = |submodule: &str| {
        search_roots.iter().any(|place| matches!(place, Place::Folder(folder) if is_within(folder, submodule)))
    };
    let is_separate = |folder: &str| Ok(!is_named(folder) && watched::is_submodule(repository, &base, folder)?);
    context.last_load.with_listing(|listing| {
        let mut paths = BTreeSet::new();
        for place in &search_roots {
            match place {
                Place::File(path) => paths.extend([path.clone()]),
                Place::Folder(folder) if includes_root && !folder.is_empty() => {}
                Place::Folder(folder) => {
                    paths.extend(listing.files_below(&context.layout, folder.clone(), patterns, is_separate)?);
                }
            }
        }
        paths.retain(|path| is_definition_path(path, patterns));
        let is_gits = |path: &&String| path.split('/').any(|name| name == ".git");
        for path in paths.iter().filter(is_gits).cloned().collect::<Vec<_>>() {
            if is_in_submodule(repository, loaded, &path)? {
                paths.remove(&path);
            }
        }
        Ok(paths)
    })
}

/// Returns the forms of the files at these paths of the work tree.
pub(super) fn read_forms<'p>(
    context: &RunContext,
    repository: &Repository,
    paths: impl IntoIterator<Item = &'p String>,
) -> Result<GuardDefinition, EffectError> {
    let mut definition = GuardDefinition::new();
    for path in paths {
        if let Some(form) = work_tree_form(context, repository, path)? {
            definition.insert(path.clone(), form);
        }
    }
    Ok(definition)
}

/// Whether a path is in a submodule of the run's base commit: no commit has its files.
pub(super) fn is_in_submodule(repository: &Repository, loaded: &CommittedState, path: &str) -> Result<bool, GitError> {
    let base = watched::base_of(&loaded.run_state).unwrap_or(loaded.commit);
    for (at, _) in path.match_indices('/') {
        if watched::is_submodule(repository, &base, &path[..at])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns where attributes that apply to a path may be.
pub(super) fn attribute_files_above(path: &str) -> impl Iterator<Item = String> {
    let folders = [""].into_iter().chain(path.match_indices('/').map(|(at, _)| &path[..=at]));
    folders.map(|folder| format!("{folder}{ATTRIBUTES_FILE}"))
}

pub(super) fn entry_form(entry: &CommitEntry) -> Option<String> {
    match entry.kind {
        EntryKind::File => Some(entry.id.to_string()),
        EntryKind::Executable => Some(format!("100755:{}", entry.id)),
        EntryKind::Symlink => Some(format!("120000:{}", entry.id)),
        EntryKind::Submodule => None,
    }
}

/// Returns the form of a file in the work tree; `None` if there is neither a file nor a link, or a link is on the way
/// to it.
pub(crate) fn work_tree_form(
    context: &RunContext,
    repository: &Repository,
    path: &str,
) -> Result<Option<String>, EffectError> {
    let file = context.layout.path(path);
    if crosses_non_directory(context, path) {
        return Ok(None);
    }
    let metadata = match stat_optional(&file) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        // The guard cannot read it either.
        Err(EffectError::System { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            return Ok(Some(UNREADABLE.to_owned()));
        }
        Err(error) => return Err(error),
    };
    if metadata.is_symlink() {
        let target = std::fs::read_link(&file).map_err(EffectError::io_error("reading", &file))?;
        return Ok(Some(format!("120000:{}", repository.hash_blob(target.as_os_str().as_bytes())?)));
    }
    let bytes = match path_content::read_content(&file) {
        Ok(PathContent::File(bytes)) => bytes,
        Ok(PathContent::Absent) => return Ok(None),
        Ok(PathContent::TooLarge) => return Ok(Some("too large".to_owned())),
        // The guard cannot read it either.
        Err(EffectError::System { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            return Ok(Some(UNREADABLE.to_owned()));
        }
        Err(error) => return Err(error),
    };
    let mode = if metadata.permissions().mode() & 0o100 == 0 { "" } else { "100755:" };
    Ok(Some(format!("{mode}{}", repository.hash_blob(&bytes)?)))
}

/// Whether something other than a folder is on the way to a path.
pub(crate) fn crosses_non_directory(context: &RunContext, path: &str) -> bool {
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    let is_folder = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    folders.into_iter().any(|folder| !is_folder(&context.layout.path(folder)))
}

/// Returns the metadata of a path, or `None` if it does not exist.
///
/// Errors are reported: a file that the guard can see must not be compared as if it were missing.
fn stat_optional(file: &Path) -> Result<Option<Metadata>, EffectError> {
    match std::fs::symlink_metadata(file) {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(EffectError::io_error("looking at", file)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_the_system_refuses_to_show_is_not_taken_for_absent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("guard.sh");
        assert!(stat_optional(&file).unwrap().is_none());
        std::fs::write(&file, "").unwrap();
        assert!(stat_optional(&file).unwrap().is_some());
        assert!(stat_optional(&file.join("below")).unwrap().is_none());
        stat_optional(&folder.path().join("x".repeat(300))).unwrap_err();
    }
}
