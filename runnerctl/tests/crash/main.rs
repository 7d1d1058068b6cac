//! What a death of the daemon, an orderly end of it, a queue and a person's word do to runs: the real daemon and client
//! in a home of their own, the git program as witness.
//!
//! The same in one process, event by event, is in `worker/simulation.rs` of the daemon.

mod control;
mod journal;
mod kills;
mod queue;
mod shutdown;
mod unanswered;
