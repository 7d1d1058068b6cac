//! What is watched for the guard at a commit, read from git.
//!
//! Which files these are is `runner_core::watched`'s to say; `verify` asks the same of the same commits.

use std::collections::BTreeSet;

use protocol::doctor::GuardFiles;
use protocol::state::RunState;
use runner_core::definition::Definition;
use runner_core::watched::{Asked, Files, Set, Watched, watched};

use super::definition::{form, is_of_definition};
use crate::config::RepoConfig;
use crate::git::{GitError, Id, Repository};
use crate::repo::layout::Layout;
use crate::worker::load::{LoadError, last_settled, load_config};

/// Returns what a run watches that begins at this commit.
pub(crate) fn begun(repository: &Repository, base: Id, config: &RepoConfig) -> Result<Watched, GitError> {
    let (configured, kept) = (config.guard.configured(), Definition::new());
    let now = Set { command: &config.guard.command, configured, kept: &kept };
    let changed = BTreeSet::new();
    let asked = Asked { now, before: None, changed: &changed, matches: is_of_definition };
    watched(&asked, &mut At { repository, commit: base })
}

/// Returns the files that a run would watch that begins at HEAD; none where they cannot be read.
pub(crate) fn guard_files(repository: &Repository, config: &RepoConfig) -> Option<GuardFiles> {
    let head = repository.head().ok()?.commit()?;
    begun(repository, head, config).ok().map(|begun| shown(&begun))
}

/// Returns what is watched as people are shown it.
pub(crate) fn shown(watched: &Watched) -> GuardFiles {
    let Watched { accepted, is_blind, unknown, .. } = watched;
    GuardFiles { watched: accepted.keys().cloned().collect(), is_blind: *is_blind, unknown: unknown.clone() }
}

/// Returns what is watched at a commit at which the runner goes on, where it has this configuration and bookkeeping.
pub(crate) fn at(
    repository: &Repository,
    from: Id,
    (config, run_state): (&RepoConfig, &RunState),
) -> Result<Watched, LoadError> {
    let now = Set {
        command: &config.guard.command,
        configured: config.guard.configured(),
        kept: &run_state.guard_definition,
    };
    let Some(last) = last_settled(repository, from)?.filter(|last| *last != from) else {
        return asked(repository, from, (now, now), &BTreeSet::new());
    };
    let changed = repository.changed_paths(&last, &from)?;
    let changed = changed.into_iter().filter_map(|path| String::from_utf8(path).ok()).collect();
    let (before, kept) = (load_config(repository, last)?.guard, state_at(repository, &last)?.guard_definition);
    let before = Set { command: &before.command, configured: before.configured(), kept: &kept };
    asked(repository, from, (now, before), &changed)
}

/// The same, with what the commit itself says of both.
pub(crate) fn watched_at(repository: &Repository, from: Id) -> Result<Watched, LoadError> {
    let (config, run_state) = (load_config(repository, from)?, state_at(repository, &from)?);
    at(repository, from, (&config, &run_state))
}

/// Returns what a run watches that begins with this commit.
pub(crate) fn watched_from_start(repository: &Repository, start: Id) -> Result<Watched, LoadError> {
    Ok(begun(repository, start, &load_config(repository, start)?)?)
}

fn asked(
    repository: &Repository,
    commit: Id,
    (now, before): (Set<'_>, Set<'_>),
    changed: &BTreeSet<String>,
) -> Result<Watched, LoadError> {
    let asked = Asked { now, before: Some(before), changed, matches: is_of_definition };
    Ok(watched(&asked, &mut At { repository, commit })?)
}

pub(super) fn state_at(repository: &Repository, commit: &Id) -> Result<RunState, LoadError> {
    let bytes = repository.read(commit, Layout::RUN_STATE)?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|source| LoadError::Json { path: Layout::RUN_STATE, source })
}

/// The files of a commit.
struct At<'a> {
    repository: &'a Repository,
    commit: Id,
}

impl Files for At<'_> {
    type Error = GitError;

    fn form(&mut self, path: &str) -> Result<Option<String>, GitError> {
        Ok(self.repository.entry(&self.commit, path)?.as_ref().and_then(form))
    }

    fn all(&mut self) -> Result<Definition, GitError> {
        let entries = self.repository.entries(&self.commit, "")?;
        let file = |entry: &crate::git::CommitEntry| Some((String::from_utf8(entry.path.clone()).ok()?, form(entry)?));
        Ok(entries.iter().filter_map(file).collect())
    }

    fn content(&mut self, form: &str) -> Result<Vec<u8>, GitError> {
        // A form that is no blob's is named where it is laid out.
        match form.rsplit(':').next().unwrap_or(form).parse() {
            Ok(id) => self.repository.blob(&id),
            Err(_) => Ok(Vec::new()),
        }
    }
}
