//! The committed names of tests: `tests.json`.
//!
//! Plain data, strictly parsed. `runner-core` decides how it changes.

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
    /// What became of it.
    pub now: TestAbsence,
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
