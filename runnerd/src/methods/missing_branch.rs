//! What is said of a run that has ended and whose branch is gone.

use protocol::error::{ErrorData, ErrorKind};
use runner_git::Repository;

use crate::admit::git_error;
use crate::landing;
use crate::worker::list_iterations;

/// Number of digits by which a commit is named.
const SHORT_ID_DIGITS: usize = 12;
/// Maximum number of commits of the target that are searched for one of the run.
const MAX_COMMITS: usize = 100_000;

/// Says where a run without a branch has landed. `onto` is the branch that it was started from; `record` is the record of
/// its first iteration, if there is one.
pub(super) fn missing_branch_error(
    repository: &Repository,
    run: &str,
    onto: Option<&str>,
    record: Option<&str>,
) -> Result<ErrorData, ErrorData> {
    let not_found = |message: String| ErrorData::new(ErrorKind::NotFound, message);
    let find_tip = |branch: &str| repository.find_branch_tip(branch).map_err(|error| git_error(&error));
    if let (Some(branch), Some(tip)) = (onto, onto.map(find_tip).transpose()?.flatten()) {
        let landed = landing::find_landed_commit(repository, run, &tip).map_err(|error| git_error(&error))?;
        let landed = match landed {
            Some(landed) => Some(landed.short(SHORT_ID_DIGITS)),
            // A person may have merged the branch with its commits.
            None => list_iterations(repository, run, tip, MAX_COMMITS)
                .map_err(|error| error.to_error_data("git fsck"))?
                .first()
                .and_then(|view| view.commit.clone()),
        };
        if let Some(landed) = landed {
            let message = format!("run {run} has landed on {branch}, and its branch runner/{run} is gone");
            return Ok(not_found(message).hint(format!("git show {landed}")));
        }
    }
    let message = format!("run {run} has ended, and its branch runner/{run} is gone");
    Ok(not_found(message).hint(match record {
        Some(record) => format!("runnerctl log {run}/{record}"),
        None => "runnerctl queue --ended".to_owned(),
    }))
}
