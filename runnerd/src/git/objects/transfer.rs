//! Brings objects into another repository on this machine, and looks whether all are there. No transport: nothing of the
//! other repository's is run or asked, and what arrives is named by its bytes, not by what was said of it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use gix::ObjectId;
use gix::objs::{Exists as _, Write as _};

use super::added::Walk;
use super::checked;
use crate::git::durable;
use crate::git::repository::engine::Engine;
use crate::git::repository::program::Git;
use crate::git::{GitError, Id, Repository};

/// From as many objects on they stay one pack: git's own limit for what is received.
const PACKED_FROM: u32 = 100;
/// Fewer of them, and bytes of files: as much as is copied and looked at within this process.
const FEW: (usize, u64) = (PACKED_FROM as usize - 1, 8 << 20);
/// Bytes at the beginning of a pack: its mark, its version and the number of objects.
const HEADER: usize = 12;

/// Objects by where they are reached from.
#[derive(Debug, Clone, Copy)]
pub struct Reached<'a> {
    /// What leads to them.
    pub from: &'a [Id],
    /// What leads to others, which are left out.
    pub not_from: &'a [Id],
}

/// What the other repository is known to have all of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// What this commit leads to.
    Commit(Id),
    /// What its references lead to, but for the runner's own.
    References,
}

impl Repository {
    /// Tells whether an object is there.
    pub fn holds(&self, id: &Id) -> Result<bool, GitError> {
        Ok(self.open()?.has_object(id.object()))
    }

    /// Puts objects of this repository into another one, durably. Tells whether each was seen to be there now.
    pub fn send_objects(&self, to: &Repository, objects: Reached<'_>) -> Result<bool, GitError> {
        if self.copy_few(to, objects)? {
            return Ok(true);
        }
        let folder = to.common_dir().join("objects");
        // It has no name: nothing is left of it by a death.
        let pack = tempfile::tempfile_in(&folder).map_err(GitError::io("making a pack in", &folder))?;
        let copy = || pack.try_clone().map_err(GitError::io("making a pack in", &folder));
        let from = objects.from.iter().map(|id| format!("{id}\n"));
        let input = from.chain(objects.not_from.iter().map(|id| format!("^{id}\n"))).collect::<String>();
        let git = Git::new(self, "pack-objects").args(["--revs", "--stdout", "--delta-base-offset", "-q"]);
        git.input(input.into_bytes()).printing_to(copy()?).run()?;
        let count = count_in(copy()?).map_err(GitError::io("reading a pack in", &folder))?;
        let git = match count {
            0 => return Ok(false),
            1..PACKED_FROM => Git::new(to, "unpack-objects").arg("-q"),
            _ => Git::new(to, "index-pack").arg("--stdin"),
        };
        git.reading_from(copy()?).run()?;
        durable::sync_all_objects(&folder).map(|()| false)
    }

    /// Copies objects one by one, durably; false where git is to send them, as they are too many or something is odd.
    fn copy_few(&self, to: &Repository, objects: Reached<'_>) -> Result<bool, GitError> {
        let (here, there) = (self.open()?, to.open()?);
        if to.engine(&there) == Engine::Program {
            return Ok(false);
        }
        let [tips, known] = [objects.from, objects.not_from].map(plain);
        let Ok(few) = Walk::new(&here, &known, FEW).from(&tips) else { return Ok(false) };
        let folder = to.common_dir().join("objects");
        let few: Vec<ObjectId> = few.into_iter().collect();
        // What a power cut has left in part of an earlier try has the name of the object, and is not it.
        durable::discard_torn(&folder, &few)?;
        // The library knows the empty tree wherever it is asked for; git misses it where it is not stored.
        for id in few.iter().filter(|id| !there.objects.exists(id)) {
            let object = checked::object(&here, *id).map_err(GitError::library("reading an object", self.git_dir()))?;
            let written = there.objects.write_buf(object.kind, &object.data);
            written.map_err(GitError::library("writing an object below", &folder))?;
        }
        durable::sync_objects(&folder, &few).map(|()| true)
    }

    /// Tells whether all is there that `tips` need and `known` does not; false too where git is to look, as it is too much
    /// or something is odd. What is there is looked at anew.
    fn has_few(&self, tips: &[Id], known: Id) -> Result<bool, GitError> {
        Ok(Walk::new(&self.open_anew()?, &[known.object()], FEW).from(&plain(tips)).is_ok())
    }

    /// Returns an object that `tips` need and that is not there; none where all are.
    pub fn lacking(&self, tips: &[Id], known: Known) -> Result<Option<String>, GitError> {
        if let Known::Commit(commit) = known
            && self.has_few(tips, commit)?
        {
            return Ok(None);
        }
        let mut wanted: Vec<String> = tips.iter().map(ToString::to_string).collect();
        if let Known::Commit(commit) = known {
            wanted.push(format!("^{commit}"));
        }
        let input = wanted.join("\n") + "\n";
        let mut git = Git::new(self, "rev-list").args(["--objects", "--missing=print", "--quiet"]);
        if known == Known::References {
            git = git.args(["--exclude=refs/runner/*", "--not", "--all", "--not"]);
        }
        let looked = git.arg("--stdin").input(input.into_bytes()).outcome()?;
        let listed = String::from_utf8_lossy(&looked.stdout);
        if let Some(missing) = listed.lines().find_map(|line| line.strip_prefix('?')) {
            return Ok(Some(missing.to_owned()));
        }
        if looked.status.success() {
            return Ok(None);
        }
        // Git ends where a commit is missing, and names it. It ends so for other reasons too: what is not there is seen.
        let repo = self.open_anew()?;
        let named = looked.stderr.split(|c: char| !c.is_ascii_hexdigit()).filter_map(|word| word.parse::<Id>().ok());
        match tips.iter().copied().chain(named).find(|id| !repo.has_object(id.object())) {
            Some(missing) => Ok(Some(missing.to_string())),
            None => Err(looked.into_error("rev-list".to_owned(), self.work_dir().to_owned())),
        }
    }
}

fn plain(ids: &[Id]) -> Vec<ObjectId> {
    ids.iter().map(Id::object).collect()
}

/// Returns how many objects a pack has, by its header.
fn count_in(mut pack: File) -> std::io::Result<u32> {
    let mut header = [0; HEADER];
    pack.seek(SeekFrom::Start(0))?;
    pack.read_exact(&mut header)?;
    Ok(u32::from_be_bytes([header[8], header[9], header[10], header[11]]))
}
