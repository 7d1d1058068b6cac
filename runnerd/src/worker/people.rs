//! What people have committed upon the runner's last commit: looked through, and held to what a person may do.

use protocol::view::StopReason;
use runner_core::person;

use crate::git::Repository;
use crate::worker::load::{LoadError, Loaded, last_settled, load};

/// Checks what a person has committed since the runner's last commit.
pub(crate) fn persons_commits(repository: &Repository, loaded: &Loaded) -> Result<Option<StopReason>, LoadError> {
    let Some(last) = last_settled(repository, loaded.commit)?.filter(|last| *last != loaded.commit) else {
        return Ok(None);
    };
    let before = match load(repository, last) {
        Ok(before) => before,
        Err(error @ LoadError::Git(_)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let breach = person::check(&before.tree, &loaded.tree).err();
    Ok(breach.map(|breach| {
        let message = format!("a commit since {} breaks a rule: {breach}", last.short(12));
        StopReason::new(message, "take that change back in a commit of your own, then: runnerctl resume")
    }))
}
