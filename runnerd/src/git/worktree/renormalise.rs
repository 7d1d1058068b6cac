//! Files that git stores otherwise since files of attributes have changed, though nobody has changed them: what was stored
//! by the rules before would differ from the work tree for ever. Says which they are; `scan` and `porcelain` bring them in.

use std::collections::BTreeSet;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::Mode;
use gix::worktree::stack::state::attributes::Source;

use crate::git::Repository;
use crate::git::index::cachetree;

/// The file of attributes of a folder.
pub(in crate::git) const ATTRIBUTES_NAME: &[u8] = b".gitattributes";
/// The attributes by which content is converted.
const CONVERSION_ATTRIBUTES: [&str; 6] = ["crlf", "ident", "filter", "eol", "text", "working-tree-encoding"];

/// Returns the folder that a file of attributes governs, with a slash at its end, or nothing for all; none for other files.
pub(in crate::git) fn governed_dir(path: &[u8]) -> Option<&BStr> {
    let folder = path.strip_suffix(ATTRIBUTES_NAME)?;
    (folder.is_empty() || folder.ends_with(b"/")).then(|| folder.as_bstr())
}

/// Returns the files of `head` whose content is converted by other rules than before, where `changed` differ from it.
pub(in crate::git) fn find_affected<'p>(
    (repo, repository): (&gix::Repository, &Repository),
    head: &State,
    changed: impl Iterator<Item = &'p BString>,
) -> gix::Result<BTreeSet<BString>> {
    let folders: Vec<&BStr> = changed.filter_map(|path| governed_dir(path)).collect();
    let mut affected = BTreeSet::new();
    if folders.is_empty() {
        return Ok(affected);
    }
    let mut before = repo.attributes_only(head, Source::IdMapping)?;
    let mut now = repo.attributes_only(&cachetree::empty_index(repo.object_hash()), Source::WorktreeThenIdMapping)?;
    for entry in head.entries().iter().filter(|entry| matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE)) {
        let path = entry.path(head);
        let is_governed = !repository.is_runner_path(path) && folders.iter().any(|folder| path.starts_with(folder));
        if is_governed && conversion_rules(&mut before, path)? != conversion_rules(&mut now, path)? {
            affected.insert(path.to_owned());
        }
    }
    Ok(affected)
}

/// Returns how a file is converted, as text.
fn conversion_rules(attributes: &mut gix::AttributeStack<'_>, path: &BStr) -> gix::Result<Vec<String>> {
    let mut found = attributes.selected_attribute_matches(CONVERSION_ATTRIBUTES);
    attributes.at_entry(path, None)?.matching_attributes(&mut found);
    Ok(found.iter_selected().map(|found| format!("{:?}", found.assignment.state)).collect())
}
