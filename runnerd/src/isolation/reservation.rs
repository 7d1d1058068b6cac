//! The id of an isolated run, taken in its source before there is anything of the run.
//!
//! What the reservation says is sealed: this daemon knows its own ones again, and takes nobody else's away.

use protocol::error::{ErrorData, ErrorKind};
use runner_core::run::free_id;

use crate::git::{GitError, Repository};
use crate::repo::seal::{SealContext, SealKey, RandomnessError, random_nonce};
use crate::store::repo_id;

/// Ids that are tried while others take them at the same time.
const MAX_TRIES: u32 = 100;

/// Where names of references take ids: branches that a run would go on from, and what is kept of runs before.
const RUN_REF_PREFIXES: [&str; 8] = [
    "refs/runner/reserved/",
    "refs/heads/runner/",
    "refs/remotes/origin/runner/",
    "refs/runner/at/",
    "refs/runner/raw/",
    "refs/runner/rescue/",
    "refs/runner/moved/",
    "refs/runner/review/",
];

/// An id that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedId {
    /// The id.
    pub run: String,
    /// What its reference in the source says.
    pub nonce: String,
}

/// Why no id is taken.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is nothing to tell the reservation from others by.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessError),
    /// Others were always faster.
    #[error("the ids from {stem} on are being taken by others")]
    Contended {
        /// What the ids begin with.
        stem: String,
    },
}

impl From<ReserveError> for ErrorData {
    fn from(error: ReserveError) -> Self {
        let kind = if matches!(error, ReserveError::Contended { .. }) { ErrorKind::Busy } else { ErrorKind::Fault };
        Self::new(kind, error.to_string()).caused_by(&error).hint("choose another id with --id")
    }
}

/// Takes `stem`, or the first of `-2`, `-3`… that has no branch here or at `origin`, no reservation and is not `known`; ids
/// that differ in case alone are the same.
pub fn reserve_id(source: &Repository, key: &SealKey, (stem, known): (&str, &[String])) -> Result<ReservedId, ReserveError> {
    for _ in 0..MAX_TRIES {
        let refs = source.list_refs()?;
        let run_names = refs.keys().filter_map(|name| RUN_REF_PREFIXES.iter().find_map(|folder| name.strip_prefix(folder)));
        let run_ids = run_names.map(|rest| rest.split('/').next().unwrap_or(rest));
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

/// Returns the reservations of a source that were made with this key.
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
