//! Whether a branch is in use: checked out in a work tree of the repository, or taken along by a rebase or a bisection
//! there, or git is just at work in one. It is read and nothing is asked of anybody.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gix::config::{File, Source};
use runner_core::shell;

use super::HEADS;
use crate::git::repository::engine::RefStore;
use crate::git::repository::program::Git;
use crate::git::{GitError, Id, Repository};

/// References that name others, one after the other, which are followed.
const MAX_LINKS: usize = 5;
/// Files of a work tree's own folder that name branches which something is being done with.
const BUSY: [&str; 4] =
    ["rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs", "BISECT_START"];

/// Where and how a branch is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InUse {
    /// The work tree.
    pub work_tree: PathBuf,
    /// Its own git folder.
    git_dir: PathBuf,
    /// How.
    pub how: Use,
}

/// How a branch is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is checked out.
    CheckedOut,
    /// A rebase or a bisection will come back to it.
    TakenAlong,
    /// Git is at work in the work tree, and may be checking it out.
    GitAtWork,
}

impl InUse {
    /// Returns the work tree's own git folder.
    pub(in crate::git) fn git_dir(&self) -> &Path {
        &self.git_dir
    }
}

impl Repository {
    /// Returns where the branch `name` is in use; none if it is nowhere.
    pub fn in_use(&self, name: &str) -> Result<Option<InUse>, GitError> {
        let branch = format!("{HEADS}{name}");
        let mut at_work = None;
        for (work_tree, git_dir) in self.work_tree_places()? {
            let used = |how| InUse { work_tree: work_tree.clone(), git_dir: git_dir.clone(), how };
            if self.is_head_of(&git_dir, &branch)? {
                return Ok(Some(used(Use::CheckedOut)));
            }
            if is_taken_along(&git_dir, &branch)? {
                return Ok(Some(used(Use::TakenAlong)));
            }
            if git_dir.join("index.lock").symlink_metadata().is_ok() {
                at_work = Some(used(Use::GitAtWork));
            }
        }
        Ok(at_work)
    }

    /// Returns the work trees that have the branch `name` checked out, or in which something will come back to it.
    pub(in crate::git) fn users_of(&self, name: &str) -> Result<Vec<InUse>, GitError> {
        let branch = format!("{HEADS}{name}");
        let mut users = Vec::new();
        for (work_tree, git_dir) in self.work_tree_places()? {
            let how = if self.is_head_of(&git_dir, &branch)? {
                Use::CheckedOut
            } else if is_taken_along(&git_dir, &branch)? {
                Use::TakenAlong
            } else {
                continue;
            };
            users.push(InUse { work_tree, git_dir, how });
        }
        Ok(users)
    }

    /// Tells whether the index of a work tree that has the branch checked out is closer to `one` than to `other`: which
    /// of the two its files were laid out from.
    pub fn was_laid_out_from(&self, used: &InUse, one: &Id, other: &Id) -> Result<bool, GitError> {
        // The index alone is asked: the files may be on a disk that is away.
        let tree = Self { git_dir: used.git_dir.clone(), ..self.clone() };
        let differing = |commit: &Id| -> Result<usize, GitError> {
            let git = Git::new(&tree, "diff-index").args(["--cached", "--name-only", "-z", "--no-renames"]);
            Ok(git.arg(commit.to_string()).run()?.split(|byte| *byte == 0).count())
        };
        Ok(differing(one)? <= differing(other)?)
    }

    /// Returns where all work trees are, with their own git folders, the first one first.
    ///
    /// One whose folder is gone has nothing checked out, unless it was locked for coming back.
    pub(in crate::git) fn work_tree_places(&self) -> Result<Vec<(PathBuf, PathBuf)>, GitError> {
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
            let link = read(&git_dir.join("gitdir"))?.unwrap_or_default();
            let link = git_dir.join(link.trim_end());
            if is_gone(&link) && git_dir.join("locked").symlink_metadata().is_err() {
                continue;
            }
            let work_tree = link.parent().unwrap_or(&git_dir).to_owned();
            all.push((work_tree, git_dir));
        }
        Ok(all)
    }

    /// Tells whether the HEAD of a work tree names the branch, by way of other references or not.
    fn is_head_of(&self, git_dir: &Path, branch: &str) -> Result<bool, GitError> {
        let repo = self.open()?;
        if self.ref_store(&repo) == RefStore::Program {
            let tree = Self { git_dir: git_dir.to_owned(), ..self.clone() };
            let head = Git::new(&tree, "symbolic-ref").args(["--quiet", "HEAD"]).answer()?;
            return Ok(head.is_some_and(|name| name.trim_ascii_end() == branch.as_bytes()));
        }
        if fs::read_link(git_dir.join("HEAD")).is_ok_and(|target| target == Path::new(branch)) {
            return Ok(true);
        }
        let mut file = git_dir.join("HEAD");
        for _ in 0..MAX_LINKS {
            let Some(text) = read(&file)? else { return Ok(false) };
            let Some(named) = text.strip_prefix("ref:").map(str::trim) else { return Ok(false) };
            if named == branch {
                return Ok(true);
            }
            file = self.common_dir().join(named);
        }
        Ok(false)
    }
}

/// Tells whether a repository has no first work tree: its HEAD says then what a clone begins with.
///
/// Its configuration may be a session's, and an index is what no bare repository has.
fn is_bare(common: &Path) -> bool {
    let says = |name: &str| {
        let settings = File::from_path_no_includes(common.join(name), Source::Local).ok()?;
        settings.boolean("core.bare").ok().flatten()
    };
    let is_said = says("config.worktree").or_else(|| says("config")) == Some(true);
    is_said && is_gone(&common.join("index"))
}

fn is_gone(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Returns the commands after which a work tree uses its branch no more; `from` is another one of the repository.
pub fn leave(from: &Path, work_tree: &Path) -> String {
    let [from, place] = [from, work_tree].map(|path| path.display().to_string());
    if is_gone(work_tree) {
        let git = |words: &[&str]| shell::words(["git", "-C", &from, "worktree"].iter().chain(words).copied());
        return format!("{} && {}", git(&["unlock", &place]), git(&["prune"]));
    }
    shell::words(["git", "-C", &place, "switch", "--detach"])
}

/// Tells whether something that is under way in a work tree will come back to the branch.
fn is_taken_along(git_dir: &Path, branch: &str) -> Result<bool, GitError> {
    let short = branch.strip_prefix(HEADS).unwrap_or(branch);
    for name in BUSY {
        let text = read(&git_dir.join(name))?.unwrap_or_default();
        if text.lines().any(|line| [branch, short].contains(&line.trim())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a small file of git's; nothing where there is no regular file.
fn read(file: &Path) -> Result<Option<String>, GitError> {
    match fs::metadata(file) {
        Ok(found) if found.is_file() => {}
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
