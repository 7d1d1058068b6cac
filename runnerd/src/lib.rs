//! The daemon as a library: what `runnerd` is made of, for its binary and its tests.

pub mod clock;
pub mod config;
pub mod git;
pub mod logging;
pub mod process;
pub mod repo;
pub mod rpc;
pub mod startup;
