//! Verifies the signatures of the runner's commits and of people's decisions in them with keys that the requester has
//! named.
//!
//! The keys are in one of the daemon's files while git reads them. What a signature means is up to the audit.

use std::io::{self, Write as _};
use std::path::Path;

use jiff::Timestamp;
use protocol::verify::AuditReport;
use runner_core::audit::{self, SignatureStatus};
use runner_git::{Id, Repository, find_revoked_keys_file};
use runner_os::temp_file;
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use super::{VerifyError, VerifyTarget, plan_audit};
use crate::ssh_signature::{AllowedSigner, SignedText};

/// The allowed signers.
#[derive(Debug, Clone, Copy)]
pub struct AllowedSigners<'a> {
    /// In git's allowed-signers format.
    pub text: &'a str,
    /// One of the daemon's folders.
    pub folder: &'a Path,
}

/// Adds invalid signatures of commits to the report of a branch.
pub fn check_signatures(
    repository: &Repository,
    target: &VerifyTarget,
    signers: AllowedSigners<'_>,
    report: &mut AuditReport,
    stop: &CancellationToken,
) -> Result<(), VerifyError> {
    let plan = plan_audit(repository, target, stop)?;
    let failed = |source| VerifyError::Folder { path: signers.folder.to_owned(), source };
    let file = signers.write_file().map_err(failed)?;
    let signatures = repository.check_signatures(&audit::commits_to_sign(&plan), file.path())?;
    audit::report_signatures(&plan, &signatures, report);
    Ok(())
}

/// Adds invalid signatures of people's decisions to the report of a branch.
pub fn check_review_signatures(
    repository: &Repository,
    reviewers: AllowedSigners<'_>,
    report: &mut AuditReport,
    stop: &CancellationToken,
) -> Result<(), VerifyError> {
    let failed = |source| VerifyError::Folder { path: reviewers.folder.to_owned(), source };
    let file = reviewers.write_file().map_err(failed)?;
    let revoked = find_revoked_keys_file()?;
    let mut signatures = Vec::new();
    for review in &report.reviews {
        if stop.is_cancelled() {
            return Err(VerifyError::Interrupted);
        }
        let Some(signature) = review.signature.as_ref().and_then(|signature| signature.parse().ok()) else {
            signatures.push(SignatureStatus::None);
            continue;
        };
        let commit: Id = review.commit.parse().map_err(|_| VerifyError::InvalidCommit(review.commit.clone()))?;
        let time = repository.first_parents(&commit, 1)?.first().ok_or(VerifyError::MissingCommit(commit))?.time;
        // A date outside the calendar is later than any expiry date of a key.
        let time = Timestamp::from_second(time).unwrap_or(Timestamp::MAX);
        let allowed = AllowedSigner { signers: file.path(), revoked: revoked.as_deref(), time };
        let signed = SignedText { signature: &signature, text: &review.text };
        signatures.push(signed.verify(&allowed, reviewers.folder).map_err(VerifyError::Keygen)?);
    }
    audit::report_reviews(&signatures, report);
    Ok(())
}

impl AllowedSigners<'_> {
    fn write_file(self) -> io::Result<NamedTempFile> {
        let mut file = temp_file::create_in(self.folder, Path::new("signers"))?;
        file.write_all(self.text.as_bytes())?;
        Ok(file)
    }
}
