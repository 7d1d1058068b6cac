//! The user's own git configuration, outside of every repository: read and compared, never written.
//!
//! What a session writes there affects no run in progress, but would affect the next capture.

use std::path::{Path, PathBuf};

use gix::config::path::interpolate::Context;
use serde::{Deserialize, Serialize};

use crate::git::GitError;
use crate::git::file_state::{FileState, read_file_state};

/// The setting that names a file of revoked keys.
pub(in crate::git) const REVOCATION_FILE_SETTING: &str = "gpg.ssh.revocationFile";

/// The user's own git configuration, attributes and ignore rules at one moment.
///
/// Included files are not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserGitConfig(Vec<(PathBuf, Option<FileState>)>);

impl UserGitConfig {
    /// Reads the files.
    pub fn read() -> Result<Self, GitError> {
        let home = path_variable("HOME");
        let settings = home.as_ref().map(|home| home.join(".gitconfig"));
        let folder = user_config_dir();
        let others = ["config", "attributes", "ignore"].map(|name| Some(folder.as_ref()?.join(name)));
        let files = [settings].into_iter().chain(others).flatten();
        files.map(|file| Ok((file.clone(), read_file_state(&file)?))).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the files that differ from `other`, for display.
    pub fn changed_files(&self, other: &Self) -> Vec<String> {
        let is_same = |file: &(PathBuf, Option<FileState>)| other.0.contains(file);
        self.0.iter().filter(|file| !is_same(file)).map(|(path, _)| path.display().to_string()).collect()
    }
}

/// Returns the current file of revoked keys that the user's git is configured with: a key revoked during a run counts
/// as revoked.
pub fn find_revoked_keys_file() -> Result<Option<PathBuf>, GitError> {
    let home = path_variable("HOME");
    let failed = || GitError::gix("reading git's settings", home.as_deref().unwrap_or(Path::new("~")));
    let settings = gix::config::File::from_globals().map_err(failed())?;
    let context = Context { home_dir: home.as_deref(), ..Context::default() };
    let path = settings.path(REVOCATION_FILE_SETTING).filter(|path| !path.is_empty());
    path.map(|path| path.interpolate(context)).transpose().map_err(failed())
}

/// Returns the folder with the user's rules under their usual names.
pub(in crate::git) fn user_config_dir() -> Option<PathBuf> {
    let folder = path_variable("XDG_CONFIG_HOME").or_else(|| Some(path_variable("HOME")?.join(".config")))?;
    Some(folder.join("git"))
}

fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
