//! Decides how often an effect that cannot be carried out is retried, and when a person must step in.
//!
//! Nothing here costs an attempt: an obstacle is not a verdict.

use std::io::{self, ErrorKind};

use protocol::command::NextSteps;
use protocol::view::StopReason;
use serde::{Deserialize, Serialize};

/// Pauses before the next try, in seconds; the last one repeats.
const RETRY_SECS: [u64; 6] = [1, 2, 5, 10, 30, 60];
/// Tries against an obstacle that is not known to pass: together they take about three minutes, during which a network
/// file system, a program that is being updated or a person may recover.
const PERMANENT_TRIES: u32 = 8;
/// Tries for a run that a person has cancelled, whatever the obstacle: together they take eight seconds, during which a
/// lock may be released or a program may exit.
const CANCELLED_TRIES: u32 = 4;
/// EIO, ENFILE, EMFILE: system errors without their own `ErrorKind`.
const TRANSIENT_CODES: [i32; 3] = [5, 23, 24];

/// An obstacle to an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// What was being done to which path, and what the system reported.
    pub what: String,
    /// What a person can do about it.
    pub remedy: String,
    /// Whether it passes without intervention.
    pub nature: Transience,
}

impl Blocker {
    /// Returns the reason shown while a run waits for the next try.
    pub fn wait_reason(&self) -> StopReason {
        self.reason(self.what.clone(), "and it continues automatically")
    }

    /// Returns the reason why a run is held.
    pub fn hold_reason(&self) -> StopReason {
        let message = match self.nature {
            Transience::Lost => self.what.clone(),
            Transience::Passing | Transience::Lasting => format!("the daemon could not continue: {}", self.what),
        };
        self.reason(message, "then: runnerctl resume")
    }

    fn reason(&self, message: String, then: &'static str) -> StopReason {
        StopReason::new(message, NextSteps::from(&self.remedy).join(", ", then))
    }
}

/// Whether an obstacle is known to pass without intervention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transience {
    /// A full or failing disk, a lock, too few resources: waited for, however long it takes.
    Passing,
    /// Everything else, such as a missing permission or a broken repository: tried a few times.
    Lasting,
    /// Something else is in the place of the repository, or of what was written, and trying again does not bring it
    /// back; or a program did not answer until it was ended, and will not answer the next time either.
    Lost,
}

/// What to do about an obstacle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Try the effect again after a pause.
    Retry {
        /// Length of the pause, in seconds.
        secs: u64,
    },
    /// Give up: a person must step in, or a run that is being cancelled ends without the effect.
    Hold,
}

/// Returns the nature of a system error.
pub fn classify_io_error(error: &io::Error) -> Transience {
    classify_error_kind(error.kind(), error.raw_os_error())
}

/// Returns the nature of a system error, from its kind and its error number, if it has one.
fn classify_error_kind(kind: ErrorKind, code: Option<i32>) -> Transience {
    let passes = matches!(
        kind,
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::ResourceBusy
            | ErrorKind::ExecutableFileBusy
            | ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::TimedOut
            | ErrorKind::OutOfMemory
            | ErrorKind::StaleNetworkFileHandle
    );
    if passes || code.is_some_and(|code| TRANSIENT_CODES.contains(&code)) {
        Transience::Passing
    } else {
        Transience::Lasting
    }
}

/// Decides what to do about an obstacle that was met `tries` times in a row, including this time.
pub fn decide_retry(nature: Transience, tries: u32) -> RetryDecision {
    match nature {
        Transience::Lost => return RetryDecision::Hold,
        Transience::Lasting if tries >= PERMANENT_TRIES => return RetryDecision::Hold,
        Transience::Lasting | Transience::Passing => {}
    }
    let at = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    RetryDecision::Retry { secs: RETRY_SECS[at.min(RETRY_SECS.len() - 1)] }
}

/// The same for a run that a person has cancelled: it ends soon, whatever the obstacle.
pub fn decide_retry_when_cancelled(nature: Transience, tries: u32) -> RetryDecision {
    if tries >= CANCELLED_TRIES { RetryDecision::Hold } else { decide_retry(nature, tries) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_of_a_cancelled_run_is_given_up_within_seconds() {
        for nature in [Transience::Passing, Transience::Lasting] {
            let pauses: Vec<RetryDecision> = (1..=4).map(|tries| decide_retry_when_cancelled(nature, tries)).collect();
            let try_again = |secs| RetryDecision::Retry { secs };
            assert_eq!(pauses, [try_again(1), try_again(2), try_again(5), RetryDecision::Hold], "{nature:?}");
            assert_eq!(decide_retry_when_cancelled(nature, u32::MAX), RetryDecision::Hold);
        }
        assert_eq!(decide_retry_when_cancelled(Transience::Lost, 1), RetryDecision::Hold);
    }

    #[test]
    fn what_passes_is_tried_for_ever_and_ever_less_often() {
        let pauses: Vec<RetryDecision> = (1..=8).map(|tries| decide_retry(Transience::Passing, tries)).collect();
        let expected = [1, 2, 5, 10, 30, 60, 60, 60].map(|secs| RetryDecision::Retry { secs });
        assert_eq!(pauses, expected);
        assert_eq!(decide_retry(Transience::Passing, u32::MAX), RetryDecision::Retry { secs: 60 });
    }

    #[test]
    fn what_lasts_is_held_after_three_minutes() {
        let waited: u64 = (1..PERMANENT_TRIES)
            .map(|tries| match decide_retry(Transience::Lasting, tries) {
                RetryDecision::Retry { secs } => secs,
                RetryDecision::Hold => panic!("held after {tries} tries"),
            })
            .sum();

        assert_eq!(waited, 168);
        assert_eq!(decide_retry(Transience::Lasting, PERMANENT_TRIES), RetryDecision::Hold);
        assert_eq!(decide_retry(Transience::Lasting, u32::MAX), RetryDecision::Hold);
    }

    #[test]
    fn what_is_lost_is_not_tried_again() {
        assert_eq!(decide_retry(Transience::Lost, 1), RetryDecision::Hold);
    }

    #[test]
    fn disk_lock_and_shortage_pass_and_rights_and_missing_files_last() {
        use Transience::{Lasting, Passing};
        let table = [
            (ErrorKind::StorageFull, None, Passing),
            (ErrorKind::QuotaExceeded, None, Passing),
            (ErrorKind::ReadOnlyFilesystem, None, Passing),
            (ErrorKind::ResourceBusy, None, Passing),
            (ErrorKind::ExecutableFileBusy, None, Passing),
            (ErrorKind::WouldBlock, None, Passing),
            (ErrorKind::OutOfMemory, None, Passing),
            (ErrorKind::StaleNetworkFileHandle, None, Passing),
            (ErrorKind::Other, Some(5), Passing),
            (ErrorKind::Other, Some(23), Passing),
            (ErrorKind::Other, Some(24), Passing),
            (ErrorKind::Other, None, Lasting),
            (ErrorKind::PermissionDenied, Some(13), Lasting),
            (ErrorKind::NotFound, Some(2), Lasting),
            (ErrorKind::NotADirectory, Some(20), Lasting),
            (ErrorKind::FileTooLarge, Some(27), Lasting),
            (ErrorKind::InvalidData, None, Lasting),
        ];
        for (kind, code, expected) in table {
            assert_eq!(classify_error_kind(kind, code), expected, "{kind:?} {code:?}");
        }
    }
}
