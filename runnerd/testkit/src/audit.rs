//! Checks after a test that every run branch in its home obeys the rules, unless the test declares a forgery.
//!
//! The audit runs in a program without any state, as on another machine.

use std::ffi::OsString;
use std::fs;

use crate::home::{Home, ProgramOutput};

/// Audits every run branch in a home; returns a description of the first violation, if any.
pub(crate) fn audit_branches(home: &Home) -> Option<String> {
    let repositories = home.path().join("repos");
    // A test may remove the folder; a home that was never used has no branches.
    fs::read_dir(&repositories).ok()?.next()?.ok()?;
    let mut audit = home.command("runner-audit");
    audit.arg(OsString::from(repositories));
    let output = ProgramOutput::run_command(audit);
    (output.code != 0).then_some(output.stderr)
}
