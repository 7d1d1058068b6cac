//! Whether a branch is in use: checked out in a work tree of the repository, part of a rebase or bisection there, or
//! git is running in a work tree right now. Read from files only, without running git.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gix::config::{File, Source};
use protocol::shell;

use super::HEADS;
use crate::repository::engine::RefStore;
use crate::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

/// Symbolic references followed in a row.
const MAX_LINKS: usize = 5;
/// Limit in bytes of a file that names branches or a work tree.
const MAX_NAME_BYTES: u64 = 1 << 20;
/// Files in a work tree's git folder that name branches in use by an operation.
const OPERATION_FILES: [&str; 4] =
    ["rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs", "BISECT_START"];

/// Where and how a branch is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchUser {
    /// The work tree.
    pub work_tree: PathBuf,
    /// Its git folder.
    git_dir: PathBuf,
    /// The kind of use.
    pub kind: BranchUseKind,
}

/// How a branch is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchUseKind {
    /// It is checked out.
    CheckedOut,
    /// A rebase or a bisection will return to it.
    HeldByOperation,
    /// git is running in the work tree, and may be checking it out.
    GitRunning,
}

impl BranchUser {
    /// Returns the work tree's own git folder.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }
}

impl Repository {
    /// Returns where the branch `name` is in use; `None` if nowhere.
    pub fn find_branch_use(&self, name: &str) -> Result<Option<BranchUser>, GitError> {
        let branch = format!("{HEADS}{name}");
        let mut at_work = None;
        for (work_tree, git_dir) in self.list_work_tree_dirs()? {
            let user = |how| BranchUser { work_tree: work_tree.clone(), git_dir: git_dir.clone(), kind: how };
            if self.is_checked_out_in(&git_dir, &branch)? {
                return Ok(Some(user(BranchUseKind::CheckedOut)));
            }
            if is_held_by_operation(&git_dir, &branch)? {
                return Ok(Some(user(BranchUseKind::HeldByOperation)));
            }
            if git_dir.join("index.lock").symlink_metadata().is_ok() {
                at_work = Some(user(BranchUseKind::GitRunning));
            }
        }
        Ok(at_work)
    }

    /// Returns the work trees that have the branch `name` checked out or in which an operation will return to it.
    pub(crate) fn find_branch_users(&self, name: &str) -> Result<Vec<BranchUser>, GitError> {
        let branch = format!("{HEADS}{name}");
        let mut users = Vec::new();
        for (work_tree, git_dir) in self.list_work_tree_dirs()? {
            let how = if self.is_checked_out_in(&git_dir, &branch)? {
                BranchUseKind::CheckedOut
            } else if is_held_by_operation(&git_dir, &branch)? {
                BranchUseKind::HeldByOperation
            } else {
                continue;
            };
            users.push(BranchUser { work_tree, git_dir, kind: how });
        }
        Ok(users)
    }

    /// Whether the index of a work tree that has the branch checked out is closer to `one` than to `other`: that is the
    /// commit its files were checked out from.
    pub fn is_index_closer_to(&self, user: &BranchUser, one: &Id, other: &Id) -> Result<bool, GitError> {
        // Reads only the index: the files may be on a disk that is not mounted.
        let tree = Self { git_dir: user.git_dir.clone(), ..self.clone() };
        let differing = |commit: &Id| -> Result<usize, GitError> {
            let git = GitCommand::new(&tree, "diff-index").args(["--cached", "--name-only", "-z", "--no-renames"]);
            Ok(git.arg(commit.to_string()).run()?.split(|byte| *byte == 0).count())
        };
        Ok(differing(one)? <= differing(other)?)
    }

    /// Returns the folders of all work trees with their git folders, the main one first.
    ///
    /// A work tree whose folder is missing has nothing checked out, unless it is locked because it will return.
    pub(crate) fn list_work_tree_dirs(&self) -> Result<Vec<(PathBuf, PathBuf)>, GitError> {
        let common = self.common_dir();
        let first = common.parent().filter(|_| common.ends_with(".git")).unwrap_or(common);
        let first = (!is_bare(common)).then(|| (first.to_owned(), common.to_owned()));
        let mut all: Vec<_> = first.into_iter().collect();
        let folder = common.join("worktrees");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(all),
            Err(error) => return Err(GitError::io("listing", &folder)(error)),
        };
        for entry in entries {
            let git_dir = entry.map_err(GitError::io("listing", &folder))?.path();
            let link = read_small_file(&git_dir.join("gitdir"))?.unwrap_or_default();
            let link = git_dir.join(link.trim_end());
            if is_missing(&link) && git_dir.join("locked").symlink_metadata().is_err() {
                continue;
            }
            let work_tree = link.parent().unwrap_or(&git_dir).to_owned();
            all.push((work_tree, git_dir));
        }
        Ok(all)
    }

    /// Whether the HEAD of a work tree names the branch, directly or through symbolic references.
    fn is_checked_out_in(&self, git_dir: &Path, branch: &str) -> Result<bool, GitError> {
        let repo = self.open()?;
        if self.choose_ref_store(&repo) == RefStore::GitOnly {
            let tree = Self { git_dir: git_dir.to_owned(), ..self.clone() };
            let head = GitCommand::new(&tree, "symbolic-ref").args(["--quiet", "HEAD"]).run_optional()?;
            return Ok(head.is_some_and(|name| name.trim_ascii_end() == branch.as_bytes()));
        }
        if fs::read_link(git_dir.join("HEAD")).is_ok_and(|target| target == Path::new(branch)) {
            return Ok(true);
        }
        let mut file = git_dir.join("HEAD");
        for _ in 0..MAX_LINKS {
            let Some(text) = read_small_file(&file)? else { return Ok(false) };
            let Some(named) = text.strip_prefix("ref:").map(str::trim) else { return Ok(false) };
            if named == branch {
                return Ok(true);
            }
            file = self.common_dir().join(named);
        }
        Ok(false)
    }
}

/// Whether a repository has no main work tree: its HEAD then only sets the initial branch of clones.
///
/// A session may have written its configuration; an index, however, is something no bare repository has.
fn is_bare(common: &Path) -> bool {
    let read_flag = |name: &str| {
        let settings = File::from_path_no_includes(common.join(name), Source::Local).ok()?;
        settings.boolean("core.bare").ok().flatten()
    };
    let is_configured_bare = read_flag("config.worktree").or_else(|| read_flag("config")) == Some(true);
    is_configured_bare && is_missing(&common.join("index"))
}

fn is_missing(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Returns the commands that make a work tree release its branch; `from` is another work tree of the repository.
pub fn leave_branch_command(from: &Path, work_tree: &Path) -> String {
    let [from, place] = [from, work_tree].map(|path| path.display().to_string());
    if is_missing(work_tree) {
        let git = |words: &[&str]| shell::join_args(["git", "-C", &from, "worktree"].iter().chain(words).copied());
        return format!("{} && {}", git(&["unlock", &place]), git(&["prune"]));
    }
    shell::join_args(["git", "-C", &place, "switch", "--detach"])
}

/// Whether an operation in progress in a work tree will return to the branch.
fn is_held_by_operation(git_dir: &Path, branch: &str) -> Result<bool, GitError> {
    let short = branch.strip_prefix(HEADS).unwrap_or(branch);
    for name in OPERATION_FILES {
        let text = read_small_file(&git_dir.join(name))?.unwrap_or_default();
        if text.lines().any(|line| [branch, short].contains(&line.trim())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a small file of git's; `None` if it is not a regular file, or too large to name a branch or a work tree.
fn read_small_file(file: &Path) -> Result<Option<String>, GitError> {
    match fs::metadata(file) {
        Ok(found) if found.is_file() && found.len() <= MAX_NAME_BYTES => {}
        Ok(_) => return Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(GitError::io("reading", file)(error)),
    }
    match fs::read(file) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(GitError::io("reading", file)(error)),
    }
}
