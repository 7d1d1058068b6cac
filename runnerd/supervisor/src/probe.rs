//! The program that a probe starts: it reports where it is running, which shows the daemon what the machine can put
//! around programs.

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

/// Prefix of the line in which a probe's program reports the identity of a folder.
pub const FOLDER: &str = "folder ";

/// Returns an identity that distinguishes a folder from another one mounted in its place.
///
/// # Errors
///
/// Fails if the folder's metadata cannot be read.
pub fn identity(folder: &Path) -> io::Result<String> {
    let found = fs::symlink_metadata(folder)?;
    Ok(format!("{FOLDER}{} {}", found.dev(), found.ino()))
}

/// The program of a probe: all of `main` if the first argument is [`PROBE_COMMAND`].
///
/// It reports where it is running, and stays until it is killed.
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
