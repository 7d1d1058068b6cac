//! Collects what is in the work tree into a tree, without touching the index file: what a snapshot holds and what a
//! restoration compares with it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::ByteSlice as _;
use gix::index::State;
use gix::index::entry::Flags;

use crate::git::index::cachetree;
use crate::git::index::edits::Stored;
use crate::git::index::marks::HIDDEN;
use crate::git::objects;
use crate::git::objects::checked;
use crate::git::worktree::content::{Contents, Refused};
use crate::git::worktree::hold_back::HoldBack;
use crate::git::worktree::known::Tracked;
use crate::git::worktree::porcelain;
use crate::git::worktree::private::PrivateIndex;
use crate::git::worktree::scan::Scan;
use crate::git::worktree::stage::{Collected, Staging};
use crate::git::{GitError, Id, Repository};

impl Collected {
    /// Collects tracked and untracked files; of ignored ones those that stand where `restoring` has files.
    pub(in crate::git) fn collect(
        repo: &gix::Repository,
        paths: &Repository,
        rule: &HoldBack,
        restoring: Option<Id>,
    ) -> Result<Self, GitError> {
        let engine = paths.engine(repo);
        let by_program = || Self::by_program(repo, paths, rule);
        let mut kept = engine.carry_out(|| Self::by_library(repo, paths, rule), by_program)?;
        if let Some(commit) = restoring {
            kept.add_obstructions(repo, paths, commit)?;
        }
        Ok(kept)
    }

    fn by_library(repo: &gix::Repository, paths: &Repository, rule: &HoldBack) -> Result<Self, GitError> {
        let mut tracked = Tracked::open(repo, paths, paths.head()?.commit())?;
        let hidden = look_everywhere(&mut tracked.state);
        let scan = Scan::run(repo, paths, &mut tracked)?;
        let state = tracked.state.clone();
        hide_again(&mut tracked.state, &hidden);
        tracked.keep();
        let mut staged = Staging { repo, paths, rule }.run(state, scan)?;
        let tree = cachetree::write(repo, paths, &mut staged.state, &mut staged.written)?;
        Ok(Self { tree, held_back: staged.held_back, unstorable: staged.unstorable, written: staged.written })
    }

    fn by_program(repo: &gix::Repository, paths: &Repository, rule: &HoldBack) -> Result<Self, GitError> {
        let tracked = Tracked::open(repo, paths, paths.head()?.commit())?;
        porcelain::stage(&PrivateIndex::of(repo, tracked)?, rule)
    }

    /// Adds what a checkout of `commit` would overwrite and what is not in the tree yet because git ignores it.
    fn add_obstructions(&mut self, repo: &gix::Repository, paths: &Repository, commit: Id) -> Result<(), GitError> {
        let failed = |error| GitError::library("keeping what is in the way", paths.git_dir())(error);
        let kept: BTreeSet<Vec<u8>> =
            objects::files(repo, self.tree, "").map_err(failed)?.into_iter().map(|entry| entry.path).collect();
        let mut obstructions = BTreeSet::new();
        for entry in paths.entries(&commit, "")?.iter().filter(|entry| !kept.contains(&entry.path)) {
            obstructions.extend(obstructing(paths, &entry.path).into_iter().filter(|path| !kept.contains(path)));
        }
        if obstructions.is_empty() {
            return Ok(());
        }
        let state = State::new(repo.object_hash());
        let mut contents = Contents::new(repo, paths, &state)?;
        let tree = checked::tree(repo, self.tree).map_err(failed)?;
        let mut editor = tree.edit().map_err(failed)?;
        for path in obstructions.iter().map(|path| path.as_bstr()) {
            match contents.store(path, None, &state) {
                Ok(Stored { id, mode, .. }) => {
                    let kind = mode.to_tree_entry_mode().map_or(gix::objs::tree::EntryKind::Blob, |mode| mode.kind());
                    editor.upsert(path, kind, id).map_err(failed)?;
                    self.written.push(id);
                }
                Err(Refused::Gone) => {}
                Err(Refused::Unstorable) => drop(self.unstorable.insert(path.to_owned())),
                Err(Refused::Fault(error)) => return Err(error),
            }
        }
        self.tree = editor.write().map_err(failed)?.detach();
        self.written.push(self.tree);
        Ok(())
    }
}

/// Files that git was told to take for unchanged may hold work all the same. Returns the marks that said so, by position.
fn look_everywhere(state: &mut State) -> Vec<(usize, Flags)> {
    let mut hidden = Vec::new();
    for (position, entry) in state.entries_mut().iter_mut().enumerate() {
        if entry.flags.intersects(HIDDEN) {
            hidden.push((position, entry.flags & HIDDEN));
            entry.flags.remove(HIDDEN);
        }
    }
    hidden
}

fn hide_again(state: &mut State, hidden: &[(usize, Flags)]) {
    for (position, marks) in hidden {
        state.entries_mut()[*position].flags.insert(*marks);
    }
}

/// Returns the files on disk that would have to go for a file to be at `path`.
fn obstructing(paths: &Repository, path: &[u8]) -> Vec<Vec<u8>> {
    for end in path.find_iter(b"/").chain([path.len()]) {
        let part = &path[..end];
        match paths.file(part).symlink_metadata() {
            Ok(found) if found.is_dir() && end < path.len() => {}
            Ok(found) if found.is_dir() => return files_below(&paths.file(part), part),
            Ok(_) => return vec![part.to_owned()],
            Err(_) => return Vec::new(),
        }
    }
    Vec::new()
}

fn files_below(folder: &Path, name: &[u8]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = [name, b"/", entry.file_name().as_bytes()].concat();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files.extend(files_below(&entry.path(), &path));
        } else {
            files.push(path);
        }
    }
    files
}
