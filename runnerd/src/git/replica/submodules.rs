//! Submodules of a replica: those that are checked out in the source become replicas themselves, with the commit that the
//! base names. What runs in them is by the rules of the repository around them: a submodule's own configuration may be a
//! session's, so of it the addresses of remotes alone are read.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use gix::bstr::BString;
use gix::config::File;
use gix::config::Source;
use protocol::path::WirePath;

use super::Replica;
use super::settings::Remotes;
use crate::git::path::display;
use crate::git::repository::trusted::{Captured, quoted};
use crate::git::{CommitEntry, EntryKind, GitError, Id, Repository};

/// Submodules in each other that are taken over.
const DEEPEST: usize = 8;

impl Replica<'_> {
    /// Takes over the submodules of `base` that are checked out in the source; returns those that are not as `base` has
    /// them, and why.
    ///
    /// `laid` is a folder for what is laid out meanwhile.
    pub fn submodules(&self, base: &Id, laid: &Path) -> Result<Vec<String>, GitError> {
        let mut left_out = Vec::new();
        self.take_submodules(base, (laid, DEEPEST), &mut left_out)?;
        Ok(left_out)
    }

    fn take_submodules(
        &self,
        base: &Id,
        (laid, depth): (&Path, usize),
        left_out: &mut Vec<String>,
    ) -> Result<(), GitError> {
        let links = self.made.entries(base, "")?.into_iter().filter(|entry| entry.kind == EntryKind::Submodule);
        for (at, CommitEntry { path, id, .. }) in links.enumerate() {
            let Some(git_dir) = self.source.git_dir_of(&self.source.file(&path)) else { continue };
            let name = display(&path);
            let laid = laid.join(at.to_string());
            let inside = self.source.submodule(&path, &git_dir, &laid)?;
            match self.take_submodule(&inside, &path, &git_dir) {
                Ok(replica) if inside.commit_is_here(&id) => {
                    replica.check_out(&id)?;
                    if depth > 0 {
                        replica.take_submodules(&id, (&laid.join("below"), depth - 1), left_out)?;
                    }
                }
                Ok(_) => left_out.push(format!("submodule {name} has no commit {}", id.short(12))),
                Err(GitError::Program { stderr, .. }) => left_out.push(format!("submodule {name}: {stderr}")),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn take_submodule<'s>(&self, inside: &'s Repository, path: &[u8], git_dir: &Path) -> Result<Replica<'s>, GitError> {
        let work_dir = self.made.file(path);
        fs::create_dir_all(&work_dir).map_err(GitError::io("making", &work_dir))?;
        // Where a submodule keeps its git folder in its own work tree, so does the replica's.
        let kept = git_dir.strip_prefix(self.source.git_dir()).ok();
        let new = kept.map_or_else(|| work_dir.join(".git"), |kept| self.made.git_dir().join(kept));
        let (made, remotes) = (super::at(inside, &work_dir, &new), Remotes::Own(remotes_of(git_dir)));
        let replica = Replica { source: inside, made, moves: self.moves.clone(), remotes }.init()?;
        let head = inside.head()?.commit();
        replica.settings()?;
        if let Some(head) = head {
            replica.objects(&head)?;
        }
        replica.references()?;
        if kept.is_some() {
            link(&work_dir, &new)?;
        }
        Ok(replica)
    }
}

/// Has a work tree and its git folder name each other by relative paths, as the folders around them are still to be moved.
fn link(work_dir: &Path, git_dir: &Path) -> Result<(), GitError> {
    let file = work_dir.join(".git");
    let text = [b"gitdir: ", relative(git_dir, work_dir).as_os_str().as_bytes(), b"\n"].concat();
    fs::write(&file, text).map_err(GitError::io("writing", &file))?;
    let config = git_dir.join("config");
    let mut text = fs::read(&config).map_err(GitError::io("reading", &config))?;
    text.extend_from_slice(b"[core]\n\tworktree = ");
    text.extend(quoted(&relative(work_dir, git_dir)));
    text.push(b'\n');
    fs::write(&config, text).map_err(GitError::io("writing", &config))
}

/// Returns the way from one folder to another; both are absolute.
fn relative(to: &Path, from: &Path) -> PathBuf {
    let shared = to.components().zip(from.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// Returns the remotes that a submodule's own configuration names, and nothing else of it.
fn remotes_of(git_dir: &Path) -> Vec<(BString, BString)> {
    let Ok(config) = File::from_path_no_includes(git_dir.join("config"), Source::Local) else { return Vec::new() };
    let remotes = config.sections_by_name("remote").into_iter().flatten();
    let named = remotes.filter_map(|remote| {
        let name = remote.header().subsection_name()?.to_owned();
        Some((name, remote.value("url")?))
    });
    named.filter(|(_, url)| !is_command(url)).collect()
}

/// Tells whether an address is a program to be run.
fn is_command(url: &[u8]) -> bool {
    url.windows(2).any(|two| two == b"::")
}

impl Repository {
    /// Returns the submodule at a path, under the rules of this repository.
    fn submodule(&self, path: &[u8], git_dir: &Path, laid: &Path) -> Result<Self, GitError> {
        let missing =
            || GitError::NotCaptured { path: self.work_dir().to_owned(), source: "nothing was captured".into() };
        let captured = Captured {
            work_dir: WirePath(self.work_dir().join(OsStr::from_bytes(path))),
            git_dir: WirePath(git_dir.to_owned()),
            common_dir: WirePath(git_dir.to_owned()),
            ..self.captured().ok_or_else(missing)?.clone()
        };
        fs::create_dir_all(laid).map_err(GitError::io("making", laid))?;
        Ok(Self::of_captured(&laid.join("git"), captured))
    }

    fn commit_is_here(&self, id: &Id) -> bool {
        self.first_parents(id, 1).is_ok_and(|found| !found.is_empty())
    }
}
