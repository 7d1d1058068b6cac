//! Finds out what of the changes git cannot store, before anything is committed: no file or link, unreadable, or
//! refused by a filter that is required or by an encoding that is declared. What becomes of it is decided elsewhere.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use gix::attrs::StateRef;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::worktree::stack::state::attributes::Source;

use super::change::{Change, ChangeKind};
use super::content::open_plain;
use crate::git::index::cachetree;
use crate::git::objects::checked;
use crate::git::path::display;
use crate::git::repository::program::{Git, Outcome};
use crate::git::{GitError, Repository};
use crate::obstruction::{Obstructs as _, remedy_at};

/// Most files that one program is given.
const AT_ONCE: usize = 200;

/// A changed path that git cannot store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The path relative to the work tree.
    pub(in crate::git) path: BString,
    /// Why, as the end of a sentence.
    why: String,
    /// What a person can do.
    remedy: String,
}

impl Refused {
    /// Returns the path for people.
    pub fn display_path(&self) -> String {
        display(&self.path)
    }

    /// Says it as what is in the way of a commit.
    pub fn into_error(self) -> GitError {
        GitError::CannotStore { file: display(&self.path), why: self.why, remedy: self.remedy }
    }
}

/// What a conversion that can refuse a file is known by.
enum Converter {
    /// A filter without which nothing is to be stored.
    Filter { name: String, program: String },
    /// Text that is stored as UTF-8.
    Encoding(String),
}

impl Repository {
    /// Fails if one of the files that HEAD has was changed into what git cannot store.
    pub fn refuse_unstorable(&self, changes: &[Change]) -> Result<(), GitError> {
        let repo = self.open()?;
        let head = self.head()?.commit();
        for found in self.refused_of(&repo, changes)? {
            let tree = self.tree_of(&repo, head)?.id;
            let known = checked::at_path(&repo, tree, found.path.as_ref());
            if known.map_err(GitError::library("looking up a file of a commit", self.git_dir()))?.is_some() {
                return Err(found.into_error());
            }
        }
        Ok(())
    }

    /// Returns what of the changes git cannot store, tracked or not.
    pub(in crate::git) fn refused_of(
        &self,
        repo: &gix::Repository,
        changes: &[Change],
    ) -> Result<Vec<Refused>, GitError> {
        let mut trial = Trial::new(repo, self)?;
        let (mut refused, mut converted) = (Vec::new(), Vec::new());
        for Change { path, kind } in changes {
            let path = path.as_bstr();
            if *kind == ChangeKind::Deleted && self.file(path).symlink_metadata().is_err() {
                continue;
            }
            match trial.look(path) {
                Seen::Plain => {}
                Seen::Converted => converted.push(path),
                Seen::Refused(why, remedy) => refused.push(Refused { path: path.to_owned(), why, remedy }),
            }
        }
        for some in converted.chunks(AT_ONCE) {
            trial.store(some, &mut refused)?;
        }
        Ok(refused)
    }

    /// Returns which of some entries have files that git cannot store, by position.
    pub(in crate::git) fn refused_among(
        &self,
        repo: &gix::Repository,
        state: &State,
        positions: &[usize],
    ) -> Result<Vec<usize>, GitError> {
        let path = |position: &usize| state.entries()[*position].path(state);
        let changes: Vec<Change> =
            positions.iter().map(|at| Change { path: path(at).to_vec(), kind: ChangeKind::Modified }).collect();
        let refused: BTreeSet<BString> =
            self.refused_of(repo, &changes)?.into_iter().map(|refused| refused.path).collect();
        Ok(positions.iter().copied().filter(|at| refused.contains(path(at))).collect())
    }

    /// Says why git did not store a path.
    pub(in crate::git) fn refusal_of(&self, repo: &gix::Repository, path: &BStr) -> Result<Refused, GitError> {
        let change = Change { path: path.to_vec(), kind: ChangeKind::Modified };
        let found = self.refused_of(repo, &[change])?.pop();
        Ok(found.unwrap_or_else(|| {
            let file = self.file(path);
            Refused {
                path: path.to_owned(),
                why: "git does not take it".to_owned(),
                remedy: format!("fix what is at {}", file.display()),
            }
        }))
    }
}

/// What a look at a path says of storing it.
enum Seen {
    /// Nothing can keep it out.
    Plain,
    /// A program or an encoding has a say in it.
    Converted,
    /// It cannot be stored, why, and what helps.
    Refused(String, String),
}

/// Storing files to see whether it can be done.
struct Trial<'a> {
    repo: &'a gix::Repository,
    paths: &'a Repository,
    attributes: gix::AttributeStack<'a>,
}

impl<'a> Trial<'a> {
    fn new(repo: &'a gix::Repository, paths: &'a Repository) -> Result<Self, GitError> {
        // Attribute files that are gone govern nothing.
        let nothing = cachetree::empty(repo.object_hash());
        let attributes = repo
            .attributes_only(&nothing, Source::WorktreeThenIdMapping)
            .map_err(GitError::library("reading attributes", paths.work_dir()))?;
        Ok(Self { repo, paths, attributes })
    }

    fn look(&mut self, path: &BStr) -> Seen {
        let file = self.paths.file(path);
        let Ok(found) = fs::symlink_metadata(&file) else { return Seen::Plain };
        if found.is_symlink() || found.is_dir() {
            return Seen::Plain;
        }
        if !found.is_file() {
            let remedy = remedy_at(&file, &io::ErrorKind::NotADirectory.into());
            return Seen::Refused("it is neither a file nor a link".to_owned(), remedy);
        }
        match open_plain(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound && !error.passes() => {
                Seen::Refused(error.to_string(), remedy_at(&file, &error))
            }
            _ if !self.paths.owns(path) && self.converter(path).is_some() => Seen::Converted,
            _ => Seen::Plain,
        }
    }

    /// Returns what can refuse the file by its attributes.
    fn converter(&mut self, path: &BStr) -> Option<Converter> {
        let mut found = self.attributes.selected_attribute_matches(["filter", "working-tree-encoding"]);
        self.attributes.at_entry(path, None).ok()?.matching_attributes(&mut found);
        let mut states = found.iter_selected().map(|found| match found.assignment.state {
            StateRef::Value(value) => Some(value.as_bstr().to_string()),
            StateRef::Set | StateRef::Unset => Some(String::new()),
            StateRef::Unspecified => None,
        });
        let (filter, encoding) = (states.next().flatten(), states.next().flatten());
        let filter = filter.filter(|name| !name.is_empty()).and_then(|name| self.required(name));
        filter.or(encoding.map(Converter::Encoding))
    }

    fn required(&self, name: String) -> Option<Converter> {
        let config = self.repo.config_snapshot();
        config.boolean(&format!("filter.{name}.required")).filter(|is_required| *is_required)?;
        let programs = ["process", "clean"].map(|key| config.string(&format!("filter.{name}.{key}")));
        let program = programs.into_iter().flatten().next().unwrap_or_default().to_string();
        Some(Converter::Filter { name, program })
    }

    /// Has git store files; one that it refuses is found by trying fewer and fewer together.
    fn store(&mut self, some: &[&BStr], refused: &mut Vec<Refused>) -> Result<(), GitError> {
        // Relative to the work tree, where the program is started: attributes are found by that.
        let names = some.iter().map(|path| OsStr::from_bytes(path));
        let outcome = Git::new(self.paths, "hash-object").args(["-w", "--"]).args(names).outcome()?;
        if outcome.status.success() {
            return Ok(());
        }
        if outcome.blames_store() {
            return Err(outcome.into_error("hash-object".to_owned(), self.paths.work_dir().to_owned()));
        }
        if let [path] = some {
            self.paths.refuse_unusable()?;
            if self.paths.file(path).symlink_metadata().is_ok() {
                refused.push(self.refusal(path, &outcome));
            }
            return Ok(());
        }
        let (first, second) = some.split_at(some.len() / 2);
        self.store(first, refused)?;
        self.store(second, refused)
    }

    fn refusal(&mut self, path: &BStr, outcome: &Outcome) -> Refused {
        let file = self.paths.file(path);
        let said = outcome.stderr.lines().rev().find_map(|line| line.strip_prefix("fatal: "));
        let named = format!("{}: ", display(path));
        let said = said.map(|said| said.strip_prefix(named.as_str()).unwrap_or(said));
        let remedy = match self.converter(path) {
            Some(Converter::Filter { name, .. }) if name == "lfs" => "install git-lfs".to_owned(),
            Some(Converter::Filter { name, program }) => {
                format!("make the filter {name} of git's configuration work (`{program}`)")
            }
            Some(Converter::Encoding(encoding)) => {
                format!("save {} as {encoding}, or mend its working-tree-encoding in .gitattributes", file.display())
            }
            None => format!("fix what is at {}", file.display()),
        };
        Refused { path: path.to_owned(), why: said.unwrap_or("git does not take it").to_owned(), remedy }
    }
}
