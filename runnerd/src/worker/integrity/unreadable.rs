//! What a process has left that nothing can read: the first step after every process, since any operation of git's may
//! read it.

use protocol::words::PhaseName;

use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::git_dir;
use crate::worker::integrity::permissions;
use crate::worker::integrity::quarantine::Quarantine;
use crate::worker::integrity::restore;

/// Clears what nothing can read after a process of an iteration, before anything reads it: paths that are closed to
/// their owner, pipes, and files that git would read for minutes. Notes them for the later checks of the same process.
pub(crate) fn clear_unreadable(context: &RunContext, iter: u32, phase: PhaseName) -> Result<(), EffectError> {
    permissions::restore_permissions(context, iter, phase)?;
    let Some(before) = git_dir::read_snapshot(context, iter)? else { return Ok(()) };
    let repository = context.repository()?;
    restore::note_restored(context, iter, phase, repository.remove_pipes(&before)?)?;
    // In another repository's folder nothing is restored.
    let mut large = Vec::new();
    if repository.check_git_dir(&before).is_ok() {
        large = repository.find_large_git_files(&before);
    }
    let rules = permissions::find_large_rule_files(context, &before);
    let names = large.iter().chain(&rules).map(|file| repository.display_git_path(file));
    restore::note_restored(context, iter, phase, names)?;
    let quarantine = Quarantine::for_iteration(context, iter);
    rules.iter().try_for_each(|file| quarantine.move_git_file(&repository.display_git_path(file), file))?;
    git_dir::restore_large_files(&repository, &before, &large, &quarantine)
}
