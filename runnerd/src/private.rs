//! The private part of the state folder, found or made when the daemon starts: its key, and the word that everything
//! there is sealed.
//!
//! Only a state folder without a private part is new. A key that is gone is never made again by itself: that takes a
//! person's word. A state folder of a development build is refused as a whole, and left as it is.

mod reseal;
pub mod signing_key;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::private::{self, FolderError};
use protocol::shell;
use serde::{Deserialize, Serialize};

use crate::folders;
use crate::repo::disk::RealDisk;
use crate::repo::durable::{self, Access, DurableError};
use crate::repo::kept::{Kept, KeptError, Note, Vault};
use crate::repo::seal::{Key, NoRandomness, is_of_development};

pub use self::reseal::{Resealed, reseal};

/// The private part of the state folder.
pub const FOLDER: &str = "private";
/// Its file with the key.
const KEY: &str = "key";
/// Its note that everything there is sealed.
const SEALED: &str = "sealed.json";
/// The private part while it is being made: of no use before it has its name.
const UNFINISHED: &str = "private.new";
/// What development builds that sealed nothing kept in the state folder itself.
const UNSEALED: [&str; 2] = ["repos", "git-suspects.json"];

/// Why the private part cannot be used; nothing in it was written to.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// Its folder is not private.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A file could not be read or written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// A file or folder could not be moved or removed.
    #[error("{doing} {path}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A development build made the state folder.
    #[error(
        "the state folder {path} was made by a development build, and this daemon does not read it; nothing in it was \
         changed or removed: `{away}` moves it away"
    )]
    Development {
        /// The state folder.
        path: PathBuf,
        /// The command that moves it away.
        away: String,
    },
    /// No key can be made.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// There is no key, or something else in its place.
    #[error(
        "the key {path} is {what}, and without it nothing beside it can be relied on: put it back from a backup, or \
         have everything there taken as it is with `runnerd --reseal`"
    )]
    NoKey {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// Others may read or write the key.
    #[error(
        "the key {path} is open to others (mode {mode:04o}): if nobody else was on this machine, `chmod 600` it; \
         otherwise look at everything beside it, remove the key, and `runnerd --reseal`"
    )]
    OpenKey {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key is not the one that the rest was sealed with, or the rest is not whole.
    #[error(
        "{path} was not sealed with the key beside it: put the whole folder back from one backup, or have everything \
         there taken as it is with `runnerd --reseal`"
    )]
    Foreign {
        /// The note that is sealed with every key.
        path: PathBuf,
        /// What is wrong with it.
        source: Option<KeptError>,
    },
}

/// Says that everything beside it is sealed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {}

impl Note for Sealed {
    const KIND: &'static str = "sealed";
    const VERSION: u32 = 1;
}

/// Opens the private part of the state folder, or makes it where there is none. The lock on the state folder is held.
pub fn open(state: &Path) -> Result<Vault, PrivateError> {
    refuse_development(state)?;
    let folder = state.join(FOLDER);
    match fs::symlink_metadata(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => make(state),
        _ => find(folder),
    }
}

/// Refuses a state folder in which a development build has left anything. Nothing is written.
pub fn refuse_development(state: &Path) -> Result<(), PrivateError> {
    let folder = state.join(FOLDER);
    // What cannot be read holds the repository that it belongs to.
    let is_old =
        |place: &String| matches!(durable::read(&folder.join(place)), Ok(Some(text)) if is_of_development(&text));
    let is_there = |name: &&str| state.join(name).symlink_metadata().is_ok();
    if UNSEALED.iter().any(is_there) || reseal::places(&folder)?.iter().any(is_old) {
        return Err(PrivateError::Development { path: state.to_owned(), away: move_away(state) });
    }
    Ok(())
}

/// Returns the command that gives a folder a name that nothing has.
fn move_away(folder: &Path) -> String {
    let from = folder.display().to_string();
    let names = (1..).map(|number| format!("{from}.old-{number}"));
    let to = names.into_iter().find(|name| Path::new(name).symlink_metadata().is_err());
    shell::words(["mv", "-n", "--", &from, &to.unwrap_or_default()])
}

fn find(folder: PathBuf) -> Result<Vault, PrivateError> {
    private::check_folder(&folder)?;
    let key = key(&folder)?;
    let vault = Vault::new(folder, key);
    let note = sealed(&vault);
    match note.read() {
        Ok(Some(Sealed {})) => Ok(vault),
        Ok(None) => Err(PrivateError::Foreign { path: note.path(), source: None }),
        Err(KeptError::Disk(error)) => Err(error.into()),
        Err(error) => Err(PrivateError::Foreign { path: note.path(), source: Some(error) }),
    }
}

fn key(folder: &Path) -> Result<Key, PrivateError> {
    let path = folder.join(KEY);
    let Some(text) = durable::read(&path)? else { return Err(PrivateError::NoKey { path, what: "gone" }) };
    let found = fs::symlink_metadata(&path).map_err(system("looking at", &path))?;
    let mode = found.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(PrivateError::OpenKey { path, mode });
    }
    Key::parse(&text).ok_or(PrivateError::NoKey { path, what: "not one" })
}

/// Makes the private part under another name, and gives it its own name when it is whole and on the disk. A daemon that
/// dies before that begins anew.
fn make(state: &Path) -> Result<Vault, PrivateError> {
    let (unfinished, folder) = (state.join(UNFINISHED), state.join(FOLDER));
    remove(&unfinished)?;
    private::make_folder(&unfinished)?;
    let key = Key::random()?;
    durable::put(&unfinished.join(KEY), key.to_text().as_bytes(), Access::Private)?;
    sealed(&Vault::new(unfinished.clone(), key.clone())).write(&Sealed {}).map_err(written)?;
    durable::sync_everything(&unfinished)?;
    fs::rename(&unfinished, &folder).map_err(system("naming", &folder))?;
    durable::on(&RealDisk).sync_folder(state)?;
    Ok(Vault::new(folder, key))
}

fn remove(path: &Path) -> Result<(), PrivateError> {
    folders::remove(path).map_err(system("removing", path))
}

fn sealed(vault: &Vault) -> Kept<Sealed> {
    vault.note(&RealDisk, SEALED)
}

/// Only the disk refuses what is written.
fn written(error: KeptError) -> PrivateError {
    match error {
        KeptError::Disk(error) => error.into(),
        KeptError::Damaged { path, .. } => PrivateError::Foreign { path, source: None },
    }
}

fn system(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> PrivateError {
    move |source| PrivateError::System { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use protocol::request::CallerEnv;

    use super::*;
    use crate::store::Store;

    fn refusal(state: &Path) -> String {
        open(state).unwrap_err().to_string()
    }

    /// Returns all files below a folder, each with its bytes.
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
        // What a daemon has left that died while it made it.
        fs::create_dir_all(home.path().join("private.new/repos")).unwrap();
        fs::write(home.path().join("private.new/key"), "half").unwrap();
        let (made, found) = (open(home.path()).unwrap(), open(home.path()).unwrap());
        assert_eq!(made.key().to_text(), found.key().to_text());
        let bits = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((bits(made.folder()), bits(&made.folder().join(KEY))), (0o700, 0o600));
        assert_eq!(made.folder(), home.path().join(FOLDER));
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
            let said = refusal(&state);
            let path = state.display();
            assert!(said.contains("was made by a development build"), "{name}: {said}");
            assert!(said.contains(&format!("`mv -n -- '{path}' '{path}.old-2'`")), "{name}: {said}");
            assert_eq!(reseal(&state).unwrap_err().to_string(), said);
            assert_eq!(content(home.path()), before, "{name}");
        }
    }

    #[test]
    fn key_that_is_gone_is_not_made_again() {
        let home = tempfile::tempdir().unwrap();
        let vault = open(home.path()).unwrap();
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
        let key = open(home.path()).unwrap().folder().join(KEY);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refusal(home.path()).contains("0644"), "{}", refusal(home.path()));
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn another_key_or_no_word_that_all_is_sealed_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = open(home.path()).unwrap().folder().to_owned();
        let right = fs::read(folder.join(KEY)).unwrap();
        fs::write(folder.join(KEY), Key::random().unwrap().to_text()).unwrap();
        assert!(refusal(home.path()).contains("not sealed with the key"), "{}", refusal(home.path()));
        fs::write(folder.join(KEY), right).unwrap();
        fs::remove_file(folder.join(SEALED)).unwrap();
        assert!(refusal(home.path()).contains(SEALED), "{}", refusal(home.path()));
    }

    #[test]
    fn sealing_anew_takes_what_is_there_and_comes_to_the_same_end_again() {
        let home = tempfile::tempdir().unwrap();
        let store = || Store::new(&open(home.path()).unwrap(), "0123456789ab");
        let folder = store().folder();
        store().create().unwrap();
        store().save_env(&CallerEnv([("A".to_owned(), "1".to_owned())].into())).unwrap();
        fs::write(folder.join("changes.json"), "garbage").unwrap();
        fs::write(folder.join("published.json"), r#"{"kind":"published","version":1,"value":{}}"#).unwrap();
        fs::remove_file(home.path().join("private/key")).unwrap();
        let done = reseal(home.path()).unwrap();
        assert!(done.new_key);
        assert_eq!(done.left, [folder.join("changes.json")]);
        assert_eq!(done.taken, ["env.json", "published.json"].map(|name| folder.join(name)));
        assert_eq!(store().load_env().unwrap()["A"], "1");
        let again = reseal(home.path()).unwrap();
        assert_eq!(again, Resealed { new_key: false, taken: Vec::new(), left: done.left });
    }
}
