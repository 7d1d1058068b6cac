//! Uncommitted work inside submodules, which a commit of the surrounding repository does not include. Only reports it;
//! nothing in them is changed.
//!
//! They are checked by the rules of the surrounding repository: a session may have written a submodule's own
//! configuration, and filters are programs.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::BString;
use protocol::path::WirePath;

use super::stage::declared_submodules;
use super::stat_cache::TrackedFiles;
use crate::path::display_path;
use crate::repository::cache::SubmoduleRepository;
use crate::repository::handle::ConfigSources;
use crate::repository::pinned_config::{PinnedConfig, PinnedConfigDir};
use crate::{GitError, Id, Repository};

/// Nesting depth up to which submodules are checked.
const MAX_DEPTH: usize = 8;

/// What the submodules of a copy hold that those of its source do not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SubmoduleDiff {
    /// Submodules with a commit that the source does not have, and git directories that no submodule uses.
    pub unpublished: Vec<String>,
    /// Files in them without a commit, ignored ones included; a folder without a commit ends in a slash.
    pub files: Vec<String>,
}

impl Repository {
    /// Returns the submodules, nested ones included, with uncommitted changes in their work trees, sorted.
    pub fn find_dirty_submodules(&self) -> Result<Vec<String>, GitError> {
        let mut dirty = BTreeSet::new();
        self.collect_dirty_submodules(&BString::default(), MAX_DEPTH, &mut dirty)?;
        Ok(dirty.iter().map(|path| display_path(path)).collect())
    }

    fn collect_dirty_submodules(
        &self,
        prefix: &BString,
        depth: usize,
        dirty: &mut BTreeSet<BString>,
    ) -> Result<(), GitError> {
        for path in self.list_submodules()? {
            let Some(SubmoduleRepository { repository, .. }) = self.open_submodule(&path) else { continue };
            let name = BString::from([prefix.as_slice(), &path].concat());
            match repository.list_changes() {
                Ok(changes) if changes.is_empty() => {}
                Ok(_) => drop(dirty.insert(name.clone())),
                Err(error) => {
                    tracing::warn!(path = %name, error = &error as &dyn std::error::Error, "a submodule cannot be read");
                    continue;
                }
            }
            if depth > 0 {
                let below = BString::from([name.as_slice(), b"/"].concat());
                repository.collect_dirty_submodules(&below, depth - 1, dirty)?;
            }
        }
        Ok(())
    }

    /// Compares the submodules here, nested ones included, with those in the same places of `source`.
    pub fn compare_submodules(&self, source: &Self) -> Result<SubmoduleDiff, GitError> {
        let mut diff = SubmoduleDiff::default();
        let mut known = BTreeSet::new();
        self.compare_submodules_at(source, &BString::default(), MAX_DEPTH, (&mut diff, &mut known))?;
        let modules = self.common_dir.join("modules");
        let mut git_dirs = Vec::new();
        collect_git_dirs(&modules, MAX_DEPTH * MAX_DEPTH, &mut git_dirs)?;
        let unnamed = git_dirs.iter().filter(|dir| !known.contains(*dir));
        diff.unpublished.extend(unnamed.map(|dir| self.display_git_path(dir)));
        Ok(diff)
    }

    fn compare_submodules_at(
        &self,
        source: &Self,
        prefix: &BString,
        depth: usize,
        (diff, known): (&mut SubmoduleDiff, &mut BTreeSet<PathBuf>),
    ) -> Result<(), GitError> {
        for path in self.list_submodules()? {
            let Some(SubmoduleRepository { repository: copy, .. }) = self.open_submodule(&path) else { continue };
            let name = BString::from([prefix.as_slice(), &path].concat());
            known.insert(copy.git_dir().to_owned());
            let Some(SubmoduleRepository { repository: original, .. }) = source.open_submodule(&path) else {
                diff.unpublished.push(display_path(&name));
                continue;
            };
            let tips =
                copy.list_refs()?.into_values().filter_map(|tip| tip.parse::<Id>().ok()).chain(copy.head()?.commit());
            for tip in tips {
                if !original.has_object(&tip)? {
                    diff.unpublished.push(display_path(&name));
                    break;
                }
            }
            let below = BString::from([name.as_slice(), b"/"].concat());
            let changed = copy.list_changes()?.into_iter().map(|change| change.path);
            let files = changed.chain(copy.list_uncommitted_paths()?);
            diff.files.extend(files.map(|file| display_path(&[below.as_slice(), &file].concat())));
            if depth > 0 {
                copy.compare_submodules_at(&original, &below, depth - 1, (diff, known))?;
            }
        }
        Ok(())
    }

    /// Returns the paths of submodules known to `.gitmodules` or HEAD.
    fn list_submodules(&self) -> Result<BTreeSet<BString>, GitError> {
        let repo = self.open()?;
        if self.cache.known_submodules().is_none() {
            TrackedFiles::load(&repo, self, self.head()?.commit())?.store_in_cache();
        }
        let mut paths = declared_submodules(&repo);
        paths.extend(self.cache.known_submodules().unwrap_or_default());
        Ok(paths)
    }

    /// Returns the repository at a path, cached from an earlier check; `None` if there is none, or if it is located
    /// elsewhere.
    pub(crate) fn open_submodule(&self, path: &BString) -> Option<SubmoduleRepository> {
        let folder = self.absolute_path(path);
        let git_dir = self.find_own_git_dir(&folder)?;
        let known = self.cache.lock().submodules.get(path).cloned();
        if let Some(known) = known.filter(|known| known.repository.git_dir() == git_dir) {
            return Some(known);
        }
        let rules_dir = tempfile::tempdir().ok()?;
        // If nothing was captured, the current configuration is used.
        let captured = match self.pinned_config() {
            Some(captured) => captured.clone(),
            None => self.pin_config(rules_dir.path()).ok()?.pinned_config()?.clone(),
        };
        let config = PinnedConfig {
            work_dir: WirePath(folder),
            git_dir: WirePath(git_dir.clone()),
            common_dir: WirePath(git_dir),
            ..captured
        };
        let places = [&config.work_dir, &config.git_dir, &config.common_dir].map(|path| path.0.clone());
        let pinned = PinnedConfigDir::new(&rules_dir.path().join("git"), config);
        let repository = Self::from_dirs(places, ConfigSources::RepositoryOnly, Some(Arc::new(pinned)));
        if self.opens_files() {
            repository.set_opens_files();
        }
        let submodule = SubmoduleRepository::new(repository, rules_dir);
        self.cache.lock().submodules.insert(path.clone(), submodule.clone());
        Some(submodule)
    }

    /// Returns the git folder of the repository in `folder`, if it is within this repository's folders: others were not
    /// searched for content that nothing should read.
    pub(crate) fn find_own_git_dir(&self, folder: &Path) -> Option<PathBuf> {
        let link = folder.join(".git");
        let is_file = link.symlink_metadata().ok()?.is_file();
        let named = if is_file { gix::discover::path::from_gitdir_file(&link).ok()? } else { link };
        let found = named.canonicalize().ok().filter(|found| found.is_dir())?;
        let is_own = found.starts_with(&self.common_dir) || found.starts_with(&self.work_dir);
        (is_own && !found.join("commondir").exists()).then_some(found)
    }
}

/// Collects git directories in a folder: a submodule's name may have slashes, and its own submodules are below it.
fn collect_git_dirs(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), GitError> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(GitError::io("listing", folder))?,
    };
    for entry in listed {
        let path = entry.map_err(GitError::io("listing", folder))?.path();
        if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            continue;
        }
        let is_git_dir = path.join("HEAD").symlink_metadata().is_ok();
        let below = if is_git_dir { path.join("modules") } else { path.clone() };
        found.extend(is_git_dir.then_some(path));
        if depth > 0 {
            collect_git_dirs(&below, depth - 1, found)?;
        }
    }
    Ok(())
}
