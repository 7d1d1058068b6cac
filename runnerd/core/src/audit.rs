//! The audit of a branch (SPEC 8.3): whether a runner that keeps the rules could have made it.
//!
//! Reads commits as plain data and knows neither git nor files. It has no rules of its own: what a commit should be is
//! asked of the functions that the runner itself decides with.

mod link;

pub use self::link::{Goal, Head, Link, PathChange, Readers, Settings, Stored, is_read};
