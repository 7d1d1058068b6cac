//! The refusals of a queue, as clients get them.

use std::path::Path;

use protocol::error::{ErrorData, ErrorKind};
use protocol::view::StopReason;
use runner_core::run::RunRecord;

use crate::store::StoreError;

pub(crate) fn store_error_data(error: &StoreError) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

/// Returns the error about a repository in which no run was started.
pub fn no_run_error(place: &Path) -> ErrorData {
    let message = format!("no run here yet: {}", place.display());
    ErrorData::new(ErrorKind::NotFound, message).hint("runnerctl start -m 'What is to be true'")
}

/// Says of a run without a commit that nothing can be done with its branch.
pub fn unbegun_run_error(run: &RunRecord) -> ErrorData {
    let how = if run.state.is_over() { "ended before its first commit" } else { "has not made its first commit yet" };
    let message = format!("run {} {how}", run.id);
    ErrorData::new(ErrorKind::NotFound, message).hint(format!("runnerctl status --run {}", run.id))
}

pub(crate) fn run_not_found(id: &str) -> ErrorData {
    ErrorData::new(ErrorKind::NotFound, format!("no run {id} in this repository")).hint("runnerctl queue --ended")
}

pub(crate) fn held_error_data(held: &StopReason) -> ErrorData {
    let error = ErrorData::new(ErrorKind::Held, held.message.clone());
    held.next_steps().into_iter().fold(error, ErrorData::hint)
}
