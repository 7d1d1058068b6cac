//! The work tree: what differs from HEAD, and how it gets into an index and a tree.

pub(crate) mod change;
pub(crate) mod checkout;
pub(crate) mod closed;
pub(crate) mod content;
pub(crate) mod exclude;
pub(crate) mod hold_back;
pub(crate) mod ignore_files;
pub(crate) mod porcelain;
pub(crate) mod preload;
pub(crate) mod private_index;
pub(crate) mod refresh_index;
pub(crate) mod renormalize;
pub(crate) mod runner_dir;
pub(crate) mod scan;
pub(crate) mod sparse_patterns;
pub(crate) mod stage;
pub(crate) mod stat_cache;
pub(crate) mod status;
pub(crate) mod submodules;
pub(crate) mod unstorable;
