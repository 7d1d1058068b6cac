//! What a session must not have changed in git's own folder: seen before it, compared after it, put back.
//!
//! Looks at what can run a program, lead git elsewhere or hide files: configuration, hooks, rules, alternates, grafts,
//! links between folders, replaced objects. Branches and history are not its business, and what is put back counts for
//! people alone: the runner's own operations obey `trusted`.

pub(in crate::git) mod links;
pub(in crate::git) mod pipes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice as _};
use runner_core::digest::{from_hex, to_hex};
use serde::{Deserialize, Serialize};

use crate::folders;
use crate::git::durable::replace_file;
use crate::git::file_state::{FileState, MAX_BYTES, look};
use crate::git::index;
use crate::git::index::marks::HIDDEN;
use crate::git::moment::Moment;
use crate::git::path::display;
use crate::git::repository::program::Git;
use crate::git::repository::users::UsersRules;
use crate::git::{GitError, Id, Repository};

/// Files of the common folder that are looked at.
const SHARED: [&str; 9] = [
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
/// Files of a work tree's own folder that are looked at.
const OWN: [&str; 4] = ["config.worktree", "info/sparse-checkout", "commondir", "gitdir"];
/// Folders that hold what is looked at.
const FOLDERS: [&str; 3] = ["hooks", "info", "objects/info"];
/// Where objects are named that stand for others.
const REPLACED: &str = "refs/replace/";
/// Times that references are looked at again which are not as they were, as long as they go on being moved.
const LOOKS: usize = 3;
/// Hooks above this number are not looked at.
const MAX_ENTRIES: usize = 4096;

/// What git's own folder was like at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Number of the git folder in its file system, and of the common one.
    places: [u64; 2],
    /// By path relative to the work tree's root, `.git` standing for the common folder.
    files: BTreeMap<String, FileState>,
    /// References by name.
    refs: BTreeMap<String, String>,
    /// The user's own configuration.
    users: UsersRules,
    /// Tracked files that git was told not to look at.
    hidden: BTreeSet<String>,
    /// When it was.
    moment: Option<Moment>,
}

/// One file that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tampered {
    /// What it is called in receipts: `.git/config` and the like.
    pub name: String,
    /// What a person would read of what was found there, up to a limit; none where there is nothing.
    pub found: Option<Vec<u8>>,
}

impl Fingerprint {
    /// Returns the user's own configuration as it was.
    pub fn users(&self) -> &UsersRules {
        &self.users
    }

    /// Returns each reference that is another one `now`, but for HEAD and the runner's own.
    fn moved(&self, mut now: BTreeMap<String, String>) -> Vec<MovedRef> {
        let is_runners = |name: &str| name == "HEAD" || name.starts_with("refs/runner/");
        let mut moved = Vec::new();
        for (name, before) in self.refs.iter().filter(|(name, _)| !is_runners(name)) {
            let after = now.remove(name);
            if after.as_ref() != Some(before) {
                moved.push(MovedRef { name: name.clone(), before: Some(before.clone()), after });
            }
        }
        let begun = now.into_iter().filter(|(name, _)| !is_runners(name));
        moved.extend(begun.map(|(name, after)| MovedRef { name, before: None, after: Some(after) }));
        moved
    }

    /// Returns when it was, if that still tells what has changed since.
    pub(in crate::git) fn moment(&self) -> Option<&Moment> {
        self.moment.as_ref().filter(|moment| moment.counts())
    }
}

/// One reference that is not as it was: an object id or `ref: ` and a name each time; none where there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedRef {
    /// Its full name.
    pub name: String,
    /// What it was.
    pub before: Option<String>,
    /// What it is.
    pub after: Option<String>,
}

impl Repository {
    /// Looks at everything that a session must not change in git's own folder.
    ///
    /// The moment is the one at which a name came or went last in the folder `clock`.
    pub fn fingerprint(&self, clock: &Path) -> Result<Fingerprint, GitError> {
        self.refuse_moved()?;
        let files = self.watched()?.into_iter().map(|(name, path)| Ok((name, look(&path)?)));
        let files = files.collect::<Result<Vec<_>, GitError>>()?.into_iter();
        let files = files.filter_map(|(name, seen)| Some((name, seen?))).collect();
        // Without them, every reference would look as if the session had made it, and none as if it had taken one away.
        let refs = self.refs()?;
        let (places, users) = (self.places_of()?, UsersRules::now()?);
        let hidden = self.hidden()?.iter().map(|path| name_of(path)).collect();
        let moment = Moment::of(clock, &[&self.work_dir, &self.git_dir, &self.common_dir]);
        Ok(Fingerprint { places, files, refs, users, hidden, moment })
    }

    /// Fails if the git folder is gone or is another one than `before`, unless a person has accepted that one since.
    pub fn refuse_replaced(&self, before: &Fingerprint) -> Result<(), GitError> {
        let now = self.places_of()?;
        if now == before.places || self.accepted() == Some(now) {
            return Ok(());
        }
        Err(GitError::Swapped { path: self.git_dir.clone() })
    }

    /// Returns what tells the git folder from another one in its place.
    pub(in crate::git) fn places_of(&self) -> Result<[u64; 2], GitError> {
        let number = |folder: &Path| match folder.symlink_metadata() {
            Ok(found) if found.is_dir() => Ok(found.ino()),
            _ => Err(GitError::Gone { path: folder.to_owned(), work_dir: self.work_dir.clone() }),
        };
        Ok([number(&self.git_dir)?, number(&self.common_dir)?])
    }

    /// Returns the files that are not as they were, sorted by name. Changes nothing.
    pub fn tampered(&self, before: &Fingerprint) -> Result<Vec<Tampered>, GitError> {
        let mut tampered = Vec::new();
        for (name, path) in self.watched_since(before)? {
            if look(&path)?.as_ref() != before.files.get(&name) {
                tampered.push(Tampered { found: found_at(&path), name });
            }
        }
        Ok(tampered)
    }

    /// Puts a file back that is not as it was.
    pub fn put_back(&self, before: &Fingerprint, name: &str) -> Result<(), GitError> {
        restore(&self.path_of(name), before.files.get(name))
    }

    /// Makes the file of packed references anew, of all references as they were: one that has a file of its own is
    /// what that file says, and what became of the others since is lost with the old file.
    pub(in crate::git) fn put_back_packed(&self, before: &Fingerprint) -> Result<(), GitError> {
        let file = self.common_dir.join("packed-refs");
        let mut text = "# pack-refs with: sorted \n".to_owned();
        for (name, target) in before.refs.iter().filter(|(name, _)| name.starts_with("refs/")) {
            if target.parse::<Id>().is_ok() {
                text.extend([target, " ", name, "\n"]);
            }
        }
        clear(&file)?;
        replace_file(&file, text.as_bytes(), 0o644).map_err(GitError::io("putting back", &file))
    }

    /// Puts a reference back that says which object stands for another, and tells whether it is one.
    pub fn put_back_replaced(&self, MovedRef { name, before, .. }: &MovedRef) -> Result<bool, GitError> {
        if !name.starts_with(REPLACED) {
            return Ok(false);
        }
        let git = Git::new(self, "update-ref").arg("--no-deref");
        match before {
            Some(id) => git.args([name, id]),
            None => git.args(["-d", name]),
        }
        .run()
        .map(|_| true)
    }

    /// Makes git look again at files of the work tree that it was told not to look at since, and returns their paths.
    pub fn unhide(&self, before: &Fingerprint) -> Result<Vec<String>, GitError> {
        let index = self.index_path().symlink_metadata();
        if before.moment().is_some_and(|moment| index.is_ok_and(|index| moment.is_after(&index))) {
            return Ok(Vec::new());
        }
        let mut hidden = self.hidden()?;
        hidden.retain(|path| !before.hidden.contains(&name_of(path)));
        if hidden.is_empty() {
            return Ok(Vec::new());
        }
        for option in ["--no-assume-unchanged", "--no-skip-worktree"] {
            let names = hidden.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
            Git::new(self, "update-index").args([option, "-z", "--stdin"]).input(names).run()?;
        }
        Ok(hidden.iter().map(|path| display(path)).collect())
    }

    fn hidden(&self) -> Result<BTreeSet<BString>, GitError> {
        let index = index::read(&self.open()?, self, None)?;
        let hidden = index.entries().iter().filter(|entry| entry.flags.intersects(HIDDEN));
        Ok(hidden.map(|entry| entry.path(&index).to_owned()).collect())
    }

    /// Gives a reference that nothing can be read from any more the object that it named. Tells whether it was one.
    pub fn put_back_garbled(&self, moved: &MovedRef) -> Result<bool, GitError> {
        let Some(id) = moved.before.as_ref().and_then(|before| before.parse::<Id>().ok()) else { return Ok(false) };
        let file = self.common_dir.join(&moved.name);
        if moved.after.is_some() || !file.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            return Ok(false);
        }
        clear(&file)?;
        self.keep(&moved.name, &id).map(|()| true)
    }

    /// Returns each reference that is not as it was, but for HEAD and the runner's own.
    ///
    /// What is moved while it is looked, as when somebody packs references, is looked at again.
    pub fn moved_refs(&self, before: &Fingerprint) -> Result<Vec<MovedRef>, GitError> {
        let mut moved = before.moved(self.refs()?);
        for _ in 0..LOOKS {
            if moved.is_empty() {
                break;
            }
            let seen = std::mem::replace(&mut moved, before.moved(self.refs()?));
            if seen == moved {
                break;
            }
        }
        Ok(moved)
    }

    fn watched_since(&self, before: &Fingerprint) -> Result<BTreeMap<String, PathBuf>, GitError> {
        let mut watched = self.watched()?;
        for name in before.files.keys() {
            watched.entry(name.clone()).or_insert_with(|| self.path_of(name));
        }
        Ok(watched)
    }

    /// Returns what is looked at: name and path of each.
    fn watched(&self) -> Result<BTreeMap<String, PathBuf>, GitError> {
        let mut names: BTreeSet<String> = SHARED.iter().map(|name| format!(".git/{name}")).collect();
        names.extend(listed(&self.common_dir.join("hooks"))?.into_iter().map(|name| format!(".git/hooks/{name}")));
        // A folder that became a link or a file leads all that was in it elsewhere.
        let is_other = |name: &str| self.common_dir.join(name).symlink_metadata().is_ok_and(|found| !found.is_dir());
        names.extend(FOLDERS.iter().filter(|name| is_other(name)).map(|name| format!(".git/{name}")));
        let tree = self.tree_name();
        names.extend(OWN.iter().map(|name| format!(".git/{tree}{name}")));
        if !tree.is_empty() {
            names.insert(".git".to_owned());
        }
        Ok(names.into_iter().map(|name| (self.path_of(&name), name)).map(|(path, name)| (name, path)).collect())
    }

    fn path_of(&self, name: &str) -> PathBuf {
        match name.strip_prefix(".git/") {
            Some(inside) => self.common_dir.join(inside),
            None => self.work_dir.join(name),
        }
    }

    /// Returns the path of this work tree's own folder in the common one, with a slash; empty for the first work tree.
    fn tree_name(&self) -> String {
        let inside = self.git_dir.strip_prefix(&self.common_dir).unwrap_or(Path::new(""));
        if inside.as_os_str().is_empty() { String::new() } else { format!("{}/", inside.display()) }
    }
}

/// Lists the names in a folder; none where there is no folder.
fn listed(folder: &Path) -> Result<Vec<String>, GitError> {
    if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).map_err(GitError::io("listing", folder))?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let names = entries.take(MAX_ENTRIES).map(|entry| entry.map(name));
    names.collect::<io::Result<_>>().map_err(GitError::io("listing", folder))
}

fn restore(path: &Path, seen: Option<&FileState>) -> Result<(), GitError> {
    if matches!(seen, Some(FileState::Large { .. } | FileState::Other)) {
        return Ok(());
    }
    clear(path)?;
    match seen {
        Some(FileState::File { mode, hex }) => bytes_of(hex).and_then(|bytes| replace_file(path, &bytes, *mode)),
        Some(FileState::Link { hex }) => bytes_of(hex).and_then(|to| symlink(std::ffi::OsStr::from_bytes(&to), path)),
        Some(FileState::Large { .. } | FileState::Other) | None => Ok(()),
    }
    .map_err(GitError::io("putting back", path))
}

fn found_at(path: &Path) -> Option<Vec<u8>> {
    let found = path.symlink_metadata().ok()?;
    if found.is_symlink() {
        let target = fs::read_link(path).ok()?;
        return Some([b"symbolic link to ", target.as_os_str().as_bytes(), b"\n"].concat());
    }
    if !found.is_file() {
        return Some(b"no file\n".to_vec());
    }
    if found.len() > MAX_BYTES { Some(b"a large file\n".to_vec()) } else { fs::read(path).ok() }
}

/// Removes what stands in the place of a file, and files in the place of its folder.
fn clear(path: &Path) -> Result<(), GitError> {
    if let Some(folder) = path.parent()
        && folder.symlink_metadata().is_ok_and(|found| !found.is_dir())
    {
        fs::remove_file(folder).map_err(GitError::io("removing", folder))?;
    }
    folders::remove(path).map_err(GitError::io("removing", path))
}

/// Returns a path as text, another one for each.
fn name_of(path: &[u8]) -> String {
    // No path has a zero byte.
    path.to_str().map_or_else(|_| format!("\0{}", to_hex(path)), str::to_owned)
}

fn bytes_of(hex: &str) -> io::Result<Vec<u8>> {
    from_hex(hex).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
