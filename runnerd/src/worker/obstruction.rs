//! What is in the way of the work, read off an error of whichever module: in words, with what a person can do about it,
//! and whether it passes by itself.
//!
//! What follows from it is `runner_core::obstacle`'s.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use nix::libc::{EMFILE, ENFILE};
use runner_core::obstacle::{self, Nature, Obstruction};

use super::claim::Taken;
use super::drive::DriveError;
use super::journal::JournalError;
use super::load::LoadError;
use super::site::Obstacle;
use crate::causes::in_one_line;
use crate::git::GitError;
use crate::process::{SpawnError, StillAlive};
use crate::repo::durable::DurableError;
use crate::repo::kept::KeptError;
use crate::store::StoreError;

/// Said where nobody knows what to do.
const LOOK_AT_LOG: &str = "look at the log in the daemon's state folder (runnerctl daemon status)";

type AnyError = dyn Error + 'static;

/// Describes what is in the way.
pub(super) fn obstruction(error: &AnyError) -> Obstruction {
    Obstruction { what: in_one_line(error), remedy: remedy(error), nature: nature(error) }
}

/// Returns the nature of an error: what its module knows, else what the system said at the end of its chain of causes.
pub(super) fn nature(error: &AnyError) -> Nature {
    let error = inner(error);
    let is_held_by_another = |error: &SpawnError| matches!(error, SpawnError::Locked { .. });
    match error.downcast_ref::<GitError>() {
        Some(git) if git.is_lost() => Nature::Lost,
        Some(git) if git.is_obstacle() => Nature::Passing,
        // A process that cannot be killed waits for a device; a lock has a holder that is alive.
        None if error.is::<StillAlive>() || error.is::<Taken>() => Nature::Passing,
        None if error.downcast_ref().is_some_and(is_held_by_another) => Nature::Passing,
        // Neither comes right by being looked at again.
        None if matches!(error.downcast_ref(), Some(SpawnError::Moved { .. })) => Nature::Lost,
        None if matches!(error.downcast_ref(), Some(KeptError::Damaged { .. })) => Nature::Lost,
        _ => cause(error).map_or(Nature::Lasting, obstacle::of),
    }
}

/// Returns what a person can do: one action, to be followed by a command.
fn remedy(error: &AnyError) -> String {
    let error = inner(error);
    let known = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(git), _) => of_git(git),
        (_, Some(SpawnError::Moved { path })) => Some(format!("put the folder back at {}", path.display())),
        (_, Some(SpawnError::Locked { path })) => Some(format!("end the program that holds {}", path.display())),
        _ => error.is::<Taken>().then(|| "end the run of the other daemon".to_owned()),
    };
    let place = || path(error).map_or_else(|| "the path that is named".to_owned(), |path| path.display().to_string());
    known.or_else(|| of_system(cause(error)?, &place())).or_else(|| of_file(error)).unwrap_or(LOOK_AT_LOG.to_owned())
}

fn of_git(error: &GitError) -> Option<String> {
    Some(match error {
        lost if lost.is_lost() => "put the git folder back".to_owned(),
        GitError::Locked { path } => format!("end the git that holds {}", path.display()),
        GitError::Broken { path, .. } | GitError::FalseObject { path, .. } => {
            format!("mend what git -C {} fsck names", path.display())
        }
        GitError::NotCaptured { .. } => "put that file back as the daemon wrote it".to_owned(),
        GitError::Program { command, path, .. } => {
            format!("put right what git {command} says, in {}", path.display())
        }
        _ => return None,
    })
}

fn of_system(error: &io::Error, place: &str) -> Option<String> {
    Some(match error.kind() {
        ErrorKind::StorageFull => format!("make room on the disk of {place}"),
        ErrorKind::QuotaExceeded => format!("make room within your quota for {place}"),
        ErrorKind::ReadOnlyFilesystem => format!("mount the file system of {place} for writing"),
        ErrorKind::PermissionDenied => format!("give your user the right to use {place}"),
        ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f) of the daemon".to_owned(),
        ErrorKind::NotFound => format!("put {place} back"),
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => format!("move away what is in the place of {place}"),
        ErrorKind::WouldBlock | ErrorKind::OutOfMemory => "end programs that take what the daemon lacks".to_owned(),
        _ if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) => {
            "end programs that have files open, or raise the limit (ulimit -n) of the daemon".to_owned()
        }
        _ => match obstacle::of(error) {
            Nature::Passing => format!("see what the system's log says of {place}"),
            Nature::Lasting | Nature::Lost => return None,
        },
    })
}

fn of_file(error: &AnyError) -> Option<String> {
    path(error).map(|path| format!("put right what is at {}", path.display()))
}

/// Returns what the system said, where it did.
fn cause(error: &AnyError) -> Option<&io::Error> {
    std::iter::successors(Some(error), |&error| error.source()).filter_map(|error| error.downcast_ref()).last()
}

/// Returns the error that others stand for without a word of their own.
fn inner(error: &AnyError) -> &AnyError {
    let under: Option<&AnyError> = match error.downcast_ref() {
        Some(Obstacle::Git(error) | Obstacle::State(LoadError::Git(error))) => Some(error),
        Some(Obstacle::Disk(error) | Obstacle::Kept(KeptError::Disk(error))) => Some(error),
        Some(Obstacle::Kept(error)) => Some(error),
        Some(Obstacle::Alive(error)) => Some(error),
        Some(Obstacle::Spawn(error)) => Some(error),
        Some(Obstacle::State(_) | Obstacle::System { .. } | Obstacle::NoCommit(_) | Obstacle::NoBlob(_)) | None => None,
    };
    let under = under.or_else(|| match error.downcast_ref() {
        Some(DriveError::Journal(JournalError::Disk(error))) => Some(error as &AnyError),
        _ => None,
    });
    let under = under.or_else(|| match (error.downcast_ref(), error.downcast_ref()) {
        (Some(JournalError::Disk(error)), _)
        | (_, Some(StoreError::Disk(error) | StoreError::Kept(KeptError::Disk(error)))) => Some(error as &AnyError),
        (_, Some(StoreError::Kept(error))) => Some(error as &AnyError),
        _ => None,
    });
    let under = under.or_else(|| match error.downcast_ref() {
        Some(LoadError::Git(error)) => Some(error as &AnyError),
        _ => None,
    });
    under.unwrap_or(error)
}

/// Returns the path that an error names.
fn path(error: &AnyError) -> Option<&Path> {
    let of_git = match error.downcast_ref() {
        Some(GitError::Io { path, .. }) => Some(path),
        _ => None,
    };
    let of_file = error.downcast_ref().map(|error| match error {
        DurableError::Io { path, .. } | DurableError::Symlink { path } => path,
        DurableError::WrongType { path, .. } | DurableError::TooLarge { path, .. } => path,
    });
    let of_effect = match error.downcast_ref() {
        Some(Obstacle::System { path, .. }) => Some(path),
        _ => None,
    };
    let of_note = match error.downcast_ref() {
        Some(KeptError::Damaged { path, .. }) => Some(path),
        _ => None,
    };
    let of_start = match error.downcast_ref() {
        Some(SpawnError::Folder { path, .. } | SpawnError::Log { path, .. } | SpawnError::LockFile { path, .. }) => {
            Some(path)
        }
        _ => None,
    };
    of_git.or(of_file).or(of_effect).or(of_note).or(of_start).map(PathBuf::as_path)
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

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
            (remedy(&Obstacle::Disk(DurableError::Symlink { path: "/x".into() })), "put right what is at /x"),
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
        let wrapped: [Box<AnyError>; 3] = [
            Box::new(DriveError::Journal(JournalError::Disk(full()))),
            Box::new(StoreError::Disk(full())),
            Box::new(Obstacle::Disk(full())),
        ];
        for error in wrapped {
            assert_eq!(obstruction(&*error), obstruction(&full()));
        }
    }
}
