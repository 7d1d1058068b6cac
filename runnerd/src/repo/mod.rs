//! The repository contract on disk: names under `.runner/`, who may write them, and durable files.
//!
//! Nothing here runs git or decides what a run does; contents of the runner's own JSON files come
//! from the callers as bytes.

pub mod disk;
pub mod durable;
pub mod goal;
pub mod init;
pub mod kept;
pub mod layout;
pub mod prompts;
pub mod records;
pub mod seal;
#[cfg(test)]
#[path = "tests/simulated_disk.rs"]
pub(crate) mod simulated_disk;

pub use goal::{Goal, GoalError};
pub use layout::{Layout, PathOwnership};
