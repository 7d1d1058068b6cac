//! The files of the log: one that is written to and older ones, bounded in number and size.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// How much is kept, at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Size of a file, in bytes.
    pub(super) size: u64,
    /// Number of files.
    pub(super) files: u32,
}

/// 64 MiB altogether.
pub(super) const LIMITS: Limits = Limits { size: 8 << 20, files: 8 };

/// A file that makes room for a new one when it is full. Each write is kept whole.
#[derive(Debug)]
pub(super) struct Rolling {
    folder: PathBuf,
    limits: Limits,
    file: File,
    size: u64,
}

impl Rolling {
    /// Goes on with the file of the daemon before this one.
    pub(super) fn open(folder: &Path, limits: Limits) -> io::Result<Self> {
        let file = open(folder)?;
        Ok(Self { folder: folder.to_owned(), limits, size: file.metadata()?.len(), file })
    }

    /// Gives each file the name of the one before it; the oldest is gone.
    fn roll(&mut self) -> io::Result<()> {
        for number in (0..self.limits.files - 1).rev() {
            match fs::rename(named(&self.folder, number), named(&self.folder, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.file = open(&self.folder)?;
        self.size = 0;
        Ok(())
    }
}

impl Write for Rolling {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = line.len() as u64;
        if self.size > 0 && self.size + length > self.limits.size {
            self.roll()?;
        }
        self.file.write_all(line)?;
        self.size += length;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn open(folder: &Path) -> io::Result<File> {
    File::options().create(true).append(true).mode(0o600).open(named(folder, 0))
}

/// Returns the name of a file; the one that is written to has the number 0.
fn named(folder: &Path, number: u32) -> PathBuf {
    match number {
        0 => folder.join("runnerd.log"),
        number => folder.join(format!("runnerd.{number}.log")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SMALL: Limits = Limits { size: 10, files: 3 };

    fn texts(folder: &Path) -> Vec<String> {
        (0..5).map_while(|number| fs::read_to_string(named(folder, number)).ok()).collect()
    }

    #[test]
    fn the_newest_lines_are_kept_whole_in_a_bounded_number_of_bounded_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Rolling::open(dir.path(), SMALL).unwrap();
        for line in ["one 1\n", "two\n", "three\n", "four\n", "five 55555555\n", "six\n", "seven\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(texts(dir.path()), ["six\nseven\n", "five 55555555\n", "four\n"]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn the_next_daemon_goes_on_with_the_file_and_its_size() {
        let dir = tempfile::tempdir().unwrap();
        Rolling::open(dir.path(), SMALL).unwrap().write_all(b"before\n").unwrap();
        let mut log = Rolling::open(dir.path(), SMALL).unwrap();
        log.write_all(b"ok\n").unwrap();
        log.write_all(b"after\n").unwrap();
        assert_eq!(texts(dir.path()), ["after\n", "before\nok\n"]);
    }

    #[test]
    fn a_file_that_somebody_removed_does_not_stop_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Rolling::open(dir.path(), SMALL).unwrap();
        log.write_all(b"123456789\n").unwrap();
        fs::remove_file(named(dir.path(), 0)).unwrap();
        log.write_all(b"new\n").unwrap();
        assert_eq!(texts(dir.path()), ["new\n"]);
    }

    #[test]
    fn the_files_are_for_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        Rolling::open(dir.path(), SMALL).unwrap();
        assert_eq!(fs::metadata(named(dir.path(), 0)).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
