//! The files of the log: the current one and older ones, bounded in number and size.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Limits on what is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLimits {
    /// Size limit of a file in bytes.
    pub(super) size: u64,
    /// Maximum number of files.
    pub(super) files: u32,
}

/// 64 MiB in total.
pub(super) const LIMITS: LogLimits = LogLimits { size: 8 << 20, files: 8 };

/// A file that is rotated when it is full. A single write is never split.
#[derive(Debug)]
pub(super) struct RollingFile {
    folder: PathBuf,
    limits: LogLimits,
    file: File,
    size: u64,
}

impl RollingFile {
    /// Continues the file of the previous daemon.
    pub(super) fn open(folder: &Path, limits: LogLimits) -> io::Result<Self> {
        let file = open_log(folder)?;
        Ok(Self { folder: folder.to_owned(), limits, size: file.metadata()?.len(), file })
    }

    /// Renames each file to the next higher number; removes the oldest.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (0..self.limits.files - 1).rev() {
            match fs::rename(log_path(&self.folder, number), log_path(&self.folder, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.file = open_log(&self.folder)?;
        self.size = 0;
        Ok(())
    }
}

impl Write for RollingFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = line.len() as u64;
        if self.size > 0 && self.size + length > self.limits.size {
            self.rotate()?;
        }
        self.file.write_all(line)?;
        self.size += length;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn open_log(folder: &Path) -> io::Result<File> {
    File::options().create(true).append(true).mode(0o600).open(log_path(folder, 0))
}

/// Returns the name of a file; the current one has the number 0.
fn log_path(folder: &Path, number: u32) -> PathBuf {
    match number {
        0 => folder.join("runnerd.log"),
        number => folder.join(format!("runnerd.{number}.log")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SMALL: LogLimits = LogLimits { size: 10, files: 3 };

    fn read_logs(folder: &Path) -> Vec<String> {
        (0..5).map_while(|number| fs::read_to_string(log_path(folder, number)).ok()).collect()
    }

    #[test]
    fn the_newest_lines_are_kept_whole_in_a_bounded_number_of_bounded_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = RollingFile::open(dir.path(), SMALL).unwrap();
        for line in ["one 1\n", "two\n", "three\n", "four\n", "five 55555555\n", "six\n", "seven\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(read_logs(dir.path()), ["six\nseven\n", "five 55555555\n", "four\n"]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn the_next_daemon_continues_the_file_and_counts_its_size() {
        let dir = tempfile::tempdir().unwrap();
        RollingFile::open(dir.path(), SMALL).unwrap().write_all(b"before\n").unwrap();
        let mut log = RollingFile::open(dir.path(), SMALL).unwrap();
        log.write_all(b"ok\n").unwrap();
        log.write_all(b"after\n").unwrap();
        assert_eq!(read_logs(dir.path()), ["after\n", "before\nok\n"]);
    }

    #[test]
    fn a_file_that_somebody_removed_does_not_stop_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = RollingFile::open(dir.path(), SMALL).unwrap();
        log.write_all(b"123456789\n").unwrap();
        fs::remove_file(log_path(dir.path(), 0)).unwrap();
        log.write_all(b"new\n").unwrap();
        assert_eq!(read_logs(dir.path()), ["new\n"]);
    }

    #[test]
    fn the_files_are_for_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        RollingFile::open(dir.path(), SMALL).unwrap();
        assert_eq!(fs::metadata(log_path(dir.path(), 0)).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
