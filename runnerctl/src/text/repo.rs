//! What a repository is called where several are listed: its path, or the id of its run where it is the workspace of an
//! isolated one and stands below the repository that this was begun from.

use protocol::view::StatusView;

/// Returns the id of the run that a workspace was made for; none where the repository is none.
pub(crate) fn isolated_run_id(status: &StatusView) -> Option<String> {
    status.repo.source_id.as_ref()?;
    let dir_name = || status.repo.path.as_path().file_name().map(|name| name.to_string_lossy().into_owned());
    status.run.as_ref().map(|run| run.summary.id.clone()).or_else(dir_name)
}

/// Whether a repository stands below another one of the list: the one that its run was begun from.
pub(crate) fn is_nested(status: &StatusView, all: &[StatusView]) -> bool {
    status.repo.source_id.as_ref().is_some_and(|source| all.iter().any(|other| other.repo.id == *source))
}

/// Returns what a repository is called by where it is, and the run of a workspace behind it.
pub(crate) fn display_name(status: &StatusView) -> String {
    match (&status.repo.source, isolated_run_id(status)) {
        (Some(source), Some(run)) => format!("{source} {run}"),
        _ => status.repo.path.to_string(),
    }
}
