//! The program that shims run: the small one next to the daemon's if it is from the same build, else the daemon's own.
//!
//! The owner of a file can write to it while it is not running, and shims contain what its owner runs. It is therefore
//! read once, into sealed memory, and started from there; later changes to the file have no effect.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use supervisor::{BUILD, BUILD_COMMAND};
use tokio::{process::Command, time::timeout};

/// Name of the program.
const PROGRAM_NAME: &str = "runnerd-shim";
/// Generous size limit in bytes: a larger file is something else.
const MAX_BYTES: u64 = 64 << 20;
/// Time limit for it to print its build, however busy the machine is.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The program that shims run.
#[derive(Debug, Clone)]
pub(super) struct ShimProgram {
    /// The path to execute.
    pub path: PathBuf,
    /// Keeps alive the copy that the path refers to.
    _copy: Option<Arc<OwnedFd>>,
}

impl ShimProgram {
    /// Uses a file as it is.
    pub(super) fn from_path(path: PathBuf) -> Self {
        Self { path, _copy: None }
    }

    /// Uses the small program next to the daemon's; fails if it is missing, of another build or cannot be started.
    pub(super) async fn from_daemon_dir(daemon: &Path) -> io::Result<Self> {
        let file = daemon.with_file_name(PROGRAM_NAME);
        let copy = tokio::task::spawn_blocking(move || copy_to_memory(&file)).await??;
        let path = PathBuf::from(format!("/proc/self/fd/{}", copy.as_raw_fd()));
        let mut command = Command::new(&path);
        command.arg(BUILD_COMMAND).env_clear().stdin(Stdio::null()).kill_on_drop(true);
        let answer = timeout(ANSWER_LIMIT, command.output()).await??;
        if answer.stdout != BUILD.as_bytes() {
            return Err(io::Error::other("it is of another build than the daemon"));
        }
        Ok(Self { path, _copy: Some(Arc::new(copy)) })
    }
}

/// Copies a file into sealed memory.
fn copy_to_memory(file: &Path) -> io::Result<OwnedFd> {
    let mut copy = File::from(memfd_create(PROGRAM_NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    // The kernel copies: each start of a daemon waits for this.
    io::copy(&mut File::open(file)?.take(MAX_BYTES), &mut copy)?;
    fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(copy.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn nobody_can_write_to_the_copy() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "program").unwrap();
        let copy = copy_to_memory(file.path()).unwrap();
        let opened = File::options().write(true).open(format!("/proc/self/fd/{}", copy.as_raw_fd()));
        let written = opened.and_then(|mut file| file.write_all(b"other"));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
