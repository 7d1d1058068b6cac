//! A repository: found, opened, bound to the configuration in force, and accessed through the library or the git
//! program.

pub(in crate::git) mod at_work;
pub(in crate::git) mod cache;
pub(in crate::git) mod engine;
pub(in crate::git) mod exclude_block;
pub(in crate::git) mod handle;
pub(in crate::git) mod identity;
pub(in crate::git) mod locked_refs;
pub(in crate::git) mod locks;
pub(in crate::git) mod maintenance;
pub(in crate::git) mod object_cache;
pub(in crate::git) mod open;
pub(in crate::git) mod pin;
pub(in crate::git) mod pinned_config;
pub(in crate::git) mod preflight;
pub(in crate::git) mod program;
mod rules;
pub(in crate::git) mod runner_attributes;
mod signing;
pub(in crate::git) mod user_config;
