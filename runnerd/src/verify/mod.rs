//! `verify`: the commits of a run's branch, read from git and given to the audit of the rules.
//!
//! Needs the repository alone: no record, no state folder, no work tree. What is right is not decided here.

mod points;
mod read;
mod rerun;
mod signers;
mod since;
mod target;

pub use points::list_bisect_points;
pub use read::{VerifyError, plan_audit, verify_branch};
pub use rerun::{GuardRerunner, clear_copies, list_guard_commands, copies_dir};
pub use signers::{AllowedSigners, check_review_signatures, check_signatures};
pub use since::RevisionFilter;
pub use target::{VerifyTarget, resolve_target, list_run_tips};
