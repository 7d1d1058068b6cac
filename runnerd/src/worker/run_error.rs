//! Why a run cannot continue: what ends a worker's turn, and what holds the repository when the daemon starts.

use std::path::PathBuf;

use runner_core::run::IllegalRunEvent;
use runner_core::run::blocker::Transience;
use runner_git::{GitError, InvalidId};
use runner_os::retryable::Retryable;

use crate::repo::durable::DurableError;
use crate::store::StoreError;
use crate::worker::context::EffectError;
use crate::worker::iteration::drive::DriveError;
use crate::worker::journal::JournalError;
use crate::worker::load::LoadError;

/// Why a run cannot continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The start of a run cannot be performed.
    #[error(transparent)]
    Effect(#[from] Box<EffectError>),
    /// The repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The committed state cannot be read.
    #[error(transparent)]
    State(#[from] LoadError),
    /// A file cannot be written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// The daemon's own state cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal of an earlier daemon process cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The iteration cannot be driven.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The settlement's commit is not an object id.
    #[error(transparent)]
    InvalidCommit(#[from] InvalidId),
    /// The repository's `repo.json` is missing.
    #[error("{} has no repo.json", folder.display())]
    MissingRecord {
        /// The daemon's folder for the repository.
        folder: PathBuf,
    },
    /// The branch that was committed to no longer exists.
    #[error("the run's branch is gone")]
    MissingBranch,
    /// A bug: the event is illegal in the run's state.
    #[error(transparent)]
    Illegal(#[from] IllegalRunEvent),
    /// A bug: an iteration ended that was never opened.
    #[error("an iteration was settled that was not opened")]
    IterationNotOpened,
}

impl Retryable for RunError {
    fn transience(&self) -> Transience {
        match self {
            Self::Effect(error) => error.transience(),
            Self::Git(error) => error.transience(),
            Self::State(error) => error.transience(),
            Self::Disk(error) => error.transience(),
            Self::Store(error) => error.transience(),
            Self::Journal(error) => error.transience(),
            Self::Drive(error) => error.transience(),
            Self::InvalidCommit(_) | Self::MissingRecord { .. } | Self::MissingBranch => Transience::Lasting,
            Self::Illegal(_) | Self::IterationNotOpened => Transience::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Effect(error) => error.remedy(),
            Self::Git(error) => error.remedy(),
            Self::State(error) => error.remedy(),
            Self::Disk(error) => error.remedy(),
            Self::Store(error) => error.remedy(),
            Self::Journal(error) => error.remedy(),
            Self::Drive(error) => error.remedy(),
            Self::InvalidCommit(_) | Self::MissingRecord { .. } | Self::MissingBranch => None,
            Self::Illegal(_) | Self::IterationNotOpened => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;
    use runner_os::retryable::{LOOK_AT_LOG, describe_blocker};
    use runner_process::SpawnError;

    use super::*;

    fn nature(error: &EffectError) -> Transience {
        error.transience()
    }

    fn remedy(error: &EffectError) -> String {
        describe_blocker(error).remedy
    }

    fn write_error(errno: Errno) -> EffectError {
        EffectError::Disk(DurableError::Io { action: "writing", path: "/x".into(), source: errno.into() })
    }

    #[test]
    fn refusals_of_the_machine_pass_and_those_of_a_right_or_a_path_do_not() {
        for errno in [Errno::ENOSPC, Errno::EDQUOT, Errno::EROFS, Errno::EIO, Errno::EMFILE, Errno::ENFILE] {
            assert_eq!(nature(&write_error(errno)), Transience::Passing, "{errno}");
        }
        assert_eq!(nature(&write_error(Errno::EACCES)), Transience::Lasting);
        assert_eq!(nature(&EffectError::Disk(DurableError::Symlink { path: "/x".into() })), Transience::Lasting);
        assert_eq!(
            nature(&EffectError::Disk(DurableError::TooLarge { path: "/x".into(), len: 1 })),
            Transience::Lasting
        );
        assert_eq!(nature(&EffectError::Git(GitError::Locked { path: "/x".into() })), Transience::Passing);
        let gone = GitError::GitDirMissing { path: "/x/.git".into(), work_dir: "/x".into() };
        assert_eq!(nature(&EffectError::Git(gone)), Transience::Lost);
        assert_eq!(nature(&EffectError::Spawn(SpawnError::HiddenFolderMoved { path: "/x".into() })), Transience::Lost);
    }

    #[test]
    fn each_obstacle_names_an_action_and_its_place() {
        let of_git = |error| remedy(&EffectError::Git(error));
        let broken = || std::io::Error::other("a bad object").into();
        let table = [
            (remedy(&write_error(Errno::ENOSPC)), "make room on the disk of /x"),
            (remedy(&write_error(Errno::EACCES)), "give your user the right to use /x"),
            (remedy(&write_error(Errno::EROFS)), "mount the file system of /x for writing"),
            (remedy(&write_error(Errno::EIO)), "see what the system's log says of /x"),
            (remedy(&EffectError::Disk(DurableError::Symlink { path: "/x".into() })), "fix what is at /x"),
            (of_git(GitError::Locked { path: "/x/index.lock".into() }), "end the git that holds /x/index.lock"),
            (
                of_git(GitError::Corrupt { doing: "reading", path: "/x".into(), source: broken() }),
                "mend what git -C /x fsck names",
            ),
            (of_git(GitError::NoRepository { path: "/x".into() }), "put the git directory back"),
            (remedy(&EffectError::Spawn(SpawnError::Locked { path: "/x".into() })), "end the program that holds /x"),
            (
                remedy(&EffectError::Spawn(SpawnError::HiddenFolderMoved { path: "/x".into() })),
                "put the directory back at /x",
            ),
            (remedy(&EffectError::InvalidCommit("x".to_owned())), LOOK_AT_LOG),
        ];
        for (actual, expected) in table {
            assert_eq!(actual, expected);
        }
    }

    #[test]
    fn what_stands_for_another_error_is_told_like_it() {
        let full = || DurableError::Io { action: "writing", path: "/x".into(), source: Errno::ENOSPC.into() };
        let wrapped = [
            describe_blocker(&RunError::from(DriveError::Journal(JournalError::Disk(full())))),
            describe_blocker(&RunError::from(StoreError::Disk(full()))),
            describe_blocker(&RunError::from(Box::new(EffectError::Disk(full())))),
        ];
        for blocker in wrapped {
            assert_eq!(blocker, describe_blocker(&full()));
        }
    }
}
