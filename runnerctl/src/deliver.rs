//! Delivers a run: pushes a branch, opens or updates a pull request, and collects feedback.
//!
//! All of it is done by the user's own programs, git and the forge's, with the user's environment and logins. The
//! daemon writes the texts about a run; this module decides when and where they are sent.

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
