//! Runs a run's guard on the result of its landing, in a temporary folder.

use runner_config::RepoConfig;
use runner_core::iteration::{GuardEnd, GuardEndKind};
use runner_core::landing::LandingRefusal;
use runner_git::Id;
use tokio::task::block_in_place;

use super::branch::RunBranch;
use super::{LandContext, LandError};
use crate::verify::{GuardRerunner, VerifyError};
use crate::worker::{changed_files, load_state};

/// Maximum number of lines of a guard's output shown in a refusal.
const MAX_SHOWN_LINES: usize = 20;

/// Runs a run's guard on a commit as a person has accepted it, and fails if it is not green.
///
/// Sessions' changes to the guard's own files that a person has not accepted are landed like all others, but decide
/// nothing.
pub(super) async fn check_guard(
    site: &LandContext<'_>,
    branch: &RunBranch,
    config: &RepoConfig,
    commit: &Id,
) -> Result<(), LandError> {
    let (checked, accepted) = block_in_place(|| commit_with_accepted(site, branch, commit))?;
    let stage = GuardRerunner {
        repository: site.repository,
        folder: site.scratch.clone(),
        launcher: site.launcher,
        env: site.env,
        stop: site.stop,
        copies_workspace: true,
    };
    let end = stage.run_guard_with(&checked, config).await?;
    if end.how == GuardEndKind::Exited(0) {
        return Ok(());
    }
    if site.stop.is_cancelled() {
        return Err(VerifyError::Interrupted.into());
    }
    let mut outcome = describe_end(&end);
    if !accepted.is_empty() {
        outcome = format!("{outcome}, with {} as accepted", accepted.join(", "));
    }
    let missing = block_in_place(|| site.repository.list_missing_submodules(&checked))?;
    if !missing.is_empty() {
        outcome = format!("{outcome}, without submodule {}: git submodule update --init", missing.join(", "));
    }
    Err(LandingRefusal::RedGuard { run: branch.run().to_owned(), how: outcome, tail: last_lines(&end.output) }.into())
}

/// Returns the commit that the guard checks, and the files in which it differs from the landed one: files of the
/// guard's definition that the run has changed are replaced with their accepted versions.
fn commit_with_accepted(
    site: &LandContext<'_>,
    branch: &RunBranch,
    commit: &Id,
) -> Result<(Id, Vec<String>), LandError> {
    let repository = site.repository;
    let tip = branch.target.tip;
    let state = |error| VerifyError::State(Box::new(error));
    let departed = changed_files(repository, &load_state(repository, tip).map_err(state)?).map_err(state)?;
    let mut files = Vec::new();
    for (path, accepted) in departed {
        // A difference between the branch and the run is a person's change.
        if repository.find_entry(commit, &path)? == repository.find_entry(&tip, &path)? {
            files.push((path, accepted.as_deref().and_then(mode_and_blob)));
        }
    }
    if files.is_empty() {
        return Ok((*commit, Vec::new()));
    }
    std::fs::create_dir_all(&site.scratch)
        .map_err(|source| VerifyError::Folder { path: site.scratch.clone(), source })?;
    let index = tempfile::Builder::new().prefix("index-").tempdir_in(&site.scratch);
    let index = index.map_err(|source| VerifyError::Folder { path: site.scratch.clone(), source })?;
    let commit = repository.create_commit_with_files(commit, &files, &index.path().join("index"))?;
    Ok((commit, files.into_iter().map(|(path, _)| path).collect()))
}

/// Parses an entry of a definition: a blob, preceded by its mode unless it is a plain file.
fn mode_and_blob(form: &str) -> Option<(u32, Id)> {
    let (mode, blob) = form.split_once(':').unwrap_or(("100644", form));
    Some((u32::from_str_radix(mode, 8).ok()?, blob.parse().ok()?))
}

fn describe_end(end: &GuardEnd) -> String {
    match &end.how {
        GuardEndKind::Exited(code) => format!("exit={code}"),
        GuardEndKind::Signaled(signal) => format!("signal={signal}"),
        GuardEndKind::TimedOut => "it did not end within the budget of an iteration".to_owned(),
        GuardEndKind::Missing { what } => what.clone(),
        GuardEndKind::Cut => "it was ended before it could say".to_owned(),
        GuardEndKind::Lost => "its supervisor was killed".to_owned(),
    }
}

fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(MAX_SHOWN_LINES)..].join("\n")
}
