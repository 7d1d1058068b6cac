//! The repository contract on disk: names under `.runner/`, who may write them, and durable files.
//!
//! Does not run git, and does not decide what a run does; callers pass the contents of the runner's own JSON files as
//! bytes.

pub mod disk;
pub mod durable;
pub mod init;
pub mod layout;
pub mod records;
pub mod seal;
pub mod sealed;
#[cfg(test)]
#[path = "tests/simulated_disk.rs"]
pub(crate) mod simulated_disk;

pub use layout::{Layout, PathOwnership};
