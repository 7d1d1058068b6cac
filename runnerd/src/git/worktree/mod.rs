//! The work tree: what differs from HEAD, and how it gets into an index and a tree.

pub(in crate::git) mod catch_up;
pub(in crate::git) mod change;
pub(in crate::git) mod checkout;
pub(in crate::git) mod content;
pub(in crate::git) mod exclude;
pub(in crate::git) mod hold_back;
pub(in crate::git) mod known;
pub(in crate::git) mod own;
pub(in crate::git) mod porcelain;
pub(in crate::git) mod preload;
pub(in crate::git) mod private;
pub(in crate::git) mod refused;
pub(in crate::git) mod renormalise;
pub(in crate::git) mod scan;
pub(in crate::git) mod stage;
pub(in crate::git) mod status;
pub(in crate::git) mod submodules;
