//! Copies one file to a new place: its blocks are shared if the file system supports it, otherwise they are read and
//! written. Either way the copy is independent: writes to one are never visible in the other.
//!
//! Knows nothing of folders, and flushes nothing.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use nix::libc;

/// Mode bits that a copy inherits: neither set-user-id nor set-group-id.
const COPIED_MODE_BITS: u32 = 0o1777;

/// Copies a regular file with its mode and times to a path that must not exist, and returns its length.
///
/// Follows no link, and does not block on a pipe that has replaced the file meanwhile.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<u64> {
    let source = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(from)?;
    let metadata = source.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    if share_blocks(&source, &target).is_err() {
        copy_data(&source, &target, metadata.len())?;
    }
    target.set_permissions(Permissions::from_mode(metadata.mode() & COPIED_MODE_BITS))?;
    target.set_modified(metadata.modified()?)?;
    Ok(metadata.len())
}

/// Copies a file's content and preserves its holes: a sparse file takes no more space than before.
fn copy_data(mut from: &File, mut to: &File, len: u64) -> io::Result<()> {
    let mut at = 0;
    while let Some(DataExtent { start, end }) = next_data(from, at, len)? {
        from.seek(SeekFrom::Start(start))?;
        to.seek(SeekFrom::Start(start))?;
        let copied = io::copy(&mut from.take(end - start), &mut to)?;
        // The file was truncated meanwhile: the copy ends there too.
        if copied < end - start {
            return to.set_len(start + copied);
        }
        at = end;
    }
    to.set_len(len)
}

/// A part of a file that is not a hole.
struct DataExtent {
    start: u64,
    end: u64,
}

/// Returns the first such part from an offset on; the whole rest if the file system does not report holes.
#[cfg(target_os = "linux")]
fn next_data(file: &File, at: u64, len: u64) -> io::Result<Option<DataExtent>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    if at >= len {
        return Ok(None);
    }
    let start = match seek(file, SeekFrom::Data(at)) {
        Ok(start) if start < len => start,
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some(DataExtent { start: at, end: len })),
        Err(error) => return Err(error.into()),
    };
    let end = seek(file, SeekFrom::Hole(start))?.min(len);
    Ok(Some(DataExtent { start, end }))
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "it fails elsewhere")]
fn next_data(_file: &File, at: u64, len: u64) -> io::Result<Option<DataExtent>> {
    Ok((at < len).then_some(DataExtent { start: at, end: len }))
}

#[cfg(target_os = "linux")]
fn share_blocks(from: &File, to: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

#[cfg(not(target_os = "linux"))]
fn share_blocks(_from: &File, _to: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn copy_has_content_mode_and_time_and_shares_nothing_that_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        let to = folder.path().join("to");
        fs::write(&from, "bytes").unwrap();
        fs::set_permissions(&from, Permissions::from_mode(0o4751)).unwrap();
        let long_ago = jiff::Timestamp::from_second(1_000_000_000).unwrap();
        File::options().write(true).open(&from).unwrap().set_modified(long_ago.into()).unwrap();
        assert_eq!(copy_file(&from, &to).unwrap(), 5);
        let old = fs::metadata(&from).unwrap();
        let new = fs::metadata(&to).unwrap();
        assert_eq!((new.mode() & 0o7777, new.mtime()), (0o751, 1_000_000_000));
        assert_ne!(old.ino(), new.ino());
        fs::write(&to, "other").unwrap();
        assert_eq!(fs::read_to_string(&from).unwrap(), "bytes");
    }

    #[test]
    fn holes_stay_holes_and_all_else_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        let to = folder.path().join("to");
        let file = File::create(&from).unwrap();
        file.write_all_at(b"start", 0).unwrap();
        file.write_all_at(b"middle", 32 << 20).unwrap();
        file.set_len(64 << 20).unwrap();
        let new = File::create(&to).unwrap();
        copy_data(&File::open(&from).unwrap(), &new, 64 << 20).unwrap();
        assert_eq!(fs::read(&from).unwrap(), fs::read(&to).unwrap());
        let taken = |path: &Path| fs::metadata(path).unwrap().blocks();
        // If the file system has no holes, neither file has any.
        assert!(taken(&to) <= taken(&from), "{} blocks, and {}", taken(&to), taken(&from));
        for empty in [0, 1 << 20] {
            let hole = File::create(&from).unwrap();
            let copied = File::create(&to).unwrap();
            hole.set_len(empty).unwrap();
            copy_data(&File::open(&from).unwrap(), &copied, empty).unwrap();
            assert_eq!(fs::metadata(&to).unwrap().len(), empty);
        }
    }

    #[test]
    fn nothing_is_written_over_or_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        let to = folder.path().join("to");
        fs::write(&from, "bytes").unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &to).unwrap();
        assert_eq!(copy_file(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(copy_file(&to, &folder.path().join("third")).is_err());
        assert!(!folder.path().join("elsewhere").exists());
    }

    #[test]
    fn pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(copy_file(&pipe, &folder.path().join("to")).is_err());
    }
}
