//! Applies git's own checks of trees and commits, based on their bytes alone.
//!
//! A tree with two entries of one name, or a commit with two authors, is read differently by different programs, so its
//! content cannot be judged. Who made an object, and what follows, is not decided here.

mod commit;
mod ident;
mod name;
mod tree;

use std::collections::BTreeSet;

pub use commit::{HeaderFault, RawCommit, find_header_fault, is_utf8_encoding, message_encoding};
pub use ident::clean_ident_field;
pub use name::{is_dot_git, is_dot_gitmodules, is_like_runner_path};
pub use tree::{FaultTarget, GitTreeFault, RawEntry, TreeId};

/// Git itself descends no deeper (`core.maxTreeDepth`).
const MAX_DEPTH: usize = 2048;

/// A fault at a path of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFault {
    /// The path of an entry or a folder from the root; empty for the root.
    pub path: Vec<u8>,
    /// The fault.
    pub fault: GitTreeFault,
}

/// A folder in a commit and its counterpart in the commit before.
struct TreePair {
    path: Vec<u8>,
    depth: usize,
    before: Option<TreeId>,
    id: TreeId,
}

/// Checks every tree below `new` that is not at the same path below `old`. Faults in names that already existed are not
/// reported again; `read` returns the bytes of a tree, or `None` if it is not available.
pub fn check_added_trees<E>(
    old: Option<TreeId>,
    new: TreeId,
    mut read: impl FnMut(&TreeId) -> Result<Option<Vec<u8>>, E>,
) -> Result<Vec<PathFault>, E> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut folders = vec![TreePair { path: Vec::new(), depth: 0, before: old, id: new }];
    while let Some(folder) = folders.pop() {
        let pair = (folder.before.clone(), folder.id.clone());
        if folder.before.as_ref() == Some(&folder.id) || !seen.insert(pair) {
            continue;
        }
        if folder.depth > MAX_DEPTH {
            found.push(PathFault { path: folder.path, fault: GitTreeFault::TooDeep });
            continue;
        }
        let Some(bytes) = read(&folder.id)? else { continue };
        let before = folder.before.as_ref().map(&mut read).transpose()?.flatten().unwrap_or_default();
        let (before, _) = tree::parse_entries(&before, folder.id.len());
        found.extend(tree::find_tree_faults(&before, &bytes, folder.id.len()).map(|(name, fault)| {
            let path = if name.is_empty() { folder.path.clone() } else { join_path(&folder.path, &name) };
            PathFault { path, fault }
        }));
        let (entries, _) = tree::parse_entries(&bytes, folder.id.len());
        let known: Vec<&RawEntry<'_>> = before.iter().filter(|entry| entry.is_folder()).collect();
        for entry in entries.iter().filter(|entry| entry.is_folder()) {
            let stood = known.iter().find(|known| known.name == entry.name);
            folders.push(TreePair {
                path: join_path(&folder.path, entry.name),
                depth: folder.depth + 1,
                before: stood.map(|stood| stood.id.to_vec()),
                id: entry.id.to_vec(),
            });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn join_path(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}
