//! Reads from git what is watched for the guard at a commit.
//!
//! `runner_core::guard::watched_files` decides which files these are; `verify` asks the same of the same commits.

use std::collections::BTreeSet;

use protocol::doctor::GuardFiles;
use protocol::state::RunState;
use runner_config::RepoConfig;
use runner_core::committed_state::{FileFault, StateFault};
use runner_core::guard::definition::{GuardDefinition, is_in_definition};
use runner_core::guard::watched_files::{CommitFiles, WatchConfig, WatchQuery, WatchedFiles, find_watched};
use runner_git::{EntryKind, GitError, Id, Repository};

use super::definition::entry_form;
use crate::repo::layout::Layout;
use crate::worker::load::{LoadError, last_runner_commit, load_config};

/// Returns what a run that begins at this commit watches.
pub(crate) fn watched_at_start(
    repository: &Repository,
    base: Id,
    config: &RepoConfig,
) -> Result<WatchedFiles, GitError> {
    let configured = config.guard.definition_globs();
    let accepted = GuardDefinition::new();
    let now = WatchConfig { command: &config.guard.command, configured, accepted: &accepted };
    let changed = BTreeSet::new();
    let query = WatchQuery { now, before: None, changed: &changed, matches: is_in_definition };
    find_watched(&query, &mut CommitReader { repository, commit: base, base: None })
}

/// Returns the files that a run beginning at HEAD would watch; `None` if they cannot be read.
pub(crate) fn guard_files_at_head(repository: &Repository, config: &RepoConfig) -> Option<GuardFiles> {
    guard_files_at(repository, repository.head().ok()?.commit()?, config)
}

/// Returns the files that a run beginning at a commit would watch; `None` if they cannot be read.
pub(crate) fn guard_files_at(repository: &Repository, base: Id, config: &RepoConfig) -> Option<GuardFiles> {
    watched_at_start(repository, base, config).ok().map(|begun| to_guard_files(&begun))
}

/// Converts the watched files to the form shown to people.
pub(crate) fn to_guard_files(watched: &WatchedFiles) -> GuardFiles {
    let WatchedFiles { accepted, is_blind, unknown, .. } = watched;
    GuardFiles { watched: accepted.keys().cloned().collect(), is_blind: *is_blind, unknown: unknown.clone() }
}

/// Returns what is watched at a commit from which the runner continues, given its configuration and bookkeeping.
pub(crate) fn watched_with_config(
    repository: &Repository,
    from: Id,
    config: &RepoConfig,
    run_state: &RunState,
) -> Result<WatchedFiles, LoadError> {
    let now = WatchConfig {
        command: &config.guard.command,
        configured: config.guard.definition_globs(),
        accepted: &run_state.guard_definition,
    };
    let mut reader = CommitReader { repository, commit: from, base: base_of(run_state) };
    let Some(last_commit) = last_runner_commit(repository, from)?.filter(|last| *last != from) else {
        return query_watched(&mut reader, now, now, &BTreeSet::new());
    };
    let changed = repository.changed_paths(&last_commit, &from)?;
    let changed = changed.into_iter().filter_map(|path| String::from_utf8(path).ok()).collect();
    let before = load_config(repository, last_commit)?.guard;
    let accepted = read_run_state(repository, &last_commit)?.guard_definition;
    let before = WatchConfig { command: &before.command, configured: before.definition_globs(), accepted: &accepted };
    query_watched(&mut reader, now, before, &changed)
}

/// The same, with configuration and bookkeeping read from the commit.
pub(crate) fn watched_at_commit(repository: &Repository, from: Id) -> Result<WatchedFiles, LoadError> {
    let config = load_config(repository, from)?;
    let run_state = read_run_state(repository, &from)?;
    watched_with_config(repository, from, &config, &run_state)
}

/// Returns what a run whose start commit is this one watches.
pub(crate) fn watched_from_start(repository: &Repository, start: Id) -> Result<WatchedFiles, LoadError> {
    Ok(watched_at_start(repository, start, &load_config(repository, start)?)?)
}

fn query_watched(
    reader: &mut CommitReader<'_>,
    now: WatchConfig<'_>,
    before: WatchConfig<'_>,
    changed: &BTreeSet<String>,
) -> Result<WatchedFiles, LoadError> {
    let query = WatchQuery { now, before: Some(before), changed, matches: is_in_definition };
    Ok(find_watched(&query, reader)?)
}

pub(super) fn read_run_state(repository: &Repository, commit: &Id) -> Result<RunState, LoadError> {
    let bytes = repository.read_file(commit, Layout::RUN_STATE)?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|error| {
        let fault = StateFault { path: Layout::RUN_STATE, fault: FileFault::Form(error.to_string()) };
        LoadError::File { commit: *commit, fault }
    })
}

/// Returns the commit at which a run began.
pub(super) fn base_of(run_state: &RunState) -> Option<Id> {
    run_state.base.as_ref().and_then(|base| base.parse().ok())
}

pub(super) fn is_submodule(repository: &Repository, commit: &Id, path: &str) -> Result<bool, GitError> {
    Ok(repository.find_entry(commit, path)?.is_some_and(|entry| entry.kind == EntryKind::Submodule))
}

/// Reads the files of a commit.
struct CommitReader<'a> {
    repository: &'a Repository,
    commit: Id,
    /// The commit at which the run began.
    base: Option<Id>,
}

impl CommitFiles for CommitReader<'_> {
    type Error = GitError;

    fn form_at(&mut self, path: &str) -> Result<Option<String>, GitError> {
        Ok(self.repository.find_entry(&self.commit, path)?.as_ref().and_then(entry_form))
    }

    fn all_forms(&mut self) -> Result<GuardDefinition, GitError> {
        let entries = self.repository.list_entries(&self.commit, "")?;
        let file =
            |entry: &runner_git::CommitEntry| Some((String::from_utf8(entry.path.clone()).ok()?, entry_form(entry)?));
        Ok(entries.iter().filter_map(file).collect())
    }

    fn is_submodule(&mut self, path: &str) -> Result<bool, GitError> {
        let mut is_any = false;
        // A session can put files or a link in its place.
        for commit in [Some(self.commit), self.base].into_iter().flatten() {
            is_any |= is_submodule(self.repository, &commit, path)?;
        }
        Ok(is_any)
    }

    fn read_content(&mut self, form: &str) -> Result<Vec<u8>, GitError> {
        // A form that is not a blob's is reported when it is checked out.
        match form.rsplit(':').next().unwrap_or(form).parse() {
            Ok(id) => self.repository.read_blob(&id),
            Err(_) => Ok(Vec::new()),
        }
    }
}
