//! Objects for a replica: packs as they are, and one fresh pack of the loose objects. Links no object file, and also
//! packs what the source itself borrows.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use runner_os::file_copy;

use super::RepositoryClone;
use crate::repository::program::GitCommand;
use crate::{GitError, Id};

/// Attempts to copy packs before giving up because they are being rewritten.
const MAX_ATTEMPTS: usize = 3;
/// The files of a pack that are copied. Those that control its retention concern only the source.
const PACK_EXTENSIONS: [&str; 2] = ["pack", "idx"];
/// Loose objects are packed fast: the rest is already packed well.
const FAST_PACK_ARGS: [&str; 4] = ["--stdout", "--quiet", "--window=0", "--compression=1"];

impl RepositoryClone<'_> {
    /// Copies all objects that `base` and the copied references need; returns their size in bytes.
    ///
    /// Does not miss objects written to the source meanwhile: repeats until no new pack appears.
    pub fn copy_objects(&self, base: &Id) -> Result<u64, GitError> {
        self.copy_shallow_boundary()?;
        if self.source.objects_dir().join("info/alternates").exists() {
            self.pack_reachable(base, &["--delta-base-offset"])?;
            return self.count_pack_bytes();
        }
        for _ in 0..MAX_ATTEMPTS {
            let packs = self.list_packs()?;
            let has_all = self.copy_packs(&packs)?;
            self.pack_loose(base)?;
            if has_all && self.list_packs()?.is_subset(&packs) {
                return self.count_pack_bytes();
            }
        }
        Err(GitError::ConcurrentRepack { path: self.source.work_dir().to_owned() })
    }

    /// Copies the boundary of a shallow history.
    fn copy_shallow_boundary(&self) -> Result<(), GitError> {
        let file = self.source.common_dir().join("shallow");
        match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            read => {
                let new = self.target.common_dir().join("shallow");
                fs::write(&new, read.map_err(GitError::io("reading", &file))?).map_err(GitError::io("writing", &new))
            }
        }
    }

    /// Returns the names of the source's complete packs.
    fn list_packs(&self) -> Result<BTreeSet<OsString>, GitError> {
        let folder = self.source.objects_dir().join("pack");
        let listed = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            listed => listed.map_err(GitError::io("listing", &folder))?,
        };
        let mut packs = BTreeSet::new();
        for file in listed {
            let path = file.map_err(GitError::io("listing", &folder))?.path();
            if path.extension().is_some_and(|ending| ending == "idx") && path.with_extension("pack").exists() {
                packs.extend(path.file_stem().map(OsString::from));
            }
        }
        Ok(packs)
    }

    /// Copies packs; false if one disappeared before it was copied.
    fn copy_packs(&self, packs: &BTreeSet<OsString>) -> Result<bool, GitError> {
        let from = self.source.objects_dir().join("pack");
        let to = self.target.objects_dir().join("pack");
        fs::create_dir_all(&to).map_err(GitError::io("making", &to))?;
        for pack in packs {
            for part in PACK_EXTENSIONS {
                let old = from.join(pack).with_extension(part);
                match file_copy::copy_file(&old, &to.join(pack).with_extension(part)) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        // Without its index, half a pack does no harm.
                        return Ok(false);
                    }
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    copied => copied.map(drop).map_err(GitError::io("copying the pack", &old))?,
                }
            }
        }
        Ok(true)
    }

    /// Packs all loose objects, reachable or not: finding that out would take a walk through the whole history.
    fn pack_loose(&self, base: &Id) -> Result<(), GitError> {
        let loose = self.list_loose_objects()?;
        if loose.is_empty() {
            return Ok(());
        }
        let list = GitCommand::new(self.source, "pack-objects").args(FAST_PACK_ARGS).input(loose.into_bytes());
        match list.pipe_into(GitCommand::new(&self.target, "index-pack").arg("--stdin")) {
            // An object that a crash left incomplete, or that was removed since, may not be needed.
            Err(GitError::CommandFailed { .. }) => self.pack_reachable(base, &["--incremental"]),
            packed => packed.map(drop),
        }
    }

    /// Returns the names of loose objects, one a line.
    fn list_loose_objects(&self) -> Result<String, GitError> {
        let folder = self.source.objects_dir();
        let mut names = String::new();
        let length = self.source.open()?.object_hash().len_in_hex() - 2;
        for first in 0..=u8::MAX {
            let first = format!("{first:02x}");
            let below = folder.join(&first);
            let listed = match fs::read_dir(&below) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                listed => listed.map_err(GitError::io("listing", &below))?,
            };
            for file in listed {
                let name = file.map_err(GitError::io("listing", &below))?.file_name();
                let is_object = |name: &&str| name.len() == length && name.bytes().all(|byte| byte.is_ascii_hexdigit());
                if let Some(rest) = name.to_str().filter(is_object) {
                    names.extend([&first, rest, "\n"]);
                }
            }
        }
        Ok(names)
    }

    /// Packs what is reachable from `base` and the copied references.
    fn pack_reachable(&self, base: &Id, args: &[&str]) -> Result<(), GitError> {
        let tips = self.source.list_cloned_refs()?.into_values().filter(|target| !target.starts_with("ref: "));
        let tips: String = tips.chain([base.to_string()]).map(|tip| tip + "\n").collect();
        let walk = GitCommand::new(self.source, "pack-objects").args(["--revs", "--stdout", "--quiet"]).args(args);
        walk.input(tips.into_bytes()).pipe_into(GitCommand::new(&self.target, "index-pack").arg("--stdin")).map(drop)
    }

    fn count_pack_bytes(&self) -> Result<u64, GitError> {
        let folder = self.target.objects_dir().join("pack");
        let length = |file: io::Result<fs::DirEntry>| file.and_then(|file| file.metadata()).map(|found| found.len());
        let listed = fs::read_dir(&folder).map_err(GitError::io("listing", &folder))?;
        listed.map(length).sum::<io::Result<u64>>().map_err(GitError::io("listing", &folder))
    }
}

/// Whether a path is in a folder, resolving links if the path exists.
pub(super) fn is_within(path: &Path, folder: &Path) -> bool {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).starts_with(folder)
}
