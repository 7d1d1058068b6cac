//! How a run is driven: turns with the queue, the work before and after each iteration, and recovery from an earlier
//! daemon process.

pub(crate) mod baseline;
pub(crate) mod branch_checkout;
mod cancel_cleanup;
mod control;
pub(crate) mod create_layout;
mod follow_up;
mod hooks;
mod mailbox;
mod main_loop;
pub(crate) mod prepare;
mod recover;
mod setup;
pub(crate) mod start_run;
mod worker;

pub use main_loop::{spawn, spawn_after_bug, spawn_held};
pub use worker::WorkerDeps;
