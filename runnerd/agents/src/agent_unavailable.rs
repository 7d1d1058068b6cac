//! Why an agent cannot work until a person changes something, and what to do about it.

use std::fmt;

/// Why an agent cannot work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentUnavailable {
    /// What is wrong.
    pub what: String,
    /// What to do: a command, or a setting.
    pub fix: String,
}

impl AgentUnavailable {
    pub(super) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: fix.into() }
    }
}

impl fmt::Display for AgentUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.fix)
    }
}
