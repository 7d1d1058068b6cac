//! Accepts the state folder as it is, on a person's decision: a missing key is created again, and every note is sealed
//! with it, regardless of who wrote it.
//!
//! Idempotent, so an interrupted attempt can simply be repeated. Files that cannot be understood stay.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use protocol::private_dir;
use serde_json::value::RawValue;

use super::{
    PRIVATE_DIR, SEAL_MARKER_FILE, SealMarker, StateDirError, check_not_development, io_error, open_state_dir,
    read_key, seal_marker, write_error,
};
use crate::repo::durable::{self, FileAccess};
use crate::repo::seal::{SealContext, SealKey, strip_seal};
use crate::repo::sealed::{Envelope, StateDir};

/// The folder of the repositories' folders, and the name of a journal in each.
const REPOSITORIES: &str = "repos";
const JOURNAL: &str = "journal.jsonl";

/// Result of resealing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ResealReport {
    /// Whether the key is new.
    pub new_key: bool,
    /// Files that were accepted as they are, and are sealed now.
    pub sealed: Vec<PathBuf>,
    /// Files with nothing that could be sealed.
    pub skipped: Vec<PathBuf>,
}

/// Seals everything in the state folder as it is. The caller holds the lock on the state folder.
pub fn reseal(state: &Path) -> Result<ResealReport, StateDirError> {
    check_not_development(state)?;
    let folder = state.join(PRIVATE_DIR);
    let mut report = ResealReport::default();
    if folder.symlink_metadata().is_err() {
        open_state_dir(state)?;
        return Ok(ResealReport { new_key: true, ..report });
    }
    private_dir::check_private_dir(&folder)?;
    let key = match read_key(&folder) {
        Ok(key) => key,
        Err(StateDirError::MissingKey { path, .. }) => {
            let key = SealKey::random()?;
            report.new_key = true;
            durable::replace(&path, key.to_text().as_bytes(), FileAccess::Private)?;
            key
        }
        Err(error) => return Err(error),
    };
    let vault = StateDir::new(folder, key);
    for place in list_sealed_files(vault.folder())?.iter().filter(|place| *place != SEAL_MARKER_FILE) {
        reseal_file(&vault, place, &mut report)?;
    }
    // Last of all: the daemon does not start without this note.
    seal_marker(&vault).write(&SealMarker {}).map_err(write_error)?;
    Ok(report)
}

fn reseal_file(vault: &StateDir, place: &str, report: &mut ResealReport) -> Result<(), StateDirError> {
    let path = vault.folder().join(place);
    let Some(bytes) = durable::read(&path)? else { return Ok(()) };
    let text =
        if place.ends_with(JOURNAL) { reseal_journal(vault, place, &bytes) } else { reseal_text(vault, place, &bytes) };
    match text.map(String::into_bytes) {
        Some(text) if text == bytes => {}
        Some(text) => {
            durable::replace(&path, &text, FileAccess::Private)?;
            report.sealed.push(path);
        }
        None => report.skipped.push(path),
    }
    Ok(())
}

fn reseal_text(vault: &StateDir, place: &str, bytes: &[u8]) -> Option<String> {
    let text = strip_seal(bytes).unwrap_or_else(|| bytes.to_vec());
    serde_json::from_slice::<Envelope<&str, &RawValue>>(&text).ok()?;
    let context = SealContext { place, predecessor: None };
    Some(vault.key().seal(context, std::str::from_utf8(&text).ok()?).0)
}

/// As elsewhere, a truncated last line never happened.
fn reseal_journal(vault: &StateDir, place: &str, bytes: &[u8]) -> Option<String> {
    let whole = &bytes[..=bytes.iter().rposition(|&byte| byte == b'\n')?];
    let mut text = String::new();
    let mut last_seal = None;
    for (number, line) in (1_u64..).zip(whole.split_inclusive(|&byte| byte == b'\n')) {
        let body = String::from_utf8(strip_seal(line)?).ok()?;
        serde_json::from_str::<&RawValue>(&body).ok()?;
        let context = SealContext { place, predecessor: last_seal.as_ref().map(|(number, seal)| (*number, seal)) };
        let (line, seal) = vault.key().seal(context, &body);
        text.push_str(&line);
        last_seal = Some((number, seal));
    }
    Some(text)
}

/// Lists the notes and journals in the private folder.
pub(super) fn list_sealed_files(folder: &Path) -> Result<Vec<String>, StateDirError> {
    let mut places = list_sealed_in(folder, "")?;
    for id in list_names(&folder.join(REPOSITORIES))? {
        for part in ["", "git/", "live/"] {
            places.extend(list_sealed_in(folder, &format!("{REPOSITORIES}/{id}/{part}"))?);
        }
    }
    Ok(places)
}

fn list_sealed_in(folder: &Path, place: &str) -> Result<Vec<String>, StateDirError> {
    let is_note = |name: &String| name == JOURNAL || Path::new(name).extension().is_some_and(|end| end == "json");
    let names = list_names(&folder.join(place))?.into_iter().filter(is_note);
    Ok(names.map(|name| format!("{place}{name}")).collect())
}

/// Returns the names in a folder that are valid text, sorted; empty if there is no folder.
fn list_names(folder: &Path) -> Result<Vec<String>, StateDirError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => return Ok(Vec::new()),
        Err(error) => return Err(io_error("listing", folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(io_error("listing", folder))?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}
