//! Where programs of forges are run: in an empty folder, so that what a repository's own git configuration says does not reach
//! them. What they are asked is told elsewhere.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use protocol::error::ExitStatus;
use tempfile::TempDir;

use crate::failure::Failure;
use crate::program::{self, CommandOutput, LaunchError, ProgramCall};

/// What programs of forges are told: that nobody answers, and that nothing of their own is to be looked for.
const UNATTENDED: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GLAB_CHECK_UPDATE", "false"),
    ("NO_PROMPT", "1"),
    ("NO_COLOR", "1"),
];
/// What the folders are called.
const PREFIX: &str = "runnerctl-deliver-";
/// Time in which whoever has made a folder has it locked.
const LOCKED_AFTER: Duration = Duration::from_mins(1);

/// Runs programs of forges.
#[derive(Debug)]
pub(crate) struct ForgeCli {
    folder: TempDir,
    /// Held for as long as this lives: by that others know that the folder is in use.
    _lock: File,
}

impl ForgeCli {
    /// Makes the empty folder.
    pub(crate) fn make() -> Result<Self, Failure> {
        sweep();
        let failed = |error| Failure::io("making a temporary folder", &error);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().map_err(failed)?;
        let lock = File::open(folder.path()).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(Self { folder, _lock: lock })
    }

    /// Writes a description for a program to read.
    pub(crate) fn file(&self, body: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.path().join("description.md");
        fs::write(&path, body).map_err(|error| Failure::io(format!("writing {}", path.display()), &error))?;
        Ok(path)
    }

    /// Runs a program to its end.
    pub(crate) async fn run(&self, argv: Vec<OsString>, input: Vec<u8>) -> Result<CommandOutput, LaunchError> {
        program::run(ProgramCall { argv, folder: self.folder.path(), env: UNATTENDED, input, tail: None }).await
    }

    /// Runs a program of a forge that prints a log, and returns the end of it; none where it has none to print.
    pub(crate) async fn log<'a>(&self, argv: impl IntoIterator<Item = &'a str>, tail: usize) -> Option<String> {
        let (argv, input) = (argv.into_iter().map(OsString::from).collect(), Vec::new());
        let call = ProgramCall { argv, folder: self.folder.path(), env: UNATTENDED, input, tail: Some(tail) };
        program::run(call).await.ok().filter(|said| said.ended.success()).map(|said| said.out)
    }

    /// Runs a program of a forge that is there.
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

    /// Whether a program of a forge has a login for a host.
    pub(super) async fn knows(&self, program: &str, host: &str) -> bool {
        let argv = [program, "auth", "status", "--hostname", host].map(OsString::from).to_vec();
        matches!(self.run(argv, Vec::new()).await, Ok(said) if said.ended.success())
    }
}

/// Removes what deliveries have left that were killed. What stays is tried again by the next one.
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
