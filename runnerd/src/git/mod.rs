//! The repository as the runner needs it: what changed, one commit with all of it, branches, history, and a way back
//! that loses nothing. The only place that says gix, and one file of it (`repository/program.rs`) the only one that starts
//! the git program. It decides nothing about runs, is synchronous, and reaches no network.
//!
//! A [`Repository`] is a few paths that can be cloned and sent to another thread. What is in the repository is read by
//! each operation anew; a captured configuration is read once for all of its clones. Two engines carry out the operations
//! on the work tree: the library, and the git program for repositories that use what the library does not do as git does
//! (`repository/preflight.rs`). Both give the same trees. No hooks are run by either.
//!
//! | to do | folder |
//! |---|---|
//! | find and open; be sure whose configuration counts; run git itself | `repository` |
//! | read what is committed, each object checked | `objects` |
//! | HEAD, branches and the runner's own references | `refs` |
//! | the index, as a file and in memory | `index` |
//! | see what changed, and bring it into an index and a tree | `worktree` |
//! | commit it | `commit` |
//! | see and undo what a session did to git's own folder | `tampering` |
//! | keep everything, restore, mend, end what was begun | `rescue` |
//! | merge trees without a work tree, and move a branch with the work tree that has it | `landing` |
//! | make a second repository that shares nothing with it | `replica` |
//!
//! A folder uses those above it in this list. What is done with a [`Repository`] is a method of it, written where its
//! topic is: whoever has one need not know the folders. Below them all are `error`, `id`, `path`, `durable`, `moment`,
//! `file_state` and `operation`.

mod commit;
mod durable;
mod error;
mod file_state;
mod id;
mod index;
mod landing;
mod moment;
mod objects;
mod operation;
mod path;
mod refs;
mod replica;
mod repository;
mod rescue;
mod tampering;
mod worktree;

#[cfg(test)]
mod tests;

pub use commit::Committed;
pub use commit::graft::Graft;
pub use commit::prepare::{CommitRequest, HeldBack};
pub use error::GitError;
pub use id::{Id, InvalidId};
pub use landing::advance::{Advance, NotAdvanced};
pub use landing::merge::{Merge, Merged, Merger};
pub use landing::trees::RunnerFolder;
pub use landing::work_trees::Occupied;
pub use landing::write::NewCommit;
pub use objects::chain::{Chain, ChainChange, ChainCommit, ChainFile};
pub use objects::history::CommitInfo;
pub use objects::transfer::{Known, Reached};
pub use objects::{CommitEntry, EntryKind};
pub use operation::Operation;
pub use refs::Head;
pub use refs::in_use::{InUse, Use, leave};
pub use refs::listing::RefChange;
pub use replica::Replica;
pub use repository::at_work::{Ender, GitWait, end_waiting, waits};
pub use repository::handle::Repository;
pub use repository::identity::Identity;
pub use repository::trusted::Captured;
pub use repository::users::{UsersRules, revoked_keys};
pub use rescue::{Restore, Restored, Snapshot, SnapshotRequest};
pub use tampering::{Fingerprint, MovedRef, Tampered};
pub use worktree::change::{Change, ChangeKind};
pub use worktree::checkout::Checkout;
pub use worktree::hold_back::HoldBack;
pub use worktree::refused::Refused;
