//! Folders that the project's own programs create in an isolated run's workspace, such as those of a build: `gc` removes
//! them with all their contents, so they are remembered as they appear.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use protocol::path::WirePath;
use runner_git::{GitError, Repository};

use crate::repo::layout::Layout;
use crate::worker::context::{EffectError, RunContext};

/// The folders without a commit at one time.
pub(crate) struct FolderList(BTreeSet<PathBuf>);

impl FolderList {
    /// Reads the list of a work tree.
    pub(crate) fn read(repository: &Repository) -> Result<Self, GitError> {
        let names = repository.list_uncommitted_paths()?;
        let folders =
            names.iter().filter(|name| name.ends_with(b"/")).map(|name| PathBuf::from(OsStr::from_bytes(name)));
        Ok(Self(folders.filter(|folder| !folder.starts_with(Layout::FOLDER)).collect()))
    }

    /// Returns those that an earlier list does not have, nor the folders around them.
    pub(crate) fn new_since(&self, earlier: &Self) -> Vec<WirePath> {
        let is_known =
            |folder: &PathBuf| earlier.0.iter().any(|known| folder.starts_with(known) || known.starts_with(folder));
        self.0.iter().filter(|folder| !is_known(folder)).cloned().map(WirePath).collect()
    }
}

/// Returns the folders of a prepared workspace before a program; `None` in place.
pub(crate) fn list_before_program(context: &RunContext) -> Result<Option<FolderList>, EffectError> {
    if context.store.workspace_file().read()?.is_none() {
        return Ok(None);
    }
    Ok(Some(FolderList::read(&context.repository()?)?))
}

/// Remembers the folders that the program has created.
pub(crate) fn record_after_program(context: &RunContext, before: Option<&FolderList>) -> Result<(), EffectError> {
    let (note, Some(before)) = (context.store.workspace_file(), before) else { return Ok(()) };
    let created = FolderList::read(&context.repository()?)?.new_since(before);
    if let Some(mut record) = note.read()?.filter(|_| !created.is_empty()) {
        record
            .created
            .extend(created.into_iter().filter(|folder| !record.created.contains(folder)).collect::<Vec<_>>());
        note.write(&record)?;
    }
    Ok(())
}
