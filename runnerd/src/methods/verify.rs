//! `verify.run`: a branch is audited from git alone, registered or not.

use std::pin::pin;

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::VerifyApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::request::{RerunParams, VerifyParams};
use protocol::shell;
use protocol::verify::{AuditFinding, AuditPass, AuditReport, RerunReport, TipsParams};
use runner_core::audit::Tips;
use tokio_util::sync::CancellationToken;

use super::{Api, blocking};
use crate::admit::git_error;
use crate::client_gone::ClientGone;
use crate::git::{GitError, Id, Repository};
use crate::verify::{Signers, Since, Stage, Target, VerifyError, commands, copies, reviewed, signed, target, verify};

#[async_trait]
impl VerifyApiServer for Api {
    async fn verify(&self, extensions: &Extensions, params: VerifyParams) -> RpcResult<AuditReport> {
        let path = self.place_meant((&params.path, params.run.as_deref()), "verify").await?;
        let repository = self.readable(&path).await?;
        let wanted = params.run;
        let (repository, target) = blocking(move || {
            let target = target(&repository, wanted.as_deref())?;
            Ok((repository, target))
        })
        .await?;
        let is_live = self.is_at_work(&repository, &target).await;
        let (since, signers, reviewers) = (params.since, params.signers, params.reviewers);
        let asked = format!("verify {} {} {is_live} {since:?} {signers:?} {reviewers:?}", target.run, target.tip);
        let folder = self.paths.state.clone();
        let found = repository.clone();
        let read = move |stop: &CancellationToken| {
            let mut since = since.as_deref().map(|since| Since::new(&found, since)).transpose()?;
            let mut report = verify(&found, &target, is_live, stop).map_err(|error| told(&found, &error))?;
            if let Some(signers) = &signers {
                let signers = Signers { text: signers, folder: &folder };
                signed(&found, (&target, signers), &mut report, stop).map_err(|error| told(&found, &error))?;
            }
            if let Some(reviewers) = &reviewers {
                let reviewers = Signers { text: reviewers, folder: &folder };
                reviewed(&found, reviewers, &mut report, stop).map_err(|error| told(&found, &error))?;
            }
            match &mut since {
                Some(since) => since.leave_out(report),
                None => Ok(report),
            }
        };
        Ok(self.in_turn(extensions, (&repository, &asked), read).await?)
    }

    async fn rerun_guards(&self, extensions: &Extensions, params: RerunParams) -> RpcResult<RerunReport> {
        let repository = self.readable(&params.path).await?;
        self.check_users_configuration(&repository, params.confirmed).await?;
        let (passes, since) = (params.passes, params.since);
        let (repository, passes, commands) = blocking(move || {
            let passes = later(&repository, passes, since.as_deref())?;
            let commands = commands(&repository, &passes).map_err(|error| told(&repository, &error))?;
            Ok((repository, passes, commands))
        })
        .await?;
        if !params.confirmed {
            return Err(unconfirmed(&commands).into());
        }
        let stop = self.shutdown.child_token();
        let folder = copies(&self.paths.state);
        let (launcher, env) = (&self.launcher, &params.env);
        let stage = Stage { repository: &repository, folder, launcher, env, stop: &stop, brings: false };
        let ClientGone(left) = extensions.get().cloned().unwrap_or_default();
        let mut rerun = pin!(stage.rerun(&passes));
        let findings = tokio::select! {
            findings = &mut rerun => findings,
            () = left.cancelled() => {
                stop.cancel();
                rerun.await
            }
        };
        let findings = findings.map_err(|error| told(&repository, &error))?;
        Ok(RerunReport { guards: u32::try_from(passes.len()).unwrap_or(u32::MAX), findings })
    }

    async fn lost_tips(&self, extensions: &Extensions, params: TipsParams) -> RpcResult<Vec<AuditFinding>> {
        let TipsParams { path, tip, tips } = params;
        let last: Id = tip
            .parse()
            .map_err(|_| ErrorData::new(ErrorKind::InvalidRequest, format!("`{tip}` is not a commit id")))?;
        let repository = self.readable(&path).await?;
        let (found, asked) = (repository.clone(), format!("tips {last} {tips:?}"));
        let read = move |stop: &CancellationToken| {
            let mut looked = Tips::new(&tip, &tips);
            let walked = found.first_parents_until(&last, usize::MAX, |commit| {
                stop.is_cancelled() || looked.take(&commit.id.to_string())
            });
            walked.map_err(|error| git_error(&error))?;
            if stop.is_cancelled() {
                return Err(told(&found, &VerifyError::Interrupted));
            }
            Ok(looked.lost())
        };
        Ok(self.in_turn(extensions, (&repository, &asked), read).await?)
    }
}

/// Leaves out what a revision has already.
fn later(repository: &Repository, passes: Vec<AuditPass>, since: Option<&str>) -> Result<Vec<AuditPass>, ErrorData> {
    let Some(since) = since else { return Ok(passes) };
    let mut since = Since::new(repository, since)?;
    let mut later = Vec::new();
    for pass in passes {
        if !since.contains(&pass.commit)? {
            later.push(pass);
        }
    }
    Ok(later)
}

fn unconfirmed(commands: &[Vec<String>]) -> ErrorData {
    let message = format!("the guards of these commits would be run, as this user:{}", shell::lines(commands));
    ErrorData::new(ErrorKind::Unconfirmed, message).hint("look at the commands, then add --yes")
}

impl Api {
    /// Finds the repository around a path, bare or not.
    pub(super) async fn readable(&self, path: &WirePath) -> Result<Repository, ErrorData> {
        match self.repository(path.as_path()).await {
            Err(error) if error.kind == ErrorKind::NotARepository => {
                let path = path.as_path().to_owned();
                blocking(move || Repository::discover_to_read(&path).map_err(|_| error)).await
            }
            found => found,
        }
    }

    /// Whether a session of the run is at work: its commits have no receipt yet.
    async fn is_at_work(&self, repository: &Repository, target: &Target) -> bool {
        let Some(worker) = self.registry.find(repository.common_dir()).await else { return false };
        let is_current = worker.status().run.as_ref().is_some_and(|run| run.summary.id == target.run);
        is_current && self.is_live(&worker)
    }
}

pub(super) fn told(repository: &Repository, error: &VerifyError) -> ErrorData {
    match error {
        VerifyError::Git(error @ GitError::Broken { .. }) => {
            let is_partial = repository.is_partial().unwrap_or(false);
            let hint = if is_partial { "git fetch --refetch --no-filter" } else { "git fsck --connectivity-only" };
            git_error(error).hint(hint)
        }
        VerifyError::Git(error @ GitError::FalseObject { .. }) => git_error(error).hint("git fsck"),
        VerifyError::Git(error) => git_error(error),
        VerifyError::State(error) => error.told("runnerctl validate"),
        VerifyError::Gone(_)
        | VerifyError::NoCommit(_)
        | VerifyError::Folder { .. }
        | VerifyError::Spawn(_)
        | VerifyError::Workspace(_)
        | VerifyError::Keygen(_)
        | VerifyError::Interrupted => ErrorData::new(ErrorKind::Fault, error.to_string()),
    }
}
