//! Which hook calls are pending: an event is recorded in the same write of `repo.json` that makes it true.

use protocol::hook::{HOOK_SCHEMA, HookEvent, HookName};
use runner_core::hook;
use runner_core::run::RunRecord;
use runner_os::clock;

use crate::store::{PendingHook, RepoFile};

/// Maximum number of pending events; the oldest are dropped.
const MAX_QUEUED: usize = 100;

/// Adds the hook calls for the state changes between two records.
pub(crate) fn enqueue_hooks(before: &RepoFile, after: &mut RepoFile) {
    for run in &after.runs {
        let previous_status = before.runs.iter().find(|old| old.id == run.id).map(|old| old.state.status());
        // A run that is over when it appears has ended in its workspace, and its hook was called there.
        let is_new = match previous_status {
            Some(previous) => previous != run.state.status(),
            None => !run.state.is_over(),
        };
        let Some(hook) = hook::hook_for_state(run.state.status()).filter(|_| is_new) else { continue };
        let event = HookEvent { reason: run.reason.clone(), ..hook_event(&after.id, run, hook) };
        after.hooks.queue.push(PendingHook { event, begun: false });
    }
    let surplus = after.hooks.queue.len().saturating_sub(MAX_QUEUED);
    after.hooks.queue.drain(..surplus);
}

/// Builds an event from the current state of a run.
pub(crate) fn hook_event(repo: &str, run: &RunRecord, hook: HookName) -> HookEvent {
    HookEvent {
        schema: HOOK_SCHEMA.to_owned(),
        hook,
        time: clock::now(),
        repo: repo.to_owned(),
        path: run.path.clone(),
        run: run.id.clone(),
        goal: run.goal.clone(),
        branch: format!("runner/{}", run.id),
        state: run.state.status(),
        reason: None,
        questions: Vec::new(),
    }
}
