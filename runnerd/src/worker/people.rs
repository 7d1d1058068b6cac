//! What people have committed upon the runner's last commit: looked through, and held to what a person may do.

use protocol::view::StopReason;
use runner_core::message::RunnerCommit;
use runner_core::person;

use crate::git::{CommitInfo, GitError, Repository};
use crate::worker::load::{LoadError, Loaded, load};

/// Commits that are looked through for the runner's last one.
pub(crate) const MAX_PERSON_COMMITS: usize = 10_000;

/// Checks what a person has committed since the runner's last commit.
pub(crate) fn persons_commits(repository: &Repository, loaded: &Loaded) -> Result<Option<StopReason>, GitError> {
    // What only says who drives the run settles nothing: a person's commit before it is still looked at.
    let is_runners = |commit: &CommitInfo| RunnerCommit::settles(&commit.message);
    if repository.first_parents(&loaded.commit, 1)?.first().is_some_and(is_runners) {
        return Ok(None);
    }
    let commits = repository.first_parents(&loaded.commit, MAX_PERSON_COMMITS)?;
    let last = commits.iter().find(|commit| is_runners(commit));
    let Some(last) = last else { return Ok(None) };
    let before = match load(repository, last.id) {
        Ok(before) => before,
        Err(LoadError::Git(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let breach = person::check(&before.tree, &loaded.tree).err();
    Ok(breach.map(|breach| {
        let message = format!("a commit since {} breaks a rule: {breach}", last.id.short(12));
        StopReason::new(message, "take that change back in a commit of your own, then: runnerctl resume")
    }))
}
