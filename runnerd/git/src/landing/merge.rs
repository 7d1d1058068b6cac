//! Merges three trees with the git program, independent of anyone's configuration.
//!
//! The program works in its own folder, which borrows the repository's objects. No driver, system attribute or personal
//! setting takes part, so the same trees give the same merge on every machine. What counts as text is decided by the
//! branch's `.gitattributes`, which are written there first.

use std::fs;
use std::path::{Path, PathBuf};

use gix::objs::Kind;
use gix::prelude::Write as _;
use tempfile::TempDir;

use crate::objects::CommitEntry;
use crate::path::display_path;
use crate::repository::program::GitCommand;
use crate::{EntryKind, GitError, Id, Repository};
use gix::bstr::ByteSlice as _;

/// Settings that merges depend on; all others are git's defaults.
const MERGE_CONFIG: &str = "\
[merge]
\trenames = true
\tdirectoryRenames = conflict
\trenameLimit = 7000
\trenormalize = false
\tconflictStyle = merge
[diff]
\trenames = true
\trenameLimit = 7000
\talgorithm = histogram
";
/// Author of the throwaway commits that represent the sides of a merge.
const PLACEHOLDER_IDENT: &str = "runnerd <runnerd@localhost> 0 +0000";
const ATTRIBUTES: &[u8] = b".gitattributes";
const SUBMODULE: &str = "160000";

/// The trees to merge: base and both sides.
#[derive(Debug, Clone, Copy)]
pub struct TreeMerge {
    /// Tree of the common base.
    pub base: Id,
    /// The branch's tree.
    pub ours: Id,
    /// The run's tree.
    pub theirs: Id,
}

/// Result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult {
    /// The merged tree.
    Clean(Id),
    /// Both sides changed the same files differently.
    Conflict {
        /// The merged tree, with the conflicts marked in its files.
        tree: Id,
        /// All conflicting paths, sorted.
        paths: Vec<String>,
        /// Those that are submodules.
        submodules: Vec<String>,
    },
}

/// Merges trees in a temporary folder that is removed with it.
#[derive(Debug)]
pub struct TreeMerger<'a> {
    repository: &'a Repository,
    folder: TempDir,
}

impl Repository {
    /// Creates a folder for merges in `parent_dir`, with the attributes of a commit.
    pub fn create_merger(&self, parent_dir: &Path, attributes: &Id) -> Result<TreeMerger<'_>, GitError> {
        fs::create_dir_all(parent_dir).map_err(GitError::io("making", parent_dir))?;
        let folder = tempfile::Builder::new().prefix("merge-").tempdir_in(parent_dir);
        let folder = folder.map_err(GitError::io("making a directory in", parent_dir))?;
        let merger = TreeMerger { repository: self, folder };
        merger.create_git_dir(attributes)?;
        Ok(merger)
    }

    /// Returns the version of the git program.
    pub fn git_version(&self) -> Result<String, GitError> {
        let output = GitCommand::new(self, "version").run_line()?;
        Ok(output.split(' ').nth(2).unwrap_or(&output).to_owned())
    }
}

impl TreeMerger<'_> {
    /// Merges the trees.
    pub fn merge(&self, merge: &TreeMerge) -> Result<MergeResult, GitError> {
        let base = self.wrap_tree(&merge.base, None)?;
        let ours = self.wrap_tree(&merge.ours, Some(&base))?;
        let theirs = self.wrap_tree(&merge.theirs, Some(&base))?;
        let git = GitCommand::new(self.repository, "merge-tree").args(["--write-tree", "-z", "--no-messages"]);
        let git = git.args([ours.to_string(), theirs.to_string()]);
        let outcome = self.isolate_command(git).output()?;
        let mut records = outcome.stdout.split(|byte| *byte == 0).filter(|record| !record.is_empty());
        let tree = records.next().and_then(|record| str::from_utf8(record).ok()?.parse().ok());
        match (outcome.status.code(), tree) {
            (Some(0), Some(tree)) => Ok(MergeResult::Clean(tree)),
            (Some(1), Some(tree)) => Ok(parse_conflict(tree, records)),
            _ => Err(outcome.into_error("merge-tree".to_owned(), self.repository.work_dir().to_owned())),
        }
    }

    /// Stores a commit with this tree, which no reference keeps: older versions of git do not merge bare trees.
    pub fn wrap_tree(&self, tree: &Id, parent: Option<&Id>) -> Result<Id, GitError> {
        let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
        let text = format!(
            "tree {tree}\n{parent}author {PLACEHOLDER_IDENT}\ncommitter {PLACEHOLDER_IDENT}\n\nA side of a merge\n"
        );
        let repo = self.repository.open()?;
        let written = repo.write_buf(Kind::Commit, text.as_bytes());
        Ok(written.map_err(GitError::gix("writing a commit", self.repository.git_dir()))?.into())
    }

    /// Cuts a command off from the repository except for its objects.
    fn isolate_command<'g>(&self, git: GitCommand<'g>) -> GitCommand<'g> {
        let git_dir = self.git_dir();
        let work = self.work_dir();
        git.current_dir(&work)
            .env("GIT_DIR", &git_dir)
            .env("GIT_COMMON_DIR", &git_dir)
            .env("GIT_WORK_TREE", &work)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("XDG_CONFIG_HOME", &git_dir)
            .env("HOME", &git_dir)
    }

    fn git_dir(&self) -> PathBuf {
        self.folder.path().join("git")
    }

    fn work_dir(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn create_git_dir(&self, attributes: &Id) -> Result<(), GitError> {
        let git_dir = self.git_dir();
        let work = self.work_dir();
        for folder in [git_dir.join("objects"), git_dir.join("refs"), work.clone()] {
            fs::create_dir_all(&folder).map_err(GitError::io("making", &folder))?;
        }
        let (version, format) = match attributes.to_string().len() {
            64 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
            _ => (0, ""),
        };
        let config = format!("[core]\n\trepositoryformatversion = {version}\n\tbare = false\n{format}{MERGE_CONFIG}");
        for (name, text) in [("HEAD", "ref: refs/heads/none\n"), ("config", &config)] {
            let file = git_dir.join(name);
            fs::write(&file, text).map_err(GitError::io("writing", &file))?;
        }
        for entry in self.repository.list_entries(attributes, "")?.iter().filter(|entry| is_gitattributes(entry)) {
            let file = work.join(entry.path.to_path_lossy());
            let folder = file.parent().unwrap_or(&work);
            fs::create_dir_all(folder).map_err(GitError::io("making", folder))?;
            fs::write(&file, self.repository.read_blob(&entry.id)?).map_err(GitError::io("writing", &file))?;
        }
        Ok(())
    }
}

fn is_gitattributes(entry: &CommitEntry) -> bool {
    let name = entry.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name == ATTRIBUTES && matches!(entry.kind, EntryKind::File | EntryKind::Executable)
}

/// Parses the files of a conflicting merge: `<mode> <object> <stage>`, a tab, and the path.
fn parse_conflict<'r>(tree: Id, records: impl Iterator<Item = &'r [u8]>) -> MergeResult {
    let mut paths = Vec::new();
    let mut submodules = Vec::new();
    for record in records {
        let Some((facts, path)) = record.split_once_str(b"\t") else { continue };
        let path = display_path(path.as_bstr());
        if facts.starts_with(SUBMODULE.as_bytes()) && !submodules.contains(&path) {
            submodules.push(path.clone());
        }
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    MergeResult::Conflict { tree, paths, submodules }
}
