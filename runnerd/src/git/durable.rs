//! Makes what was written to the repository survive a power cut. The library never asks the disk to; the git program is
//! told to by configuration instead.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::zlib::Decompress;
use gix::zlib::stream::inflate;

use super::GitError;
use crate::folders;
use crate::temporary;

/// Above this many new objects one flush of the whole file system costs less than one of each.
const MAX_INDIVIDUAL_SYNCS: usize = 16;
/// Bytes of an object that are in memory at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Flushes those of `ids` that are loose objects below `objects`, and their folders.
///
/// An object that a power cut has left in part is removed and the call fails: the library takes whatever has the name
/// for the object, and writes it only where nothing has.
pub(super) fn sync_objects(objects: &Path, ids: &[ObjectId]) -> Result<(), GitError> {
    reject_torn_objects(objects, ids)?;
    if ids.len() > MAX_INDIVIDUAL_SYNCS && sync_all_objects(objects).is_ok() {
        return Ok(());
    }
    sync_each(objects, ids)
}

/// Flushes each of `ids` that is a loose object, and the folders that name them.
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

/// Flushes what a commit is about to name: the files of the work tree, whoever wrote them, and `ids` below `objects`.
///
/// Where both are on one file system, the flush of that serves for both.
pub(super) fn sync_commit(work_dir: &Path, objects: &Path, ids: &[ObjectId]) -> Result<(), GitError> {
    reject_torn_objects(objects, ids)?;
    let flushed = sync_file_system(work_dir).map_err(GitError::io("flushing the file system of", work_dir));
    if flushed.is_err() {
        // The system tells of a failure once: only a flush of its own shows which object may be lost.
        sync_each(objects, ids)?;
    } else if !shares_file_system(work_dir, objects) {
        sync_objects(objects, ids)?;
    }
    flushed
}

/// Flushes all objects below `objects`, whoever wrote them: git flushes their content and not the folders that name them.
pub(super) fn sync_all_objects(objects: &Path) -> Result<(), GitError> {
    sync_file_system(objects).map_err(GitError::io("flushing objects below", objects))
}

fn loose_object_path(objects: &Path, id: &ObjectId) -> PathBuf {
    let hex = id.to_string();
    objects.join(&hex[..2]).join(&hex[2..])
}

/// Removes loose objects that are not what their name says: what a power cut has left in part, and what somebody has put
/// there before. Returns one of them.
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

/// Removes them, and fails if there was one: who wrote the objects has taken it for his.
fn reject_torn_objects(objects: &Path, ids: &[ObjectId]) -> Result<(), GitError> {
    remove_torn_objects(objects, ids)?.map_or(Ok(()), |path| Err(GitError::TornObject { path }))
}

/// Tells whether an object is a file of its own with the bytes that its name says.
pub(super) fn is_intact(objects: &Path, id: &ObjectId) -> bool {
    hash_loose_object(&loose_object_path(objects, id), id.kind()).is_ok_and(|found| found == *id)
}

/// Returns the hash of what a loose object holds, a piece of it in memory at a time: its name, if it is whole.
fn hash_loose_object(object: &Path, kind: gix::hash::Kind) -> io::Result<ObjectId> {
    let mut packed = BufReader::new(File::open(object)?);
    let (mut state, mut hasher, mut chunk) = (Decompress::default(), gix::hash::hasher(kind), vec![0; CHUNK_BYTES]);
    loop {
        match inflate::read(&mut packed, &mut state, &mut chunk)? {
            0 => return hasher.try_finalize().map_err(io::Error::other),
            length => hasher.update(&chunk[..length]),
        }
    }
}

/// Flushes one object and tells whether it is there.
///
/// What could not be flushed once may be lost although it can be the next time: a copy takes its place. Where that is
/// refused too it loses its name, so that the next try writes it anew.
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
        // git removes files of such names when it collects garbage.
        let _ = fs::rename(object, object.with_file_name("tmp_obj_not_flushed"));
        GitError::io("flushing", object)(error)
    })
}

fn rewrite_object(object: &Path) -> io::Result<()> {
    // Beside the folders of objects, where the sweep looks.
    let objects = object.ancestors().nth(2).unwrap_or(Path::new("."));
    let mut copy = temporary::create_in(objects, object)?;
    copy.write_all(&fs::read(object)?)?;
    copy.as_file().set_permissions(fs::metadata(object)?.permissions())?;
    copy.as_file().sync_all()?;
    copy.persist(object).map(drop).map_err(|error| error.error)
}

/// Flushes the locks in which new values of references wait for their name: what has a name must have its bytes.
pub(super) fn sync_lock(git_dir: &Path, name: &str) -> Result<(), GitError> {
    sync_if_exists(&git_dir.join(format!("{name}.lock"))).map(drop)
}

/// Flushes the file of a reference below `git_dir` and the folders that lead to it, any of which may be new.
pub(super) fn sync_ref(git_dir: &Path, name: &str) -> Result<(), GitError> {
    let file = git_dir.join(name);
    if !sync_if_exists(&file)? {
        return Ok(());
    }
    let folders = file.ancestors().skip(1).take_while(|folder| *folder != git_dir);
    folders.chain([git_dir]).try_for_each(|folder| sync_if_exists(folder).map(drop))
}

/// Flushes the one folder that names a reference below `git_dir`, which is not new. Its bytes were flushed as a lock.
pub(super) fn sync_known_ref(git_dir: &Path, name: &str) -> Result<(), GitError> {
    let file = git_dir.join(name);
    file.parent().map_or(Ok(()), |folder| sync_if_exists(folder).map(drop))
}

/// Replaces a small file of git's at once, and makes that survive a power cut.
pub(super) fn replace_file(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = temporary::create_beside(file)?;
    new.write_all(bytes)?;
    new.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    File::open(folder)?.sync_all()
}

/// Removes whatever has a name.
pub(super) fn remove_path(path: &Path) -> Result<(), GitError> {
    folders::remove_all(path).map_err(GitError::io("removing", path))
}

/// Flushes a file or folder. Tells whether there was one: objects may be packed, and so may references.
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

/// Whether the flush of one folder's file system is that of another's too.
#[cfg(target_os = "linux")]
fn shares_file_system(folder: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    device(folder).is_some_and(|of| device(other) == Some(of))
}

/// Elsewhere the flush of a file system is begun and not waited for.
#[cfg(not(target_os = "linux"))]
fn is_flushed_with(_folder: &Path, _other: &Path) -> bool {
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

    use super::*;
    use crate::obstruction::Retryable as _;

    fn object_id(text: &[u8]) -> ObjectId {
        gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, text).unwrap()
    }

    /// A folder of objects with one that says it is `named` and holds `bytes`.
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
