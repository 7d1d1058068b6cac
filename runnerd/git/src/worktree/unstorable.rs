//! Finds changes that git cannot store, before anything is committed: neither file nor link, unreadable, or refused by
//! a required filter or a declared encoding. What happens to them is decided elsewhere.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::attrs::StateRef;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::Mode;
use gix::worktree::stack::state::attributes::Source;
use runner_os::retryable::{Retryable as _, path_remedy};

use super::change::{ChangeKind, WorktreeChange};
use super::content::open_regular_file;
use crate::index::cachetree;
use crate::objects::object_reader;
use crate::path::display_path;
use crate::repository::program::{GitCommand, GitOutput};
use crate::{GitError, Repository};

/// Maximum number of files passed to one program.
const BATCH_SIZE: usize = 200;

/// A changed path that git cannot store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnstorableFile {
    /// The path relative to the work tree.
    pub(crate) path: BString,
    /// The reason, as the end of a sentence.
    why: String,
    /// What a person can do about it.
    remedy: String,
    /// Whether a filter or an encoding of its attributes refuses it.
    is_refused: bool,
}

impl UnstorableFile {
    /// Returns the path for display.
    pub fn display_path(&self) -> String {
        display_path(&self.path)
    }

    /// Converts it to the error that a commit fails with.
    pub fn into_error(self) -> GitError {
        GitError::UnstorableChange { file: display_path(&self.path), why: self.why, remedy: self.remedy }
    }
}

/// A conversion that can refuse a file.
enum ContentConverter {
    /// A required filter: nothing is stored without it.
    Filter { name: String, program: String },
    /// Text that is stored as UTF-8.
    Encoding(String),
}

impl Repository {
    /// Fails if a file of HEAD was changed into something git cannot store.
    pub fn check_storable(&self, changes: &[WorktreeChange]) -> Result<(), GitError> {
        let repo = self.open()?;
        let head = self.head()?.commit();
        for found in self.find_unstorable(&repo, changes)? {
            let tree = self.commit_tree(&repo, head)?.id;
            let known = object_reader::find_at_path(&repo, tree, found.path.as_ref());
            if known.map_err(GitError::gix("looking up a file of a commit", self.git_dir()))?.is_some() {
                return Err(found.into_error());
            }
        }
        Ok(())
    }

    /// Returns those of the changes that a filter or an encoding of their attributes refuses.
    pub fn find_refused(&self, changes: &[WorktreeChange]) -> Result<Vec<String>, GitError> {
        let found = self.find_unstorable(&self.open()?, changes)?;
        Ok(found.iter().filter(|found| found.is_refused).map(UnstorableFile::display_path).collect())
    }

    /// Fails if a folder that cannot be listed may hold something that a commit would have: HEAD has files in it, or it is
    /// not ignored.
    pub fn check_unlisted(&self, folder: &Path, error: &io::Error) -> Result<(), GitError> {
        let repo = self.open()?;
        let name = folder.strip_prefix(self.work_dir()).unwrap_or(folder);
        let path = BString::from(name.as_os_str().as_bytes());
        let head = self.head()?.commit();
        let tracked = head.map(|head| self.list_entries(&head, &path.to_str_lossy())).transpose()?.unwrap_or_default();
        let index = cachetree::empty_index(repo.object_hash());
        let is_ignored = || -> gix::Result<bool> {
            let mut rules = self.read_ignore_rules(&repo, &index)?;
            let at_path = rules.at_entry(path.as_bstr(), Some(Mode::DIR)).map_err(gix::Error::from_error)?;
            Ok(at_path.is_excluded())
        };
        if tracked.is_empty() && is_ignored().map_err(GitError::gix("reading ignore rules", self.work_dir()))? {
            return Ok(());
        }
        let why = error.to_string();
        let remedy = path_remedy(folder, error);
        Err(UnstorableFile { path, why, remedy, is_refused: false }.into_error())
    }

    /// Returns the changes that git cannot store, tracked or not.
    pub(crate) fn find_unstorable(
        &self,
        repo: &gix::Repository,
        changes: &[WorktreeChange],
    ) -> Result<Vec<UnstorableFile>, GitError> {
        let mut check = StorabilityCheck::new(repo, self)?;
        let mut unstorable = Vec::new();
        let mut converted = Vec::new();
        for WorktreeChange { path, kind } in changes {
            let path = path.as_bstr();
            if *kind == ChangeKind::Deleted && self.absolute_path(path).symlink_metadata().is_err() {
                continue;
            }
            match check.probe_path(path) {
                StoreProbe::Plain => {}
                StoreProbe::Converted => converted.push(path),
                StoreProbe::Unstorable(why, remedy) => {
                    unstorable.push(UnstorableFile { path: path.to_owned(), why, remedy, is_refused: false });
                }
            }
        }
        for batch in converted.chunks(BATCH_SIZE) {
            check.try_store(batch, &mut unstorable)?;
        }
        Ok(unstorable)
    }

    /// Returns the entries whose files git cannot store, by position.
    pub(crate) fn find_unstorable_entries(
        &self,
        repo: &gix::Repository,
        state: &State,
        positions: &[usize],
    ) -> Result<Vec<usize>, GitError> {
        let path = |position: &usize| state.entries()[*position].path(state);
        let changes: Vec<WorktreeChange> =
            positions.iter().map(|at| WorktreeChange { path: path(at).to_vec(), kind: ChangeKind::Modified }).collect();
        let unstorable: BTreeSet<BString> =
            self.find_unstorable(repo, &changes)?.into_iter().map(|refused| refused.path).collect();
        Ok(positions.iter().copied().filter(|at| unstorable.contains(path(at))).collect())
    }

    /// Explains why git did not store a path.
    pub(crate) fn explain_unstorable(&self, repo: &gix::Repository, path: &BStr) -> Result<UnstorableFile, GitError> {
        let change = WorktreeChange { path: path.to_vec(), kind: ChangeKind::Modified };
        let found = self.find_unstorable(repo, &[change])?.pop();
        Ok(found.unwrap_or_else(|| {
            let file = self.absolute_path(path);
            UnstorableFile {
                path: path.to_owned(),
                why: "git does not take it".to_owned(),
                remedy: format!("fix what is at {}", file.display()),
                is_refused: false,
            }
        }))
    }
}

/// What a first look says about storing a path.
enum StoreProbe {
    /// Nothing can keep it from being stored.
    Plain,
    /// A filter or an encoding decides.
    Converted,
    /// It cannot be stored: the reason, and the remedy.
    Unstorable(String, String),
}

/// Stores files to find out whether that works.
struct StorabilityCheck<'a> {
    repo: &'a gix::Repository,
    repository: &'a Repository,
    attributes: gix::AttributeStack<'a>,
}

impl<'a> StorabilityCheck<'a> {
    fn new(repo: &'a gix::Repository, repository: &'a Repository) -> Result<Self, GitError> {
        // Attribute files that were removed have no effect.
        let nothing = cachetree::empty_index(repo.object_hash());
        let attributes = repository
            .read_attributes(repo, &nothing, Source::WorktreeThenIdMapping)
            .map_err(GitError::gix("reading attributes", repository.work_dir()))?;
        Ok(Self { repo, repository, attributes })
    }

    fn probe_path(&mut self, path: &BStr) -> StoreProbe {
        let file = self.repository.absolute_path(path);
        let Ok(found) = fs::symlink_metadata(&file) else { return StoreProbe::Plain };
        if found.is_symlink() || found.is_dir() {
            return StoreProbe::Plain;
        }
        if !found.is_file() {
            let remedy = path_remedy(&file, &io::ErrorKind::NotADirectory.into());
            return StoreProbe::Unstorable("it is neither a file nor a link".to_owned(), remedy);
        }
        match open_regular_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound && !error.is_transient() => {
                StoreProbe::Unstorable(error.to_string(), path_remedy(&file, &error))
            }
            _ if !self.repository.is_runner_path(path) && self.converter(path).is_some() => StoreProbe::Converted,
            _ => StoreProbe::Plain,
        }
    }

    /// Returns the conversion that can refuse the file, according to its attributes.
    fn converter(&mut self, path: &BStr) -> Option<ContentConverter> {
        let mut found = self.attributes.selected_attribute_matches(["filter", "working-tree-encoding"]);
        self.attributes.at_entry(path, None).ok()?.matching_attributes(&mut found);
        let mut states = found.iter_selected().map(|found| match found.assignment.state {
            StateRef::Value(value) => Some(value.as_bstr().to_string()),
            StateRef::Set | StateRef::Unset => Some(String::new()),
            StateRef::Unspecified => None,
        });
        let filter = states.next().flatten();
        let encoding = states.next().flatten();
        let filter = filter.filter(|name| !name.is_empty()).and_then(|name| self.required_filter(name));
        filter.or(encoding.map(ContentConverter::Encoding))
    }

    fn required_filter(&self, name: String) -> Option<ContentConverter> {
        let config = self.repo.config_snapshot();
        config.boolean(&format!("filter.{name}.required")).filter(|is_required| *is_required)?;
        let programs = ["process", "clean"].map(|key| config.string(&format!("filter.{name}.{key}")));
        let program = programs.into_iter().flatten().next().unwrap_or_default().to_string();
        Some(ContentConverter::Filter { name, program })
    }

    /// Makes git store files; one that it refuses is found by bisection.
    fn try_store(&mut self, batch: &[&BStr], unstorable: &mut Vec<UnstorableFile>) -> Result<(), GitError> {
        // Relative to the work tree, which is the working directory: attributes are looked up by these paths.
        let names = batch.iter().map(|path| OsStr::from_bytes(path));
        let outcome = GitCommand::new(self.repository, "hash-object").args(["-w", "--"]).args(names).output()?;
        if outcome.status.success() {
            return Ok(());
        }
        if outcome.is_store_error() {
            return Err(outcome.into_error("hash-object".to_owned(), self.repository.work_dir().to_owned()));
        }
        if let [path] = batch {
            self.repository.check_git_usable()?;
            if self.repository.absolute_path(path).symlink_metadata().is_ok() {
                unstorable.push(self.describe_failure(path, &outcome));
            }
            return Ok(());
        }
        let (first, second) = batch.split_at(batch.len() / 2);
        self.try_store(first, unstorable)?;
        self.try_store(second, unstorable)
    }

    fn describe_failure(&mut self, path: &BStr, outcome: &GitOutput) -> UnstorableFile {
        let file = self.repository.absolute_path(path);
        let message = outcome.stderr.lines().rev().find_map(|line| line.strip_prefix("fatal: "));
        let named = format!("{}: ", display_path(path));
        let message = message.map(|text| text.strip_prefix(named.as_str()).unwrap_or(text));
        let remedy = match self.converter(path) {
            Some(ContentConverter::Filter { name, .. }) if name == "lfs" => "install git-lfs".to_owned(),
            Some(ContentConverter::Filter { name, program }) => {
                format!("make the filter {name} of git's configuration work (`{program}`)")
            }
            Some(ContentConverter::Encoding(encoding)) => {
                format!("save {} as {encoding}, or mend its working-tree-encoding in .gitattributes", file.display())
            }
            None => format!("fix what is at {}", file.display()),
        };
        let why = message.unwrap_or("git does not take it").to_owned();
        UnstorableFile { path: path.to_owned(), why, remedy, is_refused: true }
    }
}
