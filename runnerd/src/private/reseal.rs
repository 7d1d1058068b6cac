//! Taking what lies in the state folder as it is, at a person's word: a key that is gone is made anew, and every note is
//! sealed with it, whoever wrote it.
//!
//! Done again it comes to the same end, so that one that was killed is begun anew. What cannot be understood stays.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use protocol::private;
use serde_json::value::RawValue;

use super::{FOLDER, PrivateError, SEALED, Sealed, key, open, refuse_development, sealed, system, written};
use crate::repo::durable::{self, Access};
use crate::repo::kept::{Envelope, Vault};
use crate::repo::seal::{Belonging, Key, without_seal};

/// The folder of the repositories' folders, and the name of a journal in one.
const REPOSITORIES: &str = "repos";
const JOURNAL: &str = "journal.jsonl";

/// What became of the state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Whether there is another key now.
    pub new_key: bool,
    /// Files that were taken as they are, and are sealed now.
    pub taken: Vec<PathBuf>,
    /// Files that hold nothing that could be sealed.
    pub left: Vec<PathBuf>,
}

/// Seals everything in the state folder as it is. The lock on the state folder is held.
pub fn reseal(state: &Path) -> Result<Resealed, PrivateError> {
    refuse_development(state)?;
    let folder = state.join(FOLDER);
    let mut done = Resealed::default();
    if folder.symlink_metadata().is_err() {
        open(state)?;
        return Ok(Resealed { new_key: true, ..done });
    }
    private::check_folder(&folder)?;
    let key = match key(&folder) {
        Ok(key) => key,
        Err(PrivateError::NoKey { path, .. }) => {
            let key = Key::random()?;
            done.new_key = true;
            durable::replace(&path, key.to_text().as_bytes(), Access::Private)?;
            key
        }
        Err(error) => return Err(error),
    };
    let vault = Vault::new(folder, key);
    for place in places(vault.folder())?.iter().filter(|place| *place != SEALED) {
        take(&vault, place, &mut done)?;
    }
    // The last: without this word the daemon does not start.
    sealed(&vault).write(&Sealed {}).map_err(written)?;
    Ok(done)
}

fn take(vault: &Vault, place: &str, done: &mut Resealed) -> Result<(), PrivateError> {
    let path = vault.folder().join(place);
    let Some(bytes) = durable::read(&path)? else { return Ok(()) };
    let text = if place.ends_with(JOURNAL) { journal(vault, place, &bytes) } else { note(vault, place, &bytes) };
    match text.map(String::into_bytes) {
        Some(text) if text == bytes => {}
        Some(text) => {
            durable::replace(&path, &text, Access::Private)?;
            done.taken.push(path);
        }
        None => done.left.push(path),
    }
    Ok(())
}

fn note(vault: &Vault, place: &str, bytes: &[u8]) -> Option<String> {
    let text = without_seal(bytes).unwrap_or_else(|| bytes.to_vec());
    serde_json::from_slice::<Envelope<&str, &RawValue>>(&text).ok()?;
    let belonging = Belonging { place, behind: None };
    Some(vault.key().seal(belonging, std::str::from_utf8(&text).ok()?).0)
}

/// A last line that was cut short never happened, here as well.
fn journal(vault: &Vault, place: &str, bytes: &[u8]) -> Option<String> {
    let whole = &bytes[..=bytes.iter().rposition(|&byte| byte == b'\n')?];
    let (mut text, mut behind) = (String::new(), None);
    for (number, line) in (1_u64..).zip(whole.split_inclusive(|&byte| byte == b'\n')) {
        let body = String::from_utf8(without_seal(line)?).ok()?;
        serde_json::from_str::<&RawValue>(&body).ok()?;
        let belonging = Belonging { place, behind: behind.as_ref().map(|(number, seal)| (*number, seal)) };
        let (line, seal) = vault.key().seal(belonging, &body);
        text.push_str(&line);
        behind = Some((number, seal));
    }
    Some(text)
}

/// Names the notes and journals below the private folder.
pub(super) fn places(folder: &Path) -> Result<Vec<String>, PrivateError> {
    let mut places = notes(folder, "")?;
    for id in names(&folder.join(REPOSITORIES))? {
        for part in ["", "git/", "live/"] {
            places.extend(notes(folder, &format!("{REPOSITORIES}/{id}/{part}"))?);
        }
    }
    Ok(places)
}

fn notes(folder: &Path, place: &str) -> Result<Vec<String>, PrivateError> {
    let is_note = |name: &String| name == JOURNAL || Path::new(name).extension().is_some_and(|end| end == "json");
    let names = names(&folder.join(place))?.into_iter().filter(is_note);
    Ok(names.map(|name| format!("{place}{name}")).collect())
}

/// Returns the names in a folder that are text, sorted; none where there is no folder.
fn names(folder: &Path) -> Result<Vec<String>, PrivateError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => return Ok(Vec::new()),
        Err(error) => return Err(system("listing", folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(system("listing", folder))?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}
