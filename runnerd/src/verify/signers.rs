//! Has the runner's commits of a branch, and people's words in them, held against keys that whoever asks has named.
//!
//! The keys are in a file of the daemon's for as long as git reads them. What a signature means is the audit's.

use std::io::{self, Write as _};
use std::path::Path;

use jiff::Timestamp;
use protocol::verify::AuditReport;
use runner_core::audit::{self, Signature};
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use super::{Target, VerifyError, plan};
use crate::git::{Id, Repository, revoked_keys};
use crate::ssh_signature::{Allowed, Signed};
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

/// Adds to the report of a branch what does not hold of the signatures of people's words.
pub fn reviewed(
    repository: &Repository,
    reviewers: Signers<'_>,
    report: &mut AuditReport,
    stop: &CancellationToken,
) -> Result<(), VerifyError> {
    let failed = |source| VerifyError::Folder { path: reviewers.folder.to_owned(), source };
    let file = reviewers.laid_out().map_err(failed)?;
    let revoked = revoked_keys()?;
    let mut said = Vec::new();
    for review in &report.reviews {
        if stop.is_cancelled() {
            return Err(VerifyError::Interrupted);
        }
        let Some(signature) = review.signature.as_ref().and_then(|signature| signature.parse().ok()) else {
            said.push(Signature::None);
            continue;
        };
        let commit: Id = review.commit.parse().map_err(|_| VerifyError::NoCommit(review.commit.clone()))?;
        let time = repository.first_parents(&commit, 1)?.first().ok_or(VerifyError::Gone(commit))?.time;
        // A date that no calendar has is after every date until which a key may sign.
        let time = Timestamp::from_second(time).unwrap_or(Timestamp::MAX);
        let allowed = Allowed { signers: file.path(), revoked: revoked.as_deref(), time };
        let signed = Signed { signature: &signature, text: &review.text };
        said.push(signed.held(&allowed, reviewers.folder).map_err(VerifyError::Keygen)?);
    }
    audit::reviewed(&said, report);
    Ok(())
}

impl Signers<'_> {
    fn laid_out(self) -> io::Result<NamedTempFile> {
        let mut file = temporary::within(self.folder, Path::new("signers"))?;
        file.write_all(self.text.as_bytes())?;
        Ok(file)
    }
}
