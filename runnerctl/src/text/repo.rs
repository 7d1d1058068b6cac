//! The name of a repository in a list: its path. The workspace of an isolated run is listed below its source
//! repository, by the id of its run.

use protocol::view::StatusView;

/// Returns the id of the run that a workspace belongs to; `None` if the repository is not a workspace.
pub(crate) fn isolated_run_id(status: &StatusView) -> Option<String> {
    status.repo.source_id.as_ref()?;
    let dir_name = || status.repo.path.as_path().file_name().map(|name| name.to_string_lossy().into_owned());
    status.run.as_ref().map(|run| run.summary.id.clone()).or_else(dir_name)
}

/// Whether a repository is listed below another one, the source of its run.
pub(crate) fn is_nested(status: &StatusView, all: &[StatusView]) -> bool {
    status.repo.source_id.as_ref().is_some_and(|source| all.iter().any(|other| other.repo.id == *source))
}

/// Returns the name of a repository: its path; for a workspace, the path of its source and its run.
pub(crate) fn display_name(status: &StatusView) -> String {
    match (&status.repo.source, isolated_run_id(status)) {
        (Some(source), Some(run)) => format!("{source} {run}"),
        _ => status.repo.path.to_string(),
    }
}
