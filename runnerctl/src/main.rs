//! Workspace member; its modules follow.
fn main() {}
