//! `bisect.points` and `bisect.try`: the states of a run's branch, and a command that is run in one of them.

use std::pin::pin;

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::BisectApiServer;
use protocol::bisect::{PointsParams, PointsReply, TryParams, TryReply};
use protocol::error::{ErrorData, ErrorKind};
use runner_core::iteration::{GuardEnd, GuardHow};
use tokio_util::sync::CancellationToken;

use super::verify::told;
use super::{Api, blocking};
use crate::admit::git_error;
use crate::client_gone::ClientGone;
use crate::config::{GuardConfig, RepoConfig};
use crate::git::{Id, Repository};
use crate::verify::{Stage, Target, VerifyError, copies, points, target};
use crate::worker::load_config;

#[async_trait]
impl BisectApiServer for Api {
    async fn bisect_points(&self, extensions: &Extensions, params: PointsParams) -> RpcResult<PointsReply> {
        let (repository, target) = self.branch_meant(&params).await?;
        let asked = format!("bisect {} {} {:?}", target.run, target.tip, params.command);
        let found = repository.clone();
        let read = move |stop: &CancellationToken| {
            let points = points(&found, (&target, &params.command), stop).map_err(|error| told(&found, &error))?;
            let points = points.ok_or_else(|| beginning_missing(&found, &target))?;
            Ok(PointsReply { run: target.run, points })
        };
        Ok(self.in_turn(extensions, (&repository, &asked), read).await?)
    }

    async fn bisect_try(&self, extensions: &Extensions, params: TryParams) -> RpcResult<TryReply> {
        let TryParams { path, run, commit, command, confirmed, env } = params;
        let repository = self.readable(&self.place_meant((&path, Some(&run)), "bisect").await?).await?;
        self.check_users_configuration(&repository, confirmed).await?;
        let (repository, (commit, config)) = blocking(move || {
            let found = wanted(&repository, (&run, &commit), command)?;
            Ok((repository, found))
        })
        .await?;
        let stop = self.shutdown.child_token();
        let folder = copies(&self.paths.state);
        let (launcher, env) = (&self.launcher, &env);
        let stage = Stage { repository: &repository, folder, launcher, env, stop: &stop, brings: false };
        let ClientGone(left) = extensions.get().cloned().unwrap_or_default();
        let mut check = pin!(stage.command(&commit, &config));
        let end = tokio::select! {
            end = &mut check => end,
            () = left.cancelled() => {
                stop.cancel();
                check.await
            }
        };
        Ok(reply(end.map_err(|error| told(&repository, &error))?))
    }
}

impl Api {
    async fn branch_meant(&self, params: &PointsParams) -> Result<(Repository, Target), ErrorData> {
        let path = self.place_meant((&params.path, params.run.as_deref()), "bisect").await?;
        let repository = self.readable(&path).await?;
        let wanted = params.run.clone();
        blocking(move || {
            let target = target(&repository, wanted.as_deref())?;
            Ok((repository, target))
        })
        .await
    }
}

/// Returns the commit, and the configuration of the run with the command in the place of its guard's.
fn wanted(
    repository: &Repository,
    (run, commit): (&str, &str),
    command: Vec<String>,
) -> Result<(Id, RepoConfig), ErrorData> {
    let target = target(repository, Some(run))?;
    let no_commit = || told(repository, &VerifyError::NoCommit(commit.to_owned()));
    let commit: Id = commit.parse().map_err(|_| no_commit())?;
    if !repository.is_ancestor(&commit, &target.tip).map_err(|error| git_error(&error))? {
        let message = format!("{commit} is no commit of the run {}", target.run);
        return Err(ErrorData::new(ErrorKind::NotFound, message).hint("git log --oneline --first-parent"));
    }
    let config =
        load_config(repository, target.tip).map_err(|error| told(repository, &VerifyError::State(Box::new(error))))?;
    let guard = GuardConfig { command, ..config.guard };
    Ok((commit, RepoConfig { guard, ..config }))
}

fn beginning_missing(repository: &Repository, target: &Target) -> ErrorData {
    let message = format!(
        "the start of the run {} is not here, so that nothing is known to work: {}",
        target.run,
        repository.work_dir().display()
    );
    ErrorData::new(ErrorKind::NotFound, message).hint("git fetch --unshallow")
}

fn reply(end: GuardEnd) -> TryReply {
    let (exit, ended) = match end.how {
        GuardHow::Exited(code) => (Some(code), format!("exit={code}")),
        GuardHow::Signaled(signal) => (None, format!("signal={signal}")),
        GuardHow::TimedOut => (None, "it did not end within `iteration_timeout`".to_owned()),
        GuardHow::Missing { what } => (None, what),
        GuardHow::Cut => (None, "it was ended before it could say".to_owned()),
        GuardHow::Lost => (None, "its supervisor was killed".to_owned()),
    };
    TryReply { exit, ended, output: end.output, elapsed_ms: end.elapsed_ms }
}
