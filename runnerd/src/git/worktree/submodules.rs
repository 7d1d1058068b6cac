//! Work inside submodules that is not committed there: a commit of the repository around them has nothing of it. Says
//! which; nothing in them is changed.
//!
//! They are looked into by the rules of the repository around them: what a submodule's own configuration says, a session
//! can have written, and filters are programs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::BString;
use protocol::path::WirePath;

use super::known::Tracked;
use super::stage::declared_submodules;
use crate::git::path::display;
use crate::git::repository::handle::Sources;
use crate::git::repository::memory::Inside;
use crate::git::repository::trusted::{Captured, Trusted};
use crate::git::{GitError, Repository};

/// Submodules in each other that are looked into.
const DEEPEST: usize = 8;

impl Repository {
    /// Returns the submodules in whose work trees something is not committed, those within each other too, sorted.
    pub fn dirty_submodules(&self) -> Result<Vec<String>, GitError> {
        let mut dirty = BTreeSet::new();
        self.look_into_submodules(&BString::default(), DEEPEST, &mut dirty)?;
        Ok(dirty.iter().map(|path| display(path)).collect())
    }

    fn look_into_submodules(
        &self,
        prefix: &BString,
        depth: usize,
        dirty: &mut BTreeSet<BString>,
    ) -> Result<(), GitError> {
        for path in self.submodules()? {
            let Some(Inside { repository, .. }) = self.inside(&path) else { continue };
            let name = BString::from([prefix.as_slice(), &path].concat());
            match repository.changes() {
                Ok(changes) if changes.is_empty() => {}
                Ok(_) => drop(dirty.insert(name.clone())),
                Err(error) => {
                    tracing::warn!(path = %name, error = &error as &dyn std::error::Error, "a submodule cannot be read");
                    continue;
                }
            }
            if depth > 0 {
                let below = BString::from([name.as_slice(), b"/"].concat());
                repository.look_into_submodules(&below, depth - 1, dirty)?;
            }
        }
        Ok(())
    }

    /// Returns the paths of submodules, whether `.gitmodules` or HEAD knows them.
    fn submodules(&self) -> Result<BTreeSet<BString>, GitError> {
        let repo = self.open()?;
        if self.memory.submodules().is_none() {
            Tracked::open(&repo, self, self.head()?.commit())?.keep();
        }
        let mut paths = declared_submodules(&repo);
        paths.extend(self.memory.submodules().unwrap_or_default());
        Ok(paths)
    }

    /// Returns the repository at a path, as it was looked into before; none where there is none, or it lies elsewhere.
    fn inside(&self, path: &BString) -> Option<Inside> {
        let folder = self.file(path);
        let git_dir = self.git_dir_of(&folder)?;
        let known = self.memory.lock().inside.get(path).cloned();
        if let Some(known) = known.filter(|known| known.repository.git_dir() == git_dir) {
            return Some(known);
        }
        let laid = tempfile::tempdir().ok()?;
        let captured = Captured {
            work_dir: WirePath(folder),
            git_dir: WirePath(git_dir.clone()),
            common_dir: WirePath(git_dir),
            ..self.captured()?.clone()
        };
        let places = [&captured.work_dir, &captured.git_dir, &captured.common_dir].map(|path| path.0.clone());
        let trusted = Trusted::new(&laid.path().join("git"), captured);
        let repository = Self::at(places, Sources::RepositoryOnly, Some(Arc::new(trusted)));
        let inside = Inside::new(repository, laid);
        self.memory.lock().inside.insert(path.clone(), inside.clone());
        Some(inside)
    }

    /// Returns the git folder of the repository in `folder`, if it is within this one's folders: nothing else was looked
    /// through for what nobody should read.
    pub(in crate::git) fn git_dir_of(&self, folder: &Path) -> Option<PathBuf> {
        let link = folder.join(".git");
        let is_file = link.symlink_metadata().ok()?.is_file();
        let named = if is_file { gix::discover::path::from_gitdir_file(&link).ok()? } else { link };
        let found = named.canonicalize().ok().filter(|found| found.is_dir())?;
        let is_own = found.starts_with(&self.common_dir) || found.starts_with(&self.work_dir);
        (is_own && !found.join("commondir").exists()).then_some(found)
    }
}
