//! `verify.run`: audits a branch from git alone, registered or not.

use std::pin::pin;

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::VerifyApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::request::{RerunParams, VerifyParams};
use protocol::shell;
use protocol::verify::{AuditCounts, AuditFinding, AuditPass, AuditReport, RerunReport, TipsParams};
use runner_core::audit::TipSearch;
use runner_git::{GitError, Id, Repository};
use tokio_util::sync::CancellationToken;

use super::{Api, run_blocking};
use crate::admit::git_error;
use crate::call_context::ClientDisconnected;
use crate::state_dir::temp_dir;
use crate::verify::{
    AllowedSigners, GuardRerunner, RevisionFilter, VerifyError, VerifyTarget, check_review_signatures,
    check_signatures, list_guard_commands, resolve_target, verify_branch,
};
use crate::worker::unbegun_run_error;

#[async_trait]
impl VerifyApiServer for Api {
    async fn verify(&self, extensions: &Extensions, params: VerifyParams) -> RpcResult<AuditReport> {
        let path = self.resolve_run_path(&params.path, params.run.as_deref(), "verify").await?;
        let repository = self.find_readable_repository(&path).await?;
        let repo = repository.clone();
        let run = params.run.clone();
        let found = run_blocking(move || resolve_target(&repo, run.as_deref(), "verify")).await;
        let run = found.as_ref().map_or(params.run.as_deref(), |target| Some(&target.run));
        let target = match (self.find_unbegun_run(&params.path, run).await, found) {
            (Some((_, Some(tip))), Ok(target)) if tip == target.tip => return Ok(report_without_commits(target)),
            (Some((run, None)), Err(_)) => return Err(unbegun_run_error(&run).into()),
            (_, found) => found?,
        };
        let is_live = self.is_run_active(&repository, &target).await;
        let since = params.since;
        let signers = params.signers;
        let reviewers = params.reviewers;
        let query = format!("verify {} {} {is_live} {since:?} {signers:?} {reviewers:?}", target.run, target.tip);
        let folder = self.paths.state.clone();
        let repo = repository.clone();
        let run = target.run.clone();
        let read = move |stop: &CancellationToken| {
            let mut since = since.as_deref().map(|since| RevisionFilter::new(&repo, since)).transpose()?;
            let mut report =
                verify_branch(&repo, &target, is_live, stop).map_err(|error| verify_error_data(&repo, &error))?;
            if let Some(signers) = &signers {
                let signers = AllowedSigners { text: signers, folder: &folder };
                check_signatures(&repo, &target, signers, &mut report, stop)
                    .map_err(|error| verify_error_data(&repo, &error))?;
            }
            if let Some(reviewers) = &reviewers {
                let reviewers = AllowedSigners { text: reviewers, folder: &folder };
                check_review_signatures(&repo, reviewers, &mut report, stop)
                    .map_err(|error| verify_error_data(&repo, &error))?;
            }
            match &mut since {
                Some(since) => since.filter_report(report),
                None => Ok(report),
            }
        };
        let report = self.read_shared(extensions, &repository, &query, read).await?;
        // Elsewhere, its iterations may have been removed.
        if is_without_work(&report) && self.is_recorded(&params.path, &run).await {
            return Ok(AuditReport { counts: AuditCounts::default(), ..report });
        }
        Ok(report)
    }

    async fn rerun_guards(&self, extensions: &Extensions, params: RerunParams) -> RpcResult<RerunReport> {
        let repository = self.find_readable_repository(&params.path).await?;
        self.check_user_config(&repository, params.confirmed).await?;
        let passes = params.passes;
        let since = params.since;
        let (repository, passes, commands) = run_blocking(move || {
            let passes = filter_since(&repository, passes, since.as_deref())?;
            let commands =
                list_guard_commands(&repository, &passes).map_err(|error| verify_error_data(&repository, &error))?;
            Ok((repository, passes, commands))
        })
        .await?;
        if !params.confirmed {
            return Err(unconfirmed_guards_error(&commands).into());
        }
        let stop = self.shutdown.child_token();
        let folder = temp_dir(&self.paths.state);
        let launcher = &self.launcher;
        let env = &params.env;
        let stage =
            GuardRerunner { repository: &repository, folder, launcher, env, stop: &stop, copies_workspace: false };
        let ClientDisconnected(disconnected) = extensions.get().cloned().unwrap_or_default();
        let mut rerun = pin!(stage.rerun_guards(&passes));
        let findings = tokio::select! {
            findings = &mut rerun => findings,
            () = disconnected.cancelled() => {
                stop.cancel();
                rerun.await
            }
        };
        let findings = findings.map_err(|error| verify_error_data(&repository, &error))?;
        Ok(RerunReport { guards: u32::try_from(passes.len()).unwrap_or(u32::MAX), findings })
    }

    async fn lost_tips(&self, extensions: &Extensions, params: TipsParams) -> RpcResult<Vec<AuditFinding>> {
        let TipsParams { path, tip, tips } = params;
        let last: Id = tip
            .parse()
            .map_err(|_| ErrorData::new(ErrorKind::InvalidRequest, format!("`{tip}` is not a commit id")))?;
        let repository = self.find_readable_repository(&path).await?;
        let repo = repository.clone();
        let query = format!("tips {last} {tips:?}");
        let read = move |stop: &CancellationToken| {
            let mut search = TipSearch::new(&tip, &tips);
            let walked = repo.visit_first_parents(&last, usize::MAX, |commit| {
                stop.is_cancelled() || search.visit_commit(&commit.id.to_string())
            });
            walked.map_err(|error| git_error(&error))?;
            if stop.is_cancelled() {
                return Err(verify_error_data(&repo, &VerifyError::Interrupted));
            }
            Ok(search.into_findings())
        };
        Ok(self.read_shared(extensions, &repository, &query, read).await?)
    }
}

/// Whether the runner's commits follow the rules, and nobody has worked on the branch yet.
fn is_without_work(report: &AuditReport) -> bool {
    let AuditReport { findings, people, unseen, counts, since, .. } = report;
    counts.iterations == 0 && people.is_empty() && findings.is_empty() && unseen.is_empty() && since.is_none()
}

/// The report on the branch of a run that has made no commit.
fn report_without_commits(VerifyTarget { run, tip }: VerifyTarget) -> AuditReport {
    AuditReport {
        run,
        base: Some(tip.to_string()),
        tip: tip.to_string(),
        findings: Vec::new(),
        people: Vec::new(),
        passes: Vec::new(),
        brought: Vec::new(),
        unseen: Vec::new(),
        counts: AuditCounts::default(),
        since: None,
        signed: None,
        reviews: Vec::new(),
        reviewed: None,
    }
}

/// Leaves out commits that a revision already contains.
fn filter_since(
    repository: &Repository,
    passes: Vec<AuditPass>,
    since: Option<&str>,
) -> Result<Vec<AuditPass>, ErrorData> {
    let Some(since) = since else { return Ok(passes) };
    let mut since = RevisionFilter::new(repository, since)?;
    let mut remaining = Vec::new();
    for pass in passes {
        if !since.contains(&pass.commit)? {
            remaining.push(pass);
        }
    }
    Ok(remaining)
}

fn unconfirmed_guards_error(commands: &[Vec<String>]) -> ErrorData {
    let message = format!("the guards of these commits would be run, as this user:{}", shell::list_commands(commands));
    ErrorData::new(ErrorKind::Unconfirmed, message).hint("look at the commands, then add --yes")
}

impl Api {
    /// Finds the repository that contains a path, bare or not.
    pub(super) async fn find_readable_repository(&self, path: &WirePath) -> Result<Repository, ErrorData> {
        match self.find_repository(path.as_path()).await {
            Err(error) if error.kind == ErrorKind::NotARepository => {
                let path = path.as_path().to_owned();
                run_blocking(move || Repository::discover_read_only(&path).map_err(|_| error)).await
            }
            found => found,
        }
    }

    /// Whether a session of the run is at work, whose commits have no receipt yet.
    async fn is_run_active(&self, repository: &Repository, target: &VerifyTarget) -> bool {
        let Some(worker) = self.registry.find(repository.common_dir()).await else { return false };
        let is_current = worker.status().run.as_ref().is_some_and(|run| run.summary.id == target.run);
        is_current && self.is_unsettled(&worker)
    }
}

pub(super) fn verify_error_data(repository: &Repository, error: &VerifyError) -> ErrorData {
    match error {
        VerifyError::Git(error @ GitError::Corrupt { .. }) => {
            let is_partial = repository.is_partial().unwrap_or(false);
            let hint = if is_partial { "git fetch --refetch --no-filter" } else { "git fsck --connectivity-only" };
            git_error(error).hint(hint)
        }
        VerifyError::Git(error @ GitError::HashMismatch { .. }) => git_error(error).hint("git fsck"),
        VerifyError::Git(error) => git_error(error),
        VerifyError::State(error) => error.to_error_data("runnerctl validate"),
        VerifyError::MissingCommit(_)
        | VerifyError::InvalidCommit(_)
        | VerifyError::Folder { .. }
        | VerifyError::Spawn(_)
        | VerifyError::Workspace(_)
        | VerifyError::Keygen(_)
        | VerifyError::Interrupted => ErrorData::new(ErrorKind::Fault, error.to_string()),
    }
}
