//! The system calls that durable files use, so that tests can substitute a simulated disk.
//!
//! Each method is one request to the system. No rule of durability is here: which calls make a file survive a power
//! cut, and in which order, is defined in `durable`.

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

/// Marks a temporary file that a crash left behind.
pub(crate) use runner_os::temp_file::SUFFIX as TEMPORARY;

/// A disk: folders of files. No call follows a symbolic link in the last component of its path.
pub trait Disk: Clone + Debug {
    /// An open file.
    type File: DiskFile;

    /// Returns metadata of a path.
    fn read_metadata(&self, path: &Path) -> io::Result<DiskMetadata>;

    /// Opens an existing file. A pipe is opened without waiting for its other end.
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Self::File>;

    /// Creates a new file with an unused name that begins with `prefix`, accessible only to its owner.
    fn create_temporary(&self, folder: &Path, prefix: &OsStr) -> io::Result<(Self::File, PathBuf)>;

    /// Renames a file, replacing any file at the new path.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates a folder.
    fn create_folder(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Flushes the names in a folder to the disk.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    /// Returns the names in a folder, in no particular order.
    fn list(&self, path: &Path) -> io::Result<Vec<OsString>>;
}

/// A file of a [`Disk`].
pub trait DiskFile: Read + Write {
    /// Returns metadata of the file.
    fn read_metadata(&self) -> io::Result<DiskMetadata>;

    /// Sets the permissions.
    fn set_mode(&self, mode: u32) -> io::Result<()>;

    /// Truncates the file to `len` bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Flushes the file to the disk. After an error, nothing written to it since the last success is reliable, even if
    /// a later call succeeds.
    fn sync(&self) -> io::Result<()>;
}

/// Purpose for which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading.
    Read,
    /// For appending.
    Append,
}

/// Metadata of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskMetadata {
    /// Type of the file.
    pub kind: FileKind,
    /// Its size in bytes.
    pub len: u64,
    /// Its permissions.
    pub mode: u32,
}

/// Type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, socket or device.
    Other,
}

/// The real disk of this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RealDisk;

/// Flushes the file system of a folder.
#[cfg(target_os = "linux")]
pub(super) fn sync_file_system(folder: &Path) -> io::Result<()> {
    nix::unistd::syncfs(File::open(folder)?).map_err(io::Error::from)
}

/// Flushes all file systems.
#[cfg(not(target_os = "linux"))]
pub(super) fn sync_file_system(_: &Path) -> io::Result<()> {
    nix::unistd::sync();
    Ok(())
}

impl Disk for RealDisk {
    type File = File;

    fn read_metadata(&self, path: &Path) -> io::Result<DiskMetadata> {
        fs::symlink_metadata(path).map(|found| to_disk_metadata(&found))
    }

    fn open(&self, path: &Path, how: OpenMode) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(how == OpenMode::Read).append(how == OpenMode::Append);
        options.custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path)
    }

    fn create_temporary(&self, folder: &Path, prefix: &OsStr) -> io::Result<(File, PathBuf)> {
        let file = tempfile::Builder::new().prefix(prefix).suffix(TEMPORARY).tempfile_in(folder)?;
        Ok(file.keep()?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        DirBuilder::new().mode(mode).create(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }
}

impl DiskFile for File {
    fn read_metadata(&self) -> io::Result<DiskMetadata> {
        self.metadata().map(|found| to_disk_metadata(&found))
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.set_permissions(Permissions::from_mode(mode))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

fn to_disk_metadata(found: &Metadata) -> DiskMetadata {
    let kind = match found.file_type() {
        kind if kind.is_file() => FileKind::File,
        kind if kind.is_dir() => FileKind::Folder,
        kind if kind.is_symlink() => FileKind::Link,
        _ => FileKind::Other,
    };
    DiskMetadata { kind, len: found.len(), mode: found.permissions().mode() & 0o777 }
}
