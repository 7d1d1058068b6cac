//! `bisect.points` and `bisect.try`: the states of a run's branch, and running a command in one of them.

use std::pin::pin;

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::BisectApiServer;
use protocol::bisect::{PointsParams, PointsReply, TryParams, TryReply};
use protocol::error::{ErrorData, ErrorKind};
use runner_config::{GuardConfig, RepoConfig};
use runner_core::iteration::{GuardEnd, GuardEndKind};
use runner_git::{Id, Repository};
use tokio_util::sync::CancellationToken;

use super::verify::verify_error_data;
use super::{Api, run_blocking};
use crate::admit::git_error;
use crate::call_context::ClientDisconnected;
use crate::state_dir::temp_dir;
use crate::verify::{GuardRerunner, VerifyError, VerifyTarget, list_bisect_points, resolve_target};
use crate::worker::load_config;

#[async_trait]
impl BisectApiServer for Api {
    async fn bisect_points(&self, extensions: &Extensions, params: PointsParams) -> RpcResult<PointsReply> {
        let found = self.resolve_branch(&params).await;
        let (repository, target) = self.explain_unbegun(&params.path, params.run.as_deref(), found).await?;
        let query = format!("bisect {} {} {:?}", target.run, target.tip, params.command);
        let repo = repository.clone();
        let run = target.run.clone();
        let read = move |stop: &CancellationToken| {
            let points = list_bisect_points(&repo, &target, &params.command, stop)
                .map_err(|error| verify_error_data(&repo, &error))?;
            let points = points.ok_or_else(|| missing_start_error(&repo, &target))?;
            Ok(PointsReply { run: target.run, points })
        };
        let points = self.read_shared(extensions, &repository, &query, read).await;
        Ok(self.explain_unbegun(&params.path, Some(&run), points).await?)
    }

    async fn bisect_try(&self, extensions: &Extensions, params: TryParams) -> RpcResult<TryReply> {
        let TryParams { path, run, commit, command, confirmed, env } = params;
        let repository =
            self.find_readable_repository(&self.resolve_run_path(&path, Some(&run), "bisect").await?).await?;
        self.check_user_config(&repository, confirmed).await?;
        let (repository, (commit, config)) = run_blocking(move || {
            let resolved = load_tried_state(&repository, &run, &commit, command)?;
            Ok((repository, resolved))
        })
        .await?;
        let stop = self.shutdown.child_token();
        let folder = temp_dir(&self.paths.state);
        let launcher = &self.launcher;
        let env = &env;
        let stage =
            GuardRerunner { repository: &repository, folder, launcher, env, stop: &stop, copies_workspace: false };
        let ClientDisconnected(disconnected) = extensions.get().cloned().unwrap_or_default();
        let mut check = pin!(stage.run_command(&commit, &config));
        let end = tokio::select! {
            end = &mut check => end,
            () = disconnected.cancelled() => {
                stop.cancel();
                check.await
            }
        };
        Ok(try_reply(end.map_err(|error| verify_error_data(&repository, &error))?))
    }
}

impl Api {
    async fn resolve_branch(&self, params: &PointsParams) -> Result<(Repository, VerifyTarget), ErrorData> {
        let path = self.resolve_run_path(&params.path, params.run.as_deref(), "bisect").await?;
        let repository = self.find_readable_repository(&path).await?;
        let run = params.run.clone();
        run_blocking(move || {
            let target = resolve_target(&repository, run.as_deref(), "bisect")?;
            Ok((repository, target))
        })
        .await
    }
}

/// Returns the commit, and the run's configuration with the command in place of the guard's.
fn load_tried_state(
    repository: &Repository,
    run: &str,
    commit: &str,
    command: Vec<String>,
) -> Result<(Id, RepoConfig), ErrorData> {
    let target = resolve_target(repository, Some(run), "bisect")?;
    let unknown_commit = || verify_error_data(repository, &VerifyError::InvalidCommit(commit.to_owned()));
    let commit: Id = commit.parse().map_err(|_| unknown_commit())?;
    if !repository.is_ancestor(&commit, &target.tip).map_err(|error| git_error(&error))? {
        let message = format!("{commit} is no commit of the run {}", target.run);
        return Err(ErrorData::new(ErrorKind::NotFound, message).hint("git log --oneline --first-parent"));
    }
    let config = load_config(repository, target.tip)
        .map_err(|error| verify_error_data(repository, &VerifyError::State(Box::new(error))))?;
    let guard = GuardConfig { command, ..config.guard };
    Ok((commit, RepoConfig { guard, ..config }))
}

fn missing_start_error(repository: &Repository, target: &VerifyTarget) -> ErrorData {
    let message = format!(
        "the start of the run {} is not here, so that nothing is known to work: {}",
        target.run,
        repository.work_dir().display()
    );
    ErrorData::new(ErrorKind::NotFound, message).hint("git fetch --unshallow")
}

fn try_reply(end: GuardEnd) -> TryReply {
    let (exit, description) = match end.how {
        GuardEndKind::Exited(code) => (Some(code), format!("exit={code}")),
        GuardEndKind::Signaled(signal) => (None, format!("signal={signal}")),
        GuardEndKind::TimedOut => (None, "it did not end within `iteration_timeout`".to_owned()),
        GuardEndKind::Missing { what } => (None, what),
        GuardEndKind::Cut => (None, "it was ended before it could say".to_owned()),
        GuardEndKind::Lost => (None, "its supervisor was killed".to_owned()),
    };
    TryReply { exit, ended: description, output: end.output, elapsed_ms: end.elapsed_ms }
}
