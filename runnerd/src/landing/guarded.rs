//! The guard of a run on what its landing leads to, in a folder that is gone afterwards.

use runner_core::iteration::{GuardEnd, GuardHow};
use runner_core::landing::Refusal;
use tokio::task::block_in_place;

use super::branch::Branch;
use super::{LandError, Site};
use crate::config::RepoConfig;
use crate::git::Id;
use crate::verify::{Stage, VerifyError, copies};
use crate::worker::{departed, load};

/// Most lines of a guard's output that a refusal shows.
const SHOWN: usize = 20;

/// Runs the guard of a run on a commit, as a person has accepted it, and refuses one that is not green.
///
/// What sessions have changed of the guard's own files, and nobody has accepted, lands like all else and decides nothing.
pub(super) async fn check(
    site: &Site<'_>,
    (branch, config): (&Branch, &RepoConfig),
    commit: &Id,
) -> Result<(), LandError> {
    let (checked, accepted) = block_in_place(|| accepted(site, branch, commit))?;
    let stage = Stage {
        repository: site.repository,
        folder: copies(&site.scratch),
        launcher: site.launcher,
        env: site.env,
        stop: site.stop,
        brings: true,
    };
    let end = stage.check(&checked, config).await?;
    if end.how == GuardHow::Exited(0) {
        return Ok(());
    }
    if site.stop.is_cancelled() {
        return Err(VerifyError::Interrupted.into());
    }
    let mut how = how(&end);
    if !accepted.is_empty() {
        how = format!("{how}, with {} as accepted", accepted.join(", "));
    }
    Err(Refusal::RedGuard { run: branch.run().to_owned(), how, tail: tail(&end.output) }.into())
}

/// Returns the commit that the guard looks at, and the files in which it differs from the one that lands: those of the
/// guard's definition that the run has changed, as they were accepted.
fn accepted(site: &Site<'_>, branch: &Branch, commit: &Id) -> Result<(Id, Vec<String>), LandError> {
    let (repository, tip) = (site.repository, branch.target.tip);
    let state = |error| VerifyError::State(Box::new(error));
    let departed = departed(repository, &load(repository, tip).map_err(state)?).map_err(state)?;
    let mut files = Vec::new();
    for (path, accepted) in departed {
        // What the branch has otherwise than the run is a person's.
        if repository.entry(commit, &path)? == repository.entry(&tip, &path)? {
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
    let commit = repository.with_files(commit, &files, &index.path().join("index"))?;
    Ok((commit, files.into_iter().map(|(path, _)| path).collect()))
}

/// Reads a file of a definition: a blob, with its mode in front unless it is a plain file.
fn mode_and_blob(form: &str) -> Option<(u32, Id)> {
    let (mode, blob) = form.split_once(':').unwrap_or(("100644", form));
    Some((u32::from_str_radix(mode, 8).ok()?, blob.parse().ok()?))
}

fn how(end: &GuardEnd) -> String {
    match &end.how {
        GuardHow::Exited(code) => format!("exit={code}"),
        GuardHow::Signaled(signal) => format!("signal={signal}"),
        GuardHow::TimedOut => "it did not end within the budget of an iteration".to_owned(),
        GuardHow::Missing { what } => what.clone(),
        GuardHow::Cut => "it was ended before it could say".to_owned(),
        GuardHow::Lost => "its supervisor was killed".to_owned(),
    }
}

fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}
