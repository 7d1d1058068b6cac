//! Taking what lies in the state folder as it is, at a person's word: a key that is gone is made anew, and every note is
//! sealed with it, whoever wrote it.
//!
//! Done again it comes to the same end, so that one that was killed is begun anew. What cannot be understood stays.

use std::path::{Path, PathBuf};

use protocol::private;
use serde_json::value::RawValue;

use super::{FOLDER, PrivateError, Sealed, before, key, open, remove, sealed, written};
use crate::repo::durable::{self, Access};
use crate::repo::kept::{Envelope, Vault};
use crate::repo::seal::{Belonging, Key, without_seal};

/// Name of a journal.
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
    before::take_over(state, &vault)?;
    for place in places(vault.folder())? {
        take(&vault, &place, &mut done)?;
    }
    // Before the word that it is whole: without that word the daemon does not start.
    [before::REPOSITORIES, before::SUSPECTS].iter().try_for_each(|name| remove(&state.join(name)))?;
    sealed(&vault).write(&Sealed { replaces_older: false }).map_err(written)?;
    Ok(done)
}

fn take(vault: &Vault, place: &str, done: &mut Resealed) -> Result<(), PrivateError> {
    let path = vault.folder().join(place);
    let Some(bytes) = durable::read(&path)? else { return Ok(()) };
    let text = if place.ends_with(JOURNAL) { journal(vault, place, &bytes) } else { note(vault, place, &bytes) };
    match text.map(String::into_bytes).or_else(|| before::sealed(vault, place, &bytes)) {
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
fn places(folder: &Path) -> Result<Vec<String>, PrivateError> {
    let mut places = vec![before::SUSPECTS.to_owned()];
    for id in before::names(&folder.join(before::REPOSITORIES))? {
        let repository = format!("{}/{id}", before::REPOSITORIES);
        places.extend(["repo.json", "changes.json", "env.json", JOURNAL].map(|name| format!("{repository}/{name}")));
        for part in ["git", "live"] {
            let names = before::names(&folder.join(&repository).join(part))?.into_iter();
            let notes = names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "json"));
            places.extend(notes.map(|name| format!("{repository}/{part}/{name}")));
        }
    }
    Ok(places)
}
