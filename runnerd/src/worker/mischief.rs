//! What a process may not have changed, looked at after every one, and put back (SPEC 3, 5, 5.3).
//!
//! History first: HEAD, the branch, From among its ancestors. Then what is the runner's under
//! `.runner/`. Before anything is put back, what was found is kept in `live/`, so that a crash in
//! between does not forget it; work that would be lost is kept under a rescue ref.

use std::collections::BTreeMap;
use std::path::Path;

use protocol::words::PhaseName;
use serde::{Deserialize, Serialize};

use super::load::Loaded;
use super::site::{Obstacle, Site};
use crate::git::{Entry, EntryKind, Head, HoldBack, Id, Repository, Restore, SnapshotRequest};
use crate::repo::durable::{self, Access};
use crate::repo::layout::{Layout, Ownership, class};

/// What was found and put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    /// How history was rewritten.
    pub history: Option<String>,
    /// Paths of the runner that were changed.
    pub reverted: Vec<String>,
}

/// After which process of which iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct After<'a> {
    /// The commit at which the session began.
    pub from: Id,
    /// Number of the iteration.
    pub iter: u32,
    /// The phase of the process.
    pub phase: PhaseName,
    /// The task tree that is to stand there; none: whatever the process has left.
    pub tree: Option<&'a [u8]>,
}

/// Looks for what a process may not have changed, and puts it back. Done again it finds the same.
pub(super) fn undo(site: &Site, repository: &Repository, loaded: &Loaded, after: After<'_>) -> Result<Found, Obstacle> {
    repository.clear_stale_locks()?;
    let note = site.store.live().join(format!("{}-{:04}-{}.json", site.run, after.iter, after.phase));
    let mut found = match durable::read(&note)? {
        Some(text) => serde_json::from_slice(&text).unwrap_or_default(),
        None => Found::default(),
    };
    found.history = found.history.or(rewritten(site, repository, after.from)?);
    let wrong = wrong_files(site, repository, after, found.history.is_some())?;
    found.reverted.extend(wrong.keys().cloned());
    found.reverted.sort();
    found.reverted.dedup();
    if found == Found::default() {
        return Ok(found);
    }
    let text = serde_json::to_vec(&found).expect("BUG: a note does not serialize");
    durable::replace(&note, &text, Access::Private)?;
    if found.history.is_some() {
        rescue(site, repository, loaded, after)?;
    }
    for (path, right) in wrong_files(site, repository, after, false)? {
        put_back(site, repository, after, &path, right)?;
    }
    Ok(found)
}

/// Returns the rule by which untracked files stay out of commits.
pub(super) fn hold_back(loaded: &Loaded) -> HoldBack {
    let git = &loaded.config.git;
    HoldBack { names: git.hold_back.as_slice().to_vec(), max_file_bytes: git.max_file_bytes }
}

/// Says how history was rewritten, if it was.
fn rewritten(site: &Site, repository: &Repository, from: Id) -> Result<Option<String>, Obstacle> {
    let branch = site.branch();
    if let Some(operation) = repository.operation() {
        return Ok(Some(format!("a {operation} was left under way")));
    }
    let tip = match repository.head()? {
        Head::Branch { name, commit } if name == branch => commit,
        Head::Branch { name, .. } => return Ok(Some(format!("HEAD was moved to branch {name}"))),
        Head::Detached { .. } => return Ok(Some("HEAD was detached".to_owned())),
    };
    match tip {
        None => Ok(Some(format!("branch {branch} was removed"))),
        Some(tip) if repository.is_ancestor(&from, &tip)? => Ok(None),
        Some(_) => Ok(Some(format!("branch {branch} does not contain {} any more", from.short(12)))),
    }
}

/// Keeps everything under a rescue ref, then sets HEAD, branch and work tree to From.
fn rescue(site: &Site, repository: &Repository, loaded: &Loaded, after: After<'_>) -> Result<(), Obstacle> {
    if rewritten(site, repository, after.from)?.is_none() {
        return Ok(());
    }
    let name = format!("refs/runner/rescue/{}/{:04}", site.run, after.iter);
    let message = format!("rescue: run {} iteration {:04}, {}", site.run, after.iter, after.phase);
    let hold_back = hold_back(loaded);
    let kept = repository.snapshot(&SnapshotRequest {
        name: &name,
        message: &message,
        author: site.identity(repository),
        hold_back: &hold_back,
        restoring: Some(after.from),
    })?;
    let rescue = kept.commit;
    repository.restore(&Restore { branch: &site.branch(), to: after.from, rescue, hold_back: &hold_back })?;
    tracing::warn!(run = site.run, iter = after.iter, %rescue, "history was rewritten; kept and put back");
    Ok(())
}

/// What should stand where something else stands: a file of From, a text, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Right {
    From(Entry),
    Text(Vec<u8>),
    Nothing,
}

/// Compares `.runner/` with From; paths are relative to the work tree.
fn wrong_files(
    site: &Site,
    repository: &Repository,
    after: After<'_>,
    is_elsewhere: bool,
) -> Result<BTreeMap<String, Right>, Obstacle> {
    let mut wrong = BTreeMap::new();
    if is_elsewhere {
        return Ok(wrong);
    }
    let entries = repository.entries(&after.from, Layout::FOLDER)?;
    let mut known: BTreeMap<String, Entry> =
        entries.into_iter().map(|entry| (String::from_utf8_lossy(&entry.path).into_owned(), entry)).collect();
    for path in present(site)? {
        let entry = known.remove(&path);
        if let Some(right) = verdict(site, repository, after, &path, entry)? {
            wrong.insert(path, right);
        }
    }
    // What is left of From is gone from the work tree.
    for (path, entry) in known {
        let within = path.strip_prefix(".runner/").unwrap_or(&path);
        if path == Layout::TREE || matches!(class(within), Ownership::Runner | Ownership::AppendOnly) {
            wrong.extend(tree_or(after, &path, Some(Right::From(entry))).map(|right| (path, right)));
        }
    }
    Ok(wrong)
}

/// The task tree is judged by `examine`; what is to stand there comes with `after`.
fn tree_or(after: After<'_>, path: &str, right: Option<Right>) -> Option<Right> {
    if path == Layout::TREE { after.tree.map(|text| Right::Text(text.to_vec())) } else { right }
}

fn verdict(
    site: &Site,
    repository: &Repository,
    after: After<'_>,
    path: &str,
    entry: Option<Entry>,
) -> Result<Option<Right>, Obstacle> {
    let file = site.layout.path(path);
    if path == Layout::TREE {
        let now = regular(&file)?;
        return Ok(tree_or(after, path, None).filter(|right| Some(right) != now.map(Right::Text).as_ref()));
    }
    let within = path.strip_prefix(".runner/").unwrap_or(path);
    let ownership = class(within);
    if matches!(ownership, Ownership::Agent | Ownership::Ignored) {
        return Ok(None);
    }
    let right = entry.map_or(Right::Nothing, Right::From);
    let Some(now) = regular(&file)? else { return Ok(Some(right)) };
    let Right::From(entry) = &right else {
        return Ok((ownership == Ownership::Runner || !is_memory(path)).then_some(right));
    };
    let same = match ownership {
        Ownership::AppendOnly => now.starts_with(&repository.blob(&entry.id)?),
        Ownership::Runner => repository.hash_blob(&now)? == entry.id && entry.kind != EntryKind::Symlink,
        Ownership::Agent | Ownership::Ignored => true,
    };
    Ok((!same).then_some(right))
}

/// A memory file that From lacks may be begun by an agent.
fn is_memory(path: &str) -> bool {
    Layout::MEMORY.contains(&path)
}

/// Reads a file; none if it is no regular file.
fn regular(file: &Path) -> Result<Option<Vec<u8>>, Obstacle> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_file() => std::fs::read(file).map(Some).map_err(Obstacle::system("reading", file)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Obstacle::system("looking at", file)(error)),
    }
}

/// Lists every file and link under `.runner/`, but for what git ignores there.
fn present(site: &Site) -> Result<Vec<String>, Obstacle> {
    let mut paths = Vec::new();
    let mut folders = vec![Layout::FOLDER.to_owned()];
    while let Some(folder) = folders.pop() {
        let absolute = site.layout.path(&folder);
        let entries = match std::fs::read_dir(&absolute) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                paths.push(folder);
                continue;
            }
            Err(error) => return Err(Obstacle::system("listing", &absolute)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(Obstacle::system("listing", &absolute))?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(Obstacle::system("looking at", &absolute))?;
            if kind.is_dir() && !matches!(path.as_str(), Layout::CONTEXT | Layout::ITERATIONS) {
                folders.push(path);
            } else if !kind.is_dir() {
                paths.push(path);
            }
        }
    }
    Ok(paths)
}

fn put_back(site: &Site, repository: &Repository, after: After<'_>, path: &str, right: Right) -> Result<(), Obstacle> {
    let file = site.layout.path(path);
    keep_aside(site, after, path, &file)?;
    remove(&file)?;
    let bytes = match right {
        Right::Nothing => return Ok(()),
        Right::Text(text) => text,
        Right::From(entry) => repository.blob(&entry.id)?,
    };
    let folder = Path::new(path).parent().unwrap_or(Path::new("")).to_string_lossy().into_owned();
    clear_way(site, &folder)?;
    durable::create_dir_below(site.layout.root(), &folder, Access::Repository)?;
    durable::replace(&file, &bytes, Access::Repository)?;
    Ok(())
}

/// Keeps what stands there in the record of the iteration: nothing is lost.
fn keep_aside(site: &Site, after: After<'_>, path: &str, file: &Path) -> Result<(), Obstacle> {
    let Some(bytes) = regular(file)? else { return Ok(()) };
    let name = path.strip_prefix(".runner/").unwrap_or(path).replace('/', "__");
    let folder = site.layout.iteration(&site.run, after.iter).join("reverted");
    durable::create_dir(&folder, Access::Private)?;
    durable::replace(&folder.join(name), &bytes, Access::Private)?;
    Ok(())
}

fn remove(file: &Path) -> Result<(), Obstacle> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(file),
        Ok(_) => std::fs::remove_file(file),
        Err(_) => Ok(()),
    }
    .map_err(Obstacle::system("removing", file))
}

/// Removes what stands where a folder should be.
fn clear_way(site: &Site, folder: &str) -> Result<(), Obstacle> {
    let mut path = site.layout.root().to_owned();
    for name in folder.split('/').filter(|name| !name.is_empty()) {
        path.push(name);
        if std::fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir()) {
            remove(&path)?;
        }
    }
    Ok(())
}
