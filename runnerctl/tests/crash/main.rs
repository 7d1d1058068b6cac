//! How runs survive a crash or shutdown of the daemon, queueing, and a person's control: the real daemon and client in
//! their own home, checked with the git program.
//!
//! The same in one process, event by event, is in `worker/simulation.rs` of the daemon.

mod control;
mod journal;
mod kills;
mod queue;
mod shutdown;
mod unanswered;
