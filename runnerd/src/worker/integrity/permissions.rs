//! Restores this user's permissions on the runner's files and git's, if a process has removed them with `chmod`: before
//! anything is read, and reported with everything else that was restored.
//!
//! Only permissions that the runner needs are checked: folders that their owner can list, enter and write to, files
//! that their owner can read. Permissions of others are not its concern. Elsewhere in the work tree, every folder that its
//! owner cannot read is opened: git would not see what is in it. So is every one that could be written to before. Files are
//! opened by the scan that would read them.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use protocol::words::PhaseName;
use runner_git::{GitDirSnapshot, Repository};
use runner_os::dir_permissions::owner_has;

use crate::repo::layout::Layout;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::listing::{ChangeStamp, change_stamp, settled_stamp};
use crate::worker::integrity::restore;

/// Mode given to the work tree if its own is useless.
const WORK_TREE_MODE: u32 = 0o755;
/// Permissions the owner of a folder needs.
const DIRECTORY_MODE: u32 = 0o700;
/// Permissions the owner of a file needs, and the mask applied to its folder's mode when they are restored.
const FILE_MODE: (u32, u32) = (0o400, 0o666);
/// Permissions the owner of a folder elsewhere in the work tree needs.
const LISTABLE: u32 = 0o500;
/// The same for a file that is appended to.
const LOG_MODE: (u32, u32) = (0o600, 0o666);
/// The same for a file that is never written to again.
const OBJECT_MODE: (u32, u32) = (0o400, 0o444);
/// Files of the work tree that git reads on its own, in any folder.
const RULE_FILES: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];
/// Limit in bytes of such a file: git itself ignores larger attributes.
const MAX_RULES_BYTES: u64 = 16 << 20;
/// Folders nested deeper than this are not searched.
const MAX_DEPTH: usize = 512;

/// The records of a run. Those of other iterations and runs are not even listed, since they grow: nothing reads them but
/// people.
struct Records<'a> {
    layout: &'a Layout,
    run: &'a str,
    iter: u32,
}

impl Records<'_> {
    /// Lists what is checked in a folder, with the metadata of each.
    fn list(&self, folder: &Path) -> io::Result<Vec<(PathBuf, io::Result<Metadata>)>> {
        let all = self.layout.run_records(self.run);
        let paths: Vec<PathBuf> = if folder == all {
            let waited = (1..).map(|wait| self.layout.waited_iteration(self.run, self.iter, wait));
            let waited = waited.take_while(|folder| folder.symlink_metadata().is_ok());
            [self.layout.iteration(self.run, self.iter)].into_iter().chain(waited).collect()
        } else if Some(folder) == all.parent() {
            vec![all]
        } else {
            // Read relative to the folder: git's has thousands of objects.
            let listed = fs::read_dir(folder)?;
            return listed.map(|entry| entry.map(|entry| (entry.path(), entry.metadata()))).collect();
        };
        Ok(paths.into_iter().map(|path| (path.clone(), path.symlink_metadata())).collect())
    }
}

/// A path that its owner cannot use, and the mode that it gets.
struct ClosedPath {
    path: PathBuf,
    mode: u32,
}

/// Restores permissions that a process of an iteration has removed, and notes them for the later checks of the same
/// process.
pub(crate) fn restore_permissions(context: &RunContext, iter: u32, phase: PhaseName) -> Result<(), EffectError> {
    let repository = context.repository()?;
    let mut reported: Vec<PathBuf> = Vec::new();
    let records = Records { layout: &context.layout, run: &context.run, iter };
    // A closed folder may hide others.
    for _ in 0..MAX_DEPTH {
        let closed = find_closed(&repository, &records)
            .map_err(EffectError::io_error("looking below", repository.work_dir()))?;
        if closed.is_empty() {
            break;
        }
        let is_reported = |path: &PathBuf| reported.iter().any(|above| path.starts_with(above));
        let new: Vec<PathBuf> =
            closed.iter().map(|closed| closed.path.clone()).filter(|path| !is_reported(path)).collect();
        restore::note_restored(context, iter, phase, new.iter().map(|path| display_name(&repository, path)))?;
        reported.extend(new);
        for ClosedPath { path, mode } in closed {
            let result = fs::set_permissions(&path, Permissions::from_mode(mode));
            result.map_err(EffectError::io_error("giving back the mode of", &path))?;
        }
    }
    context.last_load.with_folders(|known| open_folders(&repository, known))
}

/// The folders of a work tree as they were listed last, each with those in it.
pub(crate) type FolderTree = HashMap<PathBuf, ListedFolder>;

#[derive(Debug, Clone, Default)]
pub(crate) struct ListedFolder {
    /// `None` if it must be listed again.
    stamp: Option<ChangeStamp>,
    folders: Vec<PathBuf>,
    /// The rule files in it.
    rules: Vec<PathBuf>,
    /// Whether its owner may change what is in it.
    is_writable: bool,
}

/// Opens folders before the first session that this process starts, and remembers which can be written to.
pub(crate) fn open_before_session(context: &RunContext) -> Result<(), EffectError> {
    let repository = context.repository()?;
    context.last_load.with_folders(|known| if known.is_empty() { open_folders(&repository, known) } else { Ok(()) })
}

/// Makes every folder outside of the runner's and git's readable to its owner. Fails with the name of a folder that is
/// another user's and cannot be listed, unless nothing in it concerns git.
fn open_folders(repository: &Repository, known: &mut FolderTree) -> Result<(), EffectError> {
    let root = repository.work_dir();
    let own = [root.join(".git"), root.join(Layout::FOLDER)];
    let mut folders = vec![root.to_owned()];
    let mut before = std::mem::take(known);
    while let Some(folder) = folders.pop() {
        match open_folder(&folder, before.remove(&folder)) {
            Ok(listed) => {
                folders.extend(listed.folders.iter().filter(|below| !own.contains(below)).cloned());
                known.insert(folder, listed);
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => repository.check_unlisted(&folder, &error)?,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(EffectError::io_error("looking below", &folder)(error)),
        }
    }
    Ok(())
}

/// Makes a folder readable, and writable if it was, and returns the folders in it. It is listed again only if it has
/// changed.
fn open_folder(folder: &Path, known: Option<ListedFolder>) -> io::Result<ListedFolder> {
    let mut found = folder.symlink_metadata()?;
    if !found.is_dir() {
        return Ok(ListedFolder::default());
    }
    // One that was read-only before may be so for a reason, as in a cache of modules.
    let needed = if known.as_ref().is_some_and(|known| known.is_writable) { DIRECTORY_MODE } else { LISTABLE };
    if !owner_has(&found, needed) {
        fs::set_permissions(folder, Permissions::from_mode(found.mode() & 0o7777 | DIRECTORY_MODE))?;
        found = folder.symlink_metadata()?;
    }
    if let Some(known) = known.filter(|known| known.stamp == Some(change_stamp(&found))) {
        return Ok(known);
    }
    let is_writable = owner_has(&found, DIRECTORY_MODE);
    let stamp = settled_stamp(&found);
    let mut listed = ListedFolder { stamp, folders: Vec::new(), rules: Vec::new(), is_writable };
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            listed.folders.push(entry.path());
        } else if RULE_FILES.iter().any(|name| entry.file_name() == *name) {
            listed.rules.push(entry.path());
        }
    }
    Ok(listed)
}

/// Returns the rule files of the work tree that are too large to be read and may have changed since `before`, sorted.
pub(crate) fn find_large_rule_files(context: &RunContext, before: &GitDirSnapshot) -> Vec<PathBuf> {
    // Where it is a link, what it leads to would be read.
    let is_large = |file: &Path| fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() > MAX_RULES_BYTES);
    let is_new = |file: &Path| file.symlink_metadata().is_ok_and(|found| before.may_have_changed(&found));
    let mut large: Vec<PathBuf> = context.last_load.with_folders(|known| {
        let rules = known.values().flat_map(|folder| &folder.rules);
        rules.filter(|file| is_large(file) && is_new(file)).cloned().collect()
    });
    large.sort_unstable();
    large
}

fn display_name(repository: &Repository, path: &Path) -> String {
    if path == repository.work_dir() {
        return ".".to_owned();
    }
    repository.display_git_path(path).trim_end_matches('/').to_owned()
}

/// Lists what is closed; not what is inside a closed folder.
fn find_closed(repository: &Repository, records: &Records<'_>) -> io::Result<Vec<ClosedPath>> {
    let root = repository.work_dir();
    let mut closed = Vec::new();
    let root_metadata = root.symlink_metadata()?;
    if !owner_has(&root_metadata, DIRECTORY_MODE) {
        closed.push(ClosedPath { path: root.to_owned(), mode: WORK_TREE_MODE });
        return Ok(closed);
    }
    // In a linked work tree a file points to git's folder.
    let common = repository.common_dir();
    let folders = BTreeSet::from([common.to_owned(), root.join(".git"), root.join(Layout::FOLDER)]);
    for folder in folders {
        if let Ok(metadata) = folder.symlink_metadata() {
            let above = root_metadata.mode() & 0o777;
            collect_closed(&folder, &metadata, (above, FILE_MODE), records, &mut closed)?;
        }
    }
    Ok(closed)
}

/// Checks a path and everything below it; `above` is the mode of its folder, `file` what the owner of a file there
/// needs.
fn collect_closed(
    path: &Path,
    metadata: &Metadata,
    (above, file): (u32, (u32, u32)),
    records: &Records<'_>,
    closed: &mut Vec<ClosedPath>,
) -> io::Result<()> {
    let (needed, inherited) = file;
    if metadata.is_file() && !owner_has(metadata, needed) {
        closed.push(ClosedPath { path: path.to_owned(), mode: above & inherited | needed });
    }
    if !metadata.is_dir() {
        return Ok(());
    }
    if !owner_has(metadata, DIRECTORY_MODE) {
        closed.push(ClosedPath { path: path.to_owned(), mode: above | DIRECTORY_MODE });
        return Ok(());
    }
    let file = match path.file_name().and_then(OsStr::to_str) {
        Some("logs") => LOG_MODE,
        Some("objects") => OBJECT_MODE,
        _ => file,
    };
    let entries = match records.list(path) {
        // Owned by another user, or gone by now.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => return Ok(()),
        entries => entries?,
    };
    for (below, metadata_below) in entries {
        match metadata_below {
            Ok(found) => collect_closed(&below, &found, (metadata.mode() & 0o777, file), records, closed)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use runner_testkit::run_unprivileged;

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn folders_that_their_owner_cannot_read_are_opened_and_nothing_else_is() {
        run_unprivileged(|| {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let folders = ["shut", "unlisted", "read-only"];
            let files = ["shut/file", "unlisted/file", "file"];
            for name in folders {
                fs::create_dir(at(name)).unwrap();
            }
            for name in files {
                fs::write(at(name), "").unwrap();
            }
            std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
            let before =
                [("shut/file", 0o000), ("file", 0o200), ("shut", 0o000), ("unlisted", 0o311), ("read-only", 0o555)];
            for (name, mode) in before {
                fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
            }
            let mut known = FolderTree::new();
            let mut pending = vec![folder.path().to_owned()];
            while let Some(folder) = pending.pop() {
                let listed = open_folder(&folder, None).unwrap();
                pending.extend(listed.folders.clone());
                known.insert(folder, listed);
            }
            let after = before.map(|(name, _)| mode_of(&at(name)));
            assert_eq!(after, [0o000, 0o200, 0o700, 0o711, 0o555]);
            // What could be written to before can be again.
            fs::set_permissions(at("shut"), Permissions::from_mode(0o555)).unwrap();
            let shut = known.remove(&at("shut"));
            known.insert(at("shut"), open_folder(&at("shut"), shut).unwrap());
            assert_eq!(mode_of(&at("shut")), 0o755);
            // A folder that is closed again is not mistaken for what it was.
            for name in folders {
                fs::set_permissions(at(name), Permissions::from_mode(0o000)).unwrap();
                open_folder(&at(name), known.remove(&at(name))).unwrap();
                assert_eq!(mode_of(&at(name)), 0o700, "{name}");
            }
        });
    }

    #[test]
    fn what_is_closed_is_found_with_the_mode_that_it_is_to_have() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            "objects/ab",
            "logs",
            "open",
            ".runner/iterations/x/0002",
            ".runner/iterations/x/0003.w1",
            ".runner/iterations/y/0003",
        ] {
            fs::create_dir_all(at(name)).unwrap();
        }
        let logs =
            [".runner/iterations/x/0002/log", ".runner/iterations/x/0003.w1/log", ".runner/iterations/y/0003/log"];
        for name in ["objects/ab/cd", "logs/HEAD", "HEAD", "open/read-only"].into_iter().chain(logs) {
            fs::write(at(name), "").unwrap();
        }
        let modes = [("objects/ab", 0o000), ("logs/HEAD", 0o444), ("HEAD", 0o000), ("open/read-only", 0o444)];
        for (name, mode) in modes.into_iter().chain(logs.map(|name| (name, 0o000))) {
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        }
        let mut closed = Vec::new();
        let layout = Layout::new(folder.path());
        let records = Records { layout: &layout, run: "x", iter: 3 };
        let found = folder.path().metadata().unwrap();
        collect_closed(folder.path(), &found, (0o755, FILE_MODE), &records, &mut closed).unwrap();
        closed.sort_by(|a, b| a.path.cmp(&b.path));
        let found: Vec<_> = closed.iter().map(|closed| (closed.path.clone(), closed.mode)).collect();
        let above = mode_of(folder.path());
        let expected = [
            (at(".runner/iterations/x/0003.w1/log"), mode_of(&at(".runner/iterations/x/0003.w1")) & 0o666 | 0o400),
            (at("HEAD"), above & 0o666 | 0o400),
            (at("logs/HEAD"), mode_of(&at("logs")) & 0o666 | 0o600),
            (at("objects/ab"), mode_of(&at("objects")) | DIRECTORY_MODE),
        ];
        assert_eq!(found, expected);
    }
}
