//! A run's life: turns with the queue, what comes before an iteration and after it, and what a life before has left.

pub(crate) mod baseline;
pub(crate) mod begin;
mod control;
mod follow_up;
mod give_up;
mod hooks;
mod mailbox;
mod prepare;
mod recover;
mod setup;
mod turns;
mod worker;

pub use turns::{spawn, spawn_after_bug, spawn_held};
pub use worker::WorkerDeps;
