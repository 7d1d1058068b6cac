//! Leaves nothing of a program behind. What does that for a program is its *shim*: a small process with one thread, which
//! starts it and ends it with all that descends from it.
//!
//! `shim`, `init`, `leader` and `watch` are that process; `wire` is what it and the daemon say to each other. `table`, `walk` and
//! `pidfd` find processes and end them; `mark`, `cgroup` and `namespace` tell which belong together. All of it blocks; nothing
//! here knows what an agent, a guard, a case or a run is.

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

pub use cgroup::{GroupPlace, NoGroupPlace, kill_and_remove_groups, groups_of, kill_groups};
pub use clock::since_boot;
pub use descriptors::DescriptorLimit;
pub use mark::{Mark, VARIABLE};
pub use namespace::NamespaceMode;
pub use pidfd::PidFd;
pub use probe::{FOLDER, PROBE_COMMAND, identity};
pub use shield::shield_daemon;
pub use wire::{EndCause, ShimCommand, StopPolicy, ShimOrder, FinalReport, SHIM_COMMAND, StartStep, ShimMessage, to_line};

/// Tells one build of this crate from another: only programs with the same one understand each other.
pub const BUILD: &str = env!("SUPERVISOR_BUILD");
/// First argument with which a program says its [`BUILD`] and ends.
pub const BUILD_COMMAND: &str = "__build";

/// Is all of `main` where the first argument says so: a shim, the program of a probe, or what says its build.
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
