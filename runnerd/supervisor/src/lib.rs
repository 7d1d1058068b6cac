//! Ensures that nothing of a program is left behind, by means of a *shim*: a small single-threaded process that starts
//! the program and ends it with all its descendants.
//!
//! `shim`, `init`, `leader` and `watch` are that process; `wire` is its protocol with the daemon. `table`, `walk` and
//! `pidfd` find processes and end them; `mark`, `cgroup` and `namespace` determine which belong together. All of it
//! blocks; nothing here knows what an agent, a guard, a case or a run is.

mod cgroup;
mod clock;
mod descriptors;
mod init;
mod leader;
mod mark;
mod namespace;
mod pidfd;
mod probe;
mod shield;
mod shim;
pub mod table;
pub mod walk;
mod watch;
mod wire;

use std::env;
use std::io::Write as _;
use std::process::ExitCode;

pub use cgroup::{GroupPlace, NoGroupPlace, groups_of, kill_and_remove_groups, kill_groups};
pub use clock::since_boot;
pub use descriptors::DescriptorLimit;
pub use mark::{Mark, VARIABLE};
pub use namespace::NamespaceMode;
pub use pidfd::PidFd;
pub use probe::{FOLDER, PROBE_COMMAND, identity};
pub use shield::shield_daemon;
pub use wire::{
    EndCause, FinalReport, SHIM_COMMAND, ShimCommand, ShimMessage, ShimOrder, StartStep, StopPolicy, to_line,
};

/// Identifies the build of this crate: only programs of the same build understand each other.
pub const BUILD: &str = env!("SUPERVISOR_BUILD");
/// First argument that makes a program print its [`BUILD`] and exit.
pub const BUILD_COMMAND: &str = "__build";

/// Runs as a shim, as a probe's program, or prints the build, if the first argument asks for it; `None` otherwise.
pub fn main() -> Option<ExitCode> {
    match env::args_os().nth(1)?.to_str()? {
        SHIM_COMMAND => Some(shim::shim_main()),
        PROBE_COMMAND => Some(probe::probe_main()),
        BUILD_COMMAND => Some(print_build()),
        _ => None,
    }
}

fn print_build() -> ExitCode {
    if std::io::stdout().write_all(BUILD.as_bytes()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
