//! Workspace member; its modules follow.
