//! What can go wrong while git carries out a request. Facts about a repository are not errors; only requests that could
//! not be carried out are.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::shell;
use runner_core::run::blocker::Transience;
use runner_os::retryable::{Retryable, cause_remedy, classify_cause, path_remedy};

use super::id::Id;
use super::operation::Operation;
use super::refs::branch_use::leave_branch_command;
use super::repository::at_work::{Ender, waited_on};

/// An object whose content does not match its name.
#[derive(Debug, thiserror::Error)]
#[error("object {0} is not what its name says")]
pub(super) struct HashMismatch(pub(super) gix::ObjectId);

/// Why a request to a repository could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no repository at the path or above it.
    #[error("no git repository found at or above {path}")]
    NoRepository {
        /// Where the search started.
        path: PathBuf,
    },
    /// The repository has no work tree.
    #[error("refusing the bare repository {path}")]
    BareRepository {
        /// The git folder.
        path: PathBuf,
    },
    /// The repository belongs to another user, whose configuration could run programs.
    #[error("refusing the repository {path}: it belongs to another user")]
    ForeignOwner {
        /// The work tree, as `safe.directory` names it; the git folder if there is no work tree.
        path: PathBuf,
    },
    /// The git folder of a repository opened earlier is missing, or is no longer a folder.
    #[error("the git directory {path} is gone; the files in {work_dir} are as they were left")]
    GitDirMissing {
        /// The missing git folder.
        path: PathBuf,
        /// The work tree, whose files are untouched.
        work_dir: PathBuf,
    },
    /// The git folder is not the one the session started with.
    #[error("the git directory {path} is another one than when the session began")]
    GitDirReplaced {
        /// The git folder.
        path: PathBuf,
    },
    /// The work tree's link to its git folder no longer leads where it did when the repository was opened.
    #[error("the git directory of {path} was replaced: expected {expected}, found {found}")]
    GitLinkChanged {
        /// The work tree.
        path: PathBuf,
        /// The folder the link led to when the repository was opened.
        expected: PathBuf,
        /// The folder it leads to now.
        found: PathBuf,
    },
    /// The captured git configuration is unknown: its saved note is missing or has been altered.
    #[error("what git may obey in {path} is not known")]
    PinnedConfigLost {
        /// The work tree.
        path: PathBuf,
        /// What is wrong with the note.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A lock file is in the way.
    #[error("locked by {path}")]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{doing} {path}")]
    Io {
        /// The operation, such as `reading`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The repository holds something that cannot be read or used.
    #[error("{doing} in {path}")]
    Corrupt {
        /// The operation, such as `reading a commit`.
        doing: &'static str,
        /// The repository.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object's content does not match its name.
    #[error("object {id} in {path} is not what its name says")]
    HashMismatch {
        /// The expected object.
        id: Id,
        /// The repository.
        path: PathBuf,
    },
    /// A commit is missing although a reference kept it alive.
    #[error("commit {} is not in {} any more: its objects were removed", commit.short(12), path.display())]
    CommitPruned {
        /// The missing commit.
        commit: Id,
        /// The work tree.
        path: PathBuf,
    },
    /// A pipe is in the place of a file that git reads.
    #[error("{} is a pipe, which git would wait for ever to read", path.display())]
    Pipe {
        /// The pipe.
        path: PathBuf,
    },
    /// A file that git reads whole is too large for that.
    #[error("{} is too large to be read; git has written no such file", path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Files of a commit are not in a partial clone, and nothing is fetched here.
    #[error("{} is a partial clone: files of commit {} are with its remote alone", path.display(), commit.short(12))]
    ObjectsAtRemote {
        /// The commit.
        commit: Id,
        /// The work tree.
        path: PathBuf,
    },
    /// The git program reported a failure.
    #[error("git {command} failed in {path} ({status}): {stderr}")]
    CommandFailed {
        /// The subcommand.
        command: String,
        /// The work tree.
        path: PathBuf,
        /// Its exit status in words.
        status: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// The git program did not finish, and was terminated.
    #[error(
        "git {command} in {} was ended after {} s{}: {by}", path.display(), after.as_secs(), waited_on(waited_for.as_deref())
    )]
    Ended {
        /// The subcommand.
        command: String,
        /// The work tree.
        path: PathBuf,
        /// The program it was waiting for, if known.
        waited_for: Option<String>,
        /// How long it had been running.
        after: Duration,
        /// Who terminated it, and why.
        by: Ender,
    },
    /// A merge, rebase or the like must be finished first.
    #[error("{operation} under way in {path}")]
    OperationInProgress {
        /// The operation in progress.
        operation: Operation,
        /// The work tree.
        path: PathBuf,
    },
    /// HEAD or a branch is not where the caller expected it.
    #[error("{name} moved in {path}: expected {}, found {}", format_commit(*expected), format_commit(*found))]
    RefMoved {
        /// Name of the reference.
        name: String,
        /// The work tree.
        path: PathBuf,
        /// The commit the caller expected; `None` if it expected no reference.
        expected: Option<Id>,
        /// The commit it is at; `None` if it does not exist.
        found: Option<Id>,
    },
    /// A branch to be created already exists.
    #[error("branch {name} already exists in {path}")]
    BranchExists {
        /// Its short name.
        name: String,
        /// The work tree.
        path: PathBuf,
    },
    /// An existing reference leaves no room for a new one.
    #[error("{} is in the way of `{}`: git cannot hold both", describe_ref(existing), short_ref_name(requested))]
    RefConflict {
        /// Full name of the existing reference.
        existing: String,
        /// Full name of the reference that was not created.
        requested: String,
        /// An unused name that the existing branch could be renamed to.
        free: Option<String>,
        /// The work tree.
        path: PathBuf,
    },
    /// Another work tree has a branch checked out, or will return to it.
    #[error("branch {branch} is in use in {}{}", path.display(), if path.exists() { "" } else { ", which is locked and not there" })]
    BranchInUse {
        /// Its short name.
        branch: String,
        /// The work tree that uses it.
        path: PathBuf,
        /// The work tree that needed it.
        from: PathBuf,
    },
    /// A linked work tree is no longer where its repository was opened.
    #[error("the working tree {from} was moved to {to}")]
    WorkTreeMoved {
        /// Where it was.
        from: PathBuf,
        /// Where it is.
        to: PathBuf,
        /// The git folder it shares with other work trees.
        common: PathBuf,
    },
    /// A branch is missing.
    #[error("no branch {name} in {path}")]
    MissingBranch {
        /// Its short name.
        name: String,
        /// The work tree.
        path: PathBuf,
    },
    /// A file of HEAD was changed into something git cannot store: a commit without the change would lose it.
    #[error("the change of {file} cannot be stored: {why}")]
    UnstorableChange {
        /// The file, relative to the work tree.
        file: String,
        /// What git or the system reported.
        why: String,
        /// What a person can do about it.
        remedy: String,
    },
    /// A file written for a commit would differ from what the runner wrote.
    #[error("{file} in {path} would be committed otherwise than the runner has written it")]
    FileOverwritten {
        /// The file, relative to the work tree.
        file: String,
        /// The work tree.
        path: PathBuf,
    },
    /// The work tree holds nothing that HEAD lacks.
    #[error("nothing to commit in {path}")]
    NothingToCommit {
        /// The work tree.
        path: PathBuf,
    },
    /// Continuing would destroy bytes that exist nowhere else.
    #[error("{file} in {path} would be lost: it is not in the rescue commit")]
    NotRescued {
        /// The file, relative to the work tree.
        file: String,
        /// The work tree.
        path: PathBuf,
    },
    /// Packs were rewritten each time they were copied.
    #[error("the packs of {path} are being rewritten")]
    ConcurrentRepack {
        /// The work tree.
        path: PathBuf,
    },
    /// A crash left an incomplete object; it has been removed, and the next attempt writes it again.
    #[error("{} was left in part by a crash, and is removed", path.display())]
    TornObject {
        /// Path of the object.
        path: PathBuf,
    },
}

fn format_commit(id: Option<Id>) -> String {
    id.map_or_else(|| "nothing".to_owned(), |id| id.short(12))
}

fn short_ref_name(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

fn describe_ref(name: &str) -> String {
    let kind = if name.starts_with("refs/heads/") { "branch" } else { "reference" };
    format!("the {kind} `{}`", short_ref_name(name))
}

/// Returns what a person can do about the reference that is in the way.
fn ref_conflict_remedy(path: &Path, existing: &str, free: Option<&str>) -> String {
    let place = path.display().to_string();
    let existing_name = short_ref_name(existing);
    match free {
        Some(free) => {
            format!("rename it: {}", shell::join_args(["git", "-C", &place, "branch", "-m", existing_name, free]))
        }
        None => format!("look at it: {}", shell::join_args(["git", "-C", &place, "for-each-ref", existing_name])),
    }
}

impl GitError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    /// Sorts a library failure into the kinds that callers tell apart.
    pub(super) fn gix(doing: &'static str, path: &Path) -> impl FnOnce(gix::Error) -> Self {
        move |source| {
            let path = path.to_owned();
            if let Some(HashMismatch(id)) = source.downcast_any_ref() {
                return Self::HashMismatch { id: Id::from(*id), path };
            }
            if source.is_retryable() {
                return Self::Locked { path };
            }
            match source.downcast_any_ref::<io::Error>().map(clone_io_error) {
                Some(error) if error.is_transient() => Self::Io { doing, path, source: error },
                _ => Self::Corrupt { doing, path, source: Box::new(source) },
            }
        }
    }
}

impl Retryable for GitError {
    fn transience(&self) -> Transience {
        match self {
            Self::NoRepository { .. }
            | Self::GitDirMissing { .. }
            | Self::GitDirReplaced { .. }
            | Self::GitLinkChanged { .. }
            | Self::WorkTreeMoved { .. }
            // It was given its time, or its caller does not want it to take longer.
            | Self::Ended { .. }
            | Self::HashMismatch { .. } => Transience::Lost,
            Self::Locked { .. } | Self::TornObject { .. } | Self::ConcurrentRepack { .. } => Transience::Passing,
            Self::Io { source, .. } => source.transience(),
            Self::PinnedConfigLost { source, .. } | Self::Corrupt { source, .. } => classify_cause(&**source),
            Self::BareRepository { .. }
            | Self::ForeignOwner { .. }
            | Self::CommitPruned { .. }
            | Self::ObjectsAtRemote { .. }
            | Self::Pipe { .. }
            | Self::FileTooLarge { .. }
            | Self::CommandFailed { .. }
            | Self::OperationInProgress { .. }
            | Self::RefMoved { .. }
            | Self::BranchExists { .. }
            | Self::RefConflict { .. }
            | Self::BranchInUse { .. }
            | Self::MissingBranch { .. }
            | Self::UnstorableChange { .. }
            | Self::FileOverwritten { .. }
            | Self::NothingToCommit { .. }
            | Self::NotRescued { .. } => Transience::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::NoRepository { .. }
            | Self::GitDirMissing { .. }
            | Self::GitDirReplaced { .. }
            | Self::GitLinkChanged { .. } => Some("put the git directory back".to_owned()),
            Self::Locked { path } => Some(format!("end the git that holds {}", path.display())),
            Self::Corrupt { path, .. } | Self::HashMismatch { path, .. } => {
                Some(format!("mend what git -C {} fsck names", path.display()))
            }
            Self::CommitPruned { commit, path } => {
                Some(format!("bring it back from a clone that has it: git -C {} fetch CLONE {commit}", path.display()))
            }
            Self::FileTooLarge { path } => {
                let path = path.display().to_string();
                Some(shell::join_args(["mv", &path, &format!("{path}.large")]))
            }
            Self::Pipe { path } => Some(shell::join_args(["rm", &path.display().to_string()])),
            Self::ObjectsAtRemote { path, .. } => {
                Some(shell::join_args(["git", "-C", &path.display().to_string(), "fetch", "--refetch", "--no-filter"]))
            }
            Self::UnstorableChange { remedy, .. } => Some(remedy.clone()),
            Self::FileOverwritten { file, path } => Some(format!("end what writes to {}", path.join(file).display())),
            Self::BranchInUse { path, from, .. } => Some(leave_branch_command(from, path)),
            Self::WorkTreeMoved { from, to, common } => {
                let [from, to, common] = [from, to, common].map(|path| path.display().to_string());
                Some(format!(
                    "{}, or move it back: {}",
                    shell::join_args(["cd", &to]),
                    shell::join_args(["git", "-C", &common, "worktree", "move", &to, &from])
                ))
            }
            Self::RefConflict { existing, free, path, .. } => {
                Some(ref_conflict_remedy(path, existing, free.as_deref()))
            }
            // What the system refuses for now is not mended by another file.
            Self::PinnedConfigLost { source, .. } => Some(
                cause_remedy(&**source)
                    .filter(|_| self.is_transient())
                    .unwrap_or_else(|| "put that file back as the daemon wrote it".to_owned()),
            ),
            Self::CommandFailed { command, path, .. } => {
                Some(format!("put right what git {command} says, in {}", path.display()))
            }
            Self::Ended { command, path, waited_for, .. } => Some(match waited_for {
                Some(program) => {
                    format!("let {program} answer without a person, for git {command} in {}", path.display())
                }
                None => format!("see what git {command} waits for in {}", path.display()),
            }),
            Self::Io { path, source, .. } => Some(path_remedy(path, source)),
            Self::BareRepository { .. }
            | Self::ForeignOwner { .. }
            | Self::OperationInProgress { .. }
            | Self::RefMoved { .. }
            | Self::BranchExists { .. }
            | Self::MissingBranch { .. }
            | Self::NothingToCommit { .. }
            | Self::NotRescued { .. }
            | Self::ConcurrentRepack { .. }
            | Self::TornObject { .. } => None,
        }
    }
}

fn clone_io_error(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_and_locks_pass() {
        let full = GitError::io("writing", Path::new("x"))(io::Error::from_raw_os_error(nix::libc::ENOSPC));
        assert!(full.is_transient());
        assert!(GitError::Locked { path: "index.lock".into() }.is_transient());
    }

    #[test]
    fn configuration_that_a_full_disk_cannot_take_needs_room_and_no_other_file() {
        let lost = |code| {
            let source = Box::new(io::Error::from_raw_os_error(code));
            GitError::PinnedConfigLost { path: "x".into(), source }.remedy().expect("something helps")
        };
        assert_eq!(lost(nix::libc::ENOSPC), "make room on the disk of the path that is named");
        assert_eq!(lost(nix::libc::ENOENT), "put that file back as the daemon wrote it");
    }

    #[test]
    fn missing_and_forbidden_files_do_not_pass() {
        for code in [nix::libc::ENOENT, nix::libc::EACCES] {
            let error = GitError::io("reading", Path::new("x"))(io::Error::from_raw_os_error(code));
            assert!(!error.is_transient());
        }
    }
}
