//! The committed names of tests: `tests.json`.
//!
//! Plain data, strictly parsed. `runner-core` decides how it changes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `tests.json`: the tests that passed at the last green guard, or on the base, and those that passed before and do not
/// now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestRecord {
    /// Names of the tests that passed, sorted; the first 5,000 if there are more.
    pub passed: Vec<String>,
    /// Whether more tests have passed than `passed` holds.
    pub is_cut: bool,
    /// Tests that have passed in this run or on its base and do not now, newest first, at most 1,000.
    pub lost: Vec<LostTest>,
}

/// A test that passed before and does not now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LostTest {
    /// Its name, as the test runner or its report has it.
    pub name: String,
    /// The iteration since which it does not pass.
    pub iter: u32,
    /// Its present state.
    pub now: TestAbsence,
}

/// A summary of a run's tests, for readers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestsView {
    /// Number of tests that passed at the last green guard, or on the base; at least that many if there are too many to
    /// name.
    pub passed: u32,
    /// Number of tests that passed before and do not now.
    pub lost: u32,
    /// The first of those, newest first, at most 20.
    pub first_lost: Vec<LostTest>,
}

impl From<&TestRecord> for TestsView {
    fn from(record: &TestRecord) -> Self {
        const SHOWN: usize = 20;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            passed: count(record.passed.len()),
            lost: count(record.lost.len()),
            first_lost: record.lost.iter().take(SHOWN).cloned().collect(),
        }
    }
}

/// How the tests that passed changed with an iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestsChange {
    /// Number of tests that pass now and did not before.
    pub added: u32,
    /// Number of tests that passed before and do not now.
    pub lost: u32,
    /// The first names of those.
    pub names: Vec<String>,
}

impl fmt::Display for TestsChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { added, lost, names } = self;
        write!(f, "+{added} -{lost}")?;
        let more = usize::try_from(*lost).unwrap_or(usize::MAX).saturating_sub(names.len());
        match (names.is_empty(), more) {
            (true, _) => Ok(()),
            (false, 0) => write!(f, ", lost: {}", names.join(", ")),
            (false, more) => write!(f, ", lost: {} and {more} more", names.join(", ")),
        }
    }
}

impl fmt::Display for LostTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, iteration {})", self.name, self.now.as_str(), self.iter)
    }
}

/// Why a test does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestAbsence {
    /// It is gone, or has another name.
    Gone,
    /// It is skipped.
    Skipped,
    /// It fails, as it is expected to.
    ExpectedFailure,
    /// It fails, although the checks pass.
    Failed,
}

impl TestAbsence {
    /// Returns it in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Skipped => "skipped",
            Self::ExpectedFailure => "expected to fail",
            Self::Failed => "failed",
        }
    }
}
