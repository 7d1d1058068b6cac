//! Unchanged files that git would store differently because attribute files have changed: what was stored by the old
//! rules would differ from the work tree forever. Only finds them; `scan` and `porcelain` stage them.

use std::collections::BTreeSet;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::Mode;
use gix::worktree::stack::state::attributes::Source;

use crate::Repository;
use crate::index::cachetree;

/// Name of a folder's attribute file.
pub(crate) const ATTRIBUTES_NAME: &[u8] = b".gitattributes";
/// Attributes that affect content conversion.
const CONVERSION_ATTRIBUTES: [&str; 6] = ["crlf", "ident", "filter", "eol", "text", "working-tree-encoding"];

/// Returns the folder that an attribute file applies to, with a trailing slash (empty for the root); `None` for other
/// files.
pub(crate) fn governed_dir(path: &[u8]) -> Option<&BStr> {
    let folder = path.strip_suffix(ATTRIBUTES_NAME)?;
    (folder.is_empty() || folder.ends_with(b"/")).then(|| folder.as_bstr())
}

/// Returns the files of `head` whose conversion rules differ from before, given the `changed` paths.
pub(crate) fn find_affected<'p>(
    repo: &gix::Repository,
    repository: &Repository,
    head: &State,
    changed: impl Iterator<Item = &'p BString>,
) -> gix::Result<BTreeSet<BString>> {
    let folders: Vec<&BStr> = changed.filter_map(|path| governed_dir(path)).collect();
    let mut affected = BTreeSet::new();
    if folders.is_empty() {
        return Ok(affected);
    }
    let mut before = repository.read_attributes(repo, head, Source::IdMapping)?;
    let nothing = cachetree::empty_index(repo.object_hash());
    let mut now = repository.read_attributes(repo, &nothing, Source::WorktreeThenIdMapping)?;
    for entry in head.entries().iter().filter(|entry| matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE)) {
        let path = entry.path(head);
        let is_governed = !repository.is_runner_path(path) && folders.iter().any(|folder| path.starts_with(folder));
        if is_governed && conversion_rules(&mut before, path)? != conversion_rules(&mut now, path)? {
            affected.insert(path.to_owned());
        }
    }
    Ok(affected)
}

/// Returns a file's conversion rules as text.
fn conversion_rules(attributes: &mut gix::AttributeStack<'_>, path: &BStr) -> gix::Result<Vec<String>> {
    let mut found = attributes.selected_attribute_matches(CONVERSION_ATTRIBUTES);
    attributes.at_entry(path, None)?.matching_attributes(&mut found);
    Ok(found.iter_selected().map(|found| format!("{:?}", found.assignment.state)).collect())
}
