//! What a set of ignore rules ignores, whatever the work tree's own `.gitignore` files say: those of a commit, with the
//! captured `info/exclude` and global rules below them. Which commit's rules these are is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::glob::pattern::Case;
use gix::ignore::Search;
use gix::worktree::stack::state::ignore::ParseIgnore;

use crate::objects::diff::compare_commits;
use crate::objects::object_reader;
use crate::repository::exclude_block::strip_blocks;
use crate::repository::pinned_config::{EXCLUDE_FILE, read_rules_file};
use crate::{GitError, Id, Repository};

const FILE_NAME: &str = ".gitignore";

/// The `.gitignore` files of a commit, and those that have replaced them since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoreFiles {
    /// The commit.
    pub base: Id,
    /// Files that count instead of the commit's, by path, with their blob; `None` for a file that was removed.
    pub changed: BTreeMap<Vec<u8>, Option<Id>>,
}

impl Repository {
    /// Returns the `.gitignore` files in which two commits differ, as the second has them.
    pub fn changed_ignore_files(&self, from: &Id, to: &Id) -> Result<BTreeMap<Vec<u8>, Option<Id>>, GitError> {
        let compared = compare_commits(&self.open()?, from, to);
        let compared = compared.map_err(GitError::gix("comparing commits", self.git_dir()))?;
        let mut changed = BTreeMap::new();
        for difference in compared.into_iter().filter(|difference| is_ignore_file(&difference.path)) {
            let blob = difference.new.filter(|(mode, _)| mode.is_blob()).map(|(_, id)| Id::from(id));
            let known = changed.entry(difference.path.into()).or_insert(blob);
            *known = known.or(blob);
        }
        Ok(changed)
    }
}

fn is_ignore_file(path: &[u8]) -> bool {
    path.strip_suffix(FILE_NAME.as_bytes()).is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"))
}

/// Matches paths against ignore files, which are read as they are needed.
pub(crate) struct IgnoreMatcher<'a> {
    repo: &'a gix::Repository,
    repository: &'a Repository,
    /// Files that count instead of those of the base.
    changed: Option<&'a BTreeMap<Vec<u8>, Option<Id>>>,
    base: ObjectId,
    head: ObjectId,
    /// All rules so far, those that win last.
    rules: Search,
    /// Folders whose rules are among them.
    folders: BTreeSet<BString>,
    case: Case,
}

impl<'a> IgnoreMatcher<'a> {
    pub(crate) fn new(
        repo: &'a gix::Repository,
        repository: &'a Repository,
        files: &'a IgnoreFiles,
    ) -> Result<Self, GitError> {
        let mut rules = Search::default();
        let global = repository.read_users_file(&repo.config_snapshot(), "core.excludesFile", "ignore")?;
        let exclude = repository.rules_file(EXCLUDE_FILE);
        for text in [global, strip_blocks(&read_rules_file(&exclude)?)] {
            let added = rules.add_patterns_buffer(&text, &exclude, None, ParseIgnore::default());
            added.map_err(GitError::io("reading", &exclude))?;
        }
        let names = repo.filesystem_options().map_err(GitError::gix("reading settings of", repository.git_dir()))?;
        Ok(Self {
            repo,
            repository,
            changed: Some(&files.changed),
            base: repository.commit_tree(repo, Some(files.base))?.id,
            head: repository.commit_tree(repo, repository.head()?.commit())?.id,
            rules,
            folders: BTreeSet::new(),
            case: if names.ignore_case { Case::Fold } else { Case::Sensitive },
        })
    }

    /// Returns the matcher for the ignore files of HEAD alone.
    pub(crate) fn at_head(&self) -> Self {
        Self {
            repo: self.repo,
            repository: self.repository,
            changed: None,
            base: self.head,
            head: self.head,
            rules: Search::default(),
            folders: BTreeSet::new(),
            case: self.case,
        }
    }

    /// Returns the name under which an untracked path is ignored, if it is: the first ignored folder on the way to it
    /// in which HEAD has nothing, with a slash at the end, or else the path itself. A folder's path ends in a slash.
    pub(crate) fn find_ignored(&mut self, path: &BStr) -> Result<Option<BString>, GitError> {
        let (path, is_dir) = path.strip_suffix(b"/").map_or((path.as_bytes(), false), |folder| (folder, true));
        let mut is_ignored = false;
        let mut parent = 0;
        for end in path.find_iter(b"/").chain([path.len()]) {
            let part = path[..end].as_bstr();
            let is_folder = is_dir || end < path.len();
            if !is_ignored {
                self.read_rules_of(path[..parent].as_bstr())?;
                let matched = self.rules.pattern_matching_relative_path(part, Some(is_folder), self.case);
                is_ignored = matched.is_some_and(|rule| !rule.pattern.is_negative());
            }
            if is_ignored && !is_folder {
                return Ok(Some(part.to_owned()));
            }
            if is_ignored && self.find_blob_or_tree(self.head, part)?.is_none() {
                return Ok(Some([part.as_bytes(), b"/"].concat().into()));
            }
            parent = end + 1;
        }
        Ok(None)
    }

    /// Adds the rules of a folder, which is empty or ends in a slash; those of the folders above it come first.
    fn read_rules_of(&mut self, folder: &BStr) -> Result<(), GitError> {
        if !self.folders.insert(folder.to_owned()) {
            return Ok(());
        }
        let path = [folder.as_bytes(), FILE_NAME.as_bytes()].concat();
        let blob = match self.changed.and_then(|changed| changed.get(&path)) {
            Some(changed) => *changed,
            None => self.find_blob_or_tree(self.base, path.as_bstr())?.and_then(|(is_blob, id)| is_blob.then_some(id)),
        };
        let Some(blob) = blob else { return Ok(()) };
        let text = self.repository.read_blob(&blob)?;
        let name = Path::new(OsStr::from_bytes(&path));
        let added = self.rules.add_patterns_buffer(&text, name, Some(Path::new("")), ParseIgnore::default());
        added.map_err(GitError::io("reading", name))
    }

    fn find_blob_or_tree(&self, tree: ObjectId, path: &BStr) -> Result<Option<(bool, Id)>, GitError> {
        let found = object_reader::find_at_path(self.repo, tree, path);
        let found = found.map_err(GitError::gix("looking up a file of a commit", self.repository.git_dir()))?;
        Ok(found.map(|(mode, id)| (mode.is_blob(), id.into())))
    }
}
