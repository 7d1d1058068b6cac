//! Commits made by merging trees, without a work tree, and a branch moved to them together with the work tree that has
//! it checked out. Which trees are merged, and why, is decided elsewhere.
//!
//! | to do | file |
//! |---|---|
//! | separate what a run changed from the runner's own files | `trees` |
//! | merge three trees, independent of configuration | `merge` |
//! | compare the commits of two branches | `history` |
//! | write the commits | `commit_tree` |
//! | find the work trees of a repository, and what is in the way there | `work_trees` |
//! | move the branch and the work tree that has it | `advance` |
//! | revert an incomplete advance in a work tree | `undo` |
//! | open and remove paths below a folder without following links | `path_guard` |

pub(crate) mod advance;
pub(crate) mod commit_tree;
pub(crate) mod history;
pub(crate) mod merge;
mod path_guard;
pub(crate) mod trees;
mod undo;
pub(crate) mod work_trees;
