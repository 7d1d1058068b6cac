//! `doctor`: facts of the machine, of the daemon and of a repository, and what is to be done about them.
//!
//! [`machine`] and [`remote`] look, each within a time; [`rules`] judges, and does nothing else.

pub(crate) mod machine;
pub(crate) mod probe;
pub(crate) mod remote;
pub(crate) mod rules;

use std::time::Duration;

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckLevel {
    /// As it should be.
    Ok,
    /// Not looked at, and why.
    Skipped,
    /// Runs go on, and somebody should know.
    Warn,
    /// Runs cannot go on, or will not.
    Fail,
}

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DoctorCheck {
    /// What was looked at.
    pub(crate) name: String,
    /// How it is.
    pub(crate) level: CheckLevel,
    /// What was found.
    pub(crate) found: String,
    /// More of it, a line each.
    pub(crate) details: Vec<String>,
    /// What to type or to change, where something is to be done.
    pub(crate) fix: Option<String>,
}

impl DoctorCheck {
    pub(crate) fn new(level: CheckLevel, name: &str, found: impl Into<String>) -> Self {
        Self { name: name.to_owned(), level, found: found.into(), details: Vec::new(), fix: None }
    }

    pub(crate) fn ok(name: &str, found: impl Into<String>) -> Self {
        Self::new(CheckLevel::Ok, name, found)
    }

    pub(crate) fn skipped(name: &str, why: impl Into<String>) -> Self {
        Self::new(CheckLevel::Skipped, name, why)
    }

    pub(crate) fn warn(name: &str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..Self::new(CheckLevel::Warn, name, found) }
    }

    pub(crate) fn fail(name: &str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..Self::new(CheckLevel::Fail, name, found) }
    }

    #[must_use]
    pub(crate) fn with_details(self, details: Vec<String>) -> Self {
        Self { details, ..self }
    }
}

/// Why something could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueryError {
    /// It took too long.
    TimedOut(Duration),
    /// It was refused, or went wrong: what was said, and the hint that came with it.
    Refused(String, Option<String>),
}

impl QueryError {
    /// Returns the check that it makes of what was to be looked at.
    pub(crate) fn check(&self, name: &str) -> DoctorCheck {
        match self {
            Self::TimedOut(limit) => {
                let found = format!("no answer within {} s", limit.as_secs());
                DoctorCheck::warn(name, found, "try again when the machine is less busy: runnerctl doctor")
            }
            Self::Refused(what, Some(hint)) => DoctorCheck::fail(name, what.clone(), hint.clone()),
            Self::Refused(what, None) => DoctorCheck::new(CheckLevel::Fail, name, what.clone()),
        }
    }
}
