//! Files that survive a power cut: replaced whole or not at all, or appended and flushed.
//!
//! The last component of a path is never followed if it is a symbolic link. Calls block on the
//! disk; asynchronous callers run them where blocking is allowed. The functions work on the disk of this
//! machine, [`on`] on any.

use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use runner_core::obstacle::Nature;

use super::disk::{self, Disk, DiskFile as _, Found, How, Kind, RealDisk};
use crate::obstruction::{Obstructs, put_right, remedy_at};
use crate::temporary;

/// Files that are written for one replacement: what could not be flushed once may be lost although it can be
/// flushed the next time, and is written anew.
const TRIES: usize = 2;
/// Most bytes of a file that is read: twice what the largest answer and tree together can need in JSON.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Who may read a file or folder that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody, as git would check it out: files 0644, folders 0755; a mode that a file
    /// already has is kept.
    Repository,
    /// The owner alone: files 0600, folders 0700.
    Private,
}

/// A file or folder that could not be written or read as asked.
#[derive(Debug, thiserror::Error)]
pub enum DurableError {
    /// The system refused.
    #[error("{action} {}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The path is a symbolic link, which may lead anywhere.
    #[error("{} is a symbolic link and is not followed", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// The path exists and is neither a regular file nor, where one is wanted, a folder.
    #[error("{} is no regular {wanted}", path.display())]
    WrongType {
        /// The path.
        path: PathBuf,
        /// What it should be.
        wanted: &'static str,
    },
    /// The file is larger than anything that is ever written.
    #[error("{} has {len} bytes, more than the {MAX_BYTES} that are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        len: u64,
    },
}

impl Obstructs for DurableError {
    fn nature(&self) -> Nature {
        match self {
            Self::Io { source, .. } => source.nature(),
            Self::Symlink { .. } | Self::WrongType { .. } | Self::TooLarge { .. } => Nature::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Io { path, source, .. } => remedy_at(path, source),
            Self::Symlink { path } | Self::WrongType { path, .. } | Self::TooLarge { path, .. } => put_right(path),
        })
    }
}

impl DurableError {
    /// Returns the kind of the system's error, if there was one.
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::Symlink { .. } | Self::WrongType { .. } | Self::TooLarge { .. } => None,
        }
    }
}

/// Names the disk that durable files are on.
pub fn on<D: Disk>(disk: &D) -> Durable<'_, D> {
    Durable(disk)
}

/// Replaces a file of this machine; see [`Durable::replace`].
pub fn replace(path: &Path, bytes: &[u8], access: Access) -> Result<(), DurableError> {
    on(&RealDisk).replace(path, bytes, access)
}

/// Replaces a file of this machine; see [`Durable::put`].
pub fn put(path: &Path, bytes: &[u8], access: Access) -> Result<(), DurableError> {
    on(&RealDisk).put(path, bytes, access)
}

/// Reads a file of this machine; see [`Durable::read`].
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, DurableError> {
    on(&RealDisk).read(path)
}

/// Creates a folder of this machine and the missing ones above it.
pub fn create_dir(path: &Path, access: Access) -> Result<(), DurableError> {
    on(&RealDisk).create_dir(path, access)
}

/// Returns when everything that was written to the file system of `folder` is on the disk, by whomever.
pub fn sync_everything(folder: &Path) -> Result<(), DurableError> {
    disk::sync_file_system(folder).map_err(failed("flushing the file system of", folder))
}

/// Removes from a folder of this machine what interrupted replacements left; see [`Durable::remove_leftovers`].
pub fn remove_leftovers(folder: &Path) -> Result<usize, DurableError> {
    on(&RealDisk).remove_leftovers(folder)
}

/// Creates the folders that `relative` names below `root`, following no link on the way.
pub fn create_dir_below(root: &Path, relative: impl AsRef<Path>, access: Access) -> Result<PathBuf, DurableError> {
    let path = put_dir_below(root, relative, access)?;
    let mut above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    above.try_for_each(|folder| on(&RealDisk).sync_folder(folder))?;
    Ok(path)
}

/// Creates folders as [`create_dir_below`] does, for a caller that flushes the file system: until then, a power cut may
/// take them.
pub fn put_dir_below(root: &Path, relative: impl AsRef<Path>, access: Access) -> Result<PathBuf, DurableError> {
    let relative = relative.as_ref();
    let mut path = root.to_owned();
    for component in relative.components() {
        let Component::Normal(name) = component else {
            return Err(DurableError::WrongType { path: path.join(relative), wanted: "folder" });
        };
        path.push(name);
        on(&RealDisk).make_folder(&path, access)?;
    }
    Ok(path)
}

/// Durable files on one disk.
#[derive(Debug)]
pub struct Durable<'d, D>(&'d D);

impl<D: Disk> Durable<'_, D> {
    /// Replaces a file, or creates it, so that a reader or a crash sees the old or the new bytes.
    pub fn replace(&self, path: &Path, bytes: &[u8], access: Access) -> Result<(), DurableError> {
        self.put(path, bytes, access)?;
        self.sync_folder(folder_of(path))
    }

    /// Replaces a file as [`Self::replace`] does, for a caller that flushes the folder: until then, a power cut may
    /// bring the old bytes back.
    pub fn put(&self, path: &Path, bytes: &[u8], access: Access) -> Result<(), DurableError> {
        let mode = self.mode_for(path, access)?;
        let temporary = self.write_temporary(path, bytes, mode)?;
        self.0.rename(&temporary, path).map_err(|error| {
            self.give_up(&temporary);
            failed("replacing", path)(error)
        })
    }

    /// Writes behind the first `len` bytes of a file, in place of what is there, and returns when it is on the
    /// disk.
    ///
    /// After an error the file may end anywhere behind them, and must be replaced as a whole.
    pub fn append_at(&self, path: &Path, len: u64, bytes: &[u8]) -> Result<(), DurableError> {
        let mut file = self.open(path, How::Append)?;
        file.set_len(len).map_err(failed("cutting off", path))?;
        file.write_all(bytes).map_err(failed("appending to", path))?;
        file.sync().map_err(failed("flushing", path))
    }

    /// Reads a file of at most [`MAX_BYTES`]; `None` if it does not exist.
    pub fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, DurableError> {
        let file = match self.open(path, How::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == Some(io::ErrorKind::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let len = file.look().map_err(failed("looking at", path))?.len;
        let too_large = |len| Err(DurableError::TooLarge { path: path.to_owned(), len });
        if len > MAX_BYTES {
            return too_large(len);
        }
        let mut bytes = Vec::new();
        // It may grow meanwhile.
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed("reading", path))?;
        let len = bytes.len() as u64;
        if len > MAX_BYTES { too_large(len) } else { Ok(Some(bytes)) }
    }

    /// Removes a file, if there is one.
    pub fn remove(&self, path: &Path) -> Result<(), DurableError> {
        match self.0.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("removing", path)(error)),
            _ => Ok(()),
        }
    }

    /// Creates a folder and the missing ones above it.
    ///
    /// One that is there may have been made by a life that was killed before its name was on the disk; where it is
    /// private, the name is there afterwards.
    pub fn create_dir(&self, path: &Path, access: Access) -> Result<(), DurableError> {
        match self.0.look(path) {
            Ok(found) => {
                expect_folder(path, found)?;
                return if access == Access::Private { self.sync_folder(folder_of(path)) } else { Ok(()) };
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("looking at", path)(error)),
            Err(_) => {}
        }
        let made = match self.make_folder(path, access) {
            Err(error) if error.kind() == Some(io::ErrorKind::NotFound) => {
                self.create_dir(folder_of(path), access)?;
                self.make_folder(path, access)
            }
            made => made,
        };
        if made? { self.sync_folder(folder_of(path)) } else { Ok(()) }
    }

    /// Removes what interrupted calls of [`Self::replace`] left in a folder, and returns how many files that were.
    pub fn remove_leftovers(&self, folder: &Path) -> Result<usize, DurableError> {
        let mut removed = 0;
        for name in
            self.0.list(folder).map_err(failed("listing", folder))?.into_iter().filter(|name| temporary::is_one(name))
        {
            let path = folder.join(name);
            if self.0.look(&path).is_ok_and(|found| found.kind == Kind::File) {
                self.remove(&path)?;
                removed += 1;
            }
        }
        if removed > 0 {
            self.sync_folder(folder)?;
        }
        Ok(removed)
    }

    /// Returns when the names in a folder are on the disk.
    pub fn sync_folder(&self, folder: &Path) -> Result<(), DurableError> {
        self.0.sync_folder(folder).map_err(failed("flushing the folder", folder))
    }

    /// Writes a file beside `path` and flushes it.
    fn write_temporary(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<PathBuf, DurableError> {
        let mut tries = 1;
        loop {
            let created = self.0.create_temporary(folder_of(path), &temporary::prefix(path));
            let (mut file, temporary) = created.map_err(failed("creating a temporary file beside", path))?;
            let written = file.write_all(bytes).map_err(failed("writing", path));
            let written = written.and_then(|()| file.set_mode(mode).map_err(failed("setting the mode of", path)));
            let flushed = written.map(|()| file.sync().map_err(failed("flushing", path)));
            match flushed {
                Ok(Ok(())) => return Ok(temporary),
                Ok(Err(_)) if tries < TRIES => tries += 1,
                Ok(Err(error)) | Err(error) => {
                    self.give_up(&temporary);
                    return Err(error);
                }
            }
            self.give_up(&temporary);
        }
    }

    /// Removes a temporary file of no use; one that stays is a leftover.
    fn give_up(&self, temporary: &Path) {
        let _ = self.0.remove(temporary);
    }

    fn mode_for(&self, path: &Path, access: Access) -> Result<u32, DurableError> {
        match self.0.look(path) {
            Ok(Found { kind: Kind::Link, .. }) => Err(DurableError::Symlink { path: path.to_owned() }),
            Ok(Found { kind: Kind::File, mode, .. }) => Ok(match access {
                // What is written is data, whatever has been done to the file before.
                Access::Repository => mode & !0o111,
                Access::Private => file_mode(access),
            }),
            Ok(_) => Err(DurableError::WrongType { path: path.to_owned(), wanted: "file" }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(file_mode(access)),
            Err(error) => Err(failed("looking at", path)(error)),
        }
    }

    fn open(&self, path: &Path, how: How) -> Result<D::File, DurableError> {
        let file = self.0.open(path, how).map_err(|source| {
            if source.raw_os_error().map(Errno::from_raw) == Some(Errno::ELOOP) {
                return DurableError::Symlink { path: path.to_owned() };
            }
            failed("opening", path)(source)
        })?;
        let found = file.look().map_err(failed("looking at", path))?;
        if found.kind == Kind::File {
            Ok(file)
        } else {
            Err(DurableError::WrongType { path: path.to_owned(), wanted: "file" })
        }
    }

    /// Creates one folder, and tells whether it is new.
    fn make_folder(&self, path: &Path, access: Access) -> Result<bool, DurableError> {
        let mode = match access {
            Access::Repository => 0o755,
            Access::Private => 0o700,
        };
        match self.0.create_folder(path, mode) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = self.0.look(path).map_err(failed("looking at", path))?;
                expect_folder(path, found).map(|()| false)
            }
            Err(error) => Err(failed("creating the folder", path)(error)),
        }
    }
}

fn expect_folder(path: &Path, found: Found) -> Result<(), DurableError> {
    match found.kind {
        Kind::Folder => Ok(()),
        Kind::Link => Err(DurableError::Symlink { path: path.to_owned() }),
        Kind::File | Kind::Other => Err(DurableError::WrongType { path: path.to_owned(), wanted: "folder" }),
    }
}

fn file_mode(access: Access) -> u32 {
    match access {
        Access::Repository => 0o644,
        Access::Private => 0o600,
    }
}

/// Returns the folder that a path is in; for a bare name the current one.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DurableError {
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
        on(&RealDisk).append_at(path, len, bytes)
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
        replace(&file, b"old", Access::Repository).unwrap();
        replace(&file, b"new", Access::Repository).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(names(home.path()), ["tree.json"]);
    }

    #[test]
    fn a_mode_is_kept_in_the_repository_and_forced_where_private() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("f");
        replace(&file, b"", Access::Repository).unwrap();
        assert_eq!(mode(&file), 0o644);
        fs::set_permissions(&file, Permissions::from_mode(0o775)).unwrap();
        replace(&file, b"", Access::Repository).unwrap();
        assert_eq!(mode(&file), 0o664, "nothing that is written there is a program");
        replace(&file, b"", Access::Private).unwrap();
        assert_eq!(mode(&file), 0o600);
        let folder = home.path().join("d/e");
        create_dir(&folder, Access::Private).unwrap();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    }

    #[test]
    fn appending_keeps_what_was_there() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("journal");
        replace(&file, b"a\n", Access::Private).unwrap();
        append(&file, b"b\n").unwrap();
        assert_eq!(read(&file).unwrap().unwrap(), b"a\nb\n");
    }

    #[test]
    fn appending_takes_the_place_of_what_a_failed_try_has_left() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("journal");
        replace(&file, b"a\nhal", Access::Private).unwrap();
        on(&RealDisk).append_at(&file, 2, b"b\n").unwrap();
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
        let (target, link) = (home.path().join("target"), home.path().join("link"));
        fs::write(&target, "precious").unwrap();
        symlink(&target, &link).unwrap();
        for result in [replace(&link, b"x", Access::Repository), append(&link, b"x"), read(&link).map(drop)] {
            assert!(matches!(result, Err(DurableError::Symlink { path }) if path == link));
        }
        assert_eq!(fs::read(&target).unwrap(), b"precious");
    }

    #[test]
    fn no_folder_is_made_through_a_link() {
        let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), home.path().join("state")).unwrap();
        let result = create_dir_below(home.path(), "state/sub", Access::Repository);
        assert!(matches!(result, Err(DurableError::Symlink { .. })));
        assert!(names(elsewhere.path()).is_empty());
        let outside = create_dir_below(home.path(), "../x", Access::Repository);
        assert!(matches!(outside, Err(DurableError::WrongType { .. })));
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let result = replace(home.path(), b"x", Access::Repository);
        assert!(matches!(result, Err(DurableError::WrongType { wanted: "file", .. })));
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
        let made = create_dir_below(home.path(), "a/b", Access::Repository).unwrap();
        assert_eq!(create_dir_below(home.path(), "a/b", Access::Repository).unwrap(), made);
        assert!(made.is_dir());
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
        let (folder, file) = (home.path().join(".a.1.runnerd-tmp"), home.path().join(".a.2.runnerd-tmp"));
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o0)).unwrap();
        assert_eq!(remove_leftovers(home.path()).unwrap(), 1);
        assert!(folder.exists() && !file.exists());
    }

    #[test]
    fn messages_name_the_path_and_what_was_done() {
        let error = replace(Path::new("/nowhere/at/all"), b"", Access::Private).unwrap_err();
        insta::assert_snapshot!(error, @"creating a temporary file beside /nowhere/at/all");
        assert_eq!(error.kind(), Some(io::ErrorKind::NotFound));
    }
}
