//! Files that survive a power cut: replaced whole or not at all, or appended and flushed.
//!
//! The last component of a path is never followed if it is a symbolic link. Calls block on the
//! disk; asynchronous callers run them where blocking is allowed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

/// What marks a temporary file that a crash left behind.
const TEMPORARY: &str = ".runnerd-tmp";

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
}

impl DurableError {
    /// Tells whether the machine is at fault and the same call may succeed later: disk full,
    /// quota, failing disk, no free file descriptor.
    pub fn is_obstacle(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        let errno = source.raw_os_error().map(Errno::from_raw);
        matches!(errno, Some(Errno::ENOSPC | Errno::EDQUOT | Errno::EIO | Errno::EMFILE | Errno::ENFILE))
    }

    /// Returns the kind of the system's error, if there was one.
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::Symlink { .. } | Self::WrongType { .. } => None,
        }
    }
}

/// Replaces a file, or creates it, so that a reader or a crash sees the old or the new bytes.
pub fn replace(path: &Path, bytes: &[u8], access: Access) -> Result<(), DurableError> {
    let permissions = permissions_for(path, access)?;
    let folder = folder_of(path);
    let mut temporary = tempfile::Builder::new()
        .prefix(&temporary_prefix(path))
        .suffix(TEMPORARY)
        .tempfile_in(folder)
        .map_err(failed("creating a temporary file beside", path))?;
    let file = temporary.as_file_mut();
    file.write_all(bytes).map_err(failed("writing", path))?;
    file.set_permissions(permissions).map_err(failed("setting the mode of", path))?;
    file.sync_all().map_err(failed("flushing", path))?;
    temporary.persist(path).map_err(|error| failed("replacing", path)(error.error))?;
    sync_folder(folder)
}

/// Appends to a file, creating it if needed, and returns when the bytes are on the disk.
pub fn append(path: &Path, bytes: &[u8], access: Access) -> Result<(), DurableError> {
    let existed = fs::symlink_metadata(path).is_ok();
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(file_mode(access));
    let mut file = open(path, &mut options)?;
    file.write_all(bytes).map_err(failed("appending to", path))?;
    file.sync_data().map_err(failed("flushing", path))?;
    if existed { Ok(()) } else { sync_folder(folder_of(path)) }
}

/// Reads a file; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, DurableError> {
    let mut file = match open(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == Some(io::ErrorKind::NotFound) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed("reading", path))?;
    Ok(Some(bytes))
}

/// Creates a folder and the missing ones above it.
pub fn create_dir(path: &Path, access: Access) -> Result<(), DurableError> {
    match fs::symlink_metadata(path) {
        Ok(found) => expect_folder(path, &found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = folder_of(path);
            if !parent.is_dir() {
                create_dir(parent, access)?;
            }
            make_folder(path, access)
        }
        Err(error) => Err(failed("looking at", path)(error)),
    }
}

/// Creates the folders that `relative` names below `root`, following no link on the way.
pub fn create_dir_below(root: &Path, relative: &str, access: Access) -> Result<PathBuf, DurableError> {
    let mut path = root.to_owned();
    for component in Path::new(relative).components() {
        let Component::Normal(name) = component else {
            return Err(DurableError::WrongType { path: path.join(relative), wanted: "folder" });
        };
        path.push(name);
        create_dir(&path, access)?;
    }
    Ok(path)
}

/// Removes what interrupted calls of [`replace`] left in a folder, and returns how many there were.
pub fn remove_leftovers(folder: &Path) -> Result<usize, DurableError> {
    let mut removed = 0;
    for entry in fs::read_dir(folder).map_err(failed("listing", folder))? {
        let entry = entry.map_err(failed("listing", folder))?;
        if is_leftover(&entry.file_name()) {
            fs::remove_file(entry.path()).map_err(failed("removing", &entry.path()))?;
            removed += 1;
        }
    }
    if removed > 0 {
        sync_folder(folder)?;
    }
    Ok(removed)
}

/// Tells whether a file name is that of a temporary file of [`replace`].
pub fn is_leftover(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") && name.ends_with(TEMPORARY.as_bytes())
}

fn temporary_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    prefix
}

fn permissions_for(path: &Path, access: Access) -> Result<Permissions, DurableError> {
    let fresh = Permissions::from_mode(file_mode(access));
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(DurableError::Symlink { path: path.to_owned() }),
        Ok(found) if !found.is_file() => Err(DurableError::WrongType { path: path.to_owned(), wanted: "file" }),
        Ok(found) => Ok(match access {
            Access::Repository => Permissions::from_mode(found.permissions().mode() & 0o777),
            Access::Private => fresh,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(fresh),
        Err(error) => Err(failed("looking at", path)(error)),
    }
}

/// Opens a regular file. A link is refused, and a pipe is opened without waiting for its other end.
fn open(path: &Path, options: &mut OpenOptions) -> Result<File, DurableError> {
    let file = options.custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path).map_err(|source| {
        if source.raw_os_error().map(Errno::from_raw) == Some(Errno::ELOOP) {
            return DurableError::Symlink { path: path.to_owned() };
        }
        failed("opening", path)(source)
    })?;
    let found = file.metadata().map_err(failed("looking at", path))?;
    if found.is_file() { Ok(file) } else { Err(DurableError::WrongType { path: path.to_owned(), wanted: "file" }) }
}

fn expect_folder(path: &Path, found: &fs::Metadata) -> Result<(), DurableError> {
    if found.is_dir() {
        Ok(())
    } else if found.is_symlink() {
        Err(DurableError::Symlink { path: path.to_owned() })
    } else {
        Err(DurableError::WrongType { path: path.to_owned(), wanted: "folder" })
    }
}

fn make_folder(path: &Path, access: Access) -> Result<(), DurableError> {
    let mode = match access {
        Access::Repository => 0o755,
        Access::Private => 0o700,
    };
    match DirBuilder::new().mode(mode).create(path) {
        Ok(()) => sync_folder(folder_of(path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path).map_err(failed("looking at", path))?;
            expect_folder(path, &found)
        }
        Err(error) => Err(failed("creating the folder", path)(error)),
    }
}

fn file_mode(access: Access) -> u32 {
    match access {
        Access::Repository => 0o644,
        Access::Private => 0o600,
    }
}

fn sync_folder(folder: &Path) -> Result<(), DurableError> {
    let opened = File::open(folder).map_err(failed("opening the folder", folder))?;
    opened.sync_all().map_err(failed("flushing the folder", folder))
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
    use std::os::unix::fs::symlink;

    use super::*;

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
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        replace(&file, b"", Access::Repository).unwrap();
        assert_eq!(mode(&file), 0o755);
        replace(&file, b"", Access::Private).unwrap();
        assert_eq!(mode(&file), 0o600);
        let appended = home.path().join("a");
        append(&appended, b"", Access::Private).unwrap();
        assert_eq!(mode(&appended), 0o600);
        let folder = home.path().join("d/e");
        create_dir(&folder, Access::Private).unwrap();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    }

    #[test]
    fn appending_keeps_what_was_there() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("journal");
        append(&file, b"a\n", Access::Private).unwrap();
        append(&file, b"b\n", Access::Private).unwrap();
        assert_eq!(read(&file).unwrap().unwrap(), b"a\nb\n");
    }

    #[test]
    fn a_link_is_never_followed() {
        let home = tempfile::tempdir().unwrap();
        let (target, link) = (home.path().join("target"), home.path().join("link"));
        fs::write(&target, "precious").unwrap();
        symlink(&target, &link).unwrap();
        for result in
            [replace(&link, b"x", Access::Repository), append(&link, b"x", Access::Repository), read(&link).map(drop)]
        {
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
        assert!(append(&pipe, b"x", Access::Private).is_err());
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
    fn only_faults_of_the_machine_are_obstacles() {
        let error = |errno: Errno| failed("writing", Path::new("/x"))(io::Error::from(errno));
        for errno in [Errno::ENOSPC, Errno::EDQUOT, Errno::EIO, Errno::EMFILE, Errno::ENFILE] {
            assert!(error(errno).is_obstacle(), "{errno}");
        }
        assert!(!error(Errno::EACCES).is_obstacle());
        assert!(!DurableError::Symlink { path: PathBuf::new() }.is_obstacle());
    }

    #[test]
    fn messages_name_the_path_and_what_was_done() {
        let error = replace(Path::new("/nowhere/at/all"), b"", Access::Private).unwrap_err();
        insta::assert_snapshot!(error, @"creating a temporary file beside /nowhere/at/all");
        assert_eq!(error.kind(), Some(io::ErrorKind::NotFound));
    }
}
