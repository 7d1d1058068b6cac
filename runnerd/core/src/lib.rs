//! The rules of the runner: pure functions over plain data.
//!
//! No I/O, no async, no clock, no environment: everything from outside is passed in as a value. The daemon carries out
//! what is decided here, and reports what happened as events.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod audit;
pub mod bisect;
pub mod committed_state;
pub mod delivery;
pub mod driver;
pub mod feedback;
pub mod files;
pub mod fsck;
pub mod git_version;
pub mod guard;
pub mod hook;
pub mod iteration;
pub mod landing;
pub mod message;
pub mod policy;
pub mod prompt;
pub mod publish;
pub mod run;
pub mod scope;
pub mod text;
pub mod tree;
pub mod verdict;
