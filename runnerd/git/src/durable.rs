//! Makes what was written to the repository survive a power cut. The library never flushes; the git program is
//! configured to do so.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::zlib::Decompress;
use gix::zlib::stream::inflate;
use runner_os::dir_permissions;
use runner_os::temp_file;

use super::GitError;

/// With more new objects than this, one flush of the whole file system costs less than one per object and folder.
const MAX_INDIVIDUAL_SYNCS: usize = 2;
/// Size in bytes of the buffer an object is read through.
const CHUNK_BYTES: usize = 64 * 1024;
/// Limit in bytes of a file of git's that is read whole here: what the runner itself adds to one is half of it.
pub(crate) const MAX_WHOLE_BYTES: u64 = 32 << 20;

/// Flushes those of `ids` that are loose objects in `objects`, and their folders.
///
/// Removes an object that a power cut left incomplete and fails: the library takes any file of that name for the
/// object, and writes an object only if there is no such file.
pub(super) fn sync_objects(objects: &Path, ids: &[ObjectId]) -> Result<(), GitError> {
    reject_torn_objects(objects, ids)?;
    if ids.len() > MAX_INDIVIDUAL_SYNCS && sync_all_objects(objects).is_ok() {
        return Ok(());
    }
    sync_each(objects, ids)
}

/// Flushes each of `ids` that is a loose object, and the folders that hold it.
fn sync_each(objects: &Path, ids: &[ObjectId]) -> Result<(), GitError> {
    let mut folders = BTreeSet::from([objects.to_owned()]);
    for id in ids {
        let file = loose_object_path(objects, id);
        if sync_object(&file)?
            && let Some(folder) = file.parent()
        {
            folders.insert(folder.to_owned());
        }
    }
    folders.iter().try_for_each(|folder| sync_if_exists(folder).map(drop))
}

/// Flushes what a commit is about to refer to: all files of the work tree, and `ids` in `objects`.
///
/// If both are on one file system, a single flush serves both.
pub(super) fn sync_commit(work_dir: &Path, objects: &Path, ids: &[ObjectId]) -> Result<(), GitError> {
    reject_torn_objects(objects, ids)?;
    let flushed = sync_file_system(work_dir).map_err(GitError::io("flushing the file system of", work_dir));
    if flushed.is_err() {
        // The system reports a failure once: only a flush per object shows which one may be lost.
        sync_each(objects, ids)?;
    } else if !shares_file_system(work_dir, objects) {
        sync_objects(objects, ids)?;
    }
    flushed
}

/// Flushes all objects in `objects`, the git program's too: git flushes their content but not the folders that hold
/// them.
pub(super) fn sync_all_objects(objects: &Path) -> Result<(), GitError> {
    sync_file_system(objects).map_err(GitError::io("flushing objects below", objects))
}

fn loose_object_path(objects: &Path, id: &ObjectId) -> PathBuf {
    let hex = id.to_string();
    objects.join(&hex[..2]).join(&hex[2..])
}

/// Removes loose objects whose content does not match their name, whether cut short by a power cut or planted earlier.
/// Returns one of them.
pub(super) fn remove_torn_objects(objects: &Path, ids: &[ObjectId]) -> Result<Option<PathBuf>, GitError> {
    let mut torn = None;
    for id in ids {
        let file = loose_object_path(objects, id);
        let Ok(found) = file.symlink_metadata() else { continue };
        if found.len() > 0 && is_intact(objects, id) {
            continue;
        }
        fs::remove_file(&file).map_err(GitError::io("removing a torn object", &file))?;
        torn = Some(file);
    }
    Ok(torn)
}

/// Removes torn objects, and fails if there was one: the writer already counts on it.
fn reject_torn_objects(objects: &Path, ids: &[ObjectId]) -> Result<(), GitError> {
    remove_torn_objects(objects, ids)?.map_or(Ok(()), |path| Err(GitError::TornObject { path }))
}

/// Whether `id` is a loose object whose content matches its name.
pub(super) fn is_intact(objects: &Path, id: &ObjectId) -> bool {
    hash_loose_object(&loose_object_path(objects, id), id.kind()).is_ok_and(|found| found == *id)
}

/// Returns the hash of a loose object's content, which is its name if it is whole. Reads through a fixed buffer.
fn hash_loose_object(object: &Path, kind: gix::hash::Kind) -> io::Result<ObjectId> {
    let mut packed = BufReader::new(File::open(object)?);
    let mut state = Decompress::default();
    let mut hasher = gix::hash::hasher(kind);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match inflate::read(&mut packed, &mut state, &mut chunk)? {
            0 => return hasher.try_finalize().map_err(io::Error::other),
            length => hasher.update(&chunk[..length]),
        }
    }
}

/// Flushes one object and returns whether it exists.
///
/// After a failed flush the data may be lost even if the next flush succeeds, so a copy replaces the object. If that
/// fails too, the object is renamed away, so that the next attempt writes it again.
fn sync_object(object: &Path) -> Result<bool, GitError> {
    let file = match File::open(object) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(GitError::io("flushing", object)(error)),
    };
    if file.sync_all().is_ok() {
        return Ok(true);
    }
    rewrite_object(object).map(|()| true).map_err(|error| {
        // git removes files with such names when it collects garbage.
        let _ = fs::rename(object, object.with_file_name("tmp_obj_not_flushed"));
        GitError::io("flushing", object)(error)
    })
}

fn rewrite_object(object: &Path) -> io::Result<()> {
    // Next to the object folders, where the sweep looks.
    let objects = object.ancestors().nth(2).unwrap_or(Path::new("."));
    let mut copy = temp_file::create_in(objects, object)?;
    copy.write_all(&fs::read(object)?)?;
    copy.as_file().set_permissions(fs::metadata(object)?.permissions())?;
    copy.as_file().sync_all()?;
    copy.persist(object).map(drop).map_err(|error| error.error)
}

/// Flushes the lock file that holds a reference's new value: the bytes must be durable before they get the name.
pub(super) fn sync_lock(git_dir: &Path, name: &str) -> Result<(), GitError> {
    sync_if_exists(&git_dir.join(format!("{name}.lock"))).map(drop)
}

/// Flushes a reference's file in `git_dir` and all folders leading to it, any of which may be new.
pub(super) fn sync_ref(git_dir: &Path, name: &str) -> Result<(), GitError> {
    let file = git_dir.join(name);
    if !sync_if_exists(&file)? {
        return Ok(());
    }
    let folders = file.ancestors().skip(1).take_while(|folder| *folder != git_dir);
    folders.chain([git_dir]).try_for_each(|folder| sync_if_exists(folder).map(drop))
}

/// Flushes only the folder that holds an existing reference in `git_dir`. Its bytes were flushed as a lock file.
pub(super) fn sync_known_ref(git_dir: &Path, name: &str) -> Result<(), GitError> {
    let file = git_dir.join(name);
    file.parent().map_or(Ok(()), |folder| sync_if_exists(folder).map(drop))
}

/// Replaces one of git's small files atomically and durably.
pub(super) fn replace_file(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = temp_file::create_beside(file)?;
    new.write_all(bytes)?;
    new.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    File::open(folder)?.sync_all()
}

/// Reads a small regular file, or one that a link leads to; never waits for a pipe.
pub(super) fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_regular_file(path)?;
    let mut bytes = Vec::new();
    if file.take(MAX_WHOLE_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_WHOLE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is too large"));
    }
    Ok(bytes)
}

/// Reads the last part of a reflog, from the beginning of a line on, as [`read_regular_file`] reads small files.
pub(super) fn read_log_end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_regular_file(path)?;
    let skipped = file.metadata()?.len().saturating_sub(MAX_WHOLE_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(MAX_WHOLE_BYTES).read_to_end(&mut bytes)?;
    if skipped > 0 {
        let first_line = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        bytes.drain(..first_line);
    }
    Ok(bytes)
}

fn open_regular_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

/// Removes a path; it is not an error if it does not exist.
pub(super) fn remove_path(path: &Path) -> Result<(), GitError> {
    dir_permissions::remove_all(path).map_err(GitError::io("removing", path))
}

/// Flushes a file or folder. Returns whether it exists: objects and references may be packed.
pub(super) fn sync_if_exists(path: &Path) -> Result<bool, GitError> {
    match File::open(path).and_then(|file| file.sync_all()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(GitError::io("flushing", path)(error)),
    }
}

#[cfg(target_os = "linux")]
pub(super) fn sync_file_system(path: &Path) -> io::Result<()> {
    nix::unistd::syncfs(File::open(path)?).map_err(io::Error::from)
}

/// Whether flushing one folder's file system also flushes the other's.
#[cfg(target_os = "linux")]
fn shares_file_system(folder: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    device(folder).is_some_and(|of| device(other) == Some(of))
}

/// On other systems flushing a file system only starts the writes and does not wait for them.
#[cfg(not(target_os = "linux"))]
fn shares_file_system(_folder: &Path, _other: &Path) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(super) fn sync_file_system(_path: &Path) -> io::Result<()> {
    nix::unistd::sync();
    Ok(())
}

#[cfg(test)]
mod tests {
    use gix::objs::Kind;
    use runner_os::retryable::Retryable as _;

    use super::*;

    fn object_id(text: &[u8]) -> ObjectId {
        gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, text).unwrap()
    }

    /// A folder of objects with one object named `named` that holds `bytes`.
    fn create_loose_object(named: &ObjectId, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let objects = tempfile::tempdir().unwrap();
        let file = loose_object_path(objects.path(), named);
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(&file, bytes).unwrap();
        (objects, file)
    }

    #[test]
    fn object_that_a_crash_has_left_in_part_is_removed_for_the_next_try() {
        let id = object_id(b"work");
        for torn in [&b""[..], b"x\x9cK", &[0; 64]] {
            let (objects, file) = create_loose_object(&id, torn);
            let error = sync_objects(objects.path(), &[id]).unwrap_err();
            assert!(error.is_transient() && error.to_string().contains("left in part"), "{error}");
            assert!(!file.exists());
            sync_objects(objects.path(), &[id]).unwrap();
        }
    }

    #[test]
    fn object_that_is_whole_stays() {
        use gix::objs::Write as _;
        let objects = tempfile::tempdir().unwrap();
        let store = gix::odb::loose::Store::at(objects.path(), gix::hash::Kind::Sha1);
        let id = store.write_buf(Kind::Blob, b"work").unwrap();
        sync_objects(objects.path(), &[id]).unwrap();
        assert!(loose_object_path(objects.path(), &id).exists());
    }

    #[test]
    fn copy_takes_the_place_of_an_object_with_its_mode() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let (_objects, file) = create_loose_object(&object_id(b"work"), b"bytes");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        let before = fs::metadata(&file).unwrap();
        rewrite_object(&file).unwrap();
        let after = fs::metadata(&file).unwrap();
        assert_eq!((after.mode(), fs::read(&file).unwrap()), (before.mode(), b"bytes".to_vec()));
        assert_ne!(after.ino(), before.ino());
    }
}
