//! The user's own git configuration, outside of every repository: read and compared, never written.
//!
//! What a session writes there affects no run in progress, but would affect the next capture.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use gix::config::path::interpolate::Context;
use serde::{Deserialize, Serialize};

use crate::GitError;
use crate::file_state::{FileState, read_file_state};

/// The setting that names a file of revoked keys.
pub(crate) const REVOCATION_FILE_SETTING: &str = "gpg.ssh.revocationFile";

/// Most files of settings that are followed from one.
const MAX_INCLUDED: usize = 100;

/// The user's own git configuration, attributes and ignore rules at one moment.
///
/// Included files are not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserGitConfig(Vec<(PathBuf, Option<FileState>)>);

impl UserGitConfig {
    /// Reads the files.
    pub fn read() -> Result<Self, GitError> {
        user_files().map(|file| Ok((file.clone(), read_file_state(&file)?))).collect::<Result<_, _>>().map(Self)
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
    refuse_user_pipes()?;
    let home = path_variable("HOME");
    let failed = || GitError::gix("reading git's settings", home.as_deref().unwrap_or(Path::new("~")));
    let settings = gix::config::File::from_globals().map_err(failed())?;
    let context = Context { home_dir: home.as_deref(), ..Context::default() };
    let path = settings.path(REVOCATION_FILE_SETTING).filter(|path| !path.is_empty());
    path.map(|path| path.interpolate(context)).transpose().map_err(failed())
}

/// Fails if a file with the user's settings or rules is a pipe, or a setting names one.
pub fn refuse_user_pipes() -> Result<(), GitError> {
    refuse_pipe_among(user_files())?;
    user_files()
        .filter(|file| !file.ends_with("attributes") && !file.ends_with("ignore"))
        .try_for_each(|file| refuse_named_pipes(&file))
}

/// Fails if a setting of this file, or of one that it includes, names a pipe. What cannot be read is left to git.
pub(super) fn refuse_named_pipes(config: &Path) -> Result<(), GitError> {
    let home = path_variable("HOME");
    let mut files = vec![config.to_owned()];
    let mut at = 0;
    while let Some(file) = files.get(at).filter(|_| at < MAX_INCLUDED) {
        let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
        let settings = gix::config::File::from_path_no_includes(file.clone(), gix::config::Source::User);
        for section in settings.iter().flat_map(gix::config::File::sections) {
            let is_include = section.header().name().to_ascii_lowercase().starts_with(b"include");
            for value in section.value_names().flat_map(|name| section.values(&name)) {
                let text = Path::new(OsStr::from_bytes(&value));
                let path = match (text.strip_prefix("~"), &home) {
                    (Ok(rest), Some(home)) => home.join(rest),
                    _ if is_include || text.is_absolute() => folder.join(text),
                    _ => continue,
                };
                refuse_pipe_among([path.clone()].into_iter())?;
                if is_include && !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        at += 1;
    }
    Ok(())
}

/// Fails if one of these files is a pipe: nobody ever writes to it, and the program that reads it waits.
pub(crate) fn refuse_pipe_among(mut files: impl Iterator<Item = PathBuf>) -> Result<(), GitError> {
    let is_pipe = |file: &PathBuf| file.metadata().is_ok_and(|found| found.file_type().is_fifo());
    files.find(is_pipe).map_or(Ok(()), |path| Err(GitError::Pipe { path }))
}

/// Returns the paths of the user's settings and rules under their usual names.
fn user_files() -> impl Iterator<Item = PathBuf> {
    let settings = path_variable("HOME").map(|home| home.join(".gitconfig"));
    let folder = user_config_dir();
    let others = ["config", "attributes", "ignore"].map(|name| Some(folder.as_ref()?.join(name)));
    [settings].into_iter().chain(others).flatten()
}

/// Returns the folder with the user's rules under their usual names.
pub(crate) fn user_config_dir() -> Option<PathBuf> {
    let folder = path_variable("XDG_CONFIG_HOME").or_else(|| Some(path_variable("HOME")?.join(".config")))?;
    Some(folder.join("git"))
}

fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
