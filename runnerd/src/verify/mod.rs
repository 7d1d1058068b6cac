//! `verify`: the commits of a run's branch, read from git and given to the audit of the rules.
//!
//! Needs the repository alone: no record, no state folder, no work tree. What is right is not decided here.

mod bisect_points;
mod branch_audit;
mod guard_rerun;
mod signers;
mod revision_filter;
mod target;

pub use bisect_points::list_bisect_points;
pub use branch_audit::{VerifyError, plan_audit, verify_branch};
pub use guard_rerun::{GuardRerunner, clear_copies, list_guard_commands, copies_dir};
pub use signers::{AllowedSigners, check_review_signatures, check_signatures};
pub use revision_filter::RevisionFilter;
pub use target::{VerifyTarget, resolve_target, list_run_tips};
