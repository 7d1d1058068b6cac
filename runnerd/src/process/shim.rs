//! The program that shims are made of: the small one beside the daemon's, if it is of the same build, else the daemon's own.
//!
//! A file that does not run at the moment can be written to by whoever owns it, and shims hold what its owner runs. So it is
//! read once, into memory that nobody can write to, and started from there; what becomes of the file later matters no more.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
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
/// Most bytes of it, by far: what is larger is something else.
const MAX_BYTES: u64 = 64 << 20;
/// Time in which it says its build, however busy the machine is.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// What shims are made of.
#[derive(Debug, Clone)]
pub(super) struct ShimProgram {
    /// What is started.
    pub path: PathBuf,
    /// Keeps the copy that the path leads to.
    _copy: Option<Arc<OwnedFd>>,
}

impl ShimProgram {
    /// Makes shims of a file.
    pub(super) fn from_path(path: PathBuf) -> Self {
        Self { path, _copy: None }
    }

    /// Makes shims of the program beside the daemon's; fails where there is none, or none that fits and can be started.
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

/// Copies a file into memory that cannot be written to any more.
fn copy_to_memory(file: &Path) -> io::Result<OwnedFd> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    let mut copy = File::from(memfd_create(PROGRAM_NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    copy.write_all(&bytes)?;
    fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(copy.into())
}

#[cfg(test)]
mod tests {
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
