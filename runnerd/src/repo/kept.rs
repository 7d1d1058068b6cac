//! Notes that the daemon keeps for itself: each of one kind, in one file below one private folder, sealed.
//!
//! Reading gives a value, nothing where there is no file, or an error; a note that is not as it was sealed stands for no
//! value, and nobody writes over it. A seal does not tell an old note from the last: what steers by one compares it with
//! the branch.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use runner_core::json;
use runner_core::obstacle::Transience;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::disk::{Disk, RealDisk};
use super::durable::{self, FileAccess, DurableError};
use super::seal::{SealContext, SealKey, SealError, strip_seal};
use crate::obstruction::{Retryable, fix_path_remedy};

/// What can be kept in a note.
pub trait Sealable: Serialize + DeserializeOwned {
    /// Which kind it is; no two types have the same.
    const KIND: &'static str;
    /// Version of its form.
    const VERSION: u32;
}

/// The private folder, and the key with which everything in it is sealed.
#[derive(Debug, Clone)]
pub struct StateDir {
    folder: PathBuf,
    key: SealKey,
}

/// One note: where it is, and what it is sealed for.
#[derive(Debug, Clone)]
pub struct SealedFile<T, D = RealDisk> {
    disk: D,
    vault: StateDir,
    relative_path: String,
    marker: PhantomData<fn() -> T>,
}

/// What is wrong with a note.
#[derive(Debug, thiserror::Error)]
pub enum SealedFileError {
    /// It could not be read or written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// It is there and is not what this daemon has written; it is left as it is.
    #[error("{path} cannot be trusted: {fault}")]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: SealedFileFault,
    },
}

impl Retryable for SealedFileError {
    fn transience(&self) -> Transience {
        match self {
            Self::Disk(error) => error.transience(),
            // It does not come right by being looked at again.
            Self::Untrusted { .. } => Transience::Lost,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Disk(error) => error.remedy(),
            Self::Untrusted { path, .. } => Some(fix_path_remedy(path)),
        }
    }
}

/// Why a note stands for no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealedFileFault {
    /// Somebody else wrote it, or wrote it for another place.
    #[error(transparent)]
    InvalidSeal(#[from] SealError),
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
struct VersionHeader {
    version: u32,
}

impl StateDir {
    /// Names the private folder and its key.
    pub fn new(folder: PathBuf, key: SealKey) -> Self {
        Self { folder, key }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the key.
    pub fn key(&self) -> &SealKey {
        &self.key
    }

    /// Returns the text of a file that holds a value of a kind, sealed for a place below the folder.
    pub fn seal_text<V: Serialize>(&self, place: &str, envelope: &Envelope<&str, V>) -> String {
        self.key.seal(SealContext { place, predecessor: None }, &json::to_canonical_json(envelope)).0
    }

    /// Names the note at a place below the folder; the place is part of what its seal says.
    pub fn sealed_file<T, D: Disk>(&self, disk: &D, place: &str) -> SealedFile<T, D> {
        SealedFile { disk: disk.clone(), vault: self.clone(), relative_path: place.to_owned(), marker: PhantomData }
    }
}

impl<T: Sealable, D: Disk> SealedFile<T, D> {
    /// Returns the file.
    pub fn path(&self) -> PathBuf {
        self.vault.folder.join(&self.relative_path)
    }

    /// Reads the note; none where there is no file.
    pub fn read(&self) -> Result<Option<T>, SealedFileError> {
        let path = self.path();
        let Some(bytes) = durable::with_disk(&self.disk).read(&path)? else { return Ok(None) };
        self.decode(&bytes).map(Some).map_err(|fault| SealedFileError::Untrusted { path, fault })
    }

    /// Writes the note durably, in the place of the one before.
    pub fn write(&self, value: &T) -> Result<(), SealedFileError> {
        Ok(durable::with_disk(&self.disk).replace(&self.path(), self.seal_value(value).as_bytes(), FileAccess::Private)?)
    }

    /// Removes the note, if there is one.
    pub fn remove(&self) -> Result<(), SealedFileError> {
        Ok(durable::with_disk(&self.disk).remove(&self.path())?)
    }

    /// Says that what the note holds does not have the form of its kind after all.
    pub fn malformed_error(&self, error: &dyn std::error::Error) -> SealedFileError {
        SealedFileError::Untrusted { path: self.path(), fault: SealedFileFault::Form(error.to_string()) }
    }

    /// Returns the text of the file for a value.
    fn seal_value(&self, value: &T) -> String {
        self.vault.seal_text(&self.relative_path, &Envelope { kind: T::KIND, version: T::VERSION, value })
    }

    fn decode(&self, bytes: &[u8]) -> Result<T, SealedFileFault> {
        let text = match self.vault.key.open(self.seal_context(), bytes) {
            Ok((text, _)) => text,
            // A seal may have another form in another version: who goes back to an older program is told of that.
            Err(unsealed) => return Err(find_version_fault(bytes, T::VERSION).unwrap_or(unsealed.into())),
        };
        parse_sealed(&text)
    }

    fn seal_context(&self) -> SealContext<'_> {
        SealContext { place: &self.relative_path, predecessor: None }
    }
}

fn parse_sealed<T: Sealable>(text: &[u8]) -> Result<T, SealedFileFault> {
    let form = |error: serde_json::Error| SealedFileFault::Form(error.to_string());
    let Envelope { kind, version, value } =
        serde_json::from_slice::<Envelope<String, &RawValue>>(text).map_err(form)?;
    if kind != T::KIND {
        return Err(SealedFileFault::Kind { found: kind, known: T::KIND });
    }
    if version != T::VERSION {
        return Err(SealedFileFault::Version { found: version, known: T::VERSION });
    }
    serde_json::from_str(value.get()).map_err(form)
}

/// Tells a text of another version, of which nothing else can be said.
pub fn find_version_fault(bytes: &[u8], known: u32) -> Option<SealedFileFault> {
    let text = strip_seal(bytes)?;
    let VersionHeader { version: found } = serde_json::from_slice(&text).ok()?;
    (found != known).then_some(SealedFileFault::Version { found, known })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SmallRecord {
        number: u32,
    }

    impl Sealable for SmallRecord {
        const KIND: &'static str = "small";
        const VERSION: u32 = 2;
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct OtherRecord {
        number: u32,
    }

    impl Sealable for OtherRecord {
        const KIND: &'static str = "other";
        const VERSION: u32 = 2;
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct NewerRecord {
        number: u32,
    }

    impl Sealable for NewerRecord {
        const KIND: &'static str = "small";
        const VERSION: u32 = 3;
    }

    struct SealedFileFixture {
        home: tempfile::TempDir,
        vault: StateDir,
    }

    impl SealedFileFixture {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let vault = StateDir::new(home.path().to_owned(), SealKey::random().unwrap());
            Self { home, vault }
        }

        fn sealed_file<T: Sealable>(&self, place: &str) -> SealedFile<T> {
            self.vault.sealed_file(&RealDisk, place)
        }
    }

    fn read_fault<T: Sealable + std::fmt::Debug>(note: &SealedFile<T>) -> SealedFileFault {
        match note.read() {
            Err(SealedFileError::Untrusted { path, fault }) => {
                assert_eq!(path, note.path());
                fault
            }
            read => panic!("it was read: {read:?}"),
        }
    }

    #[test]
    fn note_is_read_as_it_was_written_and_absent_before() {
        let place = SealedFileFixture::new();
        let note = place.sealed_file::<SmallRecord>("a.json");
        assert_eq!(note.read().unwrap(), None);
        note.write(&SmallRecord { number: 7 }).unwrap();
        assert_eq!(note.read().unwrap(), Some(SmallRecord { number: 7 }));
        note.remove().unwrap();
        assert_eq!(note.read().unwrap(), None);
    }

    #[test]
    fn note_that_was_rewritten_by_hand_is_refused_and_stays() {
        let place = SealedFileFixture::new();
        let note = place.sealed_file::<SmallRecord>("a.json");
        note.write(&SmallRecord { number: 7 }).unwrap();
        let right = fs::read_to_string(note.path()).unwrap();
        let unsealed = r#"{"kind":"small","version":2,"value":{"number":8}}"#;
        for (wrong, why) in [
            (right.replace('7', "8"), SealError::Mismatch),
            (right.clone() + "\n", SealError::Mismatch),
            (unsealed.to_owned(), SealError::Missing),
            (r#"{"number":8}"#.to_owned(), SealError::Missing),
            (String::new(), SealError::Missing),
        ] {
            if wrong != right {
                fs::write(note.path(), &wrong).unwrap();
                assert_eq!(read_fault(&note), SealedFileFault::InvalidSeal(why), "{wrong}");
                assert_eq!(fs::read_to_string(note.path()).unwrap(), wrong);
            }
        }
    }

    #[test]
    fn note_of_another_place_is_refused() {
        let place = SealedFileFixture::new();
        place.sealed_file::<SmallRecord>("a.json").write(&SmallRecord { number: 7 }).unwrap();
        fs::rename(place.home.path().join("a.json"), place.home.path().join("b.json")).unwrap();
        assert_eq!(read_fault(&place.sealed_file::<SmallRecord>("b.json")), SealedFileFault::InvalidSeal(SealError::Mismatch));
    }

    #[test]
    fn note_of_another_kind_or_version_is_named_as_what_it_is() {
        let place = SealedFileFixture::new();
        place.sealed_file::<OtherRecord>("a.json").write(&OtherRecord { number: 7 }).unwrap();
        assert_eq!(read_fault(&place.sealed_file::<SmallRecord>("a.json")), SealedFileFault::Kind { found: "other".into(), known: "small" });
        place.sealed_file::<NewerRecord>("a.json").write(&NewerRecord { number: 7 }).unwrap();
        assert_eq!(read_fault(&place.sealed_file::<SmallRecord>("a.json")), SealedFileFault::Version { found: 3, known: 2 });
    }

    #[test]
    fn note_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = SealedFileFixture::new();
        let note = place.sealed_file::<SmallRecord>("a.json");
        note.write(&SmallRecord { number: 7 }).unwrap();
        assert_eq!(fs::metadata(note.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
