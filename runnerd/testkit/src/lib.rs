//! Test kit: a separate home, repositories in it, scripted agents and guards, and the real daemon and client.
//!
//! For tests only: any failure here panics and says what was being done. Nothing here knows the daemon's internals; it
//! is started, queried and killed as a user would do it. The binaries are those of the workspace build: `cargo build
//! --workspace` creates them, and a run of all tests does so automatically.

mod audit;
mod binary;
mod bystander;
mod client;
mod clock;
mod config;
mod daemon;
mod disk;
mod gate;
mod home;
mod interruption;
pub mod invariants;
pub mod model;
mod processes;
mod random;
mod receipt;
mod repo;
mod scratch;
mod script;
mod service_manager;
mod system_fault;
mod tty;
mod unprivileged;
mod unsupervised;

use std::time::Duration;

pub use self::binary::binary;
pub use self::bystander::BystanderProcess;
pub use self::client::{Client, IdleConnections};
pub use self::clock::FakeClock;
pub use self::config::Config;
pub use self::daemon::Daemon;
pub use self::disk::TmpfsDisk;
pub use self::gate::SessionGate;
pub use self::home::{Home, ProgramOutput};
pub use self::interruption::{InterruptedRun, assert_same_end};
pub use self::processes::SuspendedProcess;
pub use self::random::RandomSource;
pub use self::receipt::ReceiptCommit;
pub use self::repo::Repo;
pub use self::scratch::ScratchDir;
pub use self::script::Script;
pub use self::service_manager::ServiceManager;
pub use self::system_fault::{FaultyDaemon, SystemFault};
pub use self::tty::Tty;
pub use self::unprivileged::run_unprivileged;
pub use self::unsupervised::UnsupervisedProgram;

/// Longest wait for anything that must happen.
pub const PATIENCE: Duration = Duration::from_mins(1);
