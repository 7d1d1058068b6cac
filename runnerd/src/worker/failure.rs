//! Why a run cannot go on: what ends a worker's turn, and what holds the repository when a life begins.

use std::path::PathBuf;

use runner_core::obstacle::Nature;
use runner_core::run::IllegalEvent;

use crate::git::{GitError, InvalidId};
use crate::obstruction::Obstructs;
use crate::repo::durable::DurableError;
use crate::store::StoreError;
use crate::worker::context::Obstacle;
use crate::worker::iteration::drive::DriveError;
use crate::worker::journal::JournalError;
use crate::worker::load::LoadError;

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// What a run begins with cannot be done.
    #[error(transparent)]
    Obstacle(#[from] Box<Obstacle>),
    /// The repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The committed state cannot be read.
    #[error(transparent)]
    State(#[from] LoadError),
    /// A file cannot be written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// The daemon's own state cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal that a previous life has left cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The iteration cannot be driven.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// What was settled names no commit.
    #[error(transparent)]
    NoCommit(#[from] InvalidId),
    /// The repository's record is gone.
    #[error("{} has no repo.json", folder.display())]
    NoRecord {
        /// The daemon's folder for the repository.
        folder: PathBuf,
    },
    /// The branch that was committed to is gone.
    #[error("the run's branch is gone")]
    NoBranch,
    /// A bug: what has happened cannot happen to the run.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// A bug: what is over was never begun.
    #[error("an iteration was settled that was not opened")]
    NotOpened,
}

impl Obstructs for Failure {
    fn nature(&self) -> Nature {
        match self {
            Self::Obstacle(error) => error.nature(),
            Self::Git(error) => error.nature(),
            Self::State(error) => error.nature(),
            Self::Disk(error) => error.nature(),
            Self::Store(error) => error.nature(),
            Self::Journal(error) => error.nature(),
            Self::Drive(error) => error.nature(),
            Self::NoCommit(_) | Self::NoRecord { .. } | Self::NoBranch => Nature::Lasting,
            Self::Illegal(_) | Self::NotOpened => Nature::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Obstacle(error) => error.remedy(),
            Self::Git(error) => error.remedy(),
            Self::State(error) => error.remedy(),
            Self::Disk(error) => error.remedy(),
            Self::Store(error) => error.remedy(),
            Self::Journal(error) => error.remedy(),
            Self::Drive(error) => error.remedy(),
            Self::NoCommit(_) | Self::NoRecord { .. } | Self::NoBranch => None,
            Self::Illegal(_) | Self::NotOpened => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;
    use crate::obstruction::{LOOK_AT_LOG, obstruction};
    use crate::process::SpawnError;

    fn nature(error: &Obstacle) -> Nature {
        error.nature()
    }

    fn remedy(error: &Obstacle) -> String {
        obstruction(error).remedy
    }

    fn writing(errno: Errno) -> Obstacle {
        Obstacle::Disk(DurableError::Io { action: "writing", path: "/x".into(), source: errno.into() })
    }

    #[test]
    fn refusals_of_the_machine_pass_and_those_of_a_right_or_a_path_do_not() {
        for errno in [Errno::ENOSPC, Errno::EDQUOT, Errno::EROFS, Errno::EIO, Errno::EMFILE, Errno::ENFILE] {
            assert_eq!(nature(&writing(errno)), Nature::Passing, "{errno}");
        }
        assert_eq!(nature(&writing(Errno::EACCES)), Nature::Lasting);
        assert_eq!(nature(&Obstacle::Disk(DurableError::Symlink { path: "/x".into() })), Nature::Lasting);
        assert_eq!(nature(&Obstacle::Disk(DurableError::TooLarge { path: "/x".into(), len: 1 })), Nature::Lasting);
        assert_eq!(nature(&Obstacle::Git(GitError::Locked { path: "/x".into() })), Nature::Passing);
        let gone = GitError::Gone { path: "/x/.git".into(), work_dir: "/x".into() };
        assert_eq!(nature(&Obstacle::Git(gone)), Nature::Lost);
        assert_eq!(nature(&Obstacle::Spawn(SpawnError::Moved { path: "/x".into() })), Nature::Lost);
    }

    #[test]
    fn each_obstacle_names_an_action_and_its_place() {
        let of_git = |error| remedy(&Obstacle::Git(error));
        let broken = || std::io::Error::other("a bad object").into();
        let table = [
            (remedy(&writing(Errno::ENOSPC)), "make room on the disk of /x"),
            (remedy(&writing(Errno::EACCES)), "give your user the right to use /x"),
            (remedy(&writing(Errno::EROFS)), "mount the file system of /x for writing"),
            (remedy(&writing(Errno::EIO)), "see what the system's log says of /x"),
            (remedy(&Obstacle::Disk(DurableError::Symlink { path: "/x".into() })), "fix what is at /x"),
            (of_git(GitError::Locked { path: "/x/index.lock".into() }), "end the git that holds /x/index.lock"),
            (
                of_git(GitError::Broken { doing: "reading", path: "/x".into(), source: broken() }),
                "mend what git -C /x fsck names",
            ),
            (of_git(GitError::NoRepository { path: "/x".into() }), "put the git folder back"),
            (remedy(&Obstacle::Spawn(SpawnError::Locked { path: "/x".into() })), "end the program that holds /x"),
            (remedy(&Obstacle::Spawn(SpawnError::Moved { path: "/x".into() })), "put the folder back at /x"),
            (remedy(&Obstacle::NoCommit("x".to_owned())), LOOK_AT_LOG),
        ];
        for (said, expected) in table {
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn what_stands_for_another_error_is_told_like_it() {
        let full = || DurableError::Io { action: "writing", path: "/x".into(), source: Errno::ENOSPC.into() };
        let wrapped = [
            obstruction(&Failure::from(DriveError::Journal(JournalError::Disk(full())))),
            obstruction(&Failure::from(StoreError::Disk(full()))),
            obstruction(&Failure::from(Box::new(Obstacle::Disk(full())))),
        ];
        for told in wrapped {
            assert_eq!(told, obstruction(&full()));
        }
    }
}
