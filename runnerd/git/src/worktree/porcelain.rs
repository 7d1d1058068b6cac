//! Compares and stages the work tree with the git program, for repositories that the library does not handle as git
//! does. Gives the same results as `status` and `stage`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};
use runner_core::files::layout::FOLDER;

use super::change::{ChangeKind, WorktreeChange, index_changes};
use super::hold_back::{HoldBackRule, HoldBackVerdict};
use super::private_index::PrivateIndex;
use super::renormalize::{find_affected, governed_dir};
use super::scan::find_unstorable_files;
use super::stage::{CollectedTree, declared_submodules};
use super::stat_cache::TrackedFiles;
use super::status::merge_finding;
use crate::durable;
use crate::repository::program::GitCommand;
use crate::{GitError, Repository};

/// The git program on a work tree, with a private index.
struct GitPorcelain<'a> {
    repository: &'a Repository,
    index: &'a Path,
}

/// New files that are not staged.
#[derive(Default)]
struct LeftOut {
    /// What the rule holds back; a folder stands for all that is in it.
    held_back: BTreeSet<BString>,
    /// What git cannot store.
    unstorable: BTreeSet<BString>,
    /// Each path of both.
    paths: BTreeSet<BString>,
}

/// How one path differs from HEAD.
struct StatusEntry {
    kind: ChangeKind,
    /// Whether the work tree also differs from the index.
    is_unstaged: bool,
}

/// Returns all differences from HEAD, sorted by path.
pub(crate) fn list_changes(repo: &gix::Repository, repository: &Repository) -> Result<Vec<WorktreeChange>, GitError> {
    let private = PrivateIndex::create(repo, TrackedFiles::load(repo, repository, repository.head()?.commit())?)?;
    let mut kinds = index_changes(&private.tracked.index_diff);
    // An added repository is already known without the trailing slash that git names it with.
    let is_known = |path: &BString| path.ends_with(b"/") && kinds.contains_key(without_slash(path).as_bstr());
    let mut found = private.porcelain().read_status()?;
    if private.porcelain().renormalize_changed(&private, &found)? {
        found = private.porcelain().read_status()?;
    }
    let found: Vec<_> = found.into_iter().filter(|(path, _)| !is_known(path)).collect();
    kinds.extend(found.into_iter().map(|(path, found)| (path, found.kind)));
    kinds.extend(private.unconvertible.iter().map(|path| (path.clone(), ChangeKind::Modified)));
    for (path, finding) in private.diff_runner_dir()? {
        merge_finding(&mut kinds, &path, finding);
    }
    let unmerged = private.tracked.index_diff.unmerged.iter();
    kinds.extend(unmerged.map(|path| (path.clone(), ChangeKind::Unmerged)));
    private.tracked.store_in_cache();
    Ok(kinds.into_iter().map(|(path, kind)| WorktreeChange { path: path.into(), kind }).collect())
}

/// Whether all files are as HEAD has them, and there are no others.
pub(crate) fn is_unchanged(private: &PrivateIndex<'_>) -> Result<bool, GitError> {
    let is_converted = private.unconvertible.is_empty() && private.porcelain().read_status()?.is_empty();
    Ok(is_converted && private.diff_runner_dir()?.is_empty())
}

/// Stages everything into an index, and writes the tree.
pub(crate) fn stage_all(private: &PrivateIndex<'_>, rule: &HoldBackRule) -> Result<CollectedTree, GitError> {
    let porcelain = private.porcelain();
    let paths = private.tracked.repository;
    porcelain.renormalize_changed(private, &porcelain.read_status()?)?;
    let LeftOut { mut held_back, mut unstorable, paths: left_out } = porcelain.judge_untracked(rule)?;
    let names: BTreeSet<BString> = held_back.union(&unstorable).cloned().collect();
    unstorable.extend(porcelain.fill_index(&names, &left_out)?);
    unstorable.extend(private.unconvertible.iter().cloned());
    unstorable.extend(find_unstorable_files(private.repo, paths, &private.tracked.state));
    let own = private.stage_runner_dir(rule)?;
    held_back.extend(own.held_back);
    unstorable.extend(own.unstorable);
    let tree = match porcelain.git("write-tree").run_line() {
        Err(_) if porcelain.drop_missing_blobs()? => {
            unstorable.extend(porcelain.fill_index(&names, &left_out)?);
            porcelain.git("write-tree").run_line()?
        }
        written => written?,
    };
    let tree = ObjectId::from_hex(tree.as_bytes()).map_err(|error| GitError::Corrupt {
        doing: "writing a tree",
        path: paths.git_dir().to_owned(),
        source: Box::new(error),
    })?;
    durable::sync_all_objects(&paths.common_dir().join("objects"))?;
    Ok(CollectedTree { tree, held_back, unstorable, written: Vec::new() })
}

impl PrivateIndex<'_> {
    fn porcelain(&self) -> GitPorcelain<'_> {
        GitPorcelain { repository: self.tracked.repository, index: &self.file }
    }
}

impl<'a> GitPorcelain<'a> {
    fn git(&self, command: &str) -> GitCommand<'a> {
        GitCommand::new(self.repository, command).env("GIT_INDEX_FILE", self.index)
    }

    fn read_status(&self) -> Result<BTreeMap<BString, StatusEntry>, GitError> {
        let options = ["--porcelain", "-z", "-uall", "--no-renames", "--ignore-submodules=dirty", "--", ":(top)"];
        let git = self.git("status").with_pathspec_magic().args(options);
        let listing = git.args(self.own_pathspec()).run()?;
        let mut differences = BTreeMap::new();
        for record in listing.split(|byte| *byte == 0).filter(|record| record.len() > 3) {
            let path = BString::from(&record[3..]);
            // The second of two records for one path: removed from the index but still there.
            let is_second = differences.contains_key(&path);
            let kind = if is_second { ChangeKind::Modified } else { parse_change_kind(record[0], record[1]) };
            differences.insert(path, StatusEntry { kind, is_unstaged: record[1] != b' ' });
        }
        Ok(differences)
    }

    /// Returns a pathspec that excludes the runner's folder, if it is one.
    fn own_pathspec(&self) -> Option<String> {
        self.repository
            .is_runner_path(format!("{FOLDER}/").as_bytes())
            .then(|| format!(":(top,exclude,literal){FOLDER}/"))
    }

    /// Stages files that git would store differently since attribute files changed; returns whether there may be any.
    fn renormalize_changed(
        &self,
        private: &PrivateIndex<'_>,
        found: &BTreeMap<BString, StatusEntry>,
    ) -> Result<bool, GitError> {
        let tracked = &private.tracked;
        let rules: Vec<BString> =
            found.keys().chain(tracked.removed()).filter(|path| governed_dir(path).is_some()).cloned().collect();
        if rules.is_empty() {
            return Ok(false);
        }
        let failed = GitError::gix("comparing attributes", self.repository.work_dir());
        let affected =
            find_affected(private.repo, self.repository, &tracked.head_state(), rules.iter()).map_err(failed)?;
        let exists = |path: &BString| {
            let is_tracked = tracked.state.entry_by_path(path.as_ref()).is_some();
            is_tracked && self.repository.absolute_path(path).symlink_metadata().is_ok()
        };
        let affected: Vec<BString> = affected.into_iter().filter(exists).collect();
        // A removed attribute file would still apply through the index.
        let gone: Vec<&BString> =
            rules.iter().filter(|path| self.repository.absolute_path(path).symlink_metadata().is_err()).collect();
        self.drop_from_index(gone.into_iter())?;
        self.renormalize_bisecting(&affected)?;
        Ok(true)
    }

    /// What cannot be stored keeps its old content, and does not prevent others from being stored again.
    fn renormalize_bisecting(&self, some: &[BString]) -> Result<(), GitError> {
        if some.is_empty() {
            return Ok(());
        }
        let options = ["--renormalize", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"];
        let names: Vec<u8> = some.iter().flat_map(|path| [path.as_slice(), b"\0"].concat()).collect();
        let outcome = self.git("add").args(options).input(names).output()?;
        if outcome.is_store_error() && !outcome.status.success() {
            return Err(outcome.into_error("add".to_owned(), self.repository.work_dir().to_owned()));
        }
        if outcome.status.success() {
            return Ok(());
        }
        if some.len() == 1 {
            return self.repository.check_git_usable();
        }
        let (first, second) = some.split_at(some.len() / 2);
        self.renormalize_bisecting(first)?;
        self.renormalize_bisecting(second)
    }

    /// Returns the new files that the rule holds back, and those that git cannot store.
    fn judge_untracked(&self, rule: &HoldBackRule) -> Result<LeftOut, GitError> {
        let repo = self.repository.open()?;
        let submodules = declared_submodules(&repo);
        let mut judge = rule.judge(&repo, self.repository)?;
        let mut left_out = LeftOut::default();
        for (mut path, StatusEntry { kind, .. }) in self.read_status()? {
            if !matches!(kind, ChangeKind::Untracked | ChangeKind::Added) {
                continue;
            }
            if self.repository.absolute_path(&path).join(".git").exists() {
                if submodules.contains(without_slash(&path).as_bstr()) {
                    continue;
                }
                if !path.ends_with(b"/") {
                    path.push(b'/');
                }
            }
            match judge.judge_path(path.as_ref())? {
                HoldBackVerdict::HeldBack(name) => drop(left_out.held_back.insert(name)),
                HoldBackVerdict::Unstorable => drop(left_out.unstorable.insert(path.clone())),
                HoldBackVerdict::Included | HoldBackVerdict::Missing => continue,
            }
            left_out.paths.insert(path);
        }
        Ok(left_out)
    }

    /// Stages everything but `left_out`. Returns the paths that git could not store while it stored the rest.
    fn add_all(&self, names: &BTreeSet<BString>, left_out: &BTreeSet<BString>) -> Result<Vec<BString>, GitError> {
        let Some(error) = self.run_add(&[], names)? else { return Ok(Vec::new()) };
        tracing::warn!(%error, "git cannot store every file");
        let differences = self.read_status()?.into_iter();
        let missing = differences.filter(|(path, found)| found.is_unstaged && !left_out.contains(path));
        self.add_bisecting(&missing.map(|(path, _)| path).collect::<Vec<_>>(), names)
    }

    /// One file can make git give up on all others, so it is found by bisection.
    fn add_bisecting(&self, missing: &[BString], left_out: &BTreeSet<BString>) -> Result<Vec<BString>, GitError> {
        if missing.is_empty() || self.run_add(missing, left_out)?.is_none() {
            return Ok(Vec::new());
        }
        if missing.len() == 1 {
            return Ok(missing.to_vec());
        }
        let (first, second) = missing.split_at(missing.len() / 2);
        let mut unstorable = self.add_bisecting(first, left_out)?;
        unstorable.extend(self.add_bisecting(second, left_out)?);
        Ok(unstorable)
    }

    /// Stages `only`, or everything if that is empty, except `left_out`. Returns git's error, if any.
    fn run_add(&self, only: &[BString], left_out: &BTreeSet<BString>) -> Result<Option<GitError>, GitError> {
        let mut pathspecs = Vec::new();
        if only.is_empty() {
            pathspecs.extend_from_slice(b":/\0");
        }
        let included = only.iter().map(|path| (":(top,literal)", path.as_bytes()));
        let excluded = left_out.iter().map(|path| (":(top,exclude,literal)", without_slash(path)));
        for (magic, path) in included.chain(excluded) {
            pathspecs.extend_from_slice(magic.as_bytes());
            pathspecs.extend_from_slice(path);
            pathspecs.push(0);
        }
        pathspecs.extend(self.own_pathspec().into_iter().flat_map(|pathspec| [pathspec.as_bytes(), b"\0"].concat()));
        let options = ["--all", "--sparse", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul"];
        let git = self.git("add").with_pathspec_magic().args(options);
        let outcome = git.input(pathspecs).output()?;
        if outcome.status.success() {
            return Ok(None);
        }
        let is_about_store = outcome.is_store_error();
        let error = outcome.into_error("add".to_owned(), self.repository.work_dir().to_owned());
        if is_about_store {
            return Err(error);
        }
        self.repository.check_git_usable().map(|()| Some(error))
    }

    /// Brings the index up to date with the work tree, except `left_out` under these names, and returns what git could
    /// not store.
    fn fill_index(&self, names: &BTreeSet<BString>, left_out: &BTreeSet<BString>) -> Result<Vec<BString>, GitError> {
        let unstorable = self.add_all(names, left_out)?;
        self.drop_from_index(left_out.iter())?;
        Ok(unstorable)
    }

    /// Removes entries from the index whose objects are missing, so that they are stored again; returns whether there
    /// were any.
    ///
    /// A `git add` whose objects cannot be written at the last moment reports nothing and still writes the index.
    fn drop_missing_blobs(&self) -> Result<bool, GitError> {
        let staged = self.git("ls-files").args(["--stage", "-z"]).run()?;
        let entries: Vec<(&[u8], BString)> = staged.split(|byte| *byte == 0).filter_map(parse_blob_entry).collect();
        let ids = entries.iter().flat_map(|(id, _)| [*id, b"\n"].concat()).collect();
        let known = self.git("cat-file").args(["--batch-check=%(objectname)"]).input(ids).run()?;
        let answers = known.split(|byte| *byte == b'\n');
        let missing = entries.iter().zip(answers).filter(|(_, answer)| answer.ends_with(b" missing"));
        let missing: Vec<&BString> = missing.map(|((_, path), _)| path).collect();
        self.drop_from_index(missing.iter().copied())?;
        Ok(!missing.is_empty())
    }

    /// What someone has already staged is in the index in spite of the pathspecs.
    fn drop_from_index<'p>(&self, paths: impl Iterator<Item = &'p BString>) -> Result<(), GitError> {
        let names: Vec<u8> = paths.flat_map(|path| [without_slash(path), b"\0"].concat()).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.git("update-index").args(["--force-remove", "-z", "--stdin"]).input(names).run().map(drop)
    }
}

/// Parses a record of `ls-files --stage`; `None` for a submodule, whose commit is in another store.
fn parse_blob_entry(record: &[u8]) -> Option<(&[u8], BString)> {
    let (entry, path) = record.split_once_str(b"\t")?;
    let mut words = entry.split(|byte| *byte == b' ');
    let mode = words.next()?;
    let id = words.next()?;
    (mode != b"160000").then(|| (id, path.into()))
}

fn parse_change_kind(staged: u8, unstaged: u8) -> ChangeKind {
    match (staged, unstaged) {
        (b'?', _) => ChangeKind::Untracked,
        (b'U', _) | (_, b'U') | (b'A', b'A') | (b'D', b'D') => ChangeKind::Unmerged,
        (b'D', _) | (_, b'D') => ChangeKind::Deleted,
        (b'A', _) | (_, b'A') => ChangeKind::Added,
        (b'T', _) | (_, b'T') => ChangeKind::Retyped,
        _ => ChangeKind::Modified,
    }
}

fn without_slash(path: &BString) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}
