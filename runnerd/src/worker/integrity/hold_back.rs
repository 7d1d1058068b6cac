//! Which new files stay out of the commits of a run: what the configuration says, and what a person's ignore rules
//! ignore.
//!
//! The rules that a person committed last apply: those of the commit that the run started from, with the changes that
//! people have committed since. A session's own rules can ignore more, but never less.

use protocol::state::RunState;
use runner_config::RepoConfig;
use runner_core::message::RunnerCommit;
use runner_git::{HoldBackRule, Id, IgnoreFiles, Repository};

use crate::worker::context::RunContext;
use crate::worker::integrity::watched::read_run_state;
use crate::worker::load::{CommittedState, LoadError};
use crate::worker::runner_chain::{PersonCommits, find_person_commits};

/// Returns the rule that keeps untracked files out of commits.
pub(crate) fn hold_back_rule(
    context: &RunContext,
    repository: &Repository,
    loaded: &CommittedState,
) -> Result<HoldBackRule, LoadError> {
    let ignore_files = accepted_ignore_files(context, repository, loaded.commit, &loaded.run_state)?;
    Ok(HoldBackRule { ignore_files: Some(ignore_files), ..configured_hold_back(&loaded.config, goal_files(context)) })
}

/// Returns the rule for a commit of the runner between iterations, on top of `head`.
pub(crate) fn marker_hold_back(
    context: &RunContext,
    repository: &Repository,
    commit: &RunnerCommit,
    head: Id,
    config: &RepoConfig,
) -> Result<HoldBackRule, LoadError> {
    if matches!(commit, RunnerCommit::Start(_)) {
        return Ok(hold_back_from(config, head, goal_files(context)));
    }
    let ignore_files = accepted_ignore_files(context, repository, head, &read_run_state(repository, &head)?)?;
    Ok(HoldBackRule { ignore_files: Some(ignore_files), ..configured_hold_back(config, goal_files(context)) })
}

/// Returns the rule for a new run on top of `base`; goals were read from these files.
pub fn hold_back_from(config: &RepoConfig, base: Id, goal_files: Vec<String>) -> HoldBackRule {
    let ignore_files = Some(IgnoreFiles { base, changed: [].into() });
    HoldBackRule { ignore_files, ..configured_hold_back(config, goal_files) }
}

/// Returns the files in the work tree that the goals of runs were read from.
fn goal_files(context: &RunContext) -> Vec<String> {
    context.goal_files.in_work_tree(context.layout.root())
}

/// Returns the part of the rule that the configuration and people's goals set.
fn configured_hold_back(config: &RepoConfig, goal_files: Vec<String>) -> HoldBackRule {
    HoldBackRule {
        names: config.git.hold_back.as_slice().to_vec(),
        paths: goal_files,
        max_file_bytes: config.git.max_file_bytes,
        ignore_files: None,
    }
}

/// Returns the ignore files that apply to what is committed on top of this commit.
fn accepted_ignore_files(
    context: &RunContext,
    repository: &Repository,
    commit: Id,
    run_state: &RunState,
) -> Result<IgnoreFiles, LoadError> {
    let base = run_state.base.as_ref().and_then(|base| base.parse().ok()).unwrap_or(commit);
    let known = context.last_load.ignore_files().filter(|(_, files)| files.base == base);
    let is_end = |at: Id| at == base || known.as_ref().is_some_and(|(known, _)| *known == at);
    let mut files = IgnoreFiles { base, changed: [].into() };
    let PersonCommits { ranges, end } = find_person_commits(repository, commit, is_end)?;
    for (before, after) in ranges {
        for (path, blob) in repository.changed_ignore_files(&before, &after)? {
            files.changed.entry(path).or_insert(blob);
        }
    }
    if let Some((_, known)) = known.filter(|(at, _)| end == Some(*at)) {
        for (path, blob) in known.changed {
            files.changed.entry(path).or_insert(blob);
        }
    }
    context.last_load.store_ignore_files(commit, &files);
    Ok(files)
}
