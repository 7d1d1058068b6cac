//! How often an effect that cannot be done is tried again, and when a person must look instead.
//!
//! Nothing here costs an attempt: an obstacle is no verdict.

use std::io::{self, ErrorKind};

use protocol::command::Ways;
use protocol::view::StopReason;
use serde::{Deserialize, Serialize};

/// Pauses before the next try, in seconds; the last one repeats.
const RETRY_SECS: [u64; 6] = [1, 2, 5, 10, 30, 60];
/// Tries against what does not pass by itself: together they take about three minutes, in which a network file system,
/// a program that is being updated or a person may come round.
const LASTING_TRIES: u32 = 8;
/// Tries of a run that a person has cancelled, whatever is in its way: together they take eight seconds, in which a lock
/// is given back or a program has left.
const CANCELLED_TRIES: u32 = 4;
/// EIO, ENFILE, EMFILE: errors of the system that have no kind of their own.
const PASSING_CODES: [i32; 3] = [5, 23, 24];

/// What is in the way of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstruction {
    /// What was being done to which path, and what the system said.
    pub what: String,
    /// What a person can do about it.
    pub remedy: String,
    /// Whether it passes by itself.
    pub nature: Nature,
}

impl Obstruction {
    /// Returns why a run waits while it is tried again.
    pub fn waiting(&self) -> StopReason {
        self.reason(self.what.clone(), "and it goes on by itself")
    }

    /// Returns why a run is held.
    pub fn holding(&self) -> StopReason {
        let message = match self.nature {
            Nature::Lost => self.what.clone(),
            Nature::Passing | Nature::Lasting => format!("the daemon could not go on: {}", self.what),
        };
        self.reason(message, "then: runnerctl resume")
    }

    fn reason(&self, message: String, then: &'static str) -> StopReason {
        StopReason::new(message, Ways::from(&self.remedy).join(", ", then))
    }
}

/// Whether an obstacle is known to pass by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// A full or failing disk, a lock, too few resources: waited for, however long.
    Passing,
    /// Everything else, like a missing right or a broken repository: tried a few times.
    Lasting,
    /// Something else stands in the place of the repository, or of what was written: trying again does not bring it back.
    /// Or a program did not answer until it was ended: it does not answer the next time either.
    Lost,
}

/// What follows from an obstacle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The effect is tried again after so many seconds.
    TryAgain {
        /// The pause before it.
        secs: u64,
    },
    /// It is given up: a person must look, or a run that is to end does so without.
    Hold,
}

/// Returns the nature of an error of the system.
pub fn of(error: &io::Error) -> Nature {
    nature(error.kind(), error.raw_os_error())
}

/// Returns the nature of an error of the system, from its kind and its number where it has one.
fn nature(kind: ErrorKind, code: Option<i32>) -> Nature {
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
    if passes || code.is_some_and(|code| PASSING_CODES.contains(&code)) { Nature::Passing } else { Nature::Lasting }
}

/// Decides what follows from an obstacle that was met `tries` times in a row, this one included.
pub fn answer(nature: Nature, tries: u32) -> Answer {
    match nature {
        Nature::Lost => return Answer::Hold,
        Nature::Lasting if tries >= LASTING_TRIES => return Answer::Hold,
        Nature::Lasting | Nature::Passing => {}
    }
    let at = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    Answer::TryAgain { secs: RETRY_SECS[at.min(RETRY_SECS.len() - 1)] }
}

/// Decides so for a run that a person has cancelled: it ends soon, whatever is in its way.
pub fn answer_when_cancelled(nature: Nature, tries: u32) -> Answer {
    if tries >= CANCELLED_TRIES { Answer::Hold } else { answer(nature, tries) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_of_a_cancelled_run_is_given_up_within_seconds() {
        for nature in [Nature::Passing, Nature::Lasting] {
            let pauses: Vec<Answer> = (1..=4).map(|tries| answer_when_cancelled(nature, tries)).collect();
            let try_again = |secs| Answer::TryAgain { secs };
            assert_eq!(pauses, [try_again(1), try_again(2), try_again(5), Answer::Hold], "{nature:?}");
            assert_eq!(answer_when_cancelled(nature, u32::MAX), Answer::Hold);
        }
        assert_eq!(answer_when_cancelled(Nature::Lost, 1), Answer::Hold);
    }

    #[test]
    fn what_passes_is_tried_for_ever_and_ever_less_often() {
        let pauses: Vec<Answer> = (1..=8).map(|tries| answer(Nature::Passing, tries)).collect();
        let expected = [1, 2, 5, 10, 30, 60, 60, 60].map(|secs| Answer::TryAgain { secs });
        assert_eq!(pauses, expected);
        assert_eq!(answer(Nature::Passing, u32::MAX), Answer::TryAgain { secs: 60 });
    }

    #[test]
    fn what_lasts_is_held_after_three_minutes() {
        let waited: u64 = (1..LASTING_TRIES)
            .map(|tries| match answer(Nature::Lasting, tries) {
                Answer::TryAgain { secs } => secs,
                Answer::Hold => panic!("held after {tries} tries"),
            })
            .sum();

        assert_eq!(waited, 168);
        assert_eq!(answer(Nature::Lasting, LASTING_TRIES), Answer::Hold);
        assert_eq!(answer(Nature::Lasting, u32::MAX), Answer::Hold);
    }

    #[test]
    fn what_is_lost_is_not_tried_again() {
        assert_eq!(answer(Nature::Lost, 1), Answer::Hold);
    }

    #[test]
    fn disk_lock_and_shortage_pass_and_rights_and_missing_files_last() {
        use Nature::{Lasting, Passing};
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
            assert_eq!(nature(kind, code), expected, "{kind:?} {code:?}");
        }
    }
}
