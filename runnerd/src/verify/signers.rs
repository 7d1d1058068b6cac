//! Has the runner's commits of a branch held against keys that whoever asks has named.
//!
//! The keys are in a file of the daemon's for as long as git reads them. What a signature means is the audit's.

use std::io::{self, Write as _};
use std::path::Path;

use protocol::verify::AuditReport;
use runner_core::audit;
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use super::{Target, VerifyError, plan};
use crate::git::Repository;
use crate::temporary;

/// Who may sign.
#[derive(Debug, Clone, Copy)]
pub struct Signers<'a> {
    /// In git's form of allowed signers.
    pub text: &'a str,
    /// A folder of the daemon's.
    pub folder: &'a Path,
}

/// Adds to the report of a branch what does not hold of the signatures of its commits.
pub fn signed(
    repository: &Repository,
    (target, signers): (&Target, Signers<'_>),
    report: &mut AuditReport,
    stop: &CancellationToken,
) -> Result<(), VerifyError> {
    let plan = plan(repository, target, stop)?;
    let failed = |source| VerifyError::Folder { path: signers.folder.to_owned(), source };
    let file = signers.laid_out().map_err(failed)?;
    let said = repository.signatures(&audit::to_be_signed(&plan), file.path())?;
    audit::signed(&plan, &said, report);
    Ok(())
}

impl Signers<'_> {
    fn laid_out(self) -> io::Result<NamedTempFile> {
        let mut file = temporary::within(self.folder, Path::new("signers"))?;
        file.write_all(self.text.as_bytes())?;
        Ok(file)
    }
}
