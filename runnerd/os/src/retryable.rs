//! What blocks the work, described by the error itself: whether it is transient, and what a person can do about it.
//!
//! Every error type that work can wait for implements this in its own module, variant by variant. The consequences are
//! decided by `runner_core::obstacle`.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::Path;

use nix::libc::{EMFILE, ENFILE};
use runner_core::run::blocker::{self, Blocker, Transience};

use crate::error_chain::display_chain;

/// The remedy if none is known.
pub const LOOK_AT_LOG: &str = "look at the log in the daemon's state directory (runnerctl daemon status)";

/// An error that can block the work.
pub trait Retryable: Error + 'static {
    /// Whether the error is transient.
    fn transience(&self) -> Transience;

    /// Returns what a person can do: one action, to be followed by a command; `None` if none is known.
    fn remedy(&self) -> Option<String>;

    /// Whether a retry may succeed without any action.
    fn is_transient(&self) -> bool {
        self.transience() == Transience::Passing
    }
}

/// Describes what blocks the work.
pub fn describe_blocker(error: &impl Retryable) -> Blocker {
    let remedy = error.remedy().unwrap_or_else(|| LOOK_AT_LOG.to_owned());
    Blocker { what: display_chain(error), remedy, nature: error.transience() }
}

impl Retryable for io::Error {
    fn transience(&self) -> Transience {
        classify_cause(self)
    }

    fn remedy(&self) -> Option<String> {
        cause_remedy(self)
    }
}

/// Classifies the system error at the end of a chain of causes.
pub fn classify_cause(error: &(dyn Error + 'static)) -> Transience {
    system_cause(error).map_or(Transience::Lasting, blocker::classify_io_error)
}

/// Returns what a person can do about the system error at the end of a chain of causes.
pub fn cause_remedy(error: &(dyn Error + 'static)) -> Option<String> {
    system_remedy(system_cause(error)?, "the path that is named")
}

/// Returns what a person can do if the system refuses an operation on a path.
pub fn path_remedy(path: &Path, error: &io::Error) -> String {
    let remedy = system_cause(error).and_then(|error| system_remedy(error, &path.display().to_string()));
    remedy.unwrap_or_else(|| fix_path_remedy(path))
}

/// Returns what a person can do if a path is not as required.
pub fn fix_path_remedy(path: &Path) -> String {
    format!("fix what is at {}", path.display())
}

fn system_remedy(error: &io::Error, subject: &str) -> Option<String> {
    Some(match error.kind() {
        ErrorKind::StorageFull => format!("make room on the disk of {subject}"),
        ErrorKind::QuotaExceeded => format!("make room within your quota for {subject}"),
        ErrorKind::ReadOnlyFilesystem => format!("mount the file system of {subject} for writing"),
        ErrorKind::PermissionDenied => format!("give your user the right to use {subject}"),
        ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f) of the daemon".to_owned(),
        ErrorKind::NotFound => format!("put {subject} back"),
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => format!("move away what is in the place of {subject}"),
        ErrorKind::WouldBlock | ErrorKind::OutOfMemory => "end programs that take what the daemon lacks".to_owned(),
        _ if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) => {
            "end programs that have files open, or raise the limit (ulimit -n) of the daemon".to_owned()
        }
        _ => match blocker::classify_io_error(error) {
            Transience::Passing => format!("see what the system's log says of {subject}"),
            Transience::Lasting | Transience::Lost => return None,
        },
    })
}

/// Returns the system error in a chain of causes, if there is one.
fn system_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    std::iter::successors(Some(error), |&error| error.source()).filter_map(|error| error.downcast_ref()).last()
}
