//! What every receipt contains: the version of the runner, and how a guard ended.

use runner_core::iteration::{GuardEnd, GuardEndKind};
use runner_core::message::{GuardRun, ProcessEnd, RunnerVersion};
use runner_core::prompt::{PROMPT_FORMAT, templates_digest};

/// Returns the runner's version as named in receipts.
pub(crate) fn runner_version() -> RunnerVersion {
    RunnerVersion {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        prompt_format: PROMPT_FORMAT,
        templates: templates_digest().chars().take(12).collect(),
    }
}

/// Returns a receipt's entry for a guard; `None` if it neither exited nor was killed by a signal on its own.
pub(crate) fn guard_run(guard: &GuardEnd) -> Option<GuardRun> {
    let end = match guard.how {
        GuardEndKind::Exited(code) => ProcessEnd::Exit(code),
        GuardEndKind::Signaled(signal) => ProcessEnd::Signal(signal),
        GuardEndKind::TimedOut | GuardEndKind::Missing { .. } | GuardEndKind::Cut | GuardEndKind::Lost => return None,
    };
    let output = guard.digest.as_ref()?.parse().ok()?;
    Some(GuardRun { end, output })
}
