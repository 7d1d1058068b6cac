//! The private part of the state folder, opened or created when the daemon starts: its key, and the note that
//! everything there is sealed.
//!
//! Only a state folder without a private part counts as new. A missing key is never replaced automatically: that takes
//! a person's decision. A state folder of a development build is refused as a whole, and left as it is.

mod reseal;
pub mod signing_key;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use protocol::private_dir::{self, PrivateDirError};
use protocol::shell;
use runner_os::dir_permissions;
use serde::{Deserialize, Serialize};

use crate::repo::disk::RealDisk;
use crate::repo::durable::{self, DurableError, FileAccess};
use crate::repo::seal::{RandomnessError, SealKey, is_development_sealed};
use crate::repo::sealed::{Sealable, SealedFile, SealedFileError, StateDir};

pub use self::reseal::{ResealReport, reseal};

/// Name of the private part in the state folder.
pub const PRIVATE_DIR: &str = "private";
/// Its key file.
const KEY: &str = "key";
/// Its note that everything there is sealed.
const SEAL_MARKER_FILE: &str = "sealed.json";
/// The private part under construction: unused until it is renamed.
const UNFINISHED: &str = "private.new";
/// What development builds without sealing kept directly in the state folder.
const UNSEALED_FILES: [&str; 2] = ["repos", "git-suspects.json"];

/// Returns the folder for temporary files, in the state folder.
pub fn temp_dir(state: &Path) -> PathBuf {
    state.join("tmp")
}

/// Empties the folder for temporary files, and makes this process create all of its own there: what a killed daemon
/// has left is removed when the next one starts.
pub fn open_temp_dir(state: &Path) -> Result<(), StateDirError> {
    let folder = temp_dir(state);
    if let Err(error) = dir_permissions::remove_all(&folder) {
        tracing::warn!(%error, "failed to remove the temporary files of an earlier daemon");
    }
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    created.map_err(|source| StateDirError::System { doing: "making", path: folder.clone(), source })?;
    if let Err(earlier) = tempfile::env::override_temp_dir(&folder) {
        tracing::debug!(folder = %earlier.display(), "temporary files have a folder already");
    }
    Ok(())
}

/// Why the private part cannot be used; nothing in it was modified.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// Its folder is not private.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
    /// A file could not be read or written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// A file or folder could not be moved or removed.
    #[error("{doing} {path}")]
    System {
        /// The operation, such as `moving`.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A development build made the state folder.
    #[error(
        "the state directory {path} was made by a development build, and this daemon does not read it; nothing in it was \
         changed or removed: `{away}` moves it away"
    )]
    DevelopmentBuild {
        /// The state folder.
        path: PathBuf,
        /// The command that moves it out of the way.
        away: String,
    },
    /// No key can be created.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessError),
    /// There is no key, or something else is in its place.
    #[error(
        "the key {path} is {what}, and without it nothing beside it can be relied on: put it back from a backup, or \
         have everything there taken as it is with `runnerd --reseal`"
    )]
    MissingKey {
        /// The key file.
        path: PathBuf,
        /// What is there instead.
        what: &'static str,
    },
    /// Others may read or write the key.
    #[error(
        "the key {path} is open to others (mode {mode:04o}): if nobody else was on this machine, `chmod 600` it; \
         otherwise look at everything beside it, remove the key, and `runnerd --reseal`"
    )]
    InsecureKey {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key differs from the one that the rest was sealed with, or the rest is damaged.
    #[error(
        "{path} was not sealed with the key beside it: put the whole folder back from one backup, or have everything \
         there taken as it is with `runnerd --reseal`"
    )]
    ForeignKey {
        /// The note that is sealed with every key.
        path: PathBuf,
        /// What is wrong with it, if it exists.
        source: Option<SealedFileError>,
    },
}

/// Note that everything next to it is sealed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealMarker {}

impl Sealable for SealMarker {
    const KIND: &'static str = "sealed";
    const VERSION: u32 = 1;
}

/// Opens the private part of the state folder, or creates it if there is none. The caller holds the lock on the state
/// folder.
pub fn open_state_dir(state: &Path) -> Result<StateDir, StateDirError> {
    check_not_development(state)?;
    let folder = state.join(PRIVATE_DIR);
    match fs::symlink_metadata(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => create_state_dir(state),
        _ => load_state_dir(folder),
    }
}

/// Refuses a state folder in which a development build has left anything. Writes nothing.
pub fn check_not_development(state: &Path) -> Result<(), StateDirError> {
    let folder = state.join(PRIVATE_DIR);
    // An unreadable file only stops the repository it belongs to.
    let is_development =
        |place: &String| matches!(durable::read(&folder.join(place)), Ok(Some(text)) if is_development_sealed(&text));
    let exists = |name: &&str| state.join(name).symlink_metadata().is_ok();
    if UNSEALED_FILES.iter().any(exists) || reseal::list_sealed_files(&folder)?.iter().any(is_development) {
        return Err(StateDirError::DevelopmentBuild { path: state.to_owned(), away: move_away_command(state) });
    }
    Ok(())
}

/// Returns the command that moves a folder to an unused name.
fn move_away_command(folder: &Path) -> String {
    let from = folder.display().to_string();
    let names = (1..).map(|number| format!("{from}.old-{number}"));
    let to = names.into_iter().find(|name| Path::new(name).symlink_metadata().is_err());
    shell::join_args(["mv", "-n", "--", &from, &to.unwrap_or_default()])
}

fn load_state_dir(folder: PathBuf) -> Result<StateDir, StateDirError> {
    private_dir::check_private_dir(&folder)?;
    let key = read_key(&folder)?;
    let vault = StateDir::new(folder, key);
    let note = seal_marker(&vault);
    match note.read() {
        Ok(Some(SealMarker {})) => Ok(vault),
        Ok(None) => Err(StateDirError::ForeignKey { path: note.path(), source: None }),
        Err(SealedFileError::Disk(error)) => Err(error.into()),
        Err(error) => Err(StateDirError::ForeignKey { path: note.path(), source: Some(error) }),
    }
}

fn read_key(folder: &Path) -> Result<SealKey, StateDirError> {
    let path = folder.join(KEY);
    let Some(text) = durable::read(&path)? else { return Err(StateDirError::MissingKey { path, what: "gone" }) };
    let found = fs::symlink_metadata(&path).map_err(io_error("looking at", &path))?;
    let mode = found.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(StateDirError::InsecureKey { path, mode });
    }
    SealKey::parse(&text).ok_or(StateDirError::MissingKey { path, what: "not one" })
}

/// Creates the private part under another name, and renames it when it is complete and durable. If the daemon dies
/// before that, the next one starts over.
fn create_state_dir(state: &Path) -> Result<StateDir, StateDirError> {
    let unfinished = state.join(UNFINISHED);
    let folder = state.join(PRIVATE_DIR);
    remove_path(&unfinished)?;
    private_dir::create_private_dir(&unfinished)?;
    let key = SealKey::random()?;
    durable::replace_unsynced(&unfinished.join(KEY), key.to_text().as_bytes(), FileAccess::Private)?;
    seal_marker(&StateDir::new(unfinished.clone(), key.clone())).write(&SealMarker {}).map_err(write_error)?;
    durable::sync_file_system(&unfinished)?;
    fs::rename(&unfinished, &folder).map_err(io_error("naming", &folder))?;
    durable::with_disk(&RealDisk).sync_folder(state)?;
    Ok(StateDir::new(folder, key))
}

fn remove_path(path: &Path) -> Result<(), StateDirError> {
    dir_permissions::remove_all(path).map_err(io_error("removing", path))
}

fn seal_marker(vault: &StateDir) -> SealedFile<SealMarker> {
    vault.sealed_file(&RealDisk, SEAL_MARKER_FILE)
}

/// Converts an error of writing, which can only come from the disk.
fn write_error(error: SealedFileError) -> StateDirError {
    match error {
        SealedFileError::Disk(error) => error.into(),
        SealedFileError::Untrusted { path, .. } => StateDirError::ForeignKey { path, source: None },
    }
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StateDirError {
    move |source| StateDirError::System { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use protocol::request::CallerEnv;

    use super::*;
    use crate::store::RepoStore;

    fn refusal(state: &Path) -> String {
        open_state_dir(state).unwrap_err().to_string()
    }

    /// Returns all files below a folder with their content.
    fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                all.extend(content(&entry));
            } else {
                all.push((entry.clone(), fs::read(entry).unwrap()));
            }
        }
        all.sort();
        all
    }

    #[test]
    fn new_state_folder_gets_a_private_part_that_is_found_again() {
        let home = tempfile::tempdir().unwrap();
        // Left by a daemon that died while it created it.
        fs::create_dir_all(home.path().join("private.new/repos")).unwrap();
        fs::write(home.path().join("private.new/key"), "half").unwrap();
        let created = open_state_dir(home.path()).unwrap();
        let found = open_state_dir(home.path()).unwrap();
        assert_eq!(created.key().to_text(), found.key().to_text());
        let bits = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((bits(created.folder()), bits(&created.folder().join(KEY))), (0o700, 0o600));
        assert_eq!(created.folder(), home.path().join(PRIVATE_DIR));
        assert!(!home.path().join("private.new").exists());
    }

    #[test]
    fn state_of_a_development_build_is_refused_and_stays_as_it_is() {
        let of_key = "00".repeat(32) + "\n";
        let sealed = format!("{{\"seal\":\"{}\",\"kind\": \"x\"}}", "0".repeat(64));
        let unsealed = [("repos/0123456789ab/repo.json", "{}"), ("git-suspects.json", "[]")];
        let with_seal = ["sealed.json", "git-suspects.json"].map(|name| format!("private/{name}"));
        let of_repository =
            ["repo.json", "journal.jsonl", "git/0123456789ab.json", "live/r-0001-git.json", "published.json"]
                .map(|name| format!("private/repos/0123456789ab/{name}"));
        let with_seal = with_seal.iter().chain(&of_repository).map(|name| (name.as_str(), sealed.as_str()));
        for (name, text) in unsealed.into_iter().chain(with_seal) {
            let home = tempfile::tempdir().unwrap();
            let state = home.path().join("a folder");
            for (name, text) in [("private/key", &*of_key), (name, text)] {
                let file = state.join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            fs::create_dir(home.path().join("a folder.old-1")).unwrap();
            let before = content(home.path());
            let message = refusal(&state);
            let path = state.display();
            assert!(message.contains("was made by a development build"), "{name}: {message}");
            assert!(message.contains(&format!("`mv -n -- '{path}' '{path}.old-2'`")), "{name}: {message}");
            assert_eq!(reseal(&state).unwrap_err().to_string(), message);
            assert_eq!(content(home.path()), before, "{name}");
        }
    }

    #[test]
    fn key_that_is_gone_is_not_made_again() {
        let home = tempfile::tempdir().unwrap();
        let vault = open_state_dir(home.path()).unwrap();
        let key = vault.folder().join(KEY);
        fs::remove_file(&key).unwrap();
        assert!(refusal(home.path()).contains("is gone"), "{}", refusal(home.path()));
        symlink("/dev/null", &key).unwrap();
        assert!(refusal(home.path()).contains("symbolic link"), "{}", refusal(home.path()));
        assert!(key.is_symlink());
    }

    #[test]
    fn key_that_others_may_read_is_refused_and_not_mended() {
        let home = tempfile::tempdir().unwrap();
        let key = open_state_dir(home.path()).unwrap().folder().join(KEY);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refusal(home.path()).contains("0644"), "{}", refusal(home.path()));
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn another_key_or_no_word_that_all_is_sealed_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = open_state_dir(home.path()).unwrap().folder().to_owned();
        let right = fs::read(folder.join(KEY)).unwrap();
        fs::write(folder.join(KEY), SealKey::random().unwrap().to_text()).unwrap();
        assert!(refusal(home.path()).contains("not sealed with the key"), "{}", refusal(home.path()));
        fs::write(folder.join(KEY), right).unwrap();
        fs::remove_file(folder.join(SEAL_MARKER_FILE)).unwrap();
        assert!(refusal(home.path()).contains(SEAL_MARKER_FILE), "{}", refusal(home.path()));
    }

    #[test]
    fn sealing_again_accepts_the_current_files_and_has_the_same_result_twice() {
        let home = tempfile::tempdir().unwrap();
        let store = || RepoStore::new(&open_state_dir(home.path()).unwrap(), "0123456789ab");
        let folder = store().folder();
        store().create().unwrap();
        store().save_env(&CallerEnv([("A".to_owned(), "1".to_owned())].into())).unwrap();
        fs::write(folder.join("changes.json"), "garbage").unwrap();
        fs::write(folder.join("published.json"), r#"{"kind":"published","version":1,"value":{}}"#).unwrap();
        fs::remove_file(home.path().join("private/key")).unwrap();
        let done = reseal(home.path()).unwrap();
        assert!(done.new_key);
        assert_eq!(done.skipped, [folder.join("changes.json")]);
        assert_eq!(done.sealed, ["env.json", "published.json"].map(|name| folder.join(name)));
        assert_eq!(store().load_env().unwrap()["A"], "1");
        let again = reseal(home.path()).unwrap();
        assert_eq!(again, ResealReport { new_key: false, sealed: Vec::new(), skipped: done.skipped });
    }
}
