//! What the operating system gives the daemon: the clock, files with their permissions, and errors of which some pass.
//!
//! Knows nothing of runs, repositories or programs.

pub mod clock;
pub mod dir_permissions;
pub mod error_chain;
pub mod file_copy;
pub mod retryable;
pub mod temp_file;
