//! After a test: every branch of a run in its home is one that the rules have made, or the test says that it is not.
//!
//! A program without any state looks at the branches, as on another machine.

use std::ffi::OsString;
use std::fs;

use crate::home::{Home, ProgramOutput};

/// Audits every branch of a run in a home; returns what is wrong with one.
pub(crate) fn audit_branches(home: &Home) -> Option<String> {
    let repositories = home.path().join("repos");
    // A test may take the folder away, and what it never used has no branch.
    fs::read_dir(&repositories).ok()?.next()?.ok()?;
    let mut audit = home.command("runner-audit");
    audit.arg(OsString::from(repositories));
    let output = ProgramOutput::run_command(audit);
    (output.code != 0).then_some(output.stderr)
}
