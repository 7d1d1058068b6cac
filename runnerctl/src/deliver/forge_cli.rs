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
const UNATTENDED: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GLAB_CHECK_UPDATE", "false"),
    ("NO_PROMPT", "1"),
    ("NO_COLOR", "1"),
];
/// Name prefix of the folders.
const PREFIX: &str = "runnerctl-deliver-";
/// Grace period for a new folder to be locked by the process that created it.
const LOCKED_AFTER: Duration = Duration::from_mins(1);

/// Runs programs of forges.
#[derive(Debug)]
pub(crate) struct ForgeCli {
    folder: TempDir,
    /// Held while this exists, which shows others that the folder is in use.
    _lock: File,
}

impl ForgeCli {
    /// Creates the empty folder.
    pub(crate) fn make() -> Result<Self, Failure> {
        sweep();
        let failed = |error| Failure::io("making a temporary folder", &error);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().map_err(failed)?;
        let lock = File::open(folder.path()).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(Self { folder, _lock: lock })
    }

    /// Writes a description to a file for a program to read.
    pub(crate) fn file(&self, body: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.path().join("description.md");
        fs::write(&path, body).map_err(|error| Failure::io(format!("writing {}", path.display()), &error))?;
        Ok(path)
    }

    /// Runs a program to completion.
    pub(crate) async fn run(&self, argv: Vec<OsString>, input: Vec<u8>) -> Result<CommandOutput, LaunchError> {
        program::run(ProgramCall { argv, folder: self.folder.path(), env: UNATTENDED, input, tail: None }).await
    }

    /// Runs a forge program that prints a log, and returns the end of it; `None` if it prints none.
    pub(crate) async fn log<'a>(&self, argv: impl IntoIterator<Item = &'a str>, tail: usize) -> Option<String> {
        let (argv, input) = (argv.into_iter().map(OsString::from).collect(), Vec::new());
        let call = ProgramCall { argv, folder: self.folder.path(), env: UNATTENDED, input, tail: Some(tail) };
        program::run(call).await.ok().filter(|said| said.ended.success()).map(|said| said.out)
    }

    /// Runs a forge program, which must be installed.
    pub(crate) async fn say<'a>(&self, argv: impl IntoIterator<Item = &'a str>) -> Result<CommandOutput, Failure> {
        let argv: Vec<OsString> = argv.into_iter().map(OsString::from).collect();
        let name = argv.first().cloned().unwrap_or_default();
        self.run(argv, Vec::new()).await.map_err(|error| match error {
            LaunchError::Failed(failure) => failure,
            LaunchError::Missing => Failure::new(ExitStatus::Error, "forge", format!("{} is gone", name.display())),
        })
    }

    pub(super) async fn has(&self, program: &str) -> bool {
        !matches!(self.run(vec![program.into(), "--version".into()], Vec::new()).await, Err(LaunchError::Missing))
    }

    /// Whether a forge program is logged in to a host.
    pub(super) async fn knows(&self, program: &str, host: &str) -> bool {
        let argv = [program, "auth", "status", "--hostname", host].map(OsString::from).to_vec();
        matches!(self.run(argv, Vec::new()).await, Ok(said) if said.ended.success())
    }
}

/// Removes the folders left by killed deliveries. What cannot be removed is left to the next delivery.
fn sweep() {
    let own = nix::unistd::getuid().as_raw();
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let Some(found) = entry.metadata().ok().filter(|found| found.is_dir() && found.uid() == own) else { continue };
        let is_desk = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_old = found.modified().is_ok_and(|made| made.elapsed().is_ok_and(|age| age > LOCKED_AFTER));
        if !is_desk || !is_old {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
