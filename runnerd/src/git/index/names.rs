//! Reads the index for the names that are tracked, as files of HEAD are known. A session can write any bytes there: what
//! it says of the content of files is a hint for people at best.

use std::collections::{BTreeSet, HashSet};

use gix::bstr::{BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};

use super::marks::HIDDEN;
use crate::git::index;
use crate::git::path::has_valid_name;
use crate::git::{GitError, Id, Repository};

/// What an index says otherwise than HEAD.
#[derive(Debug, Default)]
pub(in crate::git) struct Names {
    /// Paths that HEAD lacks.
    pub(in crate::git) added: BTreeSet<BString>,
    /// Paths of HEAD that the index does not name.
    pub(in crate::git) missing: Vec<BString>,
    /// Paths with a conflict.
    pub(in crate::git) unmerged: BTreeSet<BString>,
    /// Paths of HEAD that the index has with another content.
    pub(in crate::git) staged: Vec<BString>,
    /// Whether nothing was known of HEAD's files before.
    pub(in crate::git) is_new: bool,
}

impl Names {
    /// Tells whether nothing that the index says otherwise than HEAD lies elsewhere than at these paths. What it does not
    /// name has to be looked for: it may be ignored.
    pub(in crate::git) fn lie_within(&self, paths: &[Vec<u8>]) -> bool {
        let within: HashSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        let is_within = |path: &BString| within.contains(path.as_slice());
        self.missing.is_empty() && self.added.iter().chain(&self.unmerged).all(is_within)
    }
}

impl Names {
    /// Takes out what lies in folders of which nothing is tracked; what HEAD has there counts as removed.
    pub(in crate::git) fn disown(&mut self, head: &State, never: &BTreeSet<BString>) {
        let is_disowned = |path: &BString| never.iter().any(|folder| path.starts_with(folder));
        for names in [&mut self.added, &mut self.unmerged] {
            names.retain(|path| !is_disowned(path));
        }
        for names in [&mut self.missing, &mut self.staged] {
            names.retain(|path| !is_disowned(path));
        }
        for folder in never {
            let entries = head.prefixed_entries(folder.as_ref()).unwrap_or_default();
            self.missing.extend(entries.iter().map(|entry| entry.path(head).to_owned()));
        }
    }
}

/// What is learned of the entries that are known, by position.
#[derive(Default)]
struct Learned {
    hidden: Vec<(usize, Flags)>,
    shown: Vec<usize>,
    believed: Vec<(usize, Stat)>,
}

/// Reads the names. Marks that hide files from git count where nothing `is_new`ly known contradicts them: they were put
/// there by a person, or `tampering` has taken them off.
///
/// Of a repository as a person has it, bound to no captured configuration, the index is the person's: what it says of the
/// files is believed.
pub(in crate::git) fn read(
    repo: &gix::Repository,
    paths: &Repository,
    (known, head): (&mut State, Option<Id>),
    is_new: bool,
) -> Result<Names, GitError> {
    let index = index::read(repo, paths, head)?;
    let is_persons = paths.trusted.is_none();
    let (names, learned) = compare(known, &index, is_persons);
    let entries = known.entries_mut();
    for (position, marks) in learned.hidden.into_iter().filter(|_| is_new) {
        entries[position].flags.insert(marks | Flags::EXTENDED);
    }
    for position in learned.shown {
        entries[position].flags.remove(HIDDEN);
    }
    for (position, stat) in learned.believed {
        entries[position].stat = stat;
        entries[position].flags.insert(Flags::UPTODATE);
    }
    Ok(Names { is_new, ..names })
}

fn compare(known: &State, index: &State, is_persons: bool) -> (Names, Learned) {
    let (mut names, mut learned) = (Names::default(), Learned::default());
    let (mut missing, mut covered, mut next) = (Vec::new(), Vec::new(), 0);
    let files = known.entries();
    for group in index.entries().chunk_by(|a, b| a.path(index) == b.path(index)) {
        let (entry, path) = (&group[0], group[0].path(index));
        if entry.mode == Mode::DIR {
            covered.push((path, entry.flags.intersects(HIDDEN)));
            continue;
        }
        while next < files.len() && files[next].path(known) < path {
            missing.push(next);
            next += 1;
        }
        let is_merged = entry.stage_raw() == 0;
        if !is_merged && has_valid_name(path, Mode::FILE) {
            names.unmerged.insert(path.to_owned());
        }
        let Some(file) = files.get(next).filter(|file| file.path(known) == path) else {
            if known.entry_by_path(path).is_none() && has_valid_name(path, entry.mode) {
                names.added.insert(path.to_owned());
            }
            continue;
        };
        let is_same = (entry.id, entry.mode) == (file.id, file.mode) && !entry.flags.contains(Flags::INTENT_TO_ADD);
        if is_merged && !is_same {
            names.staged.push(path.to_owned());
        }
        match entry.flags & HIDDEN {
            marks if marks.is_empty() => learned.shown.push(next),
            marks => learned.hidden.push((next, marks)),
        }
        let racy = entry.stat.is_racy(index.timestamp(), gix::index::entry::stat::Options::default());
        if is_persons && is_merged && is_same && !racy {
            learned.believed.push((next, entry.stat));
        }
        next += 1;
    }
    missing.extend(next..files.len());
    for position in missing {
        let path = files[position].path(known);
        match covered.iter().find(|(folder, _)| path.starts_with(folder.as_bytes())) {
            Some((_, true)) => learned.hidden.push((position, Flags::SKIP_WORKTREE)),
            Some((_, false)) => {}
            None => names.missing.push(path.to_owned()),
        }
    }
    (names, learned)
}
