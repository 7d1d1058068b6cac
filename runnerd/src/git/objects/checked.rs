//! Objects that are what their names say: every one that something is decided from, or laid out from, is hashed when it is
//! read. The library and git itself take whatever has the name.

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::hash::oid;
use gix::objs::{Data, Find, TreeRefIter, compute_hash, tree};
use gix::{Object, ObjectId, Repository};

use crate::git::error::FalseObject;

/// Most bytes of what one walk through a tree makes, some four million paths: a few small trees that name each other make
/// more paths than any machine can hold.
pub(in crate::git) const ROOM: usize = 512 * 1024 * 1024;
/// Bytes of an entry or a difference besides its path.
pub(in crate::git) const RECORD: usize = 96;
/// Folders in each other that are walked through.
const DEEPEST: usize = 256;

/// What is left of the room for one walk through a tree.
pub(in crate::git) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(ROOM)
    }
}

/// A tree that no repository has which somebody works with.
#[derive(Debug, thiserror::Error)]
#[error("a tree with more paths than there is room for, or more than {DEEPEST} folders in each other")]
struct TooMuch;

impl Room {
    /// Takes the room of one path; fails where there is none left, or it is too deep.
    pub(in crate::git) fn take(&mut self, path: &[u8]) -> gix::Result<()> {
        let is_too_deep = path.split(|byte| *byte == b'/').count() > DEEPEST;
        self.0 = self.0.checked_sub(path.len() + RECORD).filter(|_| !is_too_deep).unwrap_or_default();
        if self.0 == 0 { Err(gix::Error::from_error(TooMuch)) } else { Ok(()) }
    }
}

/// The objects of a repository, for those who read them through the library.
pub(in crate::git) struct Checked<'a>(pub(in crate::git) &'a Repository);

impl Find for Checked<'_> {
    fn try_find<'b>(&self, id: &oid, buffer: &'b mut Vec<u8>) -> gix::Result<Option<Data<'b>>> {
        let found = self.0.objects.try_find(id, buffer)?;
        if let Some(found) = &found {
            check(id, found.kind, found.data)?;
        }
        Ok(found)
    }
}

/// Fails where bytes are not those that have this id.
fn check(id: &oid, kind: gix::objs::Kind, bytes: &[u8]) -> gix::Result<()> {
    if compute_hash(id.kind(), kind, bytes)? == id {
        return Ok(());
    }
    Err(gix::Error::from_error(FalseObject(id.to_owned())))
}

/// Returns an object.
pub(in crate::git) fn object(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<Object<'_>> {
    let found = repo.find_object(id)?;
    check(&found.id, found.kind, &found.data)?;
    Ok(found)
}

/// Returns an object; none if it is not here.
pub(in crate::git) fn try_object(repo: &Repository, id: ObjectId) -> gix::Result<Option<Object<'_>>> {
    let Some(found) = repo.try_find_object(id)? else { return Ok(None) };
    check(&found.id, found.kind, &found.data)?;
    Ok(Some(found))
}

/// Returns a commit.
pub(in crate::git) fn commit(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<gix::Commit<'_>> {
    object(repo, id)?.try_into_commit()
}

/// Returns a tree.
pub(in crate::git) fn tree(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<gix::Tree<'_>> {
    object(repo, id)?.try_into_tree()
}

/// Returns the tree of a commit.
pub(in crate::git) fn tree_of(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<gix::Tree<'_>> {
    tree(repo, commit(repo, id)?.tree_id()?)
}

/// Returns the bytes of a blob.
pub(in crate::git) fn blob(repo: &Repository, id: impl Into<ObjectId>) -> gix::Result<Vec<u8>> {
    Ok(object(repo, id)?.try_into_blob()?.detach().data)
}

/// What stands somewhere in a tree.
pub(in crate::git) type Standing = (tree::EntryMode, ObjectId);

/// Returns what stands at a path in a tree.
pub(in crate::git) fn at_path(repo: &Repository, root: ObjectId, path: &BStr) -> gix::Result<Option<Standing>> {
    let mut at: Standing = (tree::EntryKind::Tree.into(), root);
    for name in path.split(|byte| *byte == b'/') {
        let inside = if at.0.is_tree() { entry_in(repo, at.1, name.as_bstr())? } else { None };
        let Some(inside) = inside else { return Ok(None) };
        at = inside;
    }
    Ok(Some(at))
}

fn entry_in(repo: &Repository, folder: ObjectId, name: &BStr) -> gix::Result<Option<Standing>> {
    let folder = tree(repo, folder)?;
    for entry in TreeRefIter::from_bytes(&folder.data, folder.id.kind()) {
        let entry = entry?;
        if entry.filename == name {
            return Ok(Some((entry.mode, entry.oid.to_owned())));
        }
    }
    Ok(None)
}

/// One entry of a tree.
pub(in crate::git) type TreeEntry = (BString, tree::EntryMode, ObjectId);

/// Returns the entries of a tree, in their order.
pub(in crate::git) fn entries(repo: &Repository, id: ObjectId) -> gix::Result<Vec<TreeEntry>> {
    let tree = tree(repo, id)?;
    let entries = TreeRefIter::from_bytes(&tree.data, id.kind());
    let owned = |entry: tree::EntryRef<'_>| (entry.filename.to_owned(), entry.mode, entry.oid.to_owned());
    entries.map(|entry| entry.map(owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_by_paths_and_ends() {
        let mut room = Room(3 * (RECORD + 10));
        assert!(room.take(b"0123456789").is_ok() && room.take(b"0123456789").is_ok());
        assert!(room.take(b"0123456789a").is_err());
        let nested = |folders: usize| vec!["a"; folders].join("/").into_bytes();
        assert!(Room::default().take(&nested(DEEPEST)).is_ok());
        assert!(Room::default().take(&nested(DEEPEST + 1)).is_err());
    }
}
