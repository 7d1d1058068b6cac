//! A repository: found, opened, bound to the configuration that counts, and asked through the library or the git program.

pub(in crate::git) mod at_work;
pub(in crate::git) mod capture;
pub(in crate::git) mod engine;
pub(in crate::git) mod exclude_block;
pub(in crate::git) mod handle;
pub(in crate::git) mod identity;
pub(in crate::git) mod locked_refs;
pub(in crate::git) mod locks;
pub(in crate::git) mod memory;
pub(in crate::git) mod open;
pub(in crate::git) mod preflight;
pub(in crate::git) mod program;
pub(in crate::git) mod shared;
mod signing;
pub(in crate::git) mod trusted;
pub(in crate::git) mod upkeep;
pub(in crate::git) mod users;
