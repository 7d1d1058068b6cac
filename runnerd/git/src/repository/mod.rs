//! A repository: found, opened, bound to the configuration in force, and accessed through the library or the git
//! program.

pub(crate) mod at_work;
pub(crate) mod cache;
pub(crate) mod engine;
pub(crate) mod exclude_block;
pub(crate) mod handle;
pub(crate) mod identity;
pub(crate) mod locked_refs;
pub(crate) mod locks;
pub(crate) mod maintenance;
pub(crate) mod object_cache;
pub(crate) mod open;
pub(crate) mod pin;
pub(crate) mod pinned_config;
pub(crate) mod preflight;
pub(crate) mod program;
mod rules;
pub(crate) mod runner_attributes;
mod signing;
pub(crate) mod user_config;
