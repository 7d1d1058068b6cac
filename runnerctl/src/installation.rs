//! The installation made by `install.sh` that this program belongs to, and the copy of the script in it, which knows
//! its origin.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use protocol::error::ExitStatus;
use protocol::shell::quote_path;
use semver::Version;

use crate::failure::Failure;
use crate::program::{self, LaunchError, ProgramCall};

/// An installation: a folder with `bin` and `share`.
#[derive(Debug)]
pub(crate) struct Installation {
    prefix: PathBuf,
}

impl Installation {
    /// Finds the installation that contains this program. A program from a package or a build must not be replaced
    /// here.
    pub(crate) fn find() -> Result<Self, Failure> {
        let program = env::current_exe().map_err(|error| Failure::io("finding this program", &error))?;
        let prefix = program.parent().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
        let installation = Self { prefix };
        let list = std::fs::read_to_string(installation.share_path("installed")).unwrap_or_default();
        let is_listed = |file: &str| list.lines().any(|line| line == file);
        if is_listed("bin/runnerctl") && is_listed("share/runner/install.sh") {
            return Ok(installation);
        }
        let message = format!("{} was not installed by install.sh", program.display());
        let hint = "upgrade it as it was installed: by the package manager, or from its source";
        Err(Failure::new(ExitStatus::Refused, "not_installed", message).hint(hint))
    }

    /// Returns the command that removes it.
    pub(crate) fn uninstall_command(&self) -> String {
        format!("sh {} --uninstall", quote_path(&self.share_path("install.sh")))
    }

    fn share_path(&self, name: &str) -> PathBuf {
        self.prefix.join("share/runner").join(name)
    }

    /// Returns where other versions are available: the given origin, else the one this was installed from.
    pub(crate) fn update_source(&self, from: Option<String>) -> Result<String, Failure> {
        let recorded = || Some(std::fs::read_to_string(self.share_path("from")).ok()?.trim_end().to_owned());
        from.or_else(recorded).filter(|from| !from.is_empty()).ok_or_else(|| {
            Failure::usage("it is not known where this was installed from").hint("name that with --from")
        })
    }

    /// Returns the versions available for this machine, in order.
    pub(crate) async fn list_versions(&self, from: &str) -> Result<Vec<Version>, Failure> {
        let output = self.run_script(&["--versions", from], "looking for versions").await?;
        let mut versions: Vec<Version> = output.lines().filter_map(|line| Version::parse(line.trim()).ok()).collect();
        versions.sort();
        Ok(versions)
    }

    /// Runs the script and returns its output.
    pub(crate) async fn run_script(&self, options: &[&str], doing: &str) -> Result<String, Failure> {
        let mut argv = vec![OsString::from("sh"), self.share_path("install.sh").into()];
        argv.extend(options.iter().map(OsString::from));
        let call = ProgramCall { argv, folder: Path::new("."), env: &[], input: Vec::new(), tail: None };
        let output = program::run_program(call).await.map_err(|error| match error {
            LaunchError::Missing => Failure::new(ExitStatus::Error, "io", "there is no sh"),
            LaunchError::Failed(failure) => failure,
        })?;
        output.require_success("install", doing)
    }
}
