//! Results brought home: whole runs, landed by the real client and daemon, and seen by the git program.
//!
//! Which commits a run becomes is tested without processes in `runner-core`.

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
