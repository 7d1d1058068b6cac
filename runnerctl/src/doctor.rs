//! `doctor`: facts about the machine, the daemon and a repository, and how to fix problems.
//!
//! [`machine`] and [`remote`] gather facts, each within a time limit; [`rules`] judges them, and does nothing else.

pub(crate) mod machine;
pub(crate) mod probe;
pub(crate) mod remote;
pub(crate) mod rules;

use std::time::Duration;

use serde::Serialize;

/// Severity of a check's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckLevel {
    /// As it should be.
    Ok,
    /// Not checked; the text says why.
    Skipped,
    /// Runs continue, but the user should know.
    Warn,
    /// Runs cannot continue, or will fail.
    Fail,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DoctorCheck {
    /// What was checked.
    pub(crate) name: String,
    /// Severity.
    pub(crate) level: CheckLevel,
    /// What was found.
    pub(crate) found: String,
    /// More details, one per line.
    pub(crate) details: Vec<String>,
    /// What to type or change, if something needs fixing.
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

/// Why a fact could not be determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueryError {
    /// It took too long.
    TimedOut(Duration),
    /// The request failed: the message, and the hint that came with it.
    Refused(String, Option<String>),
}

impl QueryError {
    /// Converts it to the result of the check that needed the fact.
    pub(crate) fn to_check(&self, name: &str) -> DoctorCheck {
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
