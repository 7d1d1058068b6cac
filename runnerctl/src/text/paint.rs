//! The few styles of the client, by meaning; a state is never indicated only by colour.

use anstyle::{AnsiColor, Style};
use protocol::words::{GuardOutcome, RunStatus, VerdictName};

/// Done, passed, green.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Failed, red.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Needs a look.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// Under way.
pub(crate) const LIVE: Style = AnsiColor::Cyan.on_default().bold();
/// A command to type.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// Waits for a service.
pub(crate) const WAIT: Style = AnsiColor::Magenta.on_default();
/// Less important.
pub(crate) const DIM: Style = Style::new().dimmed();
/// A heading.
pub(crate) const HEADING: Style = Style::new().bold();
/// Nothing special.
pub(crate) const PLAIN: Style = Style::new();

/// Returns `text` in a style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Returns the style of a run's state.
pub(crate) fn state_style(state: RunStatus) -> Style {
    match state {
        RunStatus::Completed => GOOD,
        RunStatus::Running => LIVE,
        RunStatus::Queued | RunStatus::Cancelled => DIM,
        RunStatus::Waiting => WAIT,
        RunStatus::Paused | RunStatus::Held => WARN,
        RunStatus::Stuck | RunStatus::Limit | RunStatus::TimedOut | RunStatus::Failed => BAD,
    }
}

/// Returns the style of an iteration's outcome.
pub(crate) fn verdict_style(verdict: VerdictName) -> Style {
    match verdict {
        VerdictName::Accepted => GOOD,
        VerdictName::Decomposed => LIVE,
        VerdictName::Retry | VerdictName::Narrowed | VerdictName::Pending | VerdictName::Unavailable => WARN,
        VerdictName::Interrupted => DIM,
        VerdictName::RedGuard
        | VerdictName::Rejected
        | VerdictName::Broken
        | VerdictName::Fault
        | VerdictName::Timeout
        | VerdictName::Misconfigured => BAD,
    }
}

/// Returns the style of a guard's result.
pub(crate) fn guard_style(guard: GuardOutcome) -> Style {
    match guard {
        GuardOutcome::Pass => GOOD,
        GuardOutcome::Fail => BAD,
        GuardOutcome::Skipped => DIM,
    }
}
