//! Brings objects into another repository on this machine, and looks whether all are there. No transport: nothing of the
//! other repository's is run or asked, and what arrives is named by its bytes, not by what was said of it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use crate::git::durable;
use crate::git::repository::program::Git;
use crate::git::{GitError, Id, Repository};

/// From as many objects on they stay one pack: git's own limit for what is received.
const PACKED_FROM: u32 = 100;
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

    /// Puts objects of this repository into another one, durably.
    pub fn send_objects(&self, to: &Repository, objects: Reached<'_>) -> Result<(), GitError> {
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
            0 => return Ok(()),
            1..PACKED_FROM => Git::new(to, "unpack-objects").arg("-q"),
            _ => Git::new(to, "index-pack").arg("--stdin"),
        };
        git.reading_from(copy()?).run()?;
        durable::sync_all_objects(&folder)
    }

    /// Returns an object that `tips` need and that is not there; none where all are.
    pub fn lacking(&self, tips: &[Id], known: Known) -> Result<Option<String>, GitError> {
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
        let missing = listed.lines().find_map(|line| line.strip_prefix('?'));
        // Where a commit itself is missing, git says so and ends.
        let unknown = || (!looked.status.success()).then(|| tips.first().map(Id::to_string)).flatten();
        Ok(missing.map(str::to_owned).or_else(unknown))
    }
}

/// Returns how many objects a pack has, by its header.
fn count_in(mut pack: File) -> std::io::Result<u32> {
    let mut header = [0; HEADER];
    pack.seek(SeekFrom::Start(0))?;
    pack.read_exact(&mut header)?;
    Ok(u32::from_be_bytes([header[8], header[9], header[10], header[11]]))
}
