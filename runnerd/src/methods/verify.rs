//! `verify.run`: a branch is audited from git alone, registered or not.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::VerifyApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::request::VerifyParams;
use protocol::verify::AuditReport;
use tokio_util::sync::CancellationToken;

use super::{Api, blocking};
use crate::admit::git_error;
use crate::git::Repository;
use crate::verify::{Target, VerifyError, Watch, target, verify};

#[async_trait]
impl VerifyApiServer for Api {
    async fn verify(&self, params: VerifyParams) -> RpcResult<AuditReport> {
        let repository = self.readable(&params).await?;
        let wanted = params.run;
        let (repository, target) = blocking(move || {
            let target = target(&repository, wanted.as_deref())?;
            Ok((repository, target))
        })
        .await?;
        let is_live = self.is_at_work(&repository, &target).await;
        // The reading ends when nobody waits for this answer any more.
        let stop = CancellationToken::new();
        let _ends_with_the_call = stop.clone().drop_guard();
        Ok(blocking(move || {
            let mut watch = Watch { stop: &stop, progress: &mut |_, _| {} };
            verify(&repository, &target, is_live, &mut watch).map_err(|error| told(&error))
        })
        .await?)
    }
}

impl Api {
    /// Finds the repository around a path, bare or not.
    async fn readable(&self, params: &VerifyParams) -> Result<Repository, ErrorData> {
        match self.repository(params.path.as_path()).await {
            Err(error) if error.kind == ErrorKind::NotARepository => {
                let path = params.path.as_path().to_owned();
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

fn told(error: &VerifyError) -> ErrorData {
    match error {
        VerifyError::Git(error) => git_error(error),
        VerifyError::Gone(_) | VerifyError::Interrupted => ErrorData::new(ErrorKind::Fault, error.to_string()),
    }
}
