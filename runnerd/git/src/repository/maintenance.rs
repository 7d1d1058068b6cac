//! Keeps git's store small: loose objects become packs, and many small packs become few.
//!
//! Drops nothing, reachable or not: it looks at objects and not at references.

use std::fs;
use std::io::ErrorKind;
use std::sync::Mutex;

use super::program::GitCommand;
use crate::{GitError, Repository};

/// Makes each pack at least twice as large as all smaller ones together: a handful, however many iterations there were.
const REPACK_ARGS: [&str; 6] = ["--geometric=2", "-d", "-l", "-n", "-q", "--no-write-bitmap-index"];
/// Packs of at least this many bytes stay as they are: rewriting them would delay the run.
const LARGE_PACK: u64 = 64 << 20;
/// The tasks of git's maintenance that remove no object; `gc` would.
const MAINTENANCE_TASKS: [&str; 2] = ["--task=loose-objects", "--task=incremental-repack"];

/// The folder whose loose objects are counted, as git itself does for its estimate: names are evenly distributed.
const SAMPLE_DIR: &str = "objects/17";
/// Held while packing: several runs can have the same source.
static PACK_LOCK: Mutex<()> = Mutex::new(());

impl Repository {
    /// Returns the number of loose objects in one of their 256 folders.
    pub fn count_loose_sample(&self) -> Result<usize, GitError> {
        let folder = self.common_dir().join(SAMPLE_DIR);
        match fs::read_dir(&folder) {
            Ok(listed) => Ok(listed.count()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(GitError::io("listing", &folder)(error)),
        }
    }

    /// Whether a person has disabled automatic packing here with `gc.auto = 0`.
    pub fn is_auto_gc_disabled(&self) -> Result<bool, GitError> {
        Ok(self.open()?.config_snapshot().integer("gc.auto") == Some(0))
    }

    /// Makes git pack loose objects, and roll small packs up into larger ones.
    ///
    /// Does nothing if packing is already in progress, or if another process's maintenance is.
    pub fn pack_objects(&self) -> Result<(), GitError> {
        let Ok(_turn) = PACK_LOCK.try_lock() else { return Ok(()) };
        if self.is_maintenance_running()? {
            return Ok(());
        }
        // git refuses this in a partial clone, and has it only since 2.32.
        self.repack_geometric().or_else(|_| self.run_maintenance())
    }

    fn repack_geometric(&self) -> Result<(), GitError> {
        let keep = self.list_large_packs()?.into_iter().map(|name| format!("--keep-pack={name}"));
        GitCommand::new(self, "repack").args(REPACK_ARGS).args(keep).run().map(drop)
    }

    fn run_maintenance(&self) -> Result<(), GitError> {
        GitCommand::new(self, "maintenance").args(["run", "--auto", "--quiet"]).args(MAINTENANCE_TASKS).run().map(drop)
    }

    fn list_large_packs(&self) -> Result<Vec<String>, GitError> {
        let folder = self.common_dir().join("objects/pack");
        let listed = fs::read_dir(&folder).map_err(GitError::io("listing", &folder))?;
        let is_pack = |file: &fs::DirEntry| file.path().extension().is_some_and(|ending| ending == "pack");
        let is_large = |file: &fs::DirEntry| file.metadata().is_ok_and(|found| found.len() >= LARGE_PACK);
        let large = listed.flatten().filter(|file| is_pack(file) && is_large(file));
        Ok(large.filter_map(|file| file.file_name().into_string().ok()).collect())
    }

    /// Whether maintenance is in progress. Removes the lock of a killed one: otherwise git would never run any again.
    fn is_maintenance_running(&self) -> Result<bool, GitError> {
        let lock = self.common_dir().join("objects/maintenance.lock");
        if lock.symlink_metadata().is_err() {
            return Ok(false);
        }
        if self.may_be_in_use(&lock) {
            return Ok(true);
        }
        fs::remove_file(&lock).map_err(GitError::io("removing", &lock)).map(|()| false)
    }
}
