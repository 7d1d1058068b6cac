//! What is in the way of the work, said by the error itself: whether it passes by itself, and what a person can do about it.
//!
//! Every type of error that work can wait for says so in its own module, variant by variant. What follows from it is
//! `runner_core::obstacle`'s.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::Path;

use nix::libc::{EMFILE, ENFILE};
use runner_core::obstacle::{self, Nature, Obstruction};

use crate::causes::in_one_line;

/// Said where nobody knows what to do.
pub const LOOK_AT_LOG: &str = "look at the log in the daemon's state folder (runnerctl daemon status)";

/// An error that can be in the way of the work.
pub trait Obstructs: Error + 'static {
    /// Returns whether it passes by itself.
    fn nature(&self) -> Nature;

    /// Returns what a person can do: one action, to be followed by a command; none where nobody knows one.
    fn remedy(&self) -> Option<String>;

    /// Tells whether the same may work later without anybody doing anything about it.
    fn passes(&self) -> bool {
        self.nature() == Nature::Passing
    }
}

/// Describes what is in the way.
pub fn obstruction(error: &impl Obstructs) -> Obstruction {
    let remedy = error.remedy().unwrap_or_else(|| LOOK_AT_LOG.to_owned());
    Obstruction { what: in_one_line(error), remedy, nature: error.nature() }
}

impl Obstructs for io::Error {
    fn nature(&self) -> Nature {
        nature_of_cause(self)
    }

    fn remedy(&self) -> Option<String> {
        of_system(cause(self)?, "the path that is named")
    }
}

/// Returns the nature of what the system said at the end of a chain of causes.
pub fn nature_of_cause(error: &(dyn Error + 'static)) -> Nature {
    cause(error).map_or(Nature::Lasting, obstacle::of)
}

/// Returns what a person can do where the system refuses something at a path.
pub fn remedy_at(path: &Path, error: &io::Error) -> String {
    let known = cause(error).and_then(|error| of_system(error, &path.display().to_string()));
    known.unwrap_or_else(|| put_right(path))
}

/// Returns what a person can do where a path is not as it must be.
pub fn put_right(path: &Path) -> String {
    format!("fix what is at {}", path.display())
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

/// Returns what the system said, where it did.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    std::iter::successors(Some(error), |&error| error.source()).filter_map(|error| error.downcast_ref()).last()
}
