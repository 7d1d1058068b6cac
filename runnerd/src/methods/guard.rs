//! `guard.*`: a person's decisions about the guard.

use std::path::{Path, PathBuf};

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::GuardApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::reply::ChangeReply;
use protocol::request::AcceptParams;
use runner_core::files::change::ChangeRequest;

use super::Api;

#[async_trait]
impl GuardApiServer for Api {
    async fn accept_definition(&self, params: AcceptParams) -> RpcResult<ChangeReply> {
        let AcceptParams { at, file } = params;
        let at = self.resolve_exact_run(at, "guard accept").await?;
        let repository = self.find_repository(at.path.as_path()).await?;
        let file = file.map(|file| path_in_work_tree(repository.work_dir(), file.as_path())).transpose()?;
        let files = file.into_iter().map(|file| (file, None)).collect();
        Ok(self.submit_change(at, ChangeRequest::Accept { files }, None).await?)
    }
}

/// Returns the path of a file, which may not exist, relative to the work tree.
fn path_in_work_tree(work_dir: &Path, file: &Path) -> Result<String, ErrorData> {
    let resolved = file.ancestors().skip(1).find_map(|above| {
        let rest = file.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    let root = work_dir.canonicalize().unwrap_or_else(|_| work_dir.to_owned());
    let path: Option<PathBuf> = resolved.and_then(|real| real.strip_prefix(root).ok().map(Path::to_owned));
    path.and_then(|path| path.into_os_string().into_string().ok()).ok_or_else(|| {
        let message = format!("{} is no file of {}", file.display(), work_dir.display());
        ErrorData::new(ErrorKind::NotFound, message).hint("runnerctl status names the files that have changed")
    })
}
