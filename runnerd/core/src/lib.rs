//! The rules of the runner: pure functions over plain data.
//!
//! No I/O, no async, no clock, no environment: what comes from outside comes in as a value. The
//! daemon performs what is decided here and reports what happened as events.

#![warn(clippy::wildcard_enum_match_arm)]

mod ansi;
pub mod answer;
pub mod approval;
pub mod audit;
pub mod change;
mod clip;
pub mod definition;
pub mod digest;
pub mod environment;
pub mod examine;
pub mod explain;
pub mod failure;
pub mod fallback;
pub mod feedback;
pub mod fence;
pub mod fsck;
pub mod guardrails;
pub mod hook;
pub mod ids;
pub mod iteration;
pub mod json;
pub mod layout;
mod merge;
pub mod message;
pub mod notes;
pub mod obstacle;
mod outline;
pub mod person;
pub mod policy;
pub mod prompt;
pub mod questions;
pub mod redact;
pub mod reset_time;
pub mod rules;
pub mod run;
pub mod schema;
pub mod select;
mod strict_json;
mod template;
pub mod transition;
pub mod tree;
mod tree_length;
pub mod usage;
pub mod validate;
pub mod verdict;
pub mod wait;
