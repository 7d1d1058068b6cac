//! `verify`: reads the commits of a run's branch from git and passes them to the rules' audit.
//!
//! Needs only the repository: no record, no state folder, no work tree. What counts as correct is not decided here.

mod bisect_points;
mod branch_audit;
mod guard_rerun;
mod revision_filter;
mod signers;
mod target;

pub use bisect_points::list_bisect_points;
pub use branch_audit::{VerifyError, plan_audit, verify_branch};
pub use guard_rerun::{GuardRerunner, list_guard_commands};
pub use revision_filter::RevisionFilter;
pub use signers::{AllowedSigners, check_review_signatures, check_signatures};
pub use target::{VerifyTarget, list_run_tips, resolve_target};
