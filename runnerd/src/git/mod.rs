//! The repository as the runner needs it: what changed, one commit with all of it, branches, history, and a way back
//! that loses nothing. The only place that says gix, and one file of it (`program`) the only one that starts the git
//! program. It decides nothing about runs, is synchronous, and reaches no network.
//!
//! A [`Repository`] is a few paths that can be cloned and sent to another thread. What is in the repository is read by
//! each operation anew; a captured configuration is read once for all of its clones. Two engines carry out the operations on the work tree: the library, and the git program for
//! repositories that use what the library does not do as git does (`preflight`). Both give the same trees. No hooks are
//! run by either.
//!
//! | to do | file |
//! |---|---|
//! | find and open | `handle`, `open`, `shared`, `memory`, `engine`, `preflight` |
//! | be sure whose configuration counts | `capture`, `trusted`, `tampering`, `users`, `moment` |
//! | see what changed | `known`, `names`, `scan`, `preload`, `status`, `change` |
//! | put it into an index and a tree | `stage`, `content`, `index`, `marks`, `edits`, `cachetree`, `hold_back`, `exclude`, `catch_up` |
//! | commit and name | `prepare`, `commit`, `graft`, `identity`, `refs`, `branch`, `durable` |
//! | read back | `checked`, `history`, `chain`, `objects`, `diff` |
//! | keep and restore | `rescue`, `keep`, `copy`, `mend`, `operation`, `abandon`, `locks`, `links`, `pipes` |
//! | keep the store small | `upkeep` |
//! | run git itself | `program`, `porcelain`, `private` |

mod abandon;
mod branch;
mod cachetree;
mod capture;
mod catch_up;
mod chain;
mod change;
mod checked;
mod commit;
mod content;
mod copy;
mod diff;
mod durable;
mod edits;
mod engine;
mod error;
mod exclude;
mod exclude_block;
mod file_state;
mod graft;
mod handle;
mod history;
mod hold_back;
mod id;
mod identity;
mod index;
mod keep;
mod known;
mod links;
mod locks;
mod marks;
mod memory;
mod mend;
mod moment;
mod names;
mod objects;
mod open;
mod operation;
mod path;
mod pipes;
mod porcelain;
mod preflight;
mod preload;
mod prepare;
mod private;
mod program;
mod recoded;
mod refs;
mod rescue;
mod scan;
mod shared;
mod stage;
mod status;
mod tampering;
mod trusted;
mod upkeep;
mod users;

#[cfg(test)]
mod tests;

pub use chain::{Chain, ChainChange, ChainCommit, ChainFile};
pub use change::{Change, ChangeKind};
pub use commit::Committed;
pub use error::GitError;
pub use graft::Graft;
pub use handle::Repository;
pub use history::CommitInfo;
pub use hold_back::HoldBack;
pub use id::{Id, InvalidId};
pub use identity::Identity;
pub use objects::{Entry, EntryKind};
pub use operation::Operation;
pub use prepare::CommitRequest;
pub use refs::Head;
pub use rescue::{Restore, Restored, Snapshot, SnapshotRequest};
pub use tampering::{Fingerprint, MovedRef, Tampered};
pub use trusted::Captured;
pub use users::UsersRules;
