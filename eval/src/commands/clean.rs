//! `clean`: removes the results of exactly one case.

use protocol::error::ExitStatus;
use schemars::JsonSchema;
use serde::Serialize;

use super::print_answer;
use crate::args::GlobalOptions;
use crate::case::find::EvalDirs;
use crate::error::EvalError;
use crate::results::ResultStore;

/// The answer of `clean`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EvalCleaned")]
pub(crate) struct CleanReply {
    /// `runner/eval-cleaned.v1`.
    pub(crate) schema: &'static str,
    /// Id of the case.
    pub(crate) case: String,
    /// Results that were removed.
    pub(crate) removed: usize,
}

/// Runs the command.
pub(super) fn run(global: &GlobalOptions, places: &EvalDirs, case: &str) -> Result<ExitStatus, EvalError> {
    let removed = ResultStore::new(&places.results).remove_case(case)?;
    let cleaned = CleanReply { schema: "runner/eval-cleaned.v1", case: case.to_owned(), removed };
    print_answer(global, &cleaned, || format!("{removed} results of {case} are removed\n"))?;
    Ok(ExitStatus::Success)
}
