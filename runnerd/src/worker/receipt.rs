//! What every receipt says: which runner has made it, and how a guard ended.

use runner_core::iteration::{GuardEnd, GuardEndKind};
use runner_core::message::{GuardRun, ProcessEnd, RunnerVersion};
use runner_core::prompt::{PROMPT_FORMAT, templates_digest};

/// Returns what receipts name as the runner's version.
pub(crate) fn runner_version() -> RunnerVersion {
    RunnerVersion {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        prompt_format: PROMPT_FORMAT,
        templates: templates_digest().chars().take(12).collect(),
    }
}

/// Returns how a guard ended, for a receipt; none where it did not end by itself.
pub(crate) fn guard_run(guard: &GuardEnd) -> Option<GuardRun> {
    let end = match guard.how {
        GuardEndKind::Exited(code) => ProcessEnd::Exit(code),
        GuardEndKind::Signaled(signal) => ProcessEnd::Signal(signal),
        GuardEndKind::TimedOut | GuardEndKind::Missing { .. } | GuardEndKind::Cut | GuardEndKind::Lost => return None,
    };
    let output = guard.digest.as_ref()?.parse().ok()?;
    Some(GuardRun { end, output })
}
