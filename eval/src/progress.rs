//! Progress on standard error while runs are active: one line per event, prefixed with the case if several run at once.

use std::io::Write as _;

use protocol::event::{Event, EventKind};
use protocol::sanitize::sanitize;

/// Prints the lines of one run.
#[derive(Debug, Clone)]
pub(crate) struct RunProgress {
    name: String,
    is_quiet: bool,
}

impl RunProgress {
    pub(crate) fn new(name: impl Into<String>, is_quiet: bool) -> Self {
        Self { name: name.into(), is_quiet }
    }

    pub(crate) fn print_line(&self, text: &str) {
        if !self.is_quiet {
            // Standard error may be closed; there is no one to report that to.
            let _ = writeln!(anstream::stderr().lock(), "{}  {}", self.name, sanitize(text));
        }
    }

    /// Prints an event if it is of interest to someone waiting.
    pub(crate) fn report_event(&self, event: &Event) {
        match &event.kind {
            EventKind::Iteration { node, verdict, guard, attempts, max_attempts, .. } => {
                let iter = event.iter.unwrap_or_default();
                self.print_line(&format!(
                    "iteration {iter}: {node}: {verdict}, guard {guard}, attempts {attempts}/{max_attempts}"
                ));
            }
            EventKind::Obstacle { message } | EventKind::Warning { message } => self.print_line(message),
            EventKind::Outage { agent, why, until } => self.print_line(&format!("{agent} is out until {until}: {why}")),
            _ => {}
        }
    }
}
