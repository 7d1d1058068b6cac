//! The private part of the state folder, found or made when the daemon starts: its key, and the word that everything
//! there is sealed.
//!
//! Only a state folder without a private part can be of a build before, or new. From then on what is not sealed is never
//! taken for old, and a key that is gone is never made again by itself: that takes a person's word.

mod before;
mod reseal;
pub mod signing_key;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::private::{self, FolderError};
use serde::{Deserialize, Serialize};

use crate::git::GitError;
use crate::repo::disk::RealDisk;
use crate::repo::durable::{self, Access, DurableError};
use crate::repo::kept::{Kept, KeptError, Note, Vault};
use crate::repo::seal::{Key, NoRandomness};

pub use self::reseal::{Resealed, reseal};

/// The private part of the state folder.
pub const FOLDER: &str = "private";
/// Its file with the key.
const KEY: &str = "key";
/// Its note that everything there is sealed.
const SEALED: &str = "sealed.json";
/// The private part while it is being made: of no use before it has its name.
const UNFINISHED: &str = "private.new";

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
    /// What git was to obey could not be read.
    #[error(transparent)]
    Git(Box<GitError>),
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
struct Sealed {
    /// Whether the state of a build before, from which this was made, is still to be removed.
    replaces_older: bool,
}

impl Note for Sealed {
    const KIND: &'static str = "sealed";
    const VERSION: u32 = 1;
}

/// Opens the private part of the state folder, or makes it where there is none. The lock on the state folder is held.
pub fn open(state: &Path) -> Result<Vault, PrivateError> {
    let folder = state.join(FOLDER);
    let vault = match fs::symlink_metadata(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => make(state)?,
        _ => find(&folder)?,
    };
    remove_older(state, &vault)?;
    Ok(vault)
}

fn find(folder: &Path) -> Result<Vault, PrivateError> {
    private::check_folder(folder)?;
    Ok(Vault::new(folder.to_owned(), key(folder)?))
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

/// Makes the private part under another name, with all that a build before has left, and gives it its own name when it
/// is whole and on the disk. A daemon that dies before that begins anew.
fn make(state: &Path) -> Result<Vault, PrivateError> {
    let (unfinished, folder) = (state.join(UNFINISHED), state.join(FOLDER));
    remove(&unfinished)?;
    private::make_folder(&unfinished)?;
    let key = Key::random()?;
    let vault = Vault::new(unfinished.clone(), key.clone());
    durable::put(&unfinished.join(KEY), key.to_text().as_bytes(), Access::Private)?;
    before::take_over(state, &vault)?;
    let replaces_older = older(state).any(|path| path.symlink_metadata().is_ok());
    sealed(&vault).write(&Sealed { replaces_older }).map_err(written)?;
    durable::sync_everything(&unfinished)?;
    fs::rename(&unfinished, &folder).map_err(system("naming", &folder))?;
    durable::on(&RealDisk).sync_folder(state)?;
    if replaces_older {
        tracing::info!(folder = %folder.display(), "the state of a build before is sealed");
    }
    Ok(Vault::new(folder, key))
}

/// Removes the state of a build before, if this was made from it. What else lies there counts for nothing.
fn remove_older(state: &Path, vault: &Vault) -> Result<(), PrivateError> {
    let note = sealed(vault);
    match note.read() {
        Ok(Some(Sealed { replaces_older: true })) => {
            older(state).try_for_each(|path| remove(&path))?;
            note.write(&Sealed { replaces_older: false }).map_err(written)
        }
        Ok(Some(Sealed { replaces_older: false })) => {
            for path in older(state).filter(|path| path.symlink_metadata().is_ok()) {
                tracing::warn!(path = %path.display(), "not sealed, and not read; `runnerd --reseal` would take it over");
            }
            Ok(())
        }
        Ok(None) => Err(PrivateError::Foreign { path: note.path(), source: None }),
        Err(KeptError::Disk(error)) => Err(error.into()),
        Err(error) => Err(PrivateError::Foreign { path: note.path(), source: Some(error) }),
    }
}

/// Names what a build before keeps in the state folder.
fn older(state: &Path) -> impl Iterator<Item = PathBuf> {
    [before::REPOSITORIES, before::SUSPECTS].into_iter().map(|name| state.join(name))
}

fn remove(path: &Path) -> Result<(), PrivateError> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(system("removing", path)(error)),
        _ => Ok(()),
    }
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
    use runner_core::digest::sha256_hex;

    use super::*;
    use crate::store::Store;

    const ID: &str = "0123456789ab";

    /// A state folder of a build that sealed nothing, with one repository.
    struct Before {
        home: tempfile::TempDir,
    }

    impl Before {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let before = Self { home };
            let repo =
                r#"{"version":1,"id":"0123456789ab","common_dir":"/r/.git","path":"/r","confirmed":[],"runs":[]}"#;
            before.write("repo.json", &summed(repo, "").0);
            before.write("changes.json", r#"{"version":1,"next":3,"queue":[]}"#);
            before.write("env.json", &summed(r#"{"version":"of mine"}"#, "").0);
            before.write("live/r-0001-tree.json", "{");
            before.write("live/r-0001-upon", "abc");
            before.write("live/shim.lock", "");
            before.write("refused/1-edit.json", "a person's text");
            before
        }

        fn state(&self) -> &Path {
            self.home.path()
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.state().join("repos").join(ID).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn store(&self) -> Store {
            Store::new(&open(self.state()).unwrap(), ID)
        }
    }

    /// Returns a text with its checksum, and the checksum, as builds before wrote them.
    fn summed(text: &str, upon: &str) -> (String, String) {
        let sum = sha256_hex(format!("{upon}{text}").as_bytes())[..16].to_owned();
        (format!("{{\"sum\":\"{sum}\",{}", &text[1..]), sum)
    }

    fn refusal(state: &Path) -> String {
        open(state).unwrap_err().to_string()
    }

    #[test]
    fn new_state_folder_gets_a_private_part_that_is_found_again() {
        let home = tempfile::tempdir().unwrap();
        let (made, found) = (open(home.path()).unwrap(), open(home.path()).unwrap());
        assert_eq!(made.key().to_text(), found.key().to_text());
        let bits = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((bits(made.folder()), bits(&made.folder().join(KEY))), (0o700, 0o600));
        assert_eq!(made.folder(), home.path().join(FOLDER));
    }

    #[test]
    fn state_of_a_build_before_is_sealed_and_then_removed() {
        let before = Before::new();
        let store = before.store();
        assert_eq!(store.read().unwrap().unwrap().id, ID);
        assert_eq!(store.load_changes().unwrap().next, 3);
        let env = store.load_env().unwrap();
        assert_eq!(env.get("version").map(String::as_str), Some("of mine"));
        let file = |name: &str| fs::read_to_string(store.folder().join(name)).unwrap();
        assert_eq!(file("refused/1-edit.json"), "a person's text");
        assert!(file("live/r-0001-upon.json").contains("\"kind\": \"upon\""));
        assert!(file("live/r-0001-tree.json").contains("\"text\": \"{\""));
        assert!(!store.folder().join("live/shim.lock").exists());
        assert!(!before.state().join("repos").exists());
    }

    #[test]
    fn daemon_that_dies_at_any_step_of_it_loses_nothing_and_takes_nothing_twice() {
        // Before the folder has its name: whatever is there of it is made anew.
        let before = Before::new();
        fs::create_dir_all(before.state().join("private.new/repos")).unwrap();
        fs::write(before.state().join("private.new/key"), "half").unwrap();
        assert_eq!(before.store().load_changes().unwrap().next, 3);
        // After that: the old files are still there, some or all of them, and what is sealed counts.
        let vault = open(before.state()).unwrap();
        sealed(&vault).write(&Sealed { replaces_older: true }).unwrap();
        before.write("changes.json", r#"{"version":1,"next":99,"queue":[]}"#);
        assert_eq!(before.store().load_changes().unwrap().next, 3);
        assert!(!before.state().join("repos").exists());
        // All is done: what turns up now is nobody's.
        before.write("changes.json", r#"{"version":1,"next":99,"queue":[]}"#);
        assert_eq!(before.store().load_changes().unwrap().next, 3);
        assert!(before.state().join("repos").exists());
    }

    #[test]
    fn what_cannot_be_understood_comes_along_as_it_is() {
        let before = Before::new();
        let (text, _) = summed(r#"{"version":1,"next":3,"queue":[]}"#, "");
        let damaged = text.replace('3', "4");
        before.write("changes.json", &damaged);
        let store = before.store();
        assert!(store.load_changes().unwrap_err().to_string().contains("no seal"));
        assert_eq!(fs::read_to_string(store.folder().join("changes.json")).unwrap(), damaged);
    }

    #[test]
    fn notes_of_a_live_iteration_are_sealed_as_what_they_are() {
        let before = Before::new();
        for (name, kind) in [
            ("r-swap.json", "swap"),
            ("r-0001-git.json", "git-folder"),
            ("r-0001-definition.json", "definition"),
            ("r-0001-scenery.json", "scenery"),
            ("r-0001-before-guard.json", "before-guard"),
            ("r-0001-work.json", "found"),
            ("r-0001-guard.json", "found"),
            ("r-0001-review.json", "found"),
        ] {
            let vault = Vault::new(before.state().to_owned(), Key::random().unwrap());
            let note = before::sealed(&vault, &format!("repos/{ID}/live/{name}"), br#"{"a":1}"#).unwrap();
            let note: serde_json::Value = serde_json::from_slice(&note).unwrap();
            assert_eq!((note["kind"].as_str(), &note["value"]["a"]), (Some(kind), &1.into()), "{name}");
        }
        // A session can leave anything in the place of the tree.
        before.write("live/r-0002-tree.json", "");
        fs::write(before.state().join(format!("repos/{ID}/live/r-0003-tree.json")), b"\xff{").unwrap();
        let store = before.store();
        let file = |name: &str| fs::read_to_string(store.folder().join("live").join(name)).unwrap();
        assert!(file("r-0002-tree.json").contains("\"text\": \"\""), "{}", file("r-0002-tree.json"));
        assert!(file("r-0003-tree.json").contains("\"bytes\""), "{}", file("r-0003-tree.json"));
    }

    #[test]
    fn lines_of_a_journal_are_sealed_where_each_follows_from_the_one_before() {
        let lines = [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#].map(|line| format!("{line}\n"));
        let (first, sum) = summed(&lines[0], "");
        let (second, sum) = summed(&lines[1], &sum);
        let (third, _) = summed(&lines[2], &sum);
        let count = |journal: String| {
            let before = Before::new();
            before.write("journal.jsonl", &journal);
            let text = fs::read_to_string(before.store().journal().1).unwrap();
            if text == journal { None } else { Some(text.matches("{\"seal\":").count()) }
        };
        let whole = [first.as_str(), &second, &third].concat();
        assert_eq!(count(whole.clone()), Some(3));
        assert_eq!(count(whole[..whole.len() - 3].to_owned()), Some(2), "what was cut short never happened");
        assert_eq!(count(format!("{first}{second}\0\0\0\n")), Some(2));
        // What was refused before is taken over as it is, and holds its repository.
        for refused in [format!("{first}{third}"), format!("{first}{}{third}", lines[1]), lines.concat()] {
            assert_eq!(count(refused.clone()), None, "{refused}");
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
        let before = Before::new();
        let store = before.store();
        store.save_env(&CallerEnv([("A".to_owned(), "1".to_owned())].into())).unwrap();
        fs::write(store.folder().join("changes.json"), "garbage").unwrap();
        fs::remove_file(before.state().join("private/key")).unwrap();
        let done = reseal(before.state()).unwrap();
        assert!(done.new_key);
        assert_eq!(done.left, [store.folder().join("changes.json")]);
        assert!(done.taken.contains(&store.folder().join("env.json")), "{done:?}");
        assert_eq!(before.store().load_env().unwrap()["A"], "1");
        let again = reseal(before.state()).unwrap();
        assert_eq!(again, Resealed { new_key: false, taken: Vec::new(), left: done.left });
    }

    #[test]
    fn sealing_anew_takes_over_what_an_older_build_has_written_since() {
        let before = Before::new();
        let store = before.store();
        store.load_env().unwrap();
        before.write("env.json", r#"{"A":"older"}"#);
        assert_eq!(before.store().load_env().unwrap()["version"], "of mine");
        reseal(before.state()).unwrap();
        assert_eq!(before.store().load_env().unwrap()["A"], "older");
        assert!(!before.state().join("repos").exists());
    }
}
