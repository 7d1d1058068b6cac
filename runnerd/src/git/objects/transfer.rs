//! Brings objects into another repository on this machine, and looks whether all are there. No transport: nothing of the
//! other repository's is run or asked, and what arrives is named by its bytes, not by what was said of it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use gix::ObjectId;
use gix::objs::{Exists as _, Write as _};

use super::added::ObjectWalk;
use super::checked;
use crate::git::durable;
use crate::git::repository::engine::GitEngine;
use crate::git::repository::program::GitCommand;
use crate::git::{GitError, Id, Repository};

/// From as many objects on they stay one pack: git's own limit for what is received.
const MIN_PACK_OBJECTS: u32 = 100;
/// Fewer of them, and bytes of files: as much as is copied and looked at within this process.
const SMALL_TRANSFER: (usize, u64) = (MIN_PACK_OBJECTS as usize - 1, 8 << 20);
/// Bytes at the beginning of a pack: its mark, its version and the number of objects.
const PACK_HEADER_BYTES: usize = 12;

/// Objects by where they are reached from.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRange<'a> {
    /// What leads to them.
    pub tips: &'a [Id],
    /// What leads to others, which are left out.
    pub excluded: &'a [Id],
}

/// What the other repository is known to have all of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownObjects {
    /// Nothing.
    Nothing,
    /// What this commit leads to.
    Commit(Id),
    /// What its references lead to, but for the runner's own.
    References,
}

impl Repository {
    /// Tells whether an object is there.
    pub fn has_object(&self, id: &Id) -> Result<bool, GitError> {
        Ok(self.open()?.has_object(id.object_id()))
    }

    /// Puts objects of this repository into another one, durably. Tells whether each was seen to be there now.
    pub fn send_objects(&self, to: &Repository, objects: ObjectRange<'_>) -> Result<bool, GitError> {
        if self.copy_loose_objects(to, objects)? {
            return Ok(true);
        }
        let folder = to.common_dir().join("objects");
        // It has no name: nothing is left of it by a death.
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

    /// Copies objects one by one, durably; false where git is to send them, as they are too many or something is odd.
    fn copy_loose_objects(&self, to: &Repository, objects: ObjectRange<'_>) -> Result<bool, GitError> {
        let (here, there) = (self.open()?, to.open()?);
        if to.choose_engine(&there) == GitEngine::Git {
            return Ok(false);
        }
        let [tips, known] = [objects.tips, objects.excluded].map(to_object_ids);
        let Ok(ids) = ObjectWalk::new(&here, &known, SMALL_TRANSFER).collect_from(&tips) else { return Ok(false) };
        let folder = to.common_dir().join("objects");
        let ids: Vec<ObjectId> = ids.into_iter().collect();
        // What a power cut has left in part of an earlier try has the name of the object, and is not it.
        durable::remove_torn_objects(&folder, &ids)?;
        // The library knows the empty tree wherever it is asked for; git misses it where it is not stored.
        for id in ids.iter().filter(|id| !there.objects.exists(id)) {
            let object = checked::read_object(&here, *id).map_err(GitError::gix("reading an object", self.git_dir()))?;
            let written = there.objects.write_buf(object.kind, &object.data);
            written.map_err(GitError::gix("writing an object below", &folder))?;
        }
        durable::sync_objects(&folder, &ids).map(|()| true)
    }

    /// Tells whether all is there that `tips` need and `known` does not; false too where git is to look, as it is too much
    /// or something is odd. What is there is looked at anew.
    fn has_all_reachable(&self, tips: &[Id], known: Id) -> Result<bool, GitError> {
        Ok(ObjectWalk::new(&self.open_uncached()?, &[known.object_id()], SMALL_TRANSFER).collect_from(&to_object_ids(tips)).is_ok())
    }

    /// Returns an object that `tips` need and that is not there; none where all are.
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
        // Git ends where a commit is missing, and names it. It ends so for other reasons too: what is not there is seen.
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

/// Returns how many objects a pack has, by its header.
fn read_object_count(mut pack: File) -> std::io::Result<u32> {
    let mut header = [0; PACK_HEADER_BYTES];
    pack.seek(SeekFrom::Start(0))?;
    pack.read_exact(&mut header)?;
    Ok(u32::from_be_bytes([header[8], header[9], header[10], header[11]]))
}
