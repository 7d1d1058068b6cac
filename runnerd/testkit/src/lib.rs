//! Test kit: a home of its own, repositories in it, scripted agents and guards, and the real daemon and client.
//!
//! For tests alone: whatever goes wrong here panics with what was being done. Nothing here knows how the daemon works
//! inside; it is started, asked and killed as a user would do it. The binaries are those of the workspace's build:
//! `cargo build --workspace` makes them, and a run of all tests does so by itself.

mod audit;
mod bare;
mod binary;
mod bystander;
mod client;
mod clock;
mod config;
mod daemon;
mod disk;
mod gate;
mod home;
mod inject;
mod manager;
pub mod model;
mod ordeal;
mod ordinary;
mod processes;
mod random;
mod receipt;
mod repo;
mod scratch;
mod script;
mod tty;
pub mod witness;

use std::time::Duration;

pub use self::bare::Bare;
pub use self::binary::binary;
pub use self::bystander::Bystander;
pub use self::client::{Client, Crowd};
pub use self::clock::Clock;
pub use self::config::Config;
pub use self::daemon::Daemon;
pub use self::disk::Disk;
pub use self::gate::Gate;
pub use self::home::{Home, Output};
pub use self::inject::{Afflicted, Fault};
pub use self::manager::Manager;
pub use self::ordeal::{Ordeal, ends_the_same};
pub use self::ordinary::as_ordinary_user;
pub use self::processes::Suspended;
pub use self::random::Random;
pub use self::receipt::Receipt;
pub use self::repo::Repo;
pub use self::scratch::Scratch;
pub use self::script::Script;
pub use self::tty::Tty;

/// Longest wait for anything that is bound to happen.
pub const PATIENCE: Duration = Duration::from_mins(1);
