//! Runs forge programs in an empty folder, so that the repository's own git configuration does not affect them. What
//! they are asked is decided elsewhere.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use protocol::error::ExitStatus;
use tempfile::TempDir;

use crate::failure::Failure;
use crate::program::{self, CommandOutput, LaunchError, ProgramCall};

/// Environment of forge programs: unattended, without update checks.
const UNATTENDED_ENV: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GLAB_CHECK_UPDATE", "false"),
    ("NO_PROMPT", "1"),
    ("NO_COLOR", "1"),
];
/// Name prefix of the folders.
const DIR_PREFIX: &str = "runnerctl-deliver-";
/// Grace period for a new folder to be locked by the process that created it.
const STALE_AFTER: Duration = Duration::from_mins(1);

/// Runs programs of forges.
#[derive(Debug)]
pub(crate) struct ForgeCli {
    directory: TempDir,
    /// Held while this exists, which shows others that the folder is in use.
    _lock: File,
}

impl ForgeCli {
    /// Creates the empty folder.
    pub(crate) fn create() -> Result<Self, Failure> {
        remove_stale_dirs();
        let failed = |error| Failure::temp_file(&error);
        let folder = tempfile::Builder::new().prefix(DIR_PREFIX).tempdir().map_err(failed)?;
        let lock = File::open(folder.path()).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(Self { directory: folder, _lock: lock })
    }

    /// Writes a description to a file for a program to read.
    pub(crate) fn write_description(&self, body: &str) -> Result<PathBuf, Failure> {
        let path = self.directory.path().join("description.md");
        fs::write(&path, body).map_err(|error| Failure::io(format!("writing {}", path.display()), &error))?;
        Ok(path)
    }

    /// Runs a program to completion.
    pub(crate) async fn try_run(&self, argv: Vec<OsString>, input: Vec<u8>) -> Result<CommandOutput, LaunchError> {
        program::run_program(ProgramCall {
            argv,
            folder: self.directory.path(),
            env: UNATTENDED_ENV,
            input,
            tail: None,
        })
        .await
    }

    /// Runs a forge program that prints a log, and returns the end of it; `None` if it prints none.
    pub(crate) async fn read_log<'a>(&self, argv: impl IntoIterator<Item = &'a str>, tail: usize) -> Option<String> {
        let argv = argv.into_iter().map(OsString::from).collect();
        let input = Vec::new();
        let call = ProgramCall { argv, folder: self.directory.path(), env: UNATTENDED_ENV, input, tail: Some(tail) };
        program::run_program(call).await.ok().filter(|output| output.status.success()).map(|output| output.stdout)
    }

    /// Runs a forge program, which must be installed.
    pub(crate) async fn run<'a>(&self, argv: impl IntoIterator<Item = &'a str>) -> Result<CommandOutput, Failure> {
        let argv: Vec<OsString> = argv.into_iter().map(OsString::from).collect();
        let name = argv.first().cloned().unwrap_or_default();
        self.try_run(argv, Vec::new()).await.map_err(|error| match error {
            LaunchError::Failed(failure) => failure,
            LaunchError::Missing => Failure::new(ExitStatus::Error, "forge", format!("{} is gone", name.display())),
        })
    }

    pub(super) async fn is_installed(&self, program: &str) -> bool {
        !matches!(self.try_run(vec![program.into(), "--version".into()], Vec::new()).await, Err(LaunchError::Missing))
    }

    /// Whether a forge program is logged in to a host.
    pub(super) async fn has_login(&self, program: &str, host: &str) -> bool {
        let argv = [program, "auth", "status", "--hostname", host].map(OsString::from).to_vec();
        matches!(self.try_run(argv, Vec::new()).await, Ok(output) if output.status.success())
    }
}

/// Removes the folders left by killed deliveries. What cannot be removed is left to the next delivery.
fn remove_stale_dirs() {
    let own_uid = nix::unistd::getuid().as_raw();
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let Some(metadata) = entry.metadata().ok().filter(|found| found.is_dir() && found.uid() == own_uid) else {
            continue;
        };
        let is_ours = entry.file_name().to_string_lossy().starts_with(DIR_PREFIX);
        let is_old = metadata.modified().is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > STALE_AFTER));
        if !is_ours || !is_old {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
