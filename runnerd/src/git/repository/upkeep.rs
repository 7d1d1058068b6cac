//! Keeps git's store small: objects that lie about one by one become packs, and small packs become few.
//!
//! Nothing is dropped, reachable or not: what is done looks at objects and at no reference.

use std::fs;
use std::io::ErrorKind;
use std::sync::Mutex;

use super::program::GitCommand;
use crate::git::{GitError, Repository};

/// Packs that are each twice as large as all smaller ones together: a handful, however many iterations there were.
const REPACK_ARGS: [&str; 6] = ["--geometric=2", "-d", "-l", "-n", "-q", "--no-write-bitmap-index"];
/// Packs of at least this many bytes stay as they are: to write them anew would hold the run up.
const LARGE_PACK: u64 = 64 << 20;
/// Of git's maintenance those tasks that take no object away; `gc` would.
const MAINTENANCE_TASKS: [&str; 2] = ["--task=loose-objects", "--task=incremental-repack"];

/// The folder of which single objects are counted, as git itself does for its estimate: names are spread evenly.
const SAMPLE_DIR: &str = "objects/17";
/// Held while something is packed: several runs have one source.
static PACK_LOCK: Mutex<()> = Mutex::new(());

impl Repository {
    /// Returns how many objects lie about one by one in one of their 256 folders.
    pub fn count_loose_sample(&self) -> Result<usize, GitError> {
        let folder = self.common_dir().join(SAMPLE_DIR);
        match fs::read_dir(&folder) {
            Ok(listed) => Ok(listed.count()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(GitError::io("listing", &folder)(error)),
        }
    }

    /// Tells whether nothing is to be packed here by itself, as a person has set: `gc.auto` is 0.
    pub fn is_auto_gc_disabled(&self) -> Result<bool, GitError> {
        Ok(self.open()?.config_snapshot().integer("gc.auto") == Some(0))
    }

    /// Lets git pack what lies about, and roll small packs up into larger ones.
    ///
    /// Does nothing while something is packed already, or somebody else's maintenance is under way.
    pub fn pack_objects(&self) -> Result<(), GitError> {
        let Ok(_turn) = PACK_LOCK.try_lock() else { return Ok(()) };
        if self.is_maintenance_running()? {
            return Ok(());
        }
        // git refuses it in a clone without some objects, and knows it since 2.32.
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

    /// Tells whether a maintenance is under way. The lock of one that was killed is removed: git would never do any again.
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
