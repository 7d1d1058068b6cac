//! Reads objects and verifies that their content matches their names: every object that a decision depends on, or that
//! is checked out, is hashed when it is read. The library and git itself trust the name.

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::hash::oid;
use gix::objs::{Data, Find, TreeRefIter, compute_hash, tree};
use gix::{Object, ObjectId, Repository};

use crate::error::HashMismatch;

/// Memory limit of one walk through a tree in bytes, enough for about four million paths: a few small trees that refer
/// to each other can describe more paths than any machine can hold.
pub(crate) const MAX_WALK_BYTES: usize = 512 * 1024 * 1024;
/// Bytes of an entry or a difference in addition to its path.
pub(crate) const ENTRY_OVERHEAD: usize = 96;
/// Nesting depth up to which folders are walked.
const MAX_DEPTH: usize = 256;

/// Bytes left for one walk through a tree.
pub(crate) struct WalkBudget(usize);

impl Default for WalkBudget {
    fn default() -> Self {
        Self(MAX_WALK_BYTES)
    }
}

/// A tree too large or too deep for any real repository.
#[derive(Debug, thiserror::Error)]
#[error("a tree with more paths than there is room for, or more than {MAX_DEPTH} nested directories")]
struct WalkTooLarge;

impl WalkBudget {
    /// Reserves memory for one path; fails if none is left or the path is too deep.
    pub(crate) fn consume(&mut self, path: &[u8]) -> gix::Result<()> {
        let is_too_deep = path.split(|byte| *byte == b'/').count() > MAX_DEPTH;
        self.0 = self.0.checked_sub(path.len() + ENTRY_OVERHEAD).filter(|_| !is_too_deep).unwrap_or_default();
        if self.0 == 0 { Err(gix::Error::from_error(WalkTooLarge)) } else { Ok(()) }
    }
}

/// The objects of a repository, for code that reads them through the library.
pub(crate) struct CheckedObjects<'a>(pub(crate) &'a Repository);

impl Find for CheckedObjects<'_> {
    fn try_find<'b>(&self, id: &oid, buffer: &'b mut Vec<u8>) -> gix::Result<Option<Data<'b>>> {
        let found = self.0.objects.try_find(id, buffer)?;
        if let Some(found) = &found {
            verify_hash(id, found.kind, found.data)?;
        }
        Ok(found)
    }
}

/// Fails if the bytes do not hash to this id.
fn verify_hash(id: &oid, kind: gix::objs::Kind, bytes: &[u8]) -> gix::Result<()> {
    if compute_hash(id.kind(), kind, bytes)? == id {
        return Ok(());
    }
    Err(gix::Error::from_error(HashMismatch(id.to_owned())))
}

/// Returns an object; fails if it is missing or does not match its name.
pub(crate) fn read_object(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<Object<'_>> {
    let found = repo.find_object(id)?;
    verify_hash(&found.id, found.kind, &found.data)?;
    Ok(found)
}

/// Returns an object; `None` if it is not here.
pub(crate) fn try_read_object(repo: &Repository, id: ObjectId) -> gix::Result<Option<Object<'_>>> {
    let Some(found) = repo.try_find_object(id)? else { return Ok(None) };
    verify_hash(&found.id, found.kind, &found.data)?;
    Ok(Some(found))
}

/// Returns a commit; fails if it is missing or does not match its name.
pub(crate) fn read_commit(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<gix::Commit<'_>> {
    read_object(repo, id)?.try_into_commit()
}

/// Returns a tree; fails if it is missing or does not match its name.
pub(crate) fn read_tree(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<gix::Tree<'_>> {
    read_object(repo, id)?.try_into_tree()
}

/// Returns the tree of a commit.
pub(crate) fn read_commit_tree(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<gix::Tree<'_>> {
    read_tree(repo, read_commit(repo, id)?.tree_id()?)
}

/// Returns the content of a blob.
pub(crate) fn read_blob(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<Vec<u8>> {
    Ok(read_object(repo, id)?.try_into_blob()?.detach().data)
}

/// Mode and id of an entry in a tree.
pub(crate) type TreeItem = (tree::EntryMode, ObjectId);

/// Returns the entry at a path in a tree.
pub(crate) fn find_at_path(repo: &Repository, root: ObjectId, path: &BStr) -> gix::Result<Option<TreeItem>> {
    let mut at: TreeItem = (tree::EntryKind::Tree.into(), root);
    for name in path.split(|byte| *byte == b'/') {
        let inside = if at.0.is_tree() { find_entry(repo, at.1, name.as_bstr())? } else { None };
        let Some(inside) = inside else { return Ok(None) };
        at = inside;
    }
    Ok(Some(at))
}

fn find_entry(repo: &Repository, folder: ObjectId, name: &BStr) -> gix::Result<Option<TreeItem>> {
    let folder = read_tree(repo, folder)?;
    for entry in TreeRefIter::from_bytes(&folder.data, folder.id.kind()) {
        let entry = entry?;
        if entry.filename == name {
            return Ok(Some((entry.mode, entry.oid.to_owned())));
        }
    }
    Ok(None)
}

/// Name, mode and id of one entry of a tree.
pub(crate) type TreeEntry = (BString, tree::EntryMode, ObjectId);

/// Returns the entries of a tree, in their stored order.
pub(crate) fn read_entries(repo: &Repository, id: ObjectId) -> gix::Result<Vec<TreeEntry>> {
    let tree = read_tree(repo, id)?;
    let entries = TreeRefIter::from_bytes(&tree.data, id.kind());
    let owned = |entry: tree::EntryRef<'_>| (entry.filename.to_owned(), entry.mode, entry.oid.to_owned());
    entries.map(|entry| entry.map(owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_by_paths_and_ends() {
        let mut room = WalkBudget(3 * (ENTRY_OVERHEAD + 10));
        assert!(room.consume(b"0123456789").is_ok() && room.consume(b"0123456789").is_ok());
        assert!(room.consume(b"0123456789a").is_err());
        let nested = |folders: usize| vec!["a"; folders].join("/").into_bytes();
        assert!(WalkBudget::default().consume(&nested(MAX_DEPTH)).is_ok());
        assert!(WalkBudget::default().consume(&nested(MAX_DEPTH + 1)).is_err());
    }
}
