//! What this user may do with the runner's files and git's, where a process has taken it from them by `chmod`: given back
//! before anything is read, and named with what else was put back.
//!
//! Only what keeps the runner from its work is looked at: folders that their owner can list, enter and write to, files
//! that their owner can read. What a mode allows to others is nobody's business here.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use protocol::words::PhaseName;

use crate::git::Repository;
use crate::repo::layout::Layout;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::restore;

/// The mode of a work tree whose own says nothing.
const WORK_TREE: u32 = 0o755;
/// What the owner of a folder needs.
const FOLDER: u32 = 0o700;
/// What the owner of a file needs, and what its folder's mode leaves of that where it is given back.
const FILE: (u32, u32) = (0o400, 0o666);
/// The same of a file that is added to.
const LOG: (u32, u32) = (0o600, 0o666);
/// The same of one that nobody writes to.
const OBJECT: (u32, u32) = (0o400, 0o444);
/// Folders deeper than this are not looked into.
const DEEPEST: usize = 512;

/// A path whose owner cannot use it, and the mode that it is to have.
struct Closed {
    path: PathBuf,
    mode: u32,
}

/// Gives back what a process of an iteration has taken, and notes what that was for those who look what else it did.
pub(crate) fn regain(context: &RunContext, (iter, phase): (u32, PhaseName)) -> Result<(), Obstacle> {
    let repository = context.repository()?;
    let mut named: Vec<PathBuf> = Vec::new();
    // Behind a folder that was closed there may be others.
    for _ in 0..DEEPEST {
        let closed = closed(&repository).map_err(Obstacle::system("looking below", repository.work_dir()))?;
        if closed.is_empty() {
            break;
        }
        let is_named = |path: &PathBuf| named.iter().any(|above| path.starts_with(above));
        let new: Vec<PathBuf> =
            closed.iter().map(|closed| closed.path.clone()).filter(|path| !is_named(path)).collect();
        restore::note_put_back(context, (iter, phase), new.iter().map(|path| name_of(&repository, path)))?;
        named.extend(new);
        for Closed { path, mode } in closed {
            let given = fs::set_permissions(&path, Permissions::from_mode(mode));
            given.map_err(Obstacle::system("giving back the mode of", &path))?;
        }
    }
    Ok(())
}

fn name_of(repository: &Repository, path: &Path) -> String {
    if path == repository.work_dir() {
        return ".".to_owned();
    }
    repository.name_of(path).trim_end_matches('/').to_owned()
}

/// Looks for what is closed, not behind what is closed itself.
fn closed(repository: &Repository) -> io::Result<Vec<Closed>> {
    let root = repository.work_dir();
    let mut closed = Vec::new();
    let found = root.symlink_metadata()?;
    if !has(&found, FOLDER) {
        closed.push(Closed { path: root.to_owned(), mode: WORK_TREE });
        return Ok(closed);
    }
    // In a linked work tree a file leads to git's folder.
    let common = repository.common_dir();
    let folders = BTreeSet::from([common.to_owned(), root.join(".git"), root.join(Layout::FOLDER)]);
    for folder in folders {
        if let Ok(below) = folder.symlink_metadata() {
            look((&folder, &below), found.mode() & 0o777, FILE, &mut closed)?;
        }
    }
    Ok(closed)
}

/// Looks at a path, and below; `above` is the mode of its folder, `file` what the owner of a file there needs.
fn look((path, found): (&Path, &Metadata), above: u32, file: (u32, u32), closed: &mut Vec<Closed>) -> io::Result<()> {
    let (need, left) = file;
    if found.is_file() && !has(found, need) {
        closed.push(Closed { path: path.to_owned(), mode: above & left | need });
    }
    if !found.is_dir() {
        return Ok(());
    }
    if !has(found, FOLDER) {
        closed.push(Closed { path: path.to_owned(), mode: above | FOLDER });
        return Ok(());
    }
    let file = match path.file_name().and_then(OsStr::to_str) {
        Some("logs") => LOG,
        Some("objects") => OBJECT,
        _ => file,
    };
    let entries = match fs::read_dir(path) {
        // Somebody else's, or gone since.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        match entry.metadata() {
            Ok(below) => look((&entry.path(), &below), found.mode() & 0o777, file, closed)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether the owner has what is needed; what is somebody else's is not this user's to give.
fn has(found: &Metadata, need: u32) -> bool {
    let user = geteuid();
    let is_own = user.is_root() || found.uid() == user.as_raw();
    found.mode() & need == need || !is_own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_closed_is_found_with_the_mode_that_it_is_to_have() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["objects/ab", "logs", "open"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["objects/ab/cd", "logs/HEAD", "HEAD", "open/read-only"] {
            fs::write(at(name), "").unwrap();
        }
        for (name, mode) in [("objects/ab", 0o000), ("logs/HEAD", 0o444), ("HEAD", 0o000), ("open/read-only", 0o444)] {
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        }
        let mut closed = Vec::new();
        look((folder.path(), &folder.path().metadata().unwrap()), 0o755, FILE, &mut closed).unwrap();
        closed.sort_by(|a, b| a.path.cmp(&b.path));
        let found: Vec<_> = closed.iter().map(|closed| (closed.path.clone(), closed.mode)).collect();
        let above = mode(folder.path());
        let expected = [
            (at("HEAD"), above & 0o666 | 0o400),
            (at("logs/HEAD"), mode(&at("logs")) & 0o666 | 0o600),
            (at("objects/ab"), mode(&at("objects")) | FOLDER),
        ];
        assert_eq!(found, expected);
    }
}
