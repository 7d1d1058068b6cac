//! Runs as jobs of an existing batch system: what is submitted, by which program, and what that prints.
//!
//! No state of a job is kept. How a run is driven as a job is up to `runnerd drive`.

pub(crate) mod batch_system;
pub(crate) mod run_start;
mod template;
