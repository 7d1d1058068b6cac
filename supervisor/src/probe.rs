//! The program of a probe: it says where it is, so that the daemon knows what a machine can put around programs.

use std::{
    env, fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::ExitCode,
};

use nix::{
    sys::signal::SigSet,
    unistd::{getppid, pause},
};

/// First argument that makes a program that of a probe.
pub const PROBE_COMMAND: &str = "__probe";

/// Before what tells a folder, in the words of a probe.
pub const FOLDER: &str = "folder ";

/// Returns what tells a folder from another one that is mounted in its place.
///
/// # Errors
///
/// Fails if there is none.
pub fn identity(folder: &Path) -> io::Result<String> {
    let found = fs::symlink_metadata(folder)?;
    Ok(format!("{FOLDER}{} {}", found.dev(), found.ino()))
}

/// Is the program of a probe: all of `main` when the first argument is [`PROBE_COMMAND`].
///
/// It says where it is, and stays until it is killed.
pub(crate) fn probe_main() -> ExitCode {
    let place = || -> io::Result<()> {
        SigSet::all().thread_block()?;
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let folder = env::args_os().nth(2).map(|folder| identity(Path::new(&folder))).transpose()?;
        let folder = folder.unwrap_or_default();
        io::stdout().write_all(format!("parent {}\n{groups}{folder}\n", getppid()).as_bytes())
    };
    if place().is_err() {
        return ExitCode::FAILURE;
    }
    loop {
        pause();
    }
}
