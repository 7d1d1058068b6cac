//! Moments by the clock of a file system: shows which files and folder listings are unchanged since then without
//! reading them. If the timestamps of a file system are not reliable, there is no moment.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gix::index::entry::Stat;
use runner_os::clock;
use serde::{Deserialize, Serialize};

use super::durable;

/// Link count of a folder without subfolders: its name in the parent, and its own `.`.
const EMPTY_DIR_LINKS: u64 = 2;

/// Tolerance in milliseconds for a clock that appears to be set back: it is adjusted in small steps all the time.
const MAX_CLOCK_STEP_BACK_MS: i64 = 100;

/// A file's last change must be at least this many seconds before a flush for its times to show every later change.
const MIN_AGE_SECS: i64 = 1;

/// A moment, and the folders that were in place then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FsClock {
    /// Device number of the file system.
    device: u64,
    /// File system time, in seconds and nanoseconds.
    clock: (i64, i64),
    /// Milliseconds by which the clock was ahead of the time since boot.
    ahead: i64,
    /// Inode numbers of the folders.
    known: Vec<u64>,
}

impl FsClock {
    /// Returns the moment at which a name was last added to or removed from a folder; `None` if there is no folder.
    pub(super) fn read(folder: &Path, known: &[&Path]) -> Option<Self> {
        let read_dir_metadata = |path: &Path| path.symlink_metadata().ok().filter(Metadata::is_dir);
        let found = read_dir_metadata(folder).filter(|_| has_reliable_times(folder))?;
        let others = known.iter().filter_map(|path| read_dir_metadata(path)).filter(|other| other.dev() == found.dev());
        let known = others.map(|other| other.ino()).chain([found.ino()]).collect();
        Some(Self { device: found.dev(), clock: change_time(&found), ahead: clock::ahead_of_boot(), known })
    }

    /// Whether later changes are sure to have a later time: not if the clock was set back.
    pub(super) fn is_valid(&self) -> bool {
        clock::ahead_of_boot() >= self.ahead - MAX_CLOCK_STEP_BACK_MS
    }

    /// Whether a file, or a folder's listing, is unchanged since then: moving it counts as a change.
    pub(super) fn is_unchanged(&self, found: &Metadata) -> bool {
        found.dev() == self.device && change_time(found) < self.clock
    }

    /// Whether a folder is one of the known ones, so that its contents were in it then or have changed since.
    pub(super) fn knew_dir(&self, folder: &Metadata) -> bool {
        folder.dev() == self.device && self.known.contains(&folder.ino())
    }
}

/// When the work tree's file system was last flushed, by its own clock. No page of any file was dirty at that point, so
/// every later write has a later time, even through an existing memory mapping.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlushTime {
    device: u64,
    clock: (i64, i64),
    boot_offset: i64,
}

impl FlushTime {
    /// Flushes the file system of a work tree; `None`, without a flush, if its times are unreliable or unavailable.
    ///
    /// The clock is read from an unnamed file, created in the git folder if that is on the same file system.
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

    /// Whether later changes are sure to have a later time: not if the clock was set back.
    pub(super) fn is_valid(&self) -> bool {
        clock::ahead_of_boot() >= self.boot_offset - MAX_CLOCK_STEP_BACK_MS
    }

    /// Whether the times of a file read after the flush are enough to detect later changes: its last change must be a
    /// second before the flush, which is coarser than any file system's clock.
    pub(super) fn is_stat_reliable(&self, stat: &Stat) -> bool {
        let before = (i64::from(stat.ctime.secs) + MIN_AGE_SECS, i64::from(stat.ctime.nsecs));
        u64::from(stat.dev) == self.device & u64::from(u32::MAX) && before < self.clock
    }
}

#[cfg(test)]
impl FlushTime {
    /// The same flush, an hour later.
    pub(super) fn one_hour_later(self) -> Self {
        Self { clock: (self.clock.0 + 3_600, self.clock.1), ..self }
    }

    /// The same flush, by a clock that has since been set back an hour.
    pub(super) fn with_clock_set_back(self) -> Self {
        Self { boot_offset: self.boot_offset + 3_600_000, ..self }
    }
}

/// Whether a file system stamps every write, including one through a mapping, with this machine's clock.
///
/// Others may do so too, but these are known to. Files on any other file system, on the network or in memory, are read.
#[cfg(target_os = "linux")]
fn has_reliable_times(folder: &Path) -> bool {
    /// ext2 to ext4, XFS, Btrfs, F2FS, and layers above them.
    const KNOWN: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x794c_7630];
    rustix::fs::statfs(folder).is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| KNOWN.contains(&kind)))
}

#[cfg(not(target_os = "linux"))]
fn has_reliable_times(_folder: &Path) -> bool {
    false
}

/// Whether a folder has no subfolders; false on file systems that do not count links.
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
