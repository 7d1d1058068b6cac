//! Submodules of a replica: those that are checked out in the source become replicas themselves, at the commit that the
//! base names. The rules of the surrounding repository apply in them: a submodule's own configuration may be a
//! session's, so only the addresses of its remotes are read.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use gix::bstr::BString;
use gix::config::File;
use gix::config::Source;
use protocol::path::WirePath;

use super::RepositoryClone;
use super::settings::RemoteSource;
use crate::path::display_path;
use crate::repository::pinned_config::{PinnedConfig, quote_config_path};
use crate::{CommitEntry, EntryKind, GitError, Id, Repository};

/// Nesting depth up to which submodules are copied.
const MAX_DEPTH: usize = 8;

impl RepositoryClone<'_> {
    /// Replicates the submodules of `base` that are checked out in the source; returns those that are not as `base` has
    /// them, and why.
    ///
    /// `rules_dir` is a scratch folder.
    pub fn clone_submodules(&self, base: &Id, rules_dir: &Path) -> Result<Vec<String>, GitError> {
        let mut skipped = Vec::new();
        self.clone_submodules_at(base, rules_dir, MAX_DEPTH, &mut skipped)?;
        Ok(skipped)
    }

    fn clone_submodules_at(
        &self,
        base: &Id,
        rules_dir: &Path,
        depth: usize,
        skipped: &mut Vec<String>,
    ) -> Result<(), GitError> {
        let links = self.target.list_entries(base, "")?.into_iter().filter(|entry| entry.kind == EntryKind::Submodule);
        for (at, CommitEntry { path, id, .. }) in links.enumerate() {
            let Some(git_dir) = self.source.find_own_git_dir(&self.source.absolute_path(&path)) else { continue };
            let name = display_path(&path);
            let rules_dir = rules_dir.join(at.to_string());
            let submodule = self.source.pinned_submodule(&path, &git_dir, &rules_dir)?;
            match self.clone_submodule(&submodule, &path, &git_dir) {
                Ok(clone) if submodule.has_commit(&id) => {
                    clone.check_out(&id)?;
                    if depth > 0 {
                        clone.clone_submodules_at(&id, &rules_dir.join("below"), depth - 1, skipped)?;
                    }
                }
                Ok(_) => skipped.push(format!("submodule {name} has no commit {}", id.short(12))),
                Err(GitError::CommandFailed { stderr, .. }) => skipped.push(format!("submodule {name}: {stderr}")),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn clone_submodule<'s>(
        &self,
        submodule: &'s Repository,
        path: &[u8],
        git_dir: &Path,
    ) -> Result<RepositoryClone<'s>, GitError> {
        let work_dir = self.target.absolute_path(path);
        fs::create_dir_all(&work_dir).map_err(GitError::io("making", &work_dir))?;
        // If a submodule has its git folder in its own work tree, so does the replica's.
        let relative_dir = git_dir.strip_prefix(self.source.git_dir()).ok();
        let new = relative_dir.map_or_else(|| work_dir.join(".git"), |relative| self.target.git_dir().join(relative));
        let target = super::new_repository(submodule, &work_dir, &new);
        let remotes = RemoteSource::Submodule(read_remotes(git_dir));
        let clone = RepositoryClone { source: submodule, target, relocation: self.relocation.clone(), remotes }
            .init_repository()?;
        let head = submodule.head()?.commit();
        clone.copy_settings()?;
        if let Some(head) = head {
            clone.copy_objects(&head)?;
        }
        clone.copy_references()?;
        if relative_dir.is_some() {
            link_git_dir(&work_dir, &new)?;
        }
        Ok(clone)
    }
}

/// Makes a work tree and its git folder refer to each other by relative paths, as the folders around them will be
/// moved.
fn link_git_dir(work_dir: &Path, git_dir: &Path) -> Result<(), GitError> {
    let file = work_dir.join(".git");
    let text = [b"gitdir: ", relative_path(git_dir, work_dir).as_os_str().as_bytes(), b"\n"].concat();
    fs::write(&file, text).map_err(GitError::io("writing", &file))?;
    let config = git_dir.join("config");
    let mut text = fs::read(&config).map_err(GitError::io("reading", &config))?;
    text.extend_from_slice(b"[core]\n\tworktree = ");
    text.extend(quote_config_path(&relative_path(work_dir, git_dir)));
    text.push(b'\n');
    fs::write(&config, text).map_err(GitError::io("writing", &config))
}

/// Returns the relative path to a folder from another; both are absolute.
fn relative_path(to: &Path, from: &Path) -> PathBuf {
    let shared = to.components().zip(from.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// Returns the remotes in a submodule's own configuration, and nothing else of it.
fn read_remotes(git_dir: &Path) -> Vec<(BString, BString)> {
    let Ok(config) = File::from_path_no_includes(git_dir.join("config"), Source::Local) else { return Vec::new() };
    let remotes = config.sections_by_name("remote").into_iter().flatten();
    let named = remotes.filter_map(|remote| {
        let name = remote.header().subsection_name()?.to_owned();
        Some((name, remote.value("url")?))
    });
    named.filter(|(_, url)| !is_command(url)).collect()
}

/// Whether an address is a command to be run.
fn is_command(url: &[u8]) -> bool {
    url.windows(2).any(|two| two == b"::")
}

impl Repository {
    /// Returns the submodule at a path, under the rules of this repository.
    fn pinned_submodule(&self, path: &[u8], git_dir: &Path, rules_dir: &Path) -> Result<Self, GitError> {
        let missing =
            || GitError::PinnedConfigLost { path: self.work_dir().to_owned(), source: "nothing was captured".into() };
        let captured = PinnedConfig {
            work_dir: WirePath(self.work_dir().join(OsStr::from_bytes(path))),
            git_dir: WirePath(git_dir.to_owned()),
            common_dir: WirePath(git_dir.to_owned()),
            ..self.pinned_config().ok_or_else(missing)?.clone()
        };
        fs::create_dir_all(rules_dir).map_err(GitError::io("making", rules_dir))?;
        Ok(Self::from_pinned(&rules_dir.join("git"), captured))
    }

    pub(crate) fn has_commit(&self, id: &Id) -> bool {
        self.first_parents(id, 1).is_ok_and(|found| !found.is_empty())
    }
}
