//! Checks what people have committed on top of the runner's last commit against what a person may do.

use protocol::view::StopReason;
use runner_core::files::person_edit;
use runner_git::Repository;

use crate::worker::load::{CommittedState, LoadError, last_runner_commit, load_state};

/// Returns the rule that a person's commits since the runner's last commit break, if any.
pub(crate) fn check_person_commits(
    repository: &Repository,
    loaded: &CommittedState,
) -> Result<Option<StopReason>, LoadError> {
    let Some(last_commit) = last_runner_commit(repository, loaded.commit)?.filter(|last| *last != loaded.commit) else {
        return Ok(None);
    };
    let before = match load_state(repository, last_commit) {
        Ok(before) => before,
        Err(error @ LoadError::Git(_)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let breach = person_edit::check_edit(&before.tree, &loaded.tree).err();
    Ok(breach.map(|breach| {
        let message = format!("a commit since {} breaks a rule: {breach}", last_commit.short(12));
        StopReason::new(message, "take that change back in a commit of your own, then: runnerctl resume")
    }))
}
