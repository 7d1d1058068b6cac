//! A moment by the clock of a file system: which files are what they were then, and which folders have the names that they
//! had, is told without reading them. Where the times of a file system say nothing, there is no moment.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gix::index::entry::Stat;
use serde::{Deserialize, Serialize};

use super::durable;
use crate::clock;

/// Links of a folder in which there is no other: its name, and the one that it has for itself.
const EMPTY_DIR_LINKS: u64 = 2;

/// How far the clock may seem to be set back: it is adjusted in small steps all the time.
const MAX_CLOCK_STEP_BACK_MS: i64 = 100;

/// How long before a flush a file was changed last for its times to tell of every later change.
const MIN_AGE_SECS: i64 = 1;

/// Such a moment, and folders that were in their places then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FsClock {
    /// Number of the file system.
    device: u64,
    /// Seconds and nanoseconds.
    clock: (i64, i64),
    /// How far the clock was ahead of the time since the machine started, in milliseconds.
    ahead: i64,
    /// Numbers of the folders.
    known: Vec<u64>,
}

impl FsClock {
    /// Returns the moment at which a name came or went last in a folder; none where there is no folder.
    pub(super) fn read(folder: &Path, known: &[&Path]) -> Option<Self> {
        let read_dir_metadata = |path: &Path| path.symlink_metadata().ok().filter(Metadata::is_dir);
        let found = read_dir_metadata(folder).filter(|_| has_reliable_times(folder))?;
        let others = known.iter().filter_map(|path| read_dir_metadata(path)).filter(|other| other.dev() == found.dev());
        let known = others.map(|other| other.ino()).chain([found.ino()]).collect();
        Some(Self { device: found.dev(), clock: change_time(&found), ahead: clock::ahead_of_boot(), known })
    }

    /// Tells whether what has changed since bears a later time: not if the clock was set back.
    pub(super) fn is_valid(&self) -> bool {
        clock::ahead_of_boot() >= self.ahead - MAX_CLOCK_STEP_BACK_MS
    }

    /// Tells whether a file, or the names in a folder, are what they were: what is moved changes, too.
    pub(super) fn is_unchanged(&self, found: &Metadata) -> bool {
        found.dev() == self.device && change_time(found) < self.clock
    }

    /// Tells whether a folder is one of those that were known, so that what is in it was in it then or has changed.
    pub(super) fn knew_dir(&self, folder: &Metadata) -> bool {
        folder.dev() == self.device && self.known.contains(&folder.ino())
    }
}

/// When the file system of a work tree was flushed last, by its own clock, so that no page of a file was dirty any more:
/// whatever is written since, through a mapping that was there before as well, bears a later time.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlushTime {
    device: u64,
    clock: (i64, i64),
    boot_offset: i64,
}

impl FlushTime {
    /// Flushes the file system of a work tree; none, and no flush, where its times say nothing, or cannot be had.
    ///
    /// The clock is that of a file without a name, which is made in the git folder if that is on the same file system.
    pub(super) fn record_flush(work_dir: &Path, git_dir: &Path) -> io::Result<Option<Self>> {
        let device = work_dir.metadata()?.dev();
        let is_beside = git_dir.metadata().is_ok_and(|found| found.dev() == device);
        let touched =
            tempfile::tempfile_in(if is_beside { git_dir } else { work_dir }).and_then(|file| file.metadata());
        let Ok(touched) = touched else { return Ok(None) };
        if touched.dev() != device || !has_reliable_times(work_dir) {
            return Ok(None);
        }
        let flush = Self { device, clock: change_time(&touched), boot_offset: clock::ahead_of_boot() };
        durable::sync_file_system(work_dir)?;
        Ok(Some(flush))
    }

    /// Tells whether what has changed since bears a later time: not if the clock was set back.
    pub(super) fn is_valid(&self) -> bool {
        clock::ahead_of_boot() >= self.boot_offset - MAX_CLOCK_STEP_BACK_MS
    }

    /// Tells whether a file that was read after the flush tells by its times alone whether it has changed since: its own
    /// last change was a second before, which no clock of a file system is too coarse for.
    pub(super) fn is_stat_reliable(&self, stat: &Stat) -> bool {
        let before = (i64::from(stat.ctime.secs) + MIN_AGE_SECS, i64::from(stat.ctime.nsecs));
        u64::from(stat.dev) == self.device & u64::from(u32::MAX) && before < self.clock
    }
}

#[cfg(test)]
impl FlushTime {
    /// The same flush an hour later.
    pub(super) fn one_hour_later(self) -> Self {
        Self { clock: (self.clock.0 + 3_600, self.clock.1), ..self }
    }

    /// The same flush by a clock that was set back by an hour since.
    pub(super) fn with_clock_set_back(self) -> Self {
        Self { boot_offset: self.boot_offset + 3_600_000, ..self }
    }
}

/// Tells whether a file system gives every write a time by the clock of this machine, also one through a mapping.
///
/// Others may, too: of these it is known. What lies elsewhere, on network, or in memory, is read.
#[cfg(target_os = "linux")]
fn has_reliable_times(folder: &Path) -> bool {
    /// ext2 to ext4, XFS, Btrfs, F2FS, and layers above such.
    const KNOWN: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x794c_7630];
    rustix::fs::statfs(folder).is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| KNOWN.contains(&kind)))
}

#[cfg(not(target_os = "linux"))]
fn keeps_times(_folder: &Path) -> bool {
    false
}

/// Tells whether a folder has none inside; file systems that do not count links say no.
pub(super) fn has_no_subdirs(folder: &Metadata) -> bool {
    folder.nlink() == EMPTY_DIR_LINKS
}

fn change_time(found: &Metadata) -> (i64, i64) {
    (found.ctime(), found.ctime_nsec())
}

#[cfg(test)]
mod tests {
    use gix::index::entry::stat::Time;

    use super::*;

    #[test]
    fn a_clock_that_was_set_back_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let moment = FsClock::read(folder.path(), &[]).unwrap();
        assert!(moment.is_valid());
        assert!(!FsClock { ahead: moment.ahead + 3_600_000, ..moment }.is_valid(), "an hour ago it was an hour later");
    }

    #[test]
    fn a_file_is_settled_that_was_changed_a_second_before_the_flush() {
        let flush = FlushTime { device: 7, clock: (100, 500), boot_offset: 0 };
        let changed = |secs, nsecs, dev| {
            let stat = Stat { ctime: Time { secs, nsecs }, dev, ..Stat::default() };
            flush.is_stat_reliable(&stat)
        };
        assert!(changed(99, 499, 7));
        assert!(!changed(99, 500, 7), "a second is not more than a second");
        assert!(!changed(101, 0, 7), "it was written after the flush");
        assert!(!changed(99, 499, 8), "another file system was flushed");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_times_of_files_in_memory_say_nothing() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        assert!(FlushTime::record_flush(folder.path(), folder.path()).unwrap().is_none());
        assert!(FsClock::read(folder.path(), &[]).is_none());
    }
}
