//! Restores what a process changed outside of the scope of its run, after it was kept under a rescue ref.
//!
//! `runner_core::scope` decides what is outside. The work tree is judged as it would be committed: what git ignores and
//! what is held back is left alone.

use protocol::words::PhaseName;
use runner_core::publish;
use runner_core::scope::{Scope, ScopeChange};
use runner_git::{CommitEntry, EntryKind, HoldBackRule, Id, Repository, SnapshotRequest};
use serde::{Deserialize, Serialize};

use crate::repo::sealed::Sealable;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::guard_overlay;
use crate::worker::integrity::hold_back::hold_back_rule;
use crate::worker::load::CommittedState;

/// Which process of which iteration to check after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScopeRequest<'a> {
    /// Number of the iteration.
    pub iter: u32,
    /// The phase of the process.
    pub phase: PhaseName,
    /// Paths that the runner itself has changed.
    pub exempt: &'a [String],
}

impl ScopeRequest<'_> {
    /// Returns the request after a process; the runner itself has changed nothing.
    pub(crate) fn new(iter: u32, phase: PhaseName) -> Self {
        Self { iter, phase, exempt: &[] }
    }
}

/// The paths that were restored, noted before that begins.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RestoredPaths(Vec<String>);

impl Sealable for RestoredPaths {
    const KIND: &'static str = "outside";
    const VERSION: u32 = 1;
}

/// Restores what was changed outside of the scope, and returns those paths. Idempotent: repeated, it returns the same.
pub(crate) fn restore_outside(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
    request: ScopeRequest<'_>,
) -> Result<Vec<String>, EffectError> {
    let scope = Scope::new(&loaded.config);
    if scope.is_everything() {
        return Ok(Vec::new());
    }
    let note = context.iteration_note::<RestoredPaths>(request.iter, format_args!("{}-scope", request.phase));
    let RestoredPaths(mut restored) = note.read()?.unwrap_or_default();
    if !may_be_outside(context, repository, loaded, &scope)? {
        return Ok(restored);
    }
    let hold_back = hold_back_rule(context, repository, loaded)?;
    let now = keep_work_tree(context, repository, &hold_back, request)?;
    let mut paths = scope.paths_to_restore(&list_scope_changes(repository, &loaded.commit, &now)?);
    paths.retain(|path| !request.exempt.contains(path));
    restored.extend(paths.iter().cloned());
    restored.sort();
    restored.dedup();
    let restored = RestoredPaths(restored);
    note.write(&restored)?;
    check_restorable(repository, [&loaded.commit, &now], &paths)?;
    guard_overlay::restore_changed_paths(context, request.iter, &loaded.commit, &paths)?;
    context.last_scan.invalidate();
    let remaining = repository.list_changed_since(&loaded.commit, &hold_back)?;
    let is_wrong = |path: &String| !scope.contains(path) && !request.exempt.contains(path);
    if let Some(path) = remaining.into_iter().find(is_wrong) {
        return Err(EffectError::OutsideScope(path));
    }
    tracing::warn!(run = context.run, iter = request.iter, paths = ?paths, "restored what is outside of the scope");
    Ok(restored.0)
}

/// Whether a path outside of the scope differs from From, in the work tree or in a commit since then; one that was
/// committed may be as before in the work tree.
fn may_be_outside(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
    scope: &Scope,
) -> Result<bool, EffectError> {
    let head = repository.head()?.commit().filter(|head| *head != loaded.commit);
    let committed = head.map(|head| repository.changed_paths(&loaded.commit, &head)).transpose()?.unwrap_or_default();
    let changes = context.scan_changes()?.into_iter().map(|change| change.path);
    Ok(committed.into_iter().chain(changes).any(|path| !scope.contains(&String::from_utf8_lossy(&path))))
}

/// Keeps the work tree under a rescue ref, and returns its commit.
fn keep_work_tree(
    context: &RunContext,
    repository: &Repository,
    hold_back: &HoldBackRule,
    ScopeRequest { iter, phase, .. }: ScopeRequest<'_>,
) -> Result<Id, EffectError> {
    let name = publish::rescue_ref(&context.run, iter);
    let existing = repository.list_refs()?;
    let others = (1..=u32::MAX).map(|number| format!("{name}-{phase}{number}"));
    let free = std::iter::once(name.clone()).chain(others).find(|name| !existing.contains_key(name));
    let request = SnapshotRequest {
        name: &free.unwrap_or(name),
        message: &format!("rescue: run {} iteration {iter:04}, {phase}, outside of the scope", context.run),
        author: RunContext::identity(repository),
        hold_back,
        restore_target: None,
    };
    Ok(repository.create_snapshot(&request)?.commit)
}

/// Lists what differs between two commits.
fn list_scope_changes(repository: &Repository, from: &Id, to: &Id) -> Result<Vec<ScopeChange>, EffectError> {
    let mut changes = Vec::new();
    for path in repository.changed_paths(from, to)? {
        let path = String::from_utf8_lossy(&path).into_owned();
        let at_from = repository.find_entry(from, &path)?.is_some();
        let is_there = repository.find_entry(to, &path)?.is_some();
        changes.push(ScopeChange { path, at_from, is_there });
    }
    Ok(changes)
}

/// Fails for a path that only a person can restore: what is in a submodule is in no commit of this repository, and a name
/// that is not UTF-8 is not found again.
fn check_restorable(repository: &Repository, commits: [&Id; 2], paths: &[String]) -> Result<(), EffectError> {
    for path in paths {
        let is_submodule = |entry: &CommitEntry| entry.kind == EntryKind::Submodule;
        let mut is_known = false;
        for commit in commits {
            let entry = repository.find_entry(commit, path)?;
            is_known |= entry.is_some();
            if entry.as_ref().is_some_and(is_submodule) {
                return Err(EffectError::OutsideScope(path.clone()));
            }
        }
        if !is_known {
            return Err(EffectError::OutsideScope(path.clone()));
        }
    }
    Ok(())
}
