//! Notes that the daemon keeps for itself: each of one kind, in one file below one private folder, sealed.
//!
//! Reading gives a value, nothing where there is no file, or an error; a note that is not as it was sealed stands for no
//! value, and nobody writes over it. A seal does not tell an old note from the last: what steers by one compares it with
//! the branch.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use runner_core::json;
use runner_core::obstacle::Nature;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::disk::{Disk, RealDisk};
use super::durable::{self, Access, DurableError};
use super::seal::{Belonging, Key, Unsealed, without_seal};
use crate::obstruction::{Obstructs, put_right};

/// What can be kept in a note.
pub trait Note: Serialize + DeserializeOwned {
    /// Which kind it is; no two types have the same.
    const KIND: &'static str;
    /// Version of its form.
    const VERSION: u32;
}

/// The private folder, and the key with which everything in it is sealed.
#[derive(Debug, Clone)]
pub struct Vault {
    folder: PathBuf,
    key: Key,
}

/// One note: where it is, and what it is sealed for.
#[derive(Debug, Clone)]
pub struct Kept<T, D = RealDisk> {
    disk: D,
    vault: Vault,
    place: String,
    note: PhantomData<fn() -> T>,
}

/// What is wrong with a note.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// It could not be read or written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// It is there and is not what this daemon has written; it is left as it is.
    #[error("{path} cannot be trusted: {fault}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
}

impl Obstructs for KeptError {
    fn nature(&self) -> Nature {
        match self {
            Self::Disk(error) => error.nature(),
            // It does not come right by being looked at again.
            Self::Damaged { .. } => Nature::Lost,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Disk(error) => error.remedy(),
            Self::Damaged { path, .. } => Some(put_right(path)),
        }
    }
}

/// Why a note stands for no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Somebody else wrote it, or wrote it for another place.
    #[error(transparent)]
    Unsealed(#[from] Unsealed),
    /// It is of another version of the program.
    #[error("it has version {found}, and this daemon knows {known}")]
    Version {
        /// Its version.
        found: u32,
        /// The version that is read.
        known: u32,
    },
    /// It is a note of another kind.
    #[error("it is a note of kind `{found}`, not `{known}`")]
    Kind {
        /// Its kind.
        found: String,
        /// The kind that is read.
        known: &'static str,
    },
    /// It does not have the form of its kind.
    #[error("it does not have the form of its kind: {0}")]
    Form(String),
}

/// What stands in a file, around the value.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope<K, V> {
    /// Which kind of note it is.
    pub kind: K,
    /// Version of its form.
    pub version: u32,
    /// What is kept.
    pub value: V,
}

/// As much of a note as every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Vault {
    /// Names the private folder and its key.
    pub fn new(folder: PathBuf, key: Key) -> Self {
        Self { folder, key }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the text of a file that holds a value of a kind, sealed for a place below the folder.
    pub fn sealed<V: Serialize>(&self, place: &str, envelope: &Envelope<&str, V>) -> String {
        self.key.seal(Belonging { place, behind: None }, &json::canonical(envelope)).0
    }

    /// Names the note at a place below the folder; the place is part of what its seal says.
    pub fn note<T, D: Disk>(&self, disk: &D, place: &str) -> Kept<T, D> {
        Kept { disk: disk.clone(), vault: self.clone(), place: place.to_owned(), note: PhantomData }
    }
}

impl<T: Note, D: Disk> Kept<T, D> {
    /// Returns the file.
    pub fn path(&self) -> PathBuf {
        self.vault.folder.join(&self.place)
    }

    /// Reads the note; none where there is no file.
    pub fn read(&self) -> Result<Option<T>, KeptError> {
        let path = self.path();
        let Some(bytes) = durable::on(&self.disk).read(&path)? else { return Ok(None) };
        self.open(&bytes).map(Some).map_err(|fault| KeptError::Damaged { path, fault })
    }

    /// Writes the note durably, in the place of the one before.
    pub fn write(&self, value: &T) -> Result<(), KeptError> {
        Ok(durable::on(&self.disk).replace(&self.path(), self.sealed(value).as_bytes(), Access::Private)?)
    }

    /// Removes the note, if there is one.
    pub fn remove(&self) -> Result<(), KeptError> {
        Ok(durable::on(&self.disk).remove(&self.path())?)
    }

    /// Says that what the note holds does not have the form of its kind after all.
    pub fn malformed(&self, error: &dyn std::error::Error) -> KeptError {
        KeptError::Damaged { path: self.path(), fault: Fault::Form(error.to_string()) }
    }

    /// Returns the text of the file for a value.
    fn sealed(&self, value: &T) -> String {
        self.vault.sealed(&self.place, &Envelope { kind: T::KIND, version: T::VERSION, value })
    }

    fn open(&self, bytes: &[u8]) -> Result<T, Fault> {
        let text = match self.vault.key.open(self.belonging(), bytes) {
            Ok((text, _)) => text,
            // A seal may have another form in another version: who goes back to an older program is told of that.
            Err(unsealed) => return Err(version_fault(bytes, T::VERSION).unwrap_or(unsealed.into())),
        };
        read_sealed(&text)
    }

    fn belonging(&self) -> Belonging<'_> {
        Belonging { place: &self.place, behind: None }
    }
}

fn read_sealed<T: Note>(text: &[u8]) -> Result<T, Fault> {
    let form = |error: serde_json::Error| Fault::Form(error.to_string());
    let Envelope { kind, version, value } =
        serde_json::from_slice::<Envelope<String, &RawValue>>(text).map_err(form)?;
    if kind != T::KIND {
        return Err(Fault::Kind { found: kind, known: T::KIND });
    }
    if version != T::VERSION {
        return Err(Fault::Version { found: version, known: T::VERSION });
    }
    serde_json::from_str(value.get()).map_err(form)
}

/// Tells a text of another version, of which nothing else can be said.
pub fn version_fault(bytes: &[u8], known: u32) -> Option<Fault> {
    let text = without_seal(bytes)?;
    let Versioned { version: found } = serde_json::from_slice(&text).ok()?;
    (found != known).then_some(Fault::Version { found, known })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Small {
        number: u32,
    }

    impl Note for Small {
        const KIND: &'static str = "small";
        const VERSION: u32 = 2;
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct Other {
        number: u32,
    }

    impl Note for Other {
        const KIND: &'static str = "other";
        const VERSION: u32 = 2;
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct Newer {
        number: u32,
    }

    impl Note for Newer {
        const KIND: &'static str = "small";
        const VERSION: u32 = 3;
    }

    struct Scratch {
        home: tempfile::TempDir,
        vault: Vault,
    }

    impl Scratch {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let vault = Vault::new(home.path().to_owned(), Key::random().unwrap());
            Self { home, vault }
        }

        fn note<T: Note>(&self, place: &str) -> Kept<T> {
            self.vault.note(&RealDisk, place)
        }
    }

    fn fault<T: Note + std::fmt::Debug>(note: &Kept<T>) -> Fault {
        match note.read() {
            Err(KeptError::Damaged { path, fault }) => {
                assert_eq!(path, note.path());
                fault
            }
            read => panic!("it was read: {read:?}"),
        }
    }

    #[test]
    fn note_is_read_as_it_was_written_and_absent_before() {
        let place = Scratch::new();
        let note = place.note::<Small>("a.json");
        assert_eq!(note.read().unwrap(), None);
        note.write(&Small { number: 7 }).unwrap();
        assert_eq!(note.read().unwrap(), Some(Small { number: 7 }));
        note.remove().unwrap();
        assert_eq!(note.read().unwrap(), None);
    }

    #[test]
    fn note_that_was_rewritten_by_hand_is_refused_and_stays() {
        let place = Scratch::new();
        let note = place.note::<Small>("a.json");
        note.write(&Small { number: 7 }).unwrap();
        let right = fs::read_to_string(note.path()).unwrap();
        let unsealed = r#"{"kind":"small","version":2,"value":{"number":8}}"#;
        for (wrong, why) in [
            (right.replace('7', "8"), Unsealed::Wrong),
            (right.clone() + "\n", Unsealed::Wrong),
            (unsealed.to_owned(), Unsealed::Missing),
            (r#"{"number":8}"#.to_owned(), Unsealed::Missing),
            (String::new(), Unsealed::Missing),
        ] {
            if wrong != right {
                fs::write(note.path(), &wrong).unwrap();
                assert_eq!(fault(&note), Fault::Unsealed(why), "{wrong}");
                assert_eq!(fs::read_to_string(note.path()).unwrap(), wrong);
            }
        }
    }

    #[test]
    fn note_of_another_place_is_refused() {
        let place = Scratch::new();
        place.note::<Small>("a.json").write(&Small { number: 7 }).unwrap();
        fs::rename(place.home.path().join("a.json"), place.home.path().join("b.json")).unwrap();
        assert_eq!(fault(&place.note::<Small>("b.json")), Fault::Unsealed(Unsealed::Wrong));
    }

    #[test]
    fn note_of_another_kind_or_version_is_named_as_what_it_is() {
        let place = Scratch::new();
        place.note::<Other>("a.json").write(&Other { number: 7 }).unwrap();
        assert_eq!(fault(&place.note::<Small>("a.json")), Fault::Kind { found: "other".into(), known: "small" });
        place.note::<Newer>("a.json").write(&Newer { number: 7 }).unwrap();
        assert_eq!(fault(&place.note::<Small>("a.json")), Fault::Version { found: 3, known: 2 });
    }

    #[test]
    fn note_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = Scratch::new();
        let note = place.note::<Small>("a.json");
        note.write(&Small { number: 7 }).unwrap();
        assert_eq!(fs::metadata(note.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
