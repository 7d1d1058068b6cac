//! What is watched for the guard at a commit, read from git.
//!
//! Which files these are is `runner_core::watched`'s to say; `verify` asks the same of the same commits.

use std::collections::BTreeSet;

use protocol::doctor::GuardFiles;
use protocol::state::RunState;
use runner_core::definition::Definition;
use runner_core::message::RunnerCommit;
use runner_core::rules::Rules;
use runner_core::watched::{Asked, Before, Files, Set, Watched, watched};

use super::definition::{form, is_of_definition};
use crate::config::{Patterns, RepoConfig};
use crate::git::{CommitInfo, GitError, Id, Repository};
use crate::repo::layout::Layout;
use crate::worker::load::{LoadError, load_config};
use crate::worker::people::MAX_PERSON_COMMITS;

/// What the rules before the third watched where nothing was configured.
const JUSTFILES: [&str; 4] = ["/justfile", "/Justfile", "/JUSTFILE", "/.justfile"];

/// Returns what a run watches that begins at this commit.
pub(crate) fn begun(repository: &Repository, base: Id, config: &RepoConfig) -> Result<Watched, GitError> {
    let (configured, kept) = (config.guard.configured(), Definition::new());
    let now = Set { command: &config.guard.command, configured, kept: &kept };
    let changed = BTreeSet::new();
    let asked = Asked { now, before: Before::Nothing, changed: &changed, matches: is_of_definition };
    watched(&asked, &mut At { repository, commit: base })
}

/// Returns the files that a run would watch that begins at HEAD; none where they cannot be read.
pub(crate) fn guard_files(repository: &Repository, config: &RepoConfig) -> Option<GuardFiles> {
    let head = repository.head().ok()?.commit()?;
    begun(repository, head, config).ok().map(|begun| shown(&begun))
}

/// Returns what is watched as people are shown it.
pub(crate) fn shown(watched: &Watched) -> GuardFiles {
    GuardFiles { watched: watched.accepted.keys().cloned().collect(), is_blind: watched.is_blind }
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
    let Some(last) = runners_last(repository, from)? else {
        return asked(repository, from, (now, Before::Set(now)), &BTreeSet::new());
    };
    let changed = if last.id == from { Vec::new() } else { repository.changed_paths(&last.id, &from)? };
    let changed: BTreeSet<String> = changed.into_iter().filter_map(|path| String::from_utf8(path).ok()).collect();
    if last.id == from && !is_of_globs(repository, &last)? {
        return asked(repository, from, (now, Before::Set(now)), &changed);
    }
    let before = load_config(repository, last.id)?.guard;
    if is_of_globs(repository, &last)? {
        let globs = globs_of_old(before.definition.as_ref());
        return asked(repository, from, (now, Before::Globs(&globs)), &changed);
    }
    let kept = state_at(repository, &last.id)?.guard_definition;
    let before = Set { command: &before.command, configured: before.configured(), kept: &kept };
    asked(repository, from, (now, Before::Set(before)), &changed)
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

/// Returns the globs that name the definition by the first and the second rules.
pub(crate) fn globs_of_old(configured: Option<&Patterns>) -> Vec<String> {
    configured.map_or_else(|| JUSTFILES.map(str::to_owned).to_vec(), |globs| globs.as_slice().to_vec())
}

fn asked(
    repository: &Repository,
    commit: Id,
    (now, before): (Set<'_>, Before<'_>),
    changed: &BTreeSet<String>,
) -> Result<Watched, LoadError> {
    let asked = Asked { now, before, changed, matches: is_of_definition };
    Ok(watched(&asked, &mut At { repository, commit })?)
}

/// Returns the runner's last commit, from this one on back.
fn runners_last(repository: &Repository, from: Id) -> Result<Option<CommitInfo>, GitError> {
    let is_runners = |commit: &CommitInfo| RunnerCommit::settles(&commit.message);
    let first = repository.first_parents(&from, 1)?.into_iter().find(is_runners);
    if first.is_some() {
        return Ok(first);
    }
    Ok(repository.first_parents(&from, MAX_PERSON_COMMITS)?.into_iter().find(is_runners))
}

/// Tells whether what was kept at a commit of the runner's was chosen by globs alone.
fn is_of_globs(repository: &Repository, commit: &CommitInfo) -> Result<bool, GitError> {
    let is_old = |commit: &RunnerCommit| commit.version().rules < Rules::THIRD;
    let Ok(read) = RunnerCommit::parse(&commit.message) else { return Ok(false) };
    if is_old(&read) || !matches!(read, RunnerCommit::Start(_)) {
        return Ok(is_old(&read));
    }
    // A fork goes on with what another run has kept.
    let before = first_that_settles(repository, (&commit.id, 1))?;
    Ok(before.is_some_and(|before| is_old(&before)))
}

/// Returns what a commit says where it is the runner's, or the one before it where it only says who drives the run, and so
/// on. So many are left out first: a parent that is not here is no parent.
pub(crate) fn first_that_settles(
    repository: &Repository,
    (at, left_out): (&Id, usize),
) -> Result<Option<RunnerCommit>, GitError> {
    let (mut found, mut count) = (None, 0);
    repository.first_parents_until(at, MAX_PERSON_COMMITS, |commit| {
        count += 1;
        found = RunnerCommit::parse(&commit.message).ok().filter(|_| count > left_out);
        count > left_out && !found.as_ref().is_some_and(RunnerCommit::is_transparent)
    })?;
    Ok(found.filter(|commit| !commit.is_transparent()))
}

fn state_at(repository: &Repository, commit: &Id) -> Result<RunState, LoadError> {
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
