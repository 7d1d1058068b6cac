//! State of builds that sealed nothing: files with checksums, in the state folder itself. It is sealed once, as it is.
//!
//! A file that cannot be understood comes along as it is: it has no seal, and so holds its repository. What was for
//! people is copied.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use protocol::request::CallerEnv;
use runner_core::digest::sha256_hex;
use serde_json::Value;

use super::{PrivateError, system};
use crate::git::{Captured, UsersRules};
use crate::repo::disk::RealDisk;
use crate::repo::durable::{self, Access};
use crate::repo::kept::{Envelope, Note, Vault};
use crate::repo::seal::Belonging;
use crate::store::{Changes, LeftTree, RepoFile};
use crate::temporary;

/// The folder of the repositories, and the file of suspects: both had their names in the state folder itself.
pub(super) const REPOSITORIES: &str = "repos";
pub(super) const SUSPECTS: &str = "git-suspects.json";
/// Digits of a checksum.
const DIGITS: usize = 16;
/// What stood before them, and behind.
const BEFORE: &str = r#"{"sum":""#;
const BEHIND: &str = "\",";
/// What effects kept of a live iteration: the end of a file's name, and the kind of the note.
const LIVE: [(&str, &str); 8] = [
    ("-git.json", "git-folder"),
    ("-definition.json", "definition"),
    ("-swap.json", "swap"),
    ("-scenery.json", "scenery"),
    ("-before-guard.json", "before-guard"),
    ("-work.json", "found"),
    ("-guard.json", "found"),
    ("-review.json", "found"),
];

/// Seals all that a build before has left in the state folder, below the folder of `vault`.
pub(super) fn take_over(state: &Path, vault: &Vault) -> Result<(), PrivateError> {
    for name in names(&state.join(REPOSITORIES))? {
        let from = state.join(REPOSITORIES).join(&name);
        take_over_repository(&from, vault, &format!("{REPOSITORIES}/{name}"))?;
    }
    take_over_file(&state.join(SUSPECTS), vault, SUSPECTS)
}

/// Seals what a build before has left of one repository, at `place`.
fn take_over_repository(from: &Path, vault: &Vault, place: &str) -> Result<(), PrivateError> {
    for folder in ["", "live", "git", "refused", "hooks"] {
        durable::create_dir(&vault.folder().join(place).join(folder), Access::Private)?;
    }
    for name in names(from)? {
        let (old, place) = (from.join(&name), format!("{place}/{name}"));
        match name.as_str() {
            "live" | "refused" | "hooks" => {
                for name in names(&old)? {
                    take_over_file(&old.join(&name), vault, &format!("{place}/{name}"))?;
                }
            }
            "git" => {
                for name in names(&old)? {
                    take_over_captured(&old.join(&name), vault, &format!("{place}/{name}.json"))?;
                }
            }
            _ => take_over_file(&old, vault, &place)?,
        }
    }
    Ok(())
}

fn take_over_file(old: &Path, vault: &Vault, place: &str) -> Result<(), PrivateError> {
    let Ok(found) = fs::symlink_metadata(old) else { return Ok(()) };
    let name = place.rsplit('/').next().unwrap_or(place);
    if !found.is_file() || name == "shim.lock" || temporary::is_one(name.as_ref()) {
        return Ok(());
    }
    let Some(bytes) = durable::read(old)? else { return Ok(()) };
    let place = if name.ends_with("-upon") { format!("{place}.json") } else { place.to_owned() };
    let text = sealed(vault, &place, &bytes).unwrap_or(bytes);
    Ok(durable::put(&vault.folder().join(place), &text, Access::Private)?)
}

fn take_over_captured(old: &Path, vault: &Vault, place: &str) -> Result<(), PrivateError> {
    let captured = Captured::of_build_before(old).map_err(|source| PrivateError::Git(Box::new(source)))?;
    match captured {
        Some(captured) => vault.note(&RealDisk, place).write(&captured).map_err(super::written),
        None => Ok(()),
    }
}

/// Returns the text of the sealed file for one of a build before; none for what is no such file.
pub(super) fn sealed(vault: &Vault, place: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let name = place.rsplit('/').next().unwrap_or(place);
    if name == "journal.jsonl" {
        return journal(vault, place, bytes);
    }
    let (kind, value) = match name {
        _ if name.ends_with("-tree.json") => (LeftTree::KIND, serde_json::to_value(LeftTree::of(bytes.to_vec())).ok()?),
        _ if name.ends_with("-upon.json") => ("upon", std::str::from_utf8(bytes).ok()?.into()),
        _ => checked_value(place, name, bytes)?,
    };
    Some(vault.sealed(place, &Envelope { kind, version: 1, value }).into_bytes())
}

/// Reads what was JSON: the kind of the note that it becomes, and its value.
fn checked_value(place: &str, name: &str, bytes: &[u8]) -> Option<(&'static str, Value)> {
    let mut value: Value = serde_json::from_slice(&checked(bytes)?).ok()?;
    let kind = match name {
        "repo.json" => RepoFile::KIND,
        "changes.json" => Changes::KIND,
        "env.json" => CallerEnv::KIND,
        SUSPECTS => UsersRules::KIND,
        _ => LIVE.iter().find(|(end, _)| place.contains("/live/") && name.ends_with(end))?.1,
    };
    if [RepoFile::KIND, Changes::KIND].contains(&kind) && value.as_object_mut()?.remove("version")? != 1 {
        return None;
    }
    Some((kind, value))
}

/// Seals the lines of a journal, each for its place in it. A last line that was cut short never happened; a line without
/// a checksum was refused before as well.
fn journal(vault: &Vault, place: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let whole = &bytes[..=bytes.iter().rposition(|&byte| byte == b'\n')?];
    let (mut text, mut upon, mut behind) = (String::new(), String::new(), None);
    let count = whole.split_inclusive(|&byte| byte == b'\n').count();
    for (number, line) in (1..).zip(whole.split_inclusive(|&byte| byte == b'\n')) {
        let Some((body, sum)) = summed(line, &upon) else {
            return (number == count && line.contains(&0)).then(|| text.into_bytes());
        };
        let body = String::from_utf8(body).ok()?;
        let belonging = Belonging { place, behind: behind.as_ref().map(|(number, seal)| (*number, seal)) };
        let (sealed, seal) = vault.key().seal(belonging, &body);
        text.push_str(&sealed);
        (upon, behind) = (sum, Some((number as u64, seal)));
    }
    Some(text.into_bytes())
}

/// Returns a text without its checksum; none if that is wrong. Without one it was taken as it was.
fn checked(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.starts_with(BEFORE.as_bytes()) { summed(bytes, "").map(|(body, _)| body) } else { Some(bytes.to_vec()) }
}

/// Returns a text without its checksum, and the checksum; none if there is none, or it is wrong.
fn summed(bytes: &[u8], upon: &str) -> Option<(Vec<u8>, String)> {
    let (digits, rest) = bytes.strip_prefix(BEFORE.as_bytes())?.split_at_checked(DIGITS)?;
    let body = [b"{", rest.strip_prefix(BEHIND.as_bytes())?].concat();
    let sum = sha256_hex(&[upon.as_bytes(), &body].concat());
    (sum.as_bytes().get(..DIGITS) == Some(digits)).then(|| (body, sum[..DIGITS].to_owned()))
}

/// Returns the names in a folder that are text, sorted; none where there is no folder.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, PrivateError> {
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
