//! What a session must not have changed: the guard's definition, the runner's files, history, git's own folder. Looked at after
//! every process, put back, and kept.

pub(crate) mod access;
pub(crate) mod definition;
pub(crate) mod exposure;
pub(crate) mod ignored;
pub(crate) mod listing;
pub(crate) mod quarantine;
pub(crate) mod relocate;
pub(crate) mod restore;
pub(crate) mod swap;
pub(crate) mod tampering;
pub(crate) mod watched;
