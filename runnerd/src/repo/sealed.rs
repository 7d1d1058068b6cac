//! Sealed notes for the daemon's own use: each has a type, and is a file in the private folder.
//!
//! Reading returns a value, `None` if there is no file, or an error; a note that does not match its seal has no value,
//! and is never overwritten. A seal does not distinguish an old note from the latest: a decision based on a note
//! compares it with the branch.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use runner_core::run::blocker::Transience;
use runner_core::text::json;
use runner_os::retryable::{Retryable, fix_path_remedy};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::disk::{Disk, RealDisk};
use super::durable::{self, DurableError, FileAccess};
use super::seal::{SealContext, SealError, SealKey, strip_seal};

/// A type that can be stored in a note.
pub trait Sealable: Serialize + DeserializeOwned {
    /// Kind of the note, unique for each type.
    const KIND: &'static str;
    /// Version of its format.
    const VERSION: u32;
}

/// The private folder, and the key that seals everything in it.
#[derive(Debug, Clone)]
pub struct StateDir {
    folder: PathBuf,
    key: SealKey,
}

/// One note: its location, and what its seal is bound to.
#[derive(Debug, Clone)]
pub struct SealedFile<T, D = RealDisk> {
    disk: D,
    vault: StateDir,
    relative_path: String,
    marker: PhantomData<fn() -> T>,
}

/// Why a note has no usable value.
#[derive(Debug, thiserror::Error)]
pub enum SealedFileError {
    /// It could not be read or written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// It exists but was not written by this daemon; it is left as it is.
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
            // Reading it again does not repair it.
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

/// Why a note has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealedFileFault {
    /// Its seal is missing or wrong: it was written by another program, or for another place.
    #[error(transparent)]
    InvalidSeal(#[from] SealError),
    /// It was written by another version of the program.
    #[error("it has version {found}, and this daemon knows {known}")]
    Version {
        /// Its version.
        found: u32,
        /// The supported version.
        known: u32,
    },
    /// It is a note of another kind.
    #[error("it is a note of kind `{found}`, not `{known}`")]
    Kind {
        /// Its kind.
        found: String,
        /// The expected kind.
        known: &'static str,
    },
    /// It does not have the format of its kind.
    #[error("it does not have the form of its kind: {0}")]
    Form(String),
}

/// The file format around the value.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope<K, V> {
    /// Kind of the note.
    pub kind: K,
    /// Version of its format.
    pub version: u32,
    /// The stored value.
    pub value: V,
}

/// The part of a note that every version has.
#[derive(Deserialize)]
struct VersionHeader {
    version: u32,
}

impl StateDir {
    /// Creates a handle to the private folder with its key.
    pub fn new(folder: PathBuf, key: SealKey) -> Self {
        Self { folder, key }
    }

    /// Returns the private folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the key that seals everything in the folder.
    pub fn key(&self) -> &SealKey {
        &self.key
    }

    /// Returns the file content for a value of a kind, sealed for a place in the folder.
    pub fn seal_text<V: Serialize>(&self, place: &str, envelope: &Envelope<&str, V>) -> String {
        self.key.seal(SealContext { place, predecessor: None }, &json::to_canonical_json(envelope)).0
    }

    /// Returns a handle to the note at a place in the folder; its seal covers the place.
    pub fn sealed_file<T, D: Disk>(&self, disk: &D, place: &str) -> SealedFile<T, D> {
        SealedFile { disk: disk.clone(), vault: self.clone(), relative_path: place.to_owned(), marker: PhantomData }
    }
}

impl<T: Sealable, D: Disk> SealedFile<T, D> {
    /// Returns the path of the note's file.
    pub fn path(&self) -> PathBuf {
        self.vault.folder.join(&self.relative_path)
    }

    /// Reads the note; `None` if there is no file.
    pub fn read(&self) -> Result<Option<T>, SealedFileError> {
        let path = self.path();
        let Some(bytes) = durable::with_disk(&self.disk).read(&path)? else { return Ok(None) };
        self.decode(&bytes).map(Some).map_err(|fault| SealedFileError::Untrusted { path, fault })
    }

    /// Writes the note durably, replacing the previous one.
    pub fn write(&self, value: &T) -> Result<(), SealedFileError> {
        Ok(durable::with_disk(&self.disk).replace(
            &self.path(),
            self.seal_value(value).as_bytes(),
            FileAccess::Private,
        )?)
    }

    /// Removes the note; it is not an error if there is none.
    pub fn remove(&self) -> Result<(), SealedFileError> {
        Ok(durable::with_disk(&self.disk).remove(&self.path())?)
    }

    /// Returns the error for a note whose value turns out not to have the format of its kind.
    pub fn malformed_error(&self, error: &dyn std::error::Error) -> SealedFileError {
        SealedFileError::Untrusted { path: self.path(), fault: SealedFileFault::Form(error.to_string()) }
    }

    /// Returns the file content for a value.
    fn seal_value(&self, value: &T) -> String {
        self.vault.seal_text(&self.relative_path, &Envelope { kind: T::KIND, version: T::VERSION, value })
    }

    fn decode(&self, bytes: &[u8]) -> Result<T, SealedFileFault> {
        let text = match self.vault.key.open(self.seal_context(), bytes) {
            Ok((text, _)) => text,
            // Another version may have another seal format: a user who returns to an older program gets this message.
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

/// Recognises a text of another version, about which nothing else can be determined.
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
        assert_eq!(
            read_fault(&place.sealed_file::<SmallRecord>("b.json")),
            SealedFileFault::InvalidSeal(SealError::Mismatch)
        );
    }

    #[test]
    fn note_of_another_kind_or_version_is_named_as_what_it_is() {
        let place = SealedFileFixture::new();
        place.sealed_file::<OtherRecord>("a.json").write(&OtherRecord { number: 7 }).unwrap();
        assert_eq!(
            read_fault(&place.sealed_file::<SmallRecord>("a.json")),
            SealedFileFault::Kind { found: "other".into(), known: "small" }
        );
        place.sealed_file::<NewerRecord>("a.json").write(&NewerRecord { number: 7 }).unwrap();
        assert_eq!(
            read_fault(&place.sealed_file::<SmallRecord>("a.json")),
            SealedFileFault::Version { found: 3, known: 2 }
        );
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
