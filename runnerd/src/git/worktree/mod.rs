//! The work tree: what differs from HEAD, and how it gets into an index and a tree.

pub(in crate::git) mod change;
pub(in crate::git) mod checkout;
pub(in crate::git) mod closed;
pub(in crate::git) mod content;
pub(in crate::git) mod exclude;
pub(in crate::git) mod hold_back;
pub(in crate::git) mod ignore_files;
pub(in crate::git) mod porcelain;
pub(in crate::git) mod preload;
pub(in crate::git) mod private_index;
pub(in crate::git) mod refresh_index;
pub(in crate::git) mod renormalize;
pub(in crate::git) mod runner_dir;
pub(in crate::git) mod scan;
pub(in crate::git) mod stage;
pub(in crate::git) mod stat_cache;
pub(in crate::git) mod status;
pub(in crate::git) mod submodules;
pub(in crate::git) mod unstorable;
