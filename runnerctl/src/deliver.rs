//! Bringing a run to others: a branch that is pushed, a pull request that is opened or updated, and what comes back.
//!
//! All of it is done by programs of the person's own, git and that of the forge, with their environment and logins. What is
//! said of a run is the daemon's; here is when, and to whom.

pub(crate) mod address;
pub(crate) mod body;
pub(crate) mod checkout;
pub(crate) mod comments;
mod custom_forge;
pub(crate) mod delivery;
pub(crate) mod feedback;
pub(crate) mod forge;
mod forge_cli;
mod github;
mod gitlab;
mod logs;
