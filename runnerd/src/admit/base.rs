//! The commit at which a run begins.

use protocol::error::{ErrorData, ErrorKind};
use protocol::shell;
use runner_core::fsck::is_like_runner_path;
use runner_git::{Head, Id, Repository};

use super::git_error;

/// Returns the commit of HEAD.
pub(super) fn find_head_commit(repository: &Repository) -> Result<Id, ErrorData> {
    repository.head().map_err(|error| git_error(&error))?.commit().ok_or_else(|| {
        let message =
            format!("{} has no commit yet, so there is nothing to begin from", repository.work_dir().display());
        ErrorData::new(ErrorKind::WrongState, message).hint("git commit --allow-empty -m Begin")
    })
}

/// Returns the commit of the base: the one that was named, else HEAD unless it is on a run's branch.
pub(super) fn choose_base(repository: &Repository, requested: Option<&str>) -> Result<Option<String>, ErrorData> {
    if let Some(revision) = requested {
        return resolve_base(repository, revision).map(|id| Some(id.to_string()));
    }
    Ok(match repository.head().map_err(|error| git_error(&error))? {
        Head::Branch { name, .. } if name.starts_with("runner/") => None,
        head => head.commit().map(|commit| commit.to_string()),
    })
}

/// Returns the commit that a revision names.
pub(super) fn resolve_base(repository: &Repository, revision: &str) -> Result<Id, ErrorData> {
    let resolved = repository.resolve_revision(revision).map_err(|error| git_error(&error))?;
    let unknown_revision =
        || ErrorData::new(ErrorKind::NotFound, format!("`{revision}` names no commit")).hint("git log --oneline");
    let base = resolved.ok_or_else(unknown_revision)?;
    refuse_unreadable(repository, &base)?;
    Ok(base)
}

/// Refuses a commit that the runner cannot read: no run could begin from it.
fn refuse_unreadable(repository: &Repository, commit: &Id) -> Result<(), ErrorData> {
    let Err(error) = repository.first_parents(commit, 1) else { return Ok(()) };
    let message = format!("commit {} cannot be read", commit.short(12));
    let hint = "git fsck; then begin from another commit: runnerctl start --base COMMIT";
    Err(ErrorData::new(ErrorKind::WrongState, message).caused_by(&error).hint(hint))
}

/// Refuses a commit that cannot be read, or with a name that some file system takes for the runner's folder: no commit of
/// the runner has one.
pub(super) fn refuse_base(repository: &Repository, commit: &Id) -> Result<(), ErrorData> {
    refuse_unreadable(repository, commit)?;
    let files = repository.list_entries(commit, "").map_err(|error| git_error(&error))?;
    let Some(file) = files.iter().find(|file| is_like_runner_path(&file.path)) else { return Ok(()) };
    let path = String::from_utf8_lossy(&file.path);
    let name = path.split('/').next().unwrap_or_default();
    let place = repository.work_dir().display();
    let message = format!("{place} tracks {}, which some file systems take for .runner", name.escape_debug());
    let hint = format!("git rm -r --cached {}; then commit", shell::quote(name));
    Err(ErrorData::new(ErrorKind::WrongState, message).hint(hint))
}
