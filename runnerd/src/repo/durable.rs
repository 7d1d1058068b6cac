//! Files that survive a power cut: replaced whole or not at all, or appended and flushed.
//!
//! A symbolic link in the last component of a path is never followed. Calls block on the disk; asynchronous callers run
//! them where blocking is allowed. The free functions use the disk of this machine, [`with_disk`] any disk.

use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use runner_core::run::blocker::Transience;
use runner_os::retryable::{Retryable, fix_path_remedy, path_remedy};
use runner_os::temp_file;

use super::disk::{self, Disk, DiskFile as _, DiskMetadata, FileKind, OpenMode, RealDisk};

/// Attempts to write the temporary file of a replacement: data that could not be flushed may be lost even if a later
/// flush succeeds, so it is written again.
const MAX_ATTEMPTS: usize = 2;
/// Maximum size in bytes of a file that is read: twice what the largest answer and tree together can need in JSON.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Permissions of a file or folder that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Readable by all, as git would check it out: files 0644, folders 0755; the mode of an existing file is kept.
    Repository,
    /// Only for the owner: files 0600, folders 0700.
    Private,
}

/// Why a file or folder could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum DurableError {
    /// The system refused.
    #[error("{action} {}", path.display())]
    Io {
        /// The operation, such as `reading`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is a symbolic link, which may lead anywhere.
    #[error("{} is a symbolic link and is not followed", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// The path exists but is neither a regular file nor, if one is expected, a folder.
    #[error("{} is no regular {expected}", path.display())]
    WrongType {
        /// The path.
        path: PathBuf,
        /// What it should be: `file` or `folder`.
        expected: &'static str,
    },
    /// The file is larger than any that is ever written.
    #[error("{} has {len} bytes, more than the {MAX_BYTES} that are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        len: u64,
    },
}

impl Retryable for DurableError {
    fn transience(&self) -> Transience {
        match self {
            Self::Io { source, .. } => source.transience(),
            Self::Symlink { .. } | Self::WrongType { .. } | Self::TooLarge { .. } => Transience::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Io { path, source, .. } => path_remedy(path, source),
            Self::Symlink { path } | Self::WrongType { path, .. } | Self::TooLarge { path, .. } => {
                fix_path_remedy(path)
            }
        })
    }
}

impl DurableError {
    /// Returns the kind of the system error, if it was one.
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::Symlink { .. } | Self::WrongType { .. } | Self::TooLarge { .. } => None,
        }
    }
}

/// Uses the given disk for durable files.
pub fn with_disk<D: Disk>(disk: &D) -> DurableFiles<'_, D> {
    DurableFiles(disk)
}

/// Replaces a file on this machine; see [`DurableFiles::replace`].
pub fn replace(path: &Path, bytes: &[u8], access: FileAccess) -> Result<(), DurableError> {
    with_disk(&RealDisk).replace(path, bytes, access)
}

/// Replaces a file on this machine; see [`DurableFiles::replace_unsynced`].
pub fn replace_unsynced(path: &Path, bytes: &[u8], access: FileAccess) -> Result<(), DurableError> {
    with_disk(&RealDisk).replace_unsynced(path, bytes, access)
}

/// Reads a file on this machine; see [`DurableFiles::read`].
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, DurableError> {
    with_disk(&RealDisk).read(path)
}

/// Creates a folder on this machine with its missing parents.
pub fn create_dir(path: &Path, access: FileAccess) -> Result<(), DurableError> {
    with_disk(&RealDisk).create_dir(path, access)
}

/// Flushes the file system of `folder`, including data written by other processes.
pub fn sync_file_system(folder: &Path) -> Result<(), DurableError> {
    disk::sync_file_system(folder).map_err(io_error("flushing the file system of", folder))
}

/// Removes what interrupted replacements left in a folder on this machine; see [`DurableFiles::remove_leftovers`].
pub fn remove_leftovers(folder: &Path) -> Result<usize, DurableError> {
    with_disk(&RealDisk).remove_leftovers(folder)
}

/// Creates the folders of the path `relative` below `root`, following no link on the way.
pub fn create_dir_below(root: &Path, relative: impl AsRef<Path>, access: FileAccess) -> Result<PathBuf, DurableError> {
    let path = create_dir_below_unsynced(root, relative, access)?;
    let mut above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    above.try_for_each(|folder| with_disk(&RealDisk).sync_folder(folder))?;
    Ok(path)
}

/// Creates folders as [`create_dir_below`] does, for a caller that flushes the file system: until then, a power cut may
/// remove them.
pub fn create_dir_below_unsynced(
    root: &Path,
    relative: impl AsRef<Path>,
    access: FileAccess,
) -> Result<PathBuf, DurableError> {
    let relative = relative.as_ref();
    let mut path = root.to_owned();
    for component in relative.components() {
        let Component::Normal(name) = component else {
            return Err(DurableError::WrongType { path: path.join(relative), expected: "folder" });
        };
        path.push(name);
        with_disk(&RealDisk).create_folder_if_missing(&path, access)?;
    }
    Ok(path)
}

/// Durable files on one disk.
#[derive(Debug)]
pub struct DurableFiles<'d, D>(&'d D);

impl<D: Disk> DurableFiles<'_, D> {
    /// Replaces a file, or creates it, so that a reader or a crash sees the old or the new bytes.
    pub fn replace(&self, path: &Path, bytes: &[u8], access: FileAccess) -> Result<(), DurableError> {
        self.replace_and_flush(path, bytes, access, true)?;
        self.sync_folder(parent_dir(path))
    }

    /// Replaces a file for a caller that flushes the file system: until then, a reader sees the old or the new bytes,
    /// but a power cut may leave the old ones, or some of the new ones.
    pub fn replace_unsynced(&self, path: &Path, bytes: &[u8], access: FileAccess) -> Result<(), DurableError> {
        self.replace_and_flush(path, bytes, access, false)
    }

    fn replace_and_flush(
        &self,
        path: &Path,
        bytes: &[u8],
        access: FileAccess,
        is_durable: bool,
    ) -> Result<(), DurableError> {
        let mode = self.choose_mode(path, access)?;
        let temporary = self.write_temporary(path, bytes, mode, is_durable)?;
        self.0.rename(&temporary, path).map_err(|error| {
            self.discard_temporary(&temporary);
            io_error("replacing", path)(error)
        })
    }

    /// Writes after the first `len` bytes of a file, replacing what follows them, and flushes it.
    ///
    /// After an error the file may end anywhere after `len`, and must be replaced as a whole.
    pub fn append_at(&self, path: &Path, len: u64, bytes: &[u8]) -> Result<(), DurableError> {
        let mut file = self.open(path, OpenMode::Append)?;
        file.set_len(len).map_err(io_error("cutting off", path))?;
        file.write_all(bytes).map_err(io_error("appending to", path))?;
        file.sync().map_err(io_error("flushing", path))
    }

    /// Reads a file of at most [`MAX_BYTES`]; `None` if it does not exist.
    pub fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, DurableError> {
        let file = match self.open(path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == Some(io::ErrorKind::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let len = file.read_metadata().map_err(io_error("looking at", path))?.len;
        let too_large = |len| Err(DurableError::TooLarge { path: path.to_owned(), len });
        if len > MAX_BYTES {
            return too_large(len);
        }
        let mut bytes = Vec::new();
        // The file may grow meanwhile.
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(io_error("reading", path))?;
        let len = bytes.len() as u64;
        if len > MAX_BYTES { too_large(len) } else { Ok(Some(bytes)) }
    }

    /// Removes a file; it is not an error if there is none.
    pub fn remove(&self, path: &Path) -> Result<(), DurableError> {
        match self.0.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("removing", path)(error)),
            _ => Ok(()),
        }
    }

    /// Creates a folder and its missing parents.
    ///
    /// An existing folder may have been created by a process that was killed before it flushed the name; for a private
    /// folder, the name is flushed in any case.
    pub fn create_dir(&self, path: &Path, access: FileAccess) -> Result<(), DurableError> {
        match self.0.read_metadata(path) {
            Ok(found) => {
                check_is_folder(path, found)?;
                return if access == FileAccess::Private { self.sync_folder(parent_dir(path)) } else { Ok(()) };
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error("looking at", path)(error)),
            Err(_) => {}
        }
        let result = match self.create_folder_if_missing(path, access) {
            Err(error) if error.kind() == Some(io::ErrorKind::NotFound) => {
                self.create_dir(parent_dir(path), access)?;
                self.create_folder_if_missing(path, access)
            }
            folder => folder,
        };
        if result? { self.sync_folder(parent_dir(path)) } else { Ok(()) }
    }

    /// Removes what interrupted calls of [`Self::replace`] left in a folder, and returns the number of files.
    pub fn remove_leftovers(&self, folder: &Path) -> Result<usize, DurableError> {
        let mut removed = 0;
        for name in self
            .0
            .list(folder)
            .map_err(io_error("listing", folder))?
            .into_iter()
            .filter(|name| temp_file::is_temp_name(name))
        {
            let path = folder.join(name);
            if self.0.read_metadata(&path).is_ok_and(|found| found.kind == FileKind::File) {
                self.remove(&path)?;
                removed += 1;
            }
        }
        if removed > 0 {
            self.sync_folder(folder)?;
        }
        Ok(removed)
    }

    /// Flushes the names in a folder to the disk.
    pub fn sync_folder(&self, folder: &Path) -> Result<(), DurableError> {
        self.0.sync_folder(folder).map_err(io_error("flushing the directory", folder))
    }

    /// Writes a temporary file next to `path`, and flushes it if that is asked for.
    fn write_temporary(&self, path: &Path, bytes: &[u8], mode: u32, is_durable: bool) -> Result<PathBuf, DurableError> {
        let mut tries = 1;
        loop {
            let created = self.0.create_temporary(parent_dir(path), &temp_file::name_prefix(path));
            let (mut file, temporary) = created.map_err(io_error("creating a temporary file beside", path))?;
            let written = file.write_all(bytes).map_err(io_error("writing", path));
            let written = written.and_then(|()| file.set_mode(mode).map_err(io_error("setting the mode of", path)));
            let flushed =
                written.map(|()| if is_durable { file.sync().map_err(io_error("flushing", path)) } else { Ok(()) });
            match flushed {
                Ok(Ok(())) => return Ok(temporary),
                Ok(Err(_)) if tries < MAX_ATTEMPTS => tries += 1,
                Ok(Err(error)) | Err(error) => {
                    self.discard_temporary(&temporary);
                    return Err(error);
                }
            }
            self.discard_temporary(&temporary);
        }
    }

    /// Removes a useless temporary file; if that fails, it is a leftover.
    fn discard_temporary(&self, temporary: &Path) {
        let _ = self.0.remove(temporary);
    }

    fn choose_mode(&self, path: &Path, access: FileAccess) -> Result<u32, DurableError> {
        match self.0.read_metadata(path) {
            Ok(DiskMetadata { kind: FileKind::Link, .. }) => Err(DurableError::Symlink { path: path.to_owned() }),
            Ok(DiskMetadata { kind: FileKind::File, mode, .. }) => Ok(match access {
                // Data is never executable, whatever was done to the file before.
                FileAccess::Repository => mode & !0o111,
                FileAccess::Private => file_mode(access),
            }),
            Ok(_) => Err(DurableError::WrongType { path: path.to_owned(), expected: "file" }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(file_mode(access)),
            Err(error) => Err(io_error("looking at", path)(error)),
        }
    }

    fn open(&self, path: &Path, how: OpenMode) -> Result<D::File, DurableError> {
        let file = self.0.open(path, how).map_err(|source| {
            if source.raw_os_error().map(Errno::from_raw) == Some(Errno::ELOOP) {
                return DurableError::Symlink { path: path.to_owned() };
            }
            io_error("opening", path)(source)
        })?;
        let found = file.read_metadata().map_err(io_error("looking at", path))?;
        if found.kind == FileKind::File {
            Ok(file)
        } else {
            Err(DurableError::WrongType { path: path.to_owned(), expected: "file" })
        }
    }

    /// Creates one folder, and returns whether it is new.
    fn create_folder_if_missing(&self, path: &Path, access: FileAccess) -> Result<bool, DurableError> {
        let mode = match access {
            FileAccess::Repository => 0o755,
            FileAccess::Private => 0o700,
        };
        match self.0.create_folder(path, mode) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = self.0.read_metadata(path).map_err(io_error("looking at", path))?;
                check_is_folder(path, found).map(|()| false)
            }
            Err(error) => Err(io_error("creating the directory", path)(error)),
        }
    }
}

fn check_is_folder(path: &Path, found: DiskMetadata) -> Result<(), DurableError> {
    match found.kind {
        FileKind::Folder => Ok(()),
        FileKind::Link => Err(DurableError::Symlink { path: path.to_owned() }),
        FileKind::File | FileKind::Other => Err(DurableError::WrongType { path: path.to_owned(), expected: "folder" }),
    }
}

fn file_mode(access: FileAccess) -> u32 {
    match access {
        FileAccess::Repository => 0o644,
        FileAccess::Private => 0o600,
    }
}

/// Returns the folder of a path; the current folder for a bare name.
fn parent_dir(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DurableError {
    move |source| DurableError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn append(path: &Path, bytes: &[u8]) -> Result<(), DurableError> {
        let len = fs::metadata(path).map_or(0, |found| found.len());
        with_disk(&RealDisk).append_at(path, len, bytes)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn replacing_leaves_the_new_bytes_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("tree.json");
        replace(&file, b"old", FileAccess::Repository).unwrap();
        replace(&file, b"new", FileAccess::Repository).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(names(home.path()), ["tree.json"]);
    }

    #[test]
    fn a_mode_is_kept_in_the_repository_and_forced_where_private() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("f");
        replace(&file, b"", FileAccess::Repository).unwrap();
        assert_eq!(mode(&file), 0o644);
        fs::set_permissions(&file, Permissions::from_mode(0o775)).unwrap();
        replace(&file, b"", FileAccess::Repository).unwrap();
        assert_eq!(mode(&file), 0o664, "nothing that is written there is a program");
        replace(&file, b"", FileAccess::Private).unwrap();
        assert_eq!(mode(&file), 0o600);
        let folder = home.path().join("d/e");
        create_dir(&folder, FileAccess::Private).unwrap();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    }

    #[test]
    fn appending_keeps_what_was_there() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("journal");
        replace(&file, b"a\n", FileAccess::Private).unwrap();
        append(&file, b"b\n").unwrap();
        assert_eq!(read(&file).unwrap().unwrap(), b"a\nb\n");
    }

    #[test]
    fn appending_takes_the_place_of_what_a_failed_try_has_left() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("journal");
        replace(&file, b"a\nhal", FileAccess::Private).unwrap();
        with_disk(&RealDisk).append_at(&file, 2, b"b\n").unwrap();
        assert_eq!(read(&file).unwrap().unwrap(), b"a\nb\n");
    }

    #[test]
    fn file_that_is_larger_than_anything_that_is_written_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("f");
        File::create(&file).unwrap().set_len(MAX_BYTES).unwrap();
        assert!(read(&file).unwrap().is_some());
        File::create(&file).unwrap().set_len(MAX_BYTES + 1).unwrap();
        let error = read(&file).unwrap_err();
        assert!(matches!(error, DurableError::TooLarge { len, .. } if len == MAX_BYTES + 1));
    }

    #[test]
    fn a_link_is_never_followed() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("target");
        let link = home.path().join("link");
        fs::write(&target, "precious").unwrap();
        symlink(&target, &link).unwrap();
        for result in [replace(&link, b"x", FileAccess::Repository), append(&link, b"x"), read(&link).map(drop)] {
            assert!(matches!(result, Err(DurableError::Symlink { path }) if path == link));
        }
        assert_eq!(fs::read(&target).unwrap(), b"precious");
    }

    #[test]
    fn no_folder_is_made_through_a_link() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), home.path().join("state")).unwrap();
        let result = create_dir_below(home.path(), "state/sub", FileAccess::Repository);
        assert!(matches!(result, Err(DurableError::Symlink { .. })));
        assert!(names(elsewhere.path()).is_empty());
        let outside = create_dir_below(home.path(), "../x", FileAccess::Repository);
        assert!(matches!(outside, Err(DurableError::WrongType { .. })));
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let result = replace(home.path(), b"x", FileAccess::Repository);
        assert!(matches!(result, Err(DurableError::WrongType { expected: "file", .. })));
    }

    #[test]
    fn a_pipe_without_a_reader_does_not_block() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(append(&pipe, b"x").is_err());
        assert!(matches!(read(&pipe), Err(DurableError::WrongType { .. })));
    }

    #[test]
    fn folders_may_exist_already() {
        let home = tempfile::tempdir().unwrap();
        let folder = create_dir_below(home.path(), "a/b", FileAccess::Repository).unwrap();
        assert_eq!(create_dir_below(home.path(), "a/b", FileAccess::Repository).unwrap(), folder);
        assert!(folder.is_dir());
    }

    #[test]
    fn leftovers_of_a_crash_are_found_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        for name in [".tree.json.x1.runnerd-tmp", "tree.json", ".gitignore", "a.runnerd-tmp"] {
            fs::write(home.path().join(name), "").unwrap();
        }
        assert_eq!(remove_leftovers(home.path()).unwrap(), 1);
        assert_eq!(names(home.path()).len(), 3);
    }

    #[test]
    fn folder_with_the_name_of_a_leftover_stays_and_a_file_without_permissions_goes() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".a.1.runnerd-tmp");
        let file = home.path().join(".a.2.runnerd-tmp");
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o0)).unwrap();
        assert_eq!(remove_leftovers(home.path()).unwrap(), 1);
        assert!(folder.exists() && !file.exists());
    }

    #[test]
    fn messages_name_the_path_and_what_was_done() {
        let error = replace(Path::new("/nowhere/at/all"), b"", FileAccess::Private).unwrap_err();
        insta::assert_snapshot!(error, @"creating a temporary file beside /nowhere/at/all");
        assert_eq!(error.kind(), Some(io::ErrorKind::NotFound));
    }
}
