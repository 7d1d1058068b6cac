//! Copies objects into another repository on this machine, and checks whether all are there. Not a transport: nothing
//! in the other repository is run or queried, and arriving objects are named by their content, not by what was claimed.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use gix::ObjectId;
use gix::objs::{Exists as _, Write as _};

use super::object_reader;
use super::object_walk::ObjectWalk;
use crate::durable;
use crate::repository::engine::GitEngine;
use crate::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

/// From this many objects on they stay one pack: git's own limit for received objects.
const MIN_PACK_OBJECTS: u32 = 100;
/// Limits (objects, bytes of files) up to which objects are copied and checked within this process.
const SMALL_TRANSFER: (usize, u64) = (MIN_PACK_OBJECTS as usize - 1, 8 << 20);
/// Length of a pack's header in bytes: signature, version and number of objects.
const PACK_HEADER_BYTES: usize = 12;

/// A set of objects, by reachability.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRange<'a> {
    /// Objects reachable from these are included.
    pub tips: &'a [Id],
    /// Objects reachable from these are excluded.
    pub excluded: &'a [Id],
}

/// What the other repository is known to have completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownObjects {
    /// Nothing.
    Nothing,
    /// Everything reachable from this commit.
    Commit(Id),
    /// Everything reachable from its references, except the runner's own.
    References,
}

impl Repository {
    /// Whether an object exists here.
    pub fn has_object(&self, id: &Id) -> Result<bool, GitError> {
        Ok(self.open()?.has_object(id.object_id()))
    }

    /// Sends objects of this repository to another one, durably. Returns whether each was verified to exist there.
    pub fn send_objects(&self, to: &Repository, objects: ObjectRange<'_>) -> Result<bool, GitError> {
        if self.copy_loose_objects(to, objects)? {
            return Ok(true);
        }
        let folder = to.common_dir().join("objects");
        // The file has no name: a crash leaves nothing behind.
        let pack = tempfile::tempfile_in(&folder).map_err(GitError::io("making a pack in", &folder))?;
        let copy = || pack.try_clone().map_err(GitError::io("making a pack in", &folder));
        let from = objects.tips.iter().map(|id| format!("{id}\n"));
        let input = from.chain(objects.excluded.iter().map(|id| format!("^{id}\n"))).collect::<String>();
        let git = GitCommand::new(self, "pack-objects").args(["--revs", "--stdout", "--delta-base-offset", "-q"]);
        git.input(input.into_bytes()).stdout_file(copy()?).run()?;
        let count = read_object_count(copy()?).map_err(GitError::io("reading a pack in", &folder))?;
        let git = match count {
            0 => return Ok(false),
            1..MIN_PACK_OBJECTS => GitCommand::new(to, "unpack-objects").arg("-q"),
            _ => GitCommand::new(to, "index-pack").arg("--stdin"),
        };
        git.stdin_file(copy()?).run()?;
        durable::sync_all_objects(&folder).map(|()| false)
    }

    /// Copies objects one by one, durably; false if git has to send them, because there are too many or something is
    /// odd.
    fn copy_loose_objects(&self, to: &Repository, objects: ObjectRange<'_>) -> Result<bool, GitError> {
        let source = self.open()?;
        let target = to.open()?;
        if to.choose_engine(&target) == GitEngine::Git {
            return Ok(false);
        }
        let [tips, known] = [objects.tips, objects.excluded].map(to_object_ids);
        let Ok(ids) = ObjectWalk::new(&source, &known, SMALL_TRANSFER).collect_from(&tips) else { return Ok(false) };
        let folder = to.common_dir().join("objects");
        let ids: Vec<ObjectId> = ids.into_iter().collect();
        // A torn object from an interrupted attempt would have the right name but the wrong content.
        durable::remove_torn_objects(&folder, &ids)?;
        // The library always knows the empty tree; git misses it if it is not stored.
        for id in ids.iter().filter(|id| !target.objects.exists(id)) {
            let object =
                object_reader::read_object(&source, *id).map_err(GitError::gix("reading an object", self.git_dir()))?;
            let written = target.objects.write_buf(object.kind, &object.data);
            written.map_err(GitError::gix("writing an object below", &folder))?;
        }
        durable::sync_objects(&folder, &ids).map(|()| true)
    }

    /// Whether everything that `tips` need beyond `known` exists; also false if git has to check, because there is too
    /// much or something is odd. Existing objects are read again.
    fn has_all_reachable(&self, tips: &[Id], known: Id) -> Result<bool, GitError> {
        Ok(ObjectWalk::new(&self.open_uncached()?, &[known.object_id()], SMALL_TRANSFER)
            .collect_from(&to_object_ids(tips))
            .is_ok())
    }

    /// Returns an object that `tips` need and that is missing; `None` if all exist.
    pub fn find_missing_object(&self, tips: &[Id], known: KnownObjects) -> Result<Option<String>, GitError> {
        if let KnownObjects::Commit(commit) = known
            && self.has_all_reachable(tips, commit)?
        {
            return Ok(None);
        }
        let mut revisions: Vec<String> = tips.iter().map(ToString::to_string).collect();
        if let KnownObjects::Commit(commit) = known {
            revisions.push(format!("^{commit}"));
        }
        let input = revisions.join("\n") + "\n";
        let mut git = GitCommand::new(self, "rev-list").args(["--objects", "--missing=print", "--quiet"]);
        if known == KnownObjects::References {
            git = git.args(["--exclude=refs/runner/*", "--not", "--all", "--not"]);
        }
        let outcome = git.arg("--stdin").input(input.into_bytes()).output()?;
        let listed = String::from_utf8_lossy(&outcome.stdout);
        if let Some(missing) = listed.lines().find_map(|line| line.strip_prefix('?')) {
            return Ok(Some(missing.to_owned()));
        }
        if outcome.status.success() {
            return Ok(None);
        }
        // git fails on a missing commit and names it, but it fails for other reasons too, so check what is really
        // missing.
        let repo = self.open_uncached()?;
        let named = outcome.stderr.split(|c: char| !c.is_ascii_hexdigit()).filter_map(|word| word.parse::<Id>().ok());
        match tips.iter().copied().chain(named).find(|id| !repo.has_object(id.object_id())) {
            Some(missing) => Ok(Some(missing.to_string())),
            None => Err(outcome.into_error("rev-list".to_owned(), self.work_dir().to_owned())),
        }
    }
}

fn to_object_ids(ids: &[Id]) -> Vec<ObjectId> {
    ids.iter().map(Id::object_id).collect()
}

/// Returns the number of objects in a pack, from its header.
fn read_object_count(mut pack: File) -> std::io::Result<u32> {
    let mut header = [0; PACK_HEADER_BYTES];
    pack.seek(SeekFrom::Start(0))?;
    pack.read_exact(&mut header)?;
    Ok(u32::from_be_bytes([header[8], header[9], header[10], header[11]]))
}
