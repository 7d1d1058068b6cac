//! Writes the tree of an index. Folders with unchanged entries keep the tree the index has cached for them, so the cost
//! of a commit follows what changed, not what exists.
//!
//! The library carries the cache along without updating it: code that changes an entry has to call
//! [`invalidate_path`] for its path.

use std::collections::HashMap;

use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice as _};
use gix::index::entry::Flags;
use gix::index::extension::Tree;
use gix::index::{Entry, PathStorageRef, State};
use gix::objs::tree::{self, EntryKind};

use crate::path::{display_path, has_valid_name};
use crate::{GitError, Repository};

/// Returns an index without entries, with an empty tree cache.
///
/// The library has no way to add the cache, but it decodes one.
pub(crate) fn empty_index(kind: gix::hash::Kind) -> State {
    const INVALID_ROOT: &[u8] = b"\0-1 0\n";
    let mut bytes = b"DIRC\0\0\0\x02\0\0\0\0TREE\0\0\0\x06".to_vec();
    bytes.extend_from_slice(INVALID_ROOT);
    bytes.extend_from_slice(ObjectId::null(kind).as_bytes());
    State::from_bytes(&bytes, State::new(kind).timestamp(), kind, gix::index::decode::Options::default())
        .map(|(state, _)| state)
        .expect("BUG: the bytes of an empty index are well-formed")
}

/// Invalidates the cached trees that contain `path`.
pub(crate) fn invalidate_path(state: &mut State, path: &BStr) {
    let Some(mut node) = state.tree_mut() else {
        return;
    };
    for part in path.split(|byte| *byte == b'/') {
        node.num_entries = None;
        let Ok(at) = node.children.binary_search_by(|child| child.name.as_slice().cmp(part)) else {
            return;
        };
        node = &mut node.children[at];
    }
    node.num_entries = None;
}

/// Writes the missing trees and returns the id of the root; `state` caches them all.
///
/// Adds the ids of the trees it wrote to `written`. `state` has to come from [`empty_index`] and have no unmerged entries.
pub(crate) fn write_trees(
    repo: &gix::Repository,
    repository: &Repository,
    state: &mut State,
    written: &mut Vec<ObjectId>,
) -> Result<ObjectId, GitError> {
    let nothing = invalid_node(b"", repo.object_hash());
    let old = state.tree_mut().map_or_else(|| nothing.clone(), |memory| std::mem::replace(memory, nothing.clone()));
    let mut writer = TreeWriter { repo, repository, backing: state.path_backing(), written };
    let root = writer.write_dir(state.entries(), 0, old)?;
    let id = root.id;
    if let Some(memory) = state.tree_mut() {
        *memory = root;
    }
    Ok(id)
}

struct TreeWriter<'a> {
    repo: &'a gix::Repository,
    repository: &'a Repository,
    backing: &'a PathStorageRef,
    written: &'a mut Vec<ObjectId>,
}

impl TreeWriter<'_> {
    /// Returns the tree of one folder. `entries` are all entries in it, `prefix` is the length of its path with the
    /// slash.
    fn write_dir(&mut self, entries: &[Entry], prefix: usize, mut known: Tree) -> Result<Tree, GitError> {
        let covered = u32::try_from(entries.len()).ok();
        if known.num_entries.is_some() && known.num_entries == covered && self.repo.has_object(known.id) {
            return Ok(known);
        }
        let mut before: HashMap<_, _> = known.children.drain(..).map(|child| (child.name.clone(), child)).collect();
        let mut tree = Vec::new();
        let mut complete = true;
        let mut rest = entries;
        while let Some(first) = rest.first() {
            let path = first.path_in(self.backing);
            let Some(slash) = path[prefix..].find_byte(b'/') else {
                complete &= self.add_file(first, path[prefix..].as_bstr(), &mut tree)?;
                rest = &rest[1..];
                continue;
            };
            let name = path[prefix..prefix + slash].as_bstr();
            let below = prefix + slash + 1;
            let inside = rest.partition_point(|entry| entry.path_in(self.backing).starts_with(&path[..below]));
            let child = before.remove(name.as_bytes()).unwrap_or_else(|| invalid_node(name, self.repo.object_hash()));
            let child = self.write_dir(&rest[..inside], below, child)?;
            complete &= child.num_entries.is_some();
            if !child.id.is_null() {
                let entry = tree::Entry { mode: EntryKind::Tree.into(), filename: name.to_owned(), oid: child.id };
                self.add_entry(&mut tree, entry)?;
            }
            known.children.push(child);
            rest = &rest[inside..];
        }
        // Lookups by name expect this order, which differs from that of the entries.
        known.children.sort_by(|a, b| a.name.cmp(&b.name));
        known.num_entries = covered.filter(|_| complete);
        known.id = if tree.is_empty() && prefix > 0 { ObjectId::null(known.id.kind()) } else { self.store_tree(tree)? };
        Ok(known)
    }

    /// Adds one file unless it is marked intent-to-add. Returns whether it was added.
    fn add_file(&self, entry: &Entry, name: &BStr, tree: &mut Vec<tree::Entry>) -> Result<bool, GitError> {
        if entry.flags.contains(Flags::INTENT_TO_ADD) {
            return Ok(false);
        }
        let mode = entry.mode.to_tree_entry_mode().filter(|_| entry.stage_raw() == 0);
        let mode =
            mode.ok_or_else(|| self.tree_error(entry.path_in(self.backing), "has no merged entry in the index"))?;
        self.add_entry(tree, tree::Entry { mode, filename: name.to_owned(), oid: entry.id })?;
        Ok(true)
    }

    fn add_entry(&self, tree: &mut Vec<tree::Entry>, entry: tree::Entry) -> Result<(), GitError> {
        let name = entry.filename.as_bstr();
        if !has_valid_name(name, gix::index::entry::Mode::FILE) {
            return Err(self.tree_error(name, "is no name for a file"));
        }
        tree.push(entry);
        Ok(())
    }

    fn store_tree(&mut self, entries: Vec<tree::Entry>) -> Result<ObjectId, GitError> {
        let stored = self.repo.write_object(&gix::objs::Tree { entries });
        let id = stored.map_err(GitError::gix("writing a tree", self.repository.git_dir()))?.detach();
        self.written.push(id);
        Ok(id)
    }

    fn tree_error(&self, path: &BStr, why: &str) -> GitError {
        GitError::Corrupt {
            doing: "writing a tree",
            path: self.repository.git_dir().to_owned(),
            source: format!("{} {why}", display_path(path)).into(),
        }
    }
}

/// A folder with nothing cached.
fn invalid_node(name: &[u8], kind: gix::hash::Kind) -> Tree {
    Tree { name: name.into(), id: ObjectId::null(kind), num_entries: None, children: Vec::new() }
}
