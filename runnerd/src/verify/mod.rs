//! `verify`: the commits of a run's branch, read from git and given to the audit of the rules.
//!
//! Needs the repository alone: no record, no state folder, no work tree. What is right is not decided here.

mod points;
mod read;
mod rerun;
mod signers;
mod since;
mod target;

pub use points::points;
pub use read::{VerifyError, plan, verify};
pub use rerun::{Stage, clear, commands, copies};
pub use signers::{Signers, reviewed, signed};
pub use since::Since;
pub use target::{Target, target, tips};
