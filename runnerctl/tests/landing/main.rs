//! Landing: complete runs, landed by the real client and daemon, and checked with the git program.
//!
//! How a run's commits are grouped is tested without processes in `runner-core`.

mod again;
mod conflicts;
mod deaths;
mod delivered;
mod forms;
mod guarded;
mod in_the_way;
mod kinds;
mod scene;
mod targets;
mod trains;
