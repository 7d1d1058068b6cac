//! `clean`: removes the results of exactly one case.

use protocol::error::ExitStatus;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer;
use crate::args::Global;
use crate::case::find::Places;
use crate::fault::Fault;
use crate::results::Store;

/// The answer of `clean`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EvalCleaned")]
pub(crate) struct Cleaned {
    /// `runner/eval-cleaned.v1`.
    pub(crate) schema: &'static str,
    /// Id of the case.
    pub(crate) case: String,
    /// Results that were removed.
    pub(crate) removed: usize,
}

/// Runs the command.
pub(super) fn run(global: &Global, places: &Places, case: &str) -> Result<ExitStatus, Fault> {
    let removed = Store::at(&places.results).clean(case)?;
    let cleaned = Cleaned { schema: "runner/eval-cleaned.v1", case: case.to_owned(), removed };
    answer(global, &cleaned, || format!("{removed} results of {case} are removed\n"))?;
    Ok(ExitStatus::Fine)
}
