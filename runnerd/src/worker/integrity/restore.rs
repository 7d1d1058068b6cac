//! What a process may not have changed, looked at after every one, and put back.
//!
//! Git's own folder first, then history: HEAD, the branch, From among its ancestors. Then what is the
//! runner's under `.runner/`. Before anything is put back, what was found is kept in `live/`, so that a crash in
//! between does not forget it; work that would be lost is kept under a rescue ref.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use protocol::words::PhaseName;
use serde::{Deserialize, Serialize};

use crate::git::{CommitEntry, EntryKind, Fingerprint, Head, HoldBack, Id, Repository, Restore, SnapshotRequest};
use crate::repo::durable::{self, Access, MAX_BYTES};
use crate::repo::kept::{Kept, Note};
use crate::repo::layout::{Layout, Ownership, class};
use crate::worker::clear::{clear_leftovers, clear_way, remove};
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::access;
use crate::worker::integrity::quarantine::Quarantine;
use crate::worker::integrity::tampering;
use crate::worker::load::Loaded;

/// How things stood before a process of which nothing is to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scenery {
    /// The commit that the run's branch was at.
    pub tip: Id,
    /// A snapshot of all files.
    pub files: Id,
}

/// What was found and put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// How history was rewritten.
    pub history: Option<String>,
    /// Where HEAD was, while the run's branch still contained From.
    pub elsewhere: Option<String>,
    /// Paths of the runner that were changed.
    pub reverted: Vec<String>,
    /// References of others that were moved and left where they are.
    pub moved_refs: Vec<String>,
    /// What was written by a process of which nothing is to stay.
    pub wrote: Vec<String>,
}

impl Note for Scenery {
    const KIND: &'static str = "scenery";
    const VERSION: u32 = 1;
}

/// The commit that keeps what a process has left, while that is being put back.
#[derive(Debug, Serialize, Deserialize)]
struct Rescue(Id);

impl Note for Rescue {
    const KIND: &'static str = "rescue";
    const VERSION: u32 = 1;
}

impl Note for Found {
    const KIND: &'static str = "found";
    const VERSION: u32 = 1;
}

impl Found {
    fn add(&mut self, paths: impl IntoIterator<Item = String>) {
        self.reverted.extend(paths);
        self.reverted.sort();
        self.reverted.dedup();
    }
}

/// After which process of which iteration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct After<'a> {
    /// The commit at which the session began.
    pub from: Id,
    /// Number of the iteration.
    pub iter: u32,
    /// The phase of the process.
    pub phase: PhaseName,
    /// The task tree that is to stand there; none: whatever the process has left.
    pub tree: Option<&'a [u8]>,
    /// What is to be as it was, if nothing that the process has written is to stay.
    pub scenery: Option<Scenery>,
}

/// Looks for what a process may not have changed, and puts it back. Done again it finds the same.
pub(crate) fn undo(
    context: &RunContext,
    repository: &Repository,
    loaded: &Loaded,
    after: After<'_>,
) -> Result<Found, Obstacle> {
    Undo { context, repository, loaded, after, before: tampering::seen_before(context, after.iter)? }.run()
}

/// Returns the rule by which untracked files stay out of commits.
pub(crate) fn hold_back(loaded: &Loaded) -> HoldBack {
    let git = &loaded.config.git;
    HoldBack { names: git.hold_back.as_slice().to_vec(), max_file_bytes: git.max_file_bytes }
}

/// Notes what is about to be put back before everything else, of what a process of an iteration has done.
pub(crate) fn note_put_back(
    context: &RunContext,
    (iter, phase): (u32, PhaseName),
    names: impl IntoIterator<Item = String>,
) -> Result<(), Obstacle> {
    let note = context.note::<Found>(iter, phase);
    let mut found = note.read()?.unwrap_or_default();
    found.add(names);
    Ok(note.write(&found)?)
}

/// What should stand where something else stands: a file of From, a text, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Right {
    From(CommitEntry),
    Text(Vec<u8>),
    Nothing,
}

/// How HEAD or the run's branch is not as it must be.
#[derive(Debug)]
enum Astray {
    /// The branch does not contain From any more, or something of git's is under way or garbled.
    Rewritten(String),
    /// HEAD is elsewhere, and From is still in the branch. A person may have done that: the reflogs, which a session can
    /// write, prove nothing.
    Elsewhere(String),
}

/// What stands at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing, or no regular file.
    NoFile,
    /// A file of more than [`MAX_BYTES`]: it is not read, and wrong whatever it says.
    TooLarge,
    File(Vec<u8>),
}

/// Looking after one process.
struct Undo<'a> {
    context: &'a RunContext,
    repository: &'a Repository,
    loaded: &'a Loaded,
    after: After<'a>,
    /// What git's own folder was like.
    before: Option<Fingerprint>,
}

impl Undo<'_> {
    fn run(&self) -> Result<Found, Obstacle> {
        let found = self.find_and_put_back();
        if found.as_ref().map_or(true, |found| *found != Found::default()) {
            self.context.last_scan.forget();
        }
        found
    }

    fn find_and_put_back(&self) -> Result<Found, Obstacle> {
        access::regain(self.context, (self.after.iter, self.after.phase))?;
        // None where nothing was found yet: what was is written down before anything is put back.
        let mut found = self.note().read()?.unwrap_or_default();
        // Before git is asked anything: what it is asked through must be the repository that it was.
        self.git_folder(&mut found)?;
        clear_leftovers(self.repository)?;
        let is_elsewhere = if let Some(scenery) = self.after.scenery {
            self.strayed(scenery, &mut found)?
        } else {
            if found.history.is_none() && found.elsewhere.is_none() {
                match self.astray(self.after.from)? {
                    Some(Astray::Rewritten(how)) => found.history = Some(how),
                    Some(Astray::Elsewhere(place)) => found.elsewhere = Some(place),
                    None => {}
                }
            }
            found.history.is_some() || found.elsewhere.is_some()
        };
        // Elsewhere than on From's line, files say nothing about what was done to them.
        if !is_elsewhere {
            self.reset_modes()?;
            found.add(self.wrong_files()?.into_keys().map(|path| path.display().to_string()));
        }
        self.write(&found)?;
        if found.history.is_some() || found.elsewhere.is_some() || !found.wrote.is_empty() {
            self.rescue()?;
        }
        if let Some(before) = &self.before {
            let at = (self.after.from, self.after.iter);
            let inside = tampering::look_inside(self.context, self.repository, before, at)?;
            found.add(inside.put_back);
            found.moved_refs = inside.moved;
            self.write(&found)?;
        }
        // What is rescued and put back may be files, too.
        let wrong = if found == Found::default() { BTreeMap::new() } else { self.wrong_files()? };
        for (path, right) in wrong {
            self.put_back(&path, right)?;
        }
        Ok(found)
    }

    /// Puts back what the process must not have changed in git's own folder.
    fn git_folder(&self, found: &mut Found) -> Result<(), Obstacle> {
        let Some(before) = &self.before else { return Ok(()) };
        // Whoever reads it would wait for ever, so it goes before anything is read.
        found.add(self.repository.remove_pipes(before)?);
        tampering::suspect(self.context, before)?;
        self.repository.refuse_replaced(before)?;
        // And whoever writes there would write to a file of somebody else's.
        found.add(self.repository.replace_foreign(before)?);
        let tampered = self.repository.tampered(before)?;
        let is_as_it_was = tampered.is_empty();
        found.add(tampered.into_iter().map(|tampered| tampered.name));
        self.write(found)?;
        if is_as_it_was { Ok(()) } else { tampering::put_back(self.repository, before, &self.quarantine()) }
    }

    /// Keeps what was found, before anything is put back.
    fn write(&self, found: &Found) -> Result<(), Obstacle> {
        if *found == Found::default() {
            return Ok(());
        }
        Ok(self.note().write(found)?)
    }

    fn quarantine(&self) -> Quarantine<'_> {
        Quarantine::of(self.context, self.after.iter)
    }

    fn note(&self) -> Kept<Found> {
        self.context.note(self.after.iter, self.after.phase)
    }

    /// Adds what is not as it was before the process; tells whether HEAD is elsewhere.
    fn strayed(&self, scenery: Scenery, found: &mut Found) -> Result<bool, Obstacle> {
        let moved = match self.astray(scenery.tip)? {
            Some(Astray::Rewritten(moved) | Astray::Elsewhere(moved)) => Some(moved),
            None if self.repository.branch(&self.context.branch())? == Some(scenery.tip) => None,
            None => Some("commits were made".to_owned()),
        };
        let is_elsewhere = moved.is_some();
        let written = match moved {
            Some(moved) => vec![moved],
            None => self.repository.changed_since(&scenery.files, &hold_back(self.loaded))?,
        };
        found.wrote.extend(written);
        found.wrote.sort();
        found.wrote.dedup();
        Ok(is_elsewhere)
    }

    /// Says what is not as it must be, if anything: HEAD is to be on the branch, and `from` in it.
    fn astray(&self, from: Id) -> Result<Option<Astray>, Obstacle> {
        let branch = self.context.branch();
        self.repository.refuse_pruned(&from)?;
        if let Some(unreadable) = self.repository.unreadable_refs(&branch)? {
            return Ok(Some(Astray::Rewritten(unreadable)));
        }
        if let Some(operation) = self.repository.operation() {
            return Ok(Some(Astray::Rewritten(format!("a {operation} was left under way"))));
        }
        let elsewhere = match self.repository.head()? {
            Head::Branch { name, commit } if name == branch => {
                return Ok(self.rewritten(from, commit)?.map(Astray::Rewritten));
            }
            Head::Branch { name, .. } => format!("HEAD was moved to branch {name}"),
            Head::Detached { .. } => "HEAD was detached".to_owned(),
        };
        let is_left_alone = self.rewritten(from, self.repository.branch(&branch)?)?.is_none();
        Ok(Some(if is_left_alone { Astray::Elsewhere(elsewhere) } else { Astray::Rewritten(elsewhere) }))
    }

    /// Says how the run's branch was rewritten, if it was: `from` is to be in it.
    fn rewritten(&self, from: Id, tip: Option<Id>) -> Result<Option<String>, Obstacle> {
        let branch = self.context.branch();
        match tip {
            None => Ok(Some(format!("branch {branch} was removed"))),
            Some(tip) if !self.repository.is_ancestor(&from, &tip)? => {
                Ok(Some(format!("branch {branch} does not contain the commit at which the session began")))
            }
            // An audit follows first parents: behind another one the whole run would be out of sight.
            Some(tip) if !self.repository.is_first_ancestor(&from, &tip)? => Ok(Some(format!(
                "on branch {branch} the commit at which the session began is no first parent any more"
            ))),
            Some(_) => Ok(None),
        }
    }

    /// Keeps everything under a rescue ref, then sets HEAD, branch and work tree to From, or to what was before.
    fn rescue(&self) -> Result<(), Obstacle> {
        let (context, After { from, iter, phase, scenery, .. }) = (self.context, self.after);
        let Scenery { tip, files: to } = scenery.unwrap_or(Scenery { tip: from, files: from });
        let (branch, hold_back) = (context.branch(), hold_back(self.loaded));
        let begun = context.note::<Rescue>(iter, format_args!("{phase}-rescue"));
        let rescue = match begun.read()? {
            // That try moved the references first: that they are in order says nothing of the files.
            Some(Rescue(kept)) => kept,
            None if self.is_in_order()? => return Ok(()),
            None => {
                self.repository.mend(&branch, &tip, self.before.as_ref())?;
                let kept = self.repository.snapshot(&SnapshotRequest {
                    name: &self.rescue_ref()?,
                    message: &format!("rescue: run {} iteration {iter:04}, {phase}", context.run),
                    author: RunContext::identity(self.repository),
                    hold_back: &hold_back,
                    restoring: Some(to),
                })?;
                begun.write(&Rescue(kept.commit))?;
                kept.commit
            }
        };
        self.repository.restore(&Restore { branch: &branch, to, tip, rescue, hold_back: &hold_back })?;
        begun.remove()?;
        tracing::warn!(run = context.run, iter, %phase, %rescue, "kept and put back");
        Ok(())
    }

    /// Whether everything is where it would be put back to.
    fn is_in_order(&self) -> Result<bool, Obstacle> {
        let Some(scenery) = self.after.scenery else { return Ok(self.astray(self.after.from)?.is_none()) };
        let mut now = Found::default();
        self.strayed(scenery, &mut now)?;
        Ok(now.wrote.is_empty())
    }

    /// Names the ref that keeps what was found; a reviewer may have more than one.
    fn rescue_ref(&self) -> Result<String, Obstacle> {
        let name = format!("refs/runner/rescue/{}/{:04}", self.context.run, self.after.iter);
        if self.after.scenery.is_none() {
            return Ok(name);
        }
        let taken = self.repository.refs()?;
        let free = (1..=u32::MAX).map(|number| format!("{name}-{}{number}", self.after.phase));
        Ok(free.into_iter().find(|name| !taken.contains_key(name)).unwrap_or(name))
    }

    /// Compares `.runner/` with From; paths are relative to the work tree.
    fn wrong_files(&self) -> Result<BTreeMap<PathBuf, Right>, Obstacle> {
        let mut wrong = BTreeMap::new();
        let entries = self.repository.entries(&self.after.from, Layout::FOLDER)?;
        let path_of = |entry: &CommitEntry| PathBuf::from(OsStr::from_bytes(&entry.path));
        let mut known: BTreeMap<PathBuf, CommitEntry> =
            entries.into_iter().map(|entry| (path_of(&entry), entry)).collect();
        for path in present(self.context)? {
            let entry = known.remove(&path);
            wrong.extend(self.verdict(&path, entry)?.map(|right| (path, right)));
        }
        for (path, entry) in known {
            wrong.extend(self.gone(&path.to_string_lossy(), entry).map(|right| (path, right)));
        }
        Ok(wrong)
    }

    /// Gives the runner's files the executable bit that they have in From: a `chmod -R` over the work tree is no change
    /// of theirs, and what is committed for them is checked with its mode.
    fn reset_modes(&self) -> Result<(), Obstacle> {
        if !self.repository.has_executable_bit()? {
            return Ok(());
        }
        let entries = self.repository.entries(&self.after.from, Layout::FOLDER)?;
        let kinds: BTreeMap<Vec<u8>, EntryKind> = entries.into_iter().map(|entry| (entry.path, entry.kind)).collect();
        for path in present(self.context)? {
            let name = &*path.to_string_lossy();
            let is_checked = matches!(class(within(name)), Ownership::Runner | Ownership::AppendOnly);
            let kind = match kinds.get(path.as_os_str().as_bytes()) {
                Some(kind @ EntryKind::Executable) => *kind,
                _ => EntryKind::File,
            };
            let file = self.context.layout.root().join(&path);
            if !(is_checked || name == Layout::TREE)
                || is_executable(&file)?.is_none_or(|is| is == kind.is_executable())
            {
                continue;
            }
            // A new file takes its place: this one may be a second name of somebody else's.
            if let Standing::File(bytes) = standing(&file)? {
                put_file(&file, kind, &bytes)?;
            }
        }
        Ok(())
    }

    /// Says what should stand at a path of From that is gone; an agent may remove what is its own.
    fn gone(&self, path: &str, entry: CommitEntry) -> Option<Right> {
        if path == Layout::TREE {
            return self.tree();
        }
        matches!(class(within(path)), Ownership::Runner | Ownership::AppendOnly).then_some(Right::From(entry))
    }

    /// The task tree is judged by `examine`; what is to stand there comes with `after`.
    fn tree(&self) -> Option<Right> {
        self.after.tree.map(|text| Right::Text(text.to_vec()))
    }

    /// Says what should stand at a path, if it is not what stands there.
    fn verdict(&self, path: &Path, entry: Option<CommitEntry>) -> Result<Option<Right>, Obstacle> {
        let file = self.context.layout.root().join(path);
        let name = &*path.to_string_lossy();
        if name == Layout::TREE {
            return Ok(self.tree_verdict(standing(&file)?, entry));
        }
        let ownership = class(within(name));
        if matches!(ownership, Ownership::Agent | Ownership::Ignored) {
            return Ok(None);
        }
        let standing = standing(&file)?;
        let (Some(entry), Standing::File(now)) = (&entry, &standing) else {
            // A memory file that From lacks may be begun by an agent.
            let is_begun = entry.is_none() && Layout::MEMORY.contains(&name) && matches!(standing, Standing::File(_));
            return Ok((!is_begun).then(|| entry.map_or(Right::Nothing, Right::From)));
        };
        let is_right = match ownership {
            Ownership::AppendOnly => now.starts_with(&self.repository.blob(&entry.id)?),
            _ => self.repository.hash_blob(now)? == entry.id && entry.kind != EntryKind::Symlink,
        };
        Ok((!is_right).then(|| Right::From(entry.clone())))
    }

    /// Says what should stand in the place of the task tree. One that is too large to be one is not left for git to
    /// read either.
    fn tree_verdict(&self, standing: Standing, entry: Option<CommitEntry>) -> Option<Right> {
        match (self.tree(), standing) {
            (Some(Right::Text(text)), Standing::File(now)) if text == now => None,
            (None, Standing::TooLarge) => Some(entry.map_or(Right::Nothing, Right::From)),
            (right, _) => right,
        }
    }

    fn put_back(&self, path: &Path, right: Right) -> Result<(), Obstacle> {
        let file = self.context.layout.root().join(path);
        self.keep_aside(&path.to_string_lossy(), &file)?;
        remove(&file)?;
        let (kind, bytes) = match right {
            Right::Nothing => return Ok(()),
            Right::Text(text) => (EntryKind::File, text),
            Right::From(entry) => (entry.kind, self.repository.blob(&entry.id)?),
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        clear_way(self.context, folder)?;
        durable::put_dir_below(self.context.layout.root(), folder, Access::Repository)?;
        put_file(&file, kind, &bytes)
    }

    /// Keeps what stands there in the record of the iteration.
    fn keep_aside(&self, path: &str, file: &Path) -> Result<(), Obstacle> {
        match standing(file)? {
            Standing::NoFile => Ok(()),
            Standing::TooLarge => self.quarantine().take(within(path), file),
            Standing::File(bytes) => self.quarantine().keep(within(path), &bytes),
        }
    }
}

/// Returns a path relative to `.runner/`.
fn within(path: &str) -> &str {
    path.strip_prefix(".runner/").unwrap_or(path)
}

/// Reads a file up to the limit.
pub(crate) fn standing(file: &Path) -> Result<Standing, Obstacle> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_file() && found.len() > MAX_BYTES => Ok(Standing::TooLarge),
        Ok(found) if found.is_file() => read(file).map_err(Obstacle::system("reading", file)),
        Ok(_) => Ok(Standing::NoFile),
        Err(error) if is_absent(&error) => Ok(Standing::NoFile),
        Err(error) => Err(Obstacle::system("looking at", file)(error)),
    }
}

/// Whether a regular file has the executable bit; `None` where there is none.
fn is_executable(file: &Path) -> Result<Option<bool>, Obstacle> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_file() => Ok(Some(found.permissions().mode() & 0o100 != 0)),
        Ok(_) => Ok(None),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(Obstacle::system("looking at", file)(error)),
    }
}

/// Replaces a file by one of this kind.
pub(crate) fn put_file(file: &Path, kind: EntryKind, bytes: &[u8]) -> Result<(), Obstacle> {
    durable::replace(file, bytes, Access::Repository)?;
    if kind.is_executable() {
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(file, executable).map_err(Obstacle::system("making executable", file))?;
    }
    Ok(())
}

/// Neither a link nor a pipe that took the file's place meanwhile is followed or waited for, and it may grow.
fn read(file: &Path) -> io::Result<Standing> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    let mut bytes = Vec::new();
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 > MAX_BYTES { Standing::TooLarge } else { Standing::File(bytes) })
}

/// Whether nothing is there; a file may stand where a folder was.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Lists every file and link under `.runner/`, but for what git ignores there. No link is followed.
fn present(context: &RunContext) -> Result<Vec<PathBuf>, Obstacle> {
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::from(Layout::FOLDER)];
    while let Some(folder) = folders.pop() {
        let absolute = context.layout.root().join(&folder);
        match std::fs::symlink_metadata(&absolute) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                paths.push(folder);
                continue;
            }
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(Obstacle::system("looking at", &absolute)(error)),
        }
        for entry in std::fs::read_dir(&absolute).map_err(Obstacle::system("listing", &absolute))? {
            let entry = entry.map_err(Obstacle::system("listing", &absolute))?;
            let path = folder.join(entry.file_name());
            // Git ignores them as folders; a link or a file in their place would be committed.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder || ![Layout::CONTEXT, Layout::ITERATIONS].iter().any(|ignored| path == Path::new(ignored)) {
                folders.push(path);
            }
        }
    }
    Ok(paths)
}
