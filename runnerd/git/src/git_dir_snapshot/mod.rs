//! Detects and reverts what a session must not change in git's own folder: recorded before the session, compared after
//! it, restored.
//!
//! Covers whatever can run a program, lead git elsewhere or hide files: configuration, hooks, rules, alternates,
//! grafts, links between folders, replaced objects. Branches and history are out of scope, and restoring only serves
//! people: the runner's own operations obey `pinned_config`.

pub(crate) mod large_files;
pub(crate) mod links;
pub(crate) mod pipes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::Entry;
use gix::index::entry::Flags;
use protocol::hex::{from_hex, to_hex};
use runner_os::dir_permissions;
use serde::{Deserialize, Serialize};

use crate::durable::replace_file;
use crate::file_state::{FileState, read_file_state};
use crate::fs_clock::FsClock;
use crate::index;
use crate::index::index_flags::HIDING_FLAGS;
use crate::path::display_path;
use crate::repository::program::GitCommand;
use crate::repository::user_config::UserGitConfig;
use crate::worktree::sparse_patterns::SparsePatterns;
use crate::{GitError, Id, Repository};

/// Watched files in the common folder.
const COMMON_DIR_FILES: [&str; 9] = [
    "config",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "commondir",
    "shallow",
];
/// Watched files in a work tree's own folder.
const WORK_TREE_FILES: [&str; 4] = ["config.worktree", "info/sparse-checkout", "commondir", "gitdir"];
/// Folders of watched files.
const WATCHED_DIRS: [&str; 3] = ["hooks", "info", "objects/info"];
/// References that replace objects.
const REPLACE_REFS: &str = "refs/replace/";
/// Number of times that changed references are read again while they keep moving.
const MAX_RECHECKS: usize = 3;
/// Maximum number of hooks that are checked.
const MAX_HOOKS: usize = 4096;

/// State of git's own folder at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitDirSnapshot {
    /// Inode numbers of the git folder and the common folder.
    places: [u64; 2],
    /// By path relative to the work tree's root, with `.git` for the common folder.
    files: BTreeMap<String, FileState>,
    /// References by name.
    refs: BTreeMap<String, String>,
    /// The user's own configuration.
    users: UserGitConfig,
    /// Tracked files for which checking by git is turned off.
    hidden: BTreeSet<String>,
    /// When it was taken.
    moment: Option<FsClock>,
}

impl GitDirSnapshot {
    /// Returns the user's own configuration at that moment.
    pub fn user_config(&self) -> &UserGitConfig {
        &self.users
    }

    /// Returns each reference that differs `now`, except HEAD and the runner's own.
    fn compare_refs(&self, mut now: BTreeMap<String, String>) -> Vec<MovedRef> {
        let is_runners = |name: &str| name == "HEAD" || name.starts_with("refs/runner/");
        let mut moved = Vec::new();
        for (name, before) in self.refs.iter().filter(|(name, _)| !is_runners(name)) {
            let after = now.remove(name);
            if after.as_ref() != Some(before) {
                moved.push(MovedRef { name: name.clone(), before: Some(before.clone()), after });
            }
        }
        let created = now.into_iter().filter(|(name, _)| !is_runners(name));
        moved.extend(created.map(|(name, after)| MovedRef { name, before: None, after: Some(after) }));
        moved
    }

    /// Returns what the file of a reference had; nothing, so that it stays unreadable, for the branch that HEAD named.
    pub(crate) fn ref_text(&self, name: &str) -> Option<String> {
        let value = self.refs.get(name).filter(|_| name != "HEAD")?;
        let is_own = self.refs.get("HEAD").and_then(|head| head.strip_prefix("ref: ")) == Some(name);
        Some(if is_own { String::new() } else { format!("{value}\n") })
    }

    /// Whether a file with these times may have changed since then.
    pub fn may_have_changed(&self, found: &Metadata) -> bool {
        !self.clock().is_some_and(|moment| moment.is_unchanged(found))
    }

    /// Returns when it was taken, if that still shows what has changed since.
    pub(crate) fn clock(&self) -> Option<&FsClock> {
        self.moment.as_ref().filter(|moment| moment.is_valid())
    }
}

/// One reference that has changed. Values are an object id, or `ref: ` and a name; `None` if it did not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedRef {
    /// Its full name.
    pub name: String,
    /// Its old value.
    pub before: Option<String>,
    /// Its current value.
    pub after: Option<String>,
}

impl Repository {
    /// Records everything that a session must not change in git's own folder.
    ///
    /// The moment is when a name was last added to or removed from the folder `clock`.
    pub fn snapshot_git_dir(&self, clock: &Path) -> Result<GitDirSnapshot, GitError> {
        self.check_not_moved()?;
        let files = self.list_watched_files()?.into_iter().map(|(name, path)| Ok((name, read_file_state(&path)?)));
        let files = files.collect::<Result<Vec<_>, GitError>>()?.into_iter();
        let files = files.filter_map(|(name, file)| Some((name, file?))).collect();
        // Without them, every reference would seem to have been created by the session, and none removed.
        let refs = self.list_refs()?;
        let places = self.git_dir_inodes()?;
        let users = UserGitConfig::read()?;
        let hidden = self.list_hidden_files(|_, _| true)?.iter().map(|path| path_key(path)).collect();
        let moment = FsClock::read(clock, &[&self.work_dir, &self.git_dir, &self.common_dir]);
        Ok(GitDirSnapshot { places, files, refs, users, hidden, moment })
    }

    /// Fails if the git folder is missing or differs from `before`, unless a person has accepted the new one since.
    pub fn check_git_dir(&self, before: &GitDirSnapshot) -> Result<(), GitError> {
        let now = self.git_dir_inodes()?;
        if now == before.places || self.accepted_git_dir() == Some(now) {
            return Ok(());
        }
        Err(GitError::GitDirReplaced { path: self.git_dir.clone() })
    }

    /// Returns the inode numbers that distinguish the git folder from a replacement.
    pub(crate) fn git_dir_inodes(&self) -> Result<[u64; 2], GitError> {
        let number = |folder: &Path| match folder.symlink_metadata() {
            Ok(found) if found.is_dir() => Ok(found.ino()),
            _ => Err(GitError::GitDirMissing { path: folder.to_owned(), work_dir: self.work_dir.clone() }),
        };
        Ok([number(&self.git_dir)?, number(&self.common_dir)?])
    }

    /// Returns the names of the files that have changed, sorted. Modifies nothing, and reads only what may be unchanged.
    pub fn find_changed_git_files(&self, before: &GitDirSnapshot) -> Result<Vec<String>, GitError> {
        let mut changed = Vec::new();
        for (name, path) in self.list_watched_since(before)? {
            let is_changed = match before.files.get(&name) {
                None => path.symlink_metadata().is_ok(),
                known => read_file_state(&path)?.as_ref() != known,
            };
            changed.extend(is_changed.then_some(name));
        }
        Ok(changed)
    }

    /// Restores a file that has changed.
    pub fn restore_git_file(&self, before: &GitDirSnapshot, name: &str) -> Result<(), GitError> {
        restore_file(&self.watched_path(name), before.files.get(name))
    }

    /// Rewrites the packed references from all references as they were: a loose one keeps the value in its file, and
    /// changes to the others since are lost with the old packed file.
    pub(crate) fn restore_packed_refs(&self, before: &GitDirSnapshot) -> Result<(), GitError> {
        let file = self.common_dir.join("packed-refs");
        let mut text = "# pack-refs with: sorted \n".to_owned();
        for (name, target) in before.refs.iter().filter(|(name, _)| name.starts_with("refs/")) {
            if target.parse::<Id>().is_ok() {
                text.extend([target, " ", name, "\n"]);
            }
        }
        clear_path(&file)?;
        replace_file(&file, text.as_bytes(), 0o644).map_err(GitError::io("putting back", &file))
    }

    /// Restores a reference that replaces an object, and returns whether it is one.
    pub fn restore_replace_ref(&self, MovedRef { name, before, .. }: &MovedRef) -> Result<bool, GitError> {
        if !name.starts_with(REPLACE_REFS) {
            return Ok(false);
        }
        let git = GitCommand::new(self, "update-ref").arg("--no-deref");
        match before {
            Some(id) => git.args([name, id]),
            None => git.args(["-d", name]),
        }
        .run()
        .map(|_| true)
    }

    /// Makes git check files of the work tree again for which checking was turned off since then, checks out those that
    /// were removed as if the checkout were sparse, and returns the paths. Files that a sparse checkout leaves out stay as
    /// they are: a merge adds such entries.
    pub fn unhide_files(&self, before: &GitDirSnapshot) -> Result<Vec<String>, GitError> {
        let index = self.index_path().symlink_metadata();
        if before.clock().is_some_and(|moment| index.is_ok_and(|index| moment.is_unchanged(&index))) {
            return Ok(Vec::new());
        }
        let repo = self.open()?;
        let sparse = SparsePatterns::read(&repo, self)?;
        let mut removed = BTreeSet::new();
        let hidden = self.list_hidden_files(|entry, path| {
            if sparse.leave_out(entry, path) || before.hidden.contains(&path_key(path)) {
                return false;
            }
            if entry.flags.contains(Flags::SKIP_WORKTREE) && self.absolute_path(path).symlink_metadata().is_err() {
                removed.insert(path.to_owned());
            }
            true
        })?;
        if hidden.is_empty() {
            return Ok(Vec::new());
        }
        let name_list =
            |paths: &BTreeSet<BString>| paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        for option in ["--no-assume-unchanged", "--no-skip-worktree"] {
            GitCommand::new(self, "update-index").args([option, "-z", "--stdin"]).input(name_list(&hidden)).run()?;
        }
        if !removed.is_empty() {
            let git = GitCommand::new(self, "checkout-index").args(["-u", "-z", "--stdin"]).input(name_list(&removed));
            let outcome = git.output()?;
            if !outcome.status.success() {
                self.check_git_usable()?;
                tracing::warn!(
                    stderr = outcome.stderr,
                    "git cannot check out every file that a sparse checkout removed"
                );
            }
        }
        Ok(hidden.iter().map(|path| display_path(path)).collect())
    }

    fn list_hidden_files(&self, mut selects: impl FnMut(&Entry, &BStr) -> bool) -> Result<BTreeSet<BString>, GitError> {
        let index = index::read_index(&self.open()?, self, None)?;
        let hidden = index.entries().iter().filter(|entry| entry.flags.intersects(HIDING_FLAGS));
        let hidden = hidden.map(|entry| (entry, entry.path(&index))).filter(|(entry, path)| selects(entry, path));
        Ok(hidden.map(|(_, path)| path.to_owned()).collect())
    }

    /// Gives an unreadable reference its old object id. Returns whether it was unreadable.
    pub fn restore_garbled_ref(&self, moved: &MovedRef) -> Result<bool, GitError> {
        let Some(id) = moved.before.as_ref().and_then(|before| before.parse::<Id>().ok()) else { return Ok(false) };
        let file = self.common_dir.join(&moved.name);
        if moved.after.is_some() || !file.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            return Ok(false);
        }
        clear_path(&file)?;
        self.set_runner_ref(&moved.name, &id).map(|()| true)
    }

    /// Returns each reference that has changed, except HEAD and the runner's own.
    ///
    /// References that move during the comparison, for example because they are being packed, are read again.
    pub fn find_moved_refs(&self, before: &GitDirSnapshot) -> Result<Vec<MovedRef>, GitError> {
        let mut moved = before.compare_refs(self.list_refs()?);
        for _ in 0..MAX_RECHECKS {
            if moved.is_empty() {
                break;
            }
            let previous = std::mem::replace(&mut moved, before.compare_refs(self.list_refs()?));
            if previous == moved {
                break;
            }
        }
        Ok(moved)
    }

    fn list_watched_since(&self, before: &GitDirSnapshot) -> Result<BTreeMap<String, PathBuf>, GitError> {
        let mut watched = self.list_watched_files()?;
        for name in before.files.keys() {
            watched.entry(name.clone()).or_insert_with(|| self.watched_path(name));
        }
        Ok(watched)
    }

    /// Returns name and path of each watched file.
    fn list_watched_files(&self) -> Result<BTreeMap<String, PathBuf>, GitError> {
        let mut names: BTreeSet<String> = COMMON_DIR_FILES.iter().map(|name| format!(".git/{name}")).collect();
        names.extend(list_names(&self.common_dir.join("hooks"))?.into_iter().map(|name| format!(".git/hooks/{name}")));
        // A folder replaced by a link or a file leads all its contents elsewhere.
        let is_other = |name: &str| self.common_dir.join(name).symlink_metadata().is_ok_and(|found| !found.is_dir());
        names.extend(WATCHED_DIRS.iter().filter(|name| is_other(name)).map(|name| format!(".git/{name}")));
        let tree = self.work_tree_prefix();
        names.extend(WORK_TREE_FILES.iter().map(|name| format!(".git/{tree}{name}")));
        if !tree.is_empty() {
            names.insert(".git".to_owned());
        }
        Ok(names.into_iter().map(|name| (self.watched_path(&name), name)).map(|(path, name)| (name, path)).collect())
    }

    /// Returns the path of a watched file.
    pub fn watched_path(&self, name: &str) -> PathBuf {
        match name.strip_prefix(".git/") {
            Some(inside) => self.common_dir.join(inside),
            None => self.work_dir.join(name),
        }
    }

    /// Returns the path of this work tree's own folder in the common one, with a trailing slash; empty for the main
    /// work tree.
    fn work_tree_prefix(&self) -> String {
        let inside = self.git_dir.strip_prefix(&self.common_dir).unwrap_or(Path::new(""));
        if inside.as_os_str().is_empty() { String::new() } else { format!("{}/", inside.display()) }
    }
}

/// Lists the names in a folder; empty if there is no folder.
fn list_names(folder: &Path) -> Result<Vec<String>, GitError> {
    if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).map_err(GitError::io("listing", folder))?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let names = entries.take(MAX_HOOKS).map(|entry| entry.map(name));
    names.collect::<io::Result<_>>().map_err(GitError::io("listing", folder))
}

fn restore_file(path: &Path, original: Option<&FileState>) -> Result<(), GitError> {
    if matches!(original, Some(FileState::Large { .. } | FileState::Other)) {
        return Ok(());
    }
    clear_path(path)?;
    match original {
        Some(FileState::File { mode, hex }) => decode_hex(hex).and_then(|bytes| replace_file(path, &bytes, *mode)),
        Some(FileState::Link { hex }) => decode_hex(hex).and_then(|to| symlink(std::ffi::OsStr::from_bytes(&to), path)),
        Some(FileState::Large { .. } | FileState::Other) | None => Ok(()),
    }
    .map_err(GitError::io("putting back", path))
}

/// Removes whatever is in the place of a file, and files in the place of its folder.
fn clear_path(path: &Path) -> Result<(), GitError> {
    if let Some(folder) = path.parent()
        && folder.symlink_metadata().is_ok_and(|found| !found.is_dir())
    {
        fs::remove_file(folder).map_err(GitError::io("removing", folder))?;
    }
    dir_permissions::remove_all(path).map_err(GitError::io("removing", path))
}

/// Returns a path as text, unique for each path.
fn path_key(path: &[u8]) -> String {
    // No path contains a zero byte.
    path.to_str().map_or_else(|_| format!("\0{}", to_hex(path)), str::to_owned)
}

fn decode_hex(hex: &str) -> io::Result<Vec<u8>> {
    from_hex(hex).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
