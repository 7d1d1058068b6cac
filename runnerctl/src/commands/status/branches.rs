//! `status --remote`: shows the runs of a git remote, as recorded in their branches.

use protocol::api::RunApiClient as _;
use protocol::branch::BranchView;
use protocol::error::ExitStatus;
use protocol::request::AtRun;
use serde::Serialize;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::remote_status::{self, FetchDepth, RemoteQuery};
use crate::run_target::RunTarget;
use crate::text::branch;

#[derive(Serialize)]
struct BranchList {
    runs: Vec<BranchView>,
}

/// Prints the answer once.
pub(super) async fn print_branches(
    invocation: &Invocation<'_>,
    remote: &str,
    target: &RunTarget,
    is_watched: bool,
) -> Result<ExitStatus, Failure> {
    if is_watched {
        return Err(Failure::usage("a remote does not report its changes").hint("leave --watch away"));
    }
    let (path, run) = target.clone().split(invocation)?;
    let run = run.as_deref();
    // The commits of a single run show who has claimed it; for many runs only the last commit of each is consulted.
    let depth = if run.is_some() { FetchDepth::Commits } else { FetchDepth::Tip };
    let query = RemoteQuery { remote, path: path.as_deref(), run, depth };
    let runs = remote_status::with_remote(invocation, query, async |inside| {
        let at = AtRun { path: inside.daemon_path(None)?, run: run.map(str::to_owned) };
        Ok(inside.connect().await?.client().branches(at).await?)
    })
    .await?;
    let answer = BranchList { runs };
    invocation.ui.print_answer("branches", &answer, |screen| match (&answer.runs[..], run) {
        ([one], Some(_)) => branch::render_detail(one, screen),
        (all, _) => branch::render_list(all, screen),
    })?;
    Ok(ExitStatus::Success)
}
