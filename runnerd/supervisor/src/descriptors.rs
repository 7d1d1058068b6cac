//! Limits on open file descriptors: the daemon gets as many as its connections need, programs as many as it was given.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What a daemon asks for: its connections, and what git and programs need in addition.
const DESIRED_LIMIT: u64 = 4096;

/// The descriptor limit of a process that has raised it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit in force now.
    pub limit: u64,
    /// The limit with which the process was started.
    pub initial: u64,
}

impl DescriptorLimit {
    /// Raises the limit of the calling process as far as it needs and the system allows.
    ///
    /// # Errors
    ///
    /// Fails if the system does not report the limit.
    pub fn raise() -> nix::Result<Self> {
        let (given, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let limit = given.max(DESIRED_LIMIT.min(most));
        let is_raised = setrlimit(Resource::RLIMIT_NOFILE, limit, most).is_ok();
        Ok(Self { limit: if is_raised { limit } else { given }, initial: given })
    }
}

/// Sets the limit that programs started by the calling process get, as far as the system allows.
///
/// More than they were ever given can harm them: some keep a table of all possible descriptors.
pub(crate) fn set_child_limit(limit: u64) {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, limit.min(most), most);
    }
}
