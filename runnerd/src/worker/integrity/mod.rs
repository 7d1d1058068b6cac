//! Protects what a session must not change: the guard's definition, the runner's files, history, git's own folder.
//! Checked after every process, restored, and recorded.

pub(crate) mod definition;
pub(crate) mod git_dir;
pub(crate) mod guard_overlay;
pub(crate) mod hold_back;
pub(crate) mod ignored;
pub(crate) mod listing;
pub(crate) mod move_path;
pub(crate) mod path_content;
pub(crate) mod permissions;
pub(crate) mod quarantine;
mod refusing_rules;
pub(crate) mod restore;
pub(crate) mod scope;
pub(crate) mod secret_scan;
pub(crate) mod unreadable;
pub(crate) mod watched;
