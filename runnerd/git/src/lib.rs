//! The repository as the runner needs it: what changed, one commit with all of it, branches, history, and a way back
//! that loses nothing. Only this module uses gix, and only one file of it (`repository/program.rs`) starts the git
//! program. It decides nothing about runs, is synchronous, and never uses the network.
//!
//! A [`Repository`] is a few paths that can be cloned and sent to another thread. Each operation reads the repository
//! again; a captured configuration is read once for all clones. Two engines carry out the operations on the work tree:
//! the library, and the git program for repositories that use features the library does not handle as git does
//! (`repository/preflight.rs`). Both give the same trees. Neither runs hooks.
//!
//! | to do | folder |
//! |---|---|
//! | find and open; be sure whose configuration counts; run git itself | `repository` |
//! | read what is committed, each object checked | `objects` |
//! | HEAD, branches and the runner's own references | `refs` |
//! | the index, as a file and in memory | `index` |
//! | see what changed, and bring it into an index and a tree | `worktree` |
//! | commit it | `commit` |
//! | detect and revert what a session did to git's own folder | `git_dir_snapshot` |
//! | save everything, restore, repair, abort unfinished operations | `rescue` |
//! | merge trees without a work tree, and move a branch with the work tree that has it | `landing` |
//! | make a second repository that shares nothing with it | `clone` |
//!
//! A folder uses those above it in this list. Operations on a [`Repository`] are methods of it, each written in the
//! file of its topic, so a caller need not know the folders. Below them all are `error`, `id`, `path`, `durable`,
//! `fs_clock`, `file_state` and `operation`.

mod clone;
mod commit;
mod durable;
mod error;
mod file_state;
mod fs_clock;
mod git_dir_snapshot;
mod id;
mod index;
mod landing;
mod objects;
mod operation;
mod path;
mod refs;
mod repository;
mod rescue;
mod worktree;

#[cfg(test)]
mod tests;

pub use clone::RepositoryClone;
pub use commit::CommitOutcome;
pub use commit::commit_paths::PathsCommit;
pub use commit::prepare::{CommitRequest, HeldBackFiles};
pub use error::GitError;
pub use git_dir_snapshot::{GitDirSnapshot, MovedRef};
pub use id::{Id, InvalidId};
pub use landing::advance::{AdvanceError, BranchAdvance};
pub use landing::commit_tree::NewCommit;
pub use landing::merge::{MergeResult, TreeMerge, TreeMerger};
pub use landing::trees::RunnerFolder;
pub use landing::work_trees::WorktreeConflict;
pub use objects::commit_chain::{ChainChange, ChainCommit, ChainFile, CommitChain};
pub use objects::history::CommitInfo;
pub use objects::transfer::{KnownObjects, ObjectRange};
pub use objects::{CommitEntry, EntryKind};
pub use operation::Operation;
pub use refs::Head;
pub use refs::branch_use::{BranchUseKind, BranchUser, leave_branch_command};
pub use refs::listing::RefChange;
pub use repository::at_work::{AtWork, Ender, GitWait, blocks, end_waiting, waits};
pub use repository::handle::Repository;
pub use repository::identity::Identity;
pub use repository::pinned_config::PinnedConfig;
pub use repository::runner_attributes::{RUNNER_ATTRIBUTES_LINE, RunnerAttribute};
pub use repository::user_config::{UserGitConfig, find_revoked_keys_file, refuse_user_pipes};
pub use rescue::{RescueSnapshot, RestoreOptions, RestoreOutcome, SnapshotRequest};
pub use worktree::change::{ChangeKind, WorktreeChange};
pub use worktree::checkout::CheckoutDir;
pub use worktree::hold_back::HoldBackRule;
pub use worktree::ignore_files::IgnoreFiles;
pub use worktree::submodules::SubmoduleDiff;
pub use worktree::unstorable::UnstorableFile;
