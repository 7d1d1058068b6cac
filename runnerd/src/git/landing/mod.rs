//! Commits made from merges of trees, without a work tree, and a branch that is moved to them together with the work tree
//! that has it checked out. Which trees are merged, and why, is decided elsewhere.
//!
//! | to do | file |
//! |---|---|
//! | tell what a run has changed from what the runner keeps beside it | `trees` |
//! | merge three trees, with nobody's configuration | `merge` |
//! | tell what one branch has and another has not | `history` |
//! | write the commits | `write` |
//! | find the work trees of a repository, and what is in the way there | `work_trees` |
//! | move the branch and the work tree that has it | `advance` |
//! | put back what was begun in a work tree | `undo` |
//! | open and remove what is below a folder, no link followed | `below` |

pub(in crate::git) mod advance;
mod below;
pub(in crate::git) mod history;
pub(in crate::git) mod merge;
pub(in crate::git) mod trees;
mod undo;
pub(in crate::git) mod work_trees;
pub(in crate::git) mod write;
