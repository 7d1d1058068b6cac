//! The guard of a run on what its landing leads to, in a folder that is gone afterwards.

use runner_core::iteration::{GuardEnd, GuardHow};
use runner_core::landing::Refusal;

use super::{LandError, Site};
use crate::config::RepoConfig;
use crate::git::Id;
use crate::verify::{Stage, copies};

/// Most lines of a guard's output that a refusal shows.
const SHOWN: usize = 20;

/// Runs the guard on a commit, and refuses one that is not green.
pub(super) async fn check(site: &Site<'_>, (run, config): (&str, &RepoConfig), commit: &Id) -> Result<(), LandError> {
    let stage = Stage {
        repository: site.repository,
        folder: copies(&site.scratch),
        launcher: site.launcher,
        env: site.env,
        stop: site.stop,
    };
    let end = stage.check(commit, config).await?;
    if end.how == GuardHow::Exited(0) {
        return Ok(());
    }
    if site.stop.is_cancelled() {
        return Err(crate::verify::VerifyError::Interrupted.into());
    }
    Err(Refusal::RedGuard { run: run.to_owned(), how: how(&end), tail: tail(&end.output) }.into())
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
