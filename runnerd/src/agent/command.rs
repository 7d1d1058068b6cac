//! Kind `command`: any program; the prompt on its standard input, the answer in `$RUNNER_OUTPUT`.

use std::ffi::OsString;

use crate::config::Executor;

/// Returns the program and its arguments, the wrapper in front.
pub(super) fn argv(executor: &Executor) -> Vec<OsString> {
    let words = executor.wrapper.iter().chain(&executor.command).chain(&executor.extra_args);
    words.map(OsString::from).collect()
}

/// Returns kind and version for receipts and records; a program of any kind tells no version.
pub(super) fn stamp(executor: &Executor) -> String {
    executor.kind.to_string()
}
