//! Reserves the id of an isolated run in its source, before anything of the run exists.
//!
//! The content of a reservation is sealed: this daemon recognizes its own, and takes no one else's away.

use protocol::error::{ErrorData, ErrorKind};
use runner_core::run::free_id;
use runner_core::tree::ids::run_of_ref;
use runner_git::{GitError, Repository};
use runner_os::retryable::Retryable as _;

use crate::repo::seal::{RandomnessError, SealContext, SealKey, random_nonce};
use crate::store::repo_id;

/// Number of ids that are tried while others take them concurrently.
const MAX_TRIES: u32 = 100;

/// A reserved id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedId {
    /// Id of the run.
    pub run: String,
    /// The content of its reference in the source.
    pub nonce: String,
}

/// Why no id was reserved.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no random number to distinguish the reservation from others.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessError),
    /// Others were faster at every attempt.
    #[error("the ids from {stem} on are being taken by others")]
    Contended {
        /// The stem of the ids.
        stem: String,
    },
}

impl From<ReserveError> for ErrorData {
    fn from(error: ReserveError) -> Self {
        let kind = if matches!(error, ReserveError::Contended { .. }) { ErrorKind::Busy } else { ErrorKind::Fault };
        let data = Self::new(kind, error.to_string()).caused_by(&error);
        let remedy = match &error {
            ReserveError::Contended { .. } => Some("choose another id with --id".to_owned()),
            ReserveError::Git(error) => error.remedy(),
            ReserveError::NoRandomness(_) => None,
        };
        remedy.into_iter().fold(data, Self::hint)
    }
}

/// Reserves `stem`, or the first of `-2`, `-3`… that has no branch in `source` or its remotes, no reservation and is
/// not `known`; ids that differ only in case count as the same.
pub fn reserve_id(
    source: &Repository,
    key: &SealKey,
    stem: &str,
    known: &[String],
) -> Result<ReservedId, ReserveError> {
    for _ in 0..MAX_TRIES {
        let refs = source.list_refs()?;
        let run_ids = refs.keys().filter_map(|name| run_of_ref(name));
        let taken: Vec<&str> = run_ids.chain(known.iter().map(String::as_str)).collect();
        let run = free_id(stem, |id| taken.iter().any(|taken| taken.eq_ignore_ascii_case(id)));
        let text = format!("{{\"nonce\":\"{}\"}}", random_nonce()?);
        let (nonce, _) = key.seal(seal_context(&seal_place(source, &run)), &text);
        if source.reserve_run_id(&run, &nonce)? {
            return Ok(ReservedId { run, nonce });
        }
    }
    Err(ReserveError::Contended { stem: stem.to_owned() })
}

/// Returns the reservations in a source that were made with this key.
pub(super) fn own_reservations(source: &Repository, key: &SealKey) -> Result<Vec<ReservedId>, GitError> {
    let all = source.list_reservations()?.into_iter().map(|(run, nonce)| ReservedId { run, nonce });
    let is_own = |one: &ReservedId| key.open(seal_context(&seal_place(source, &one.run)), one.nonce.as_bytes()).is_ok();
    Ok(all.filter(is_own).collect())
}

fn seal_place(source: &Repository, run: &str) -> String {
    format!("reserved/{}/{run}", repo_id(source.common_dir()))
}

fn seal_context(place: &str) -> SealContext<'_> {
    SealContext { place, predecessor: None }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_id_that_cannot_be_stored_is_no_reason_for_another_id() {
        let source = io::Error::from(io::ErrorKind::StorageFull);
        let full = GitError::Io { doing: "writing", path: "/r/.git".into(), source };
        let hint = ErrorData::from(ReserveError::from(full)).hint;
        assert_eq!(hint.as_deref(), Some("make room on the disk of /r/.git"));
        let contended = ReserveError::Contended { stem: "x".to_owned() };
        assert_eq!(ErrorData::from(contended).hint.as_deref(), Some("choose another id with --id"));
    }
}
