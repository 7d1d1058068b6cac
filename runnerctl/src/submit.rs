//! Runs as jobs of a batch engine that is there already: what it is given, by which program, and what that says.
//!
//! Nothing is kept of a job. How a run is driven as one is `runnerd drive`'s.

pub(crate) mod batch_system;
pub(crate) mod run_start;
mod template;
