//! Walks and edits a task tree that is known to be valid.
//!
//! Parsing one from bytes is in `validate`; choosing the next leaf is in `select`.

pub mod ids;
pub(crate) mod merge;
pub(crate) mod outline;
pub mod schema;
pub mod select;
pub(crate) mod tree_length;
pub mod validate;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use protocol::tree::{ChildSpec, Node, TREE_VERSION, TaskTree};

use crate::text::json;

/// Most bytes of a task tree in canonical form.
pub const MAX_TREE_BYTES: usize = 8 * 1024 * 1024;
/// Most nodes of a task tree.
pub const MAX_NODES: usize = 20_000;
/// Depth of the deepest node allowed; the root has depth 1.
pub const MAX_DEPTH: usize = 64;

/// A node and its position.
#[derive(Debug, Clone, Copy)]
pub struct PlacedNode<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its parent; `None` for the root.
    pub parent: Option<&'a Node>,
    /// Depth; the root has depth 1.
    pub depth: usize,
}

/// Returns the tree of a new run: a root that has not been worked on.
pub fn new_tree(max_attempts: u32) -> TaskTree {
    let root = Node {
        id: "root".to_owned(),
        order: 0,
        title: "Reach the goal".to_owned(),
        goal: "Reach the goal that .runner/GOAL.md states.".to_owned(),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts,
        children: Vec::new(),
    };
    TaskTree { version: TREE_VERSION, root }
}

/// Returns every node, parents before children, siblings in their order in the tree.
pub fn walk(tree: &TaskTree) -> Vec<PlacedNode<'_>> {
    let mut stack = vec![PlacedNode { node: &tree.root, parent: None, depth: 1 }];
    let mut nodes = Vec::new();
    while let Some(placed) = stack.pop() {
        nodes.push(placed);
        let children = placed.node.children.iter().rev();
        stack.extend(children.map(|node| PlacedNode { node, parent: Some(placed.node), depth: placed.depth + 1 }));
    }
    nodes
}

/// Returns every node by id, with its position.
pub fn index(tree: &TaskTree) -> BTreeMap<&str, PlacedNode<'_>> {
    walk(tree).into_iter().map(|placed| (placed.node.id.as_str(), placed)).collect()
}

/// Returns the node with this id, if there is one.
pub fn find<'a>(tree: &'a TaskTree, id: &str) -> Option<&'a Node> {
    walk(tree).into_iter().map(|placed| placed.node).find(|node| node.id == id)
}

/// Returns the node with this id for modification, if there is one.
pub fn find_mut<'a>(tree: &'a mut TaskTree, id: &str) -> Option<&'a mut Node> {
    let mut stack = vec![&mut tree.root];
    while let Some(node) = stack.pop() {
        if node.id == id {
            return Some(node);
        }
        stack.extend(node.children.iter_mut());
    }
    None
}

/// Returns the ids from the root to the node, both included; empty if there is no such node.
pub fn path_to(tree: &TaskTree, id: &str) -> Vec<String> {
    let nodes = index(tree);
    let mut ids = Vec::new();
    let mut at = nodes.get(id).copied();
    while let Some(placed) = at {
        ids.push(placed.node.id.clone());
        at = placed.parent.and_then(|parent| nodes.get(parent.id.as_str()).copied());
    }
    ids.reverse();
    ids
}

/// Sorts siblings by `(order, id)` throughout the tree.
pub fn sort(tree: &mut TaskTree) {
    for_each_node_mut(tree, |node| node.children.sort_by(|a, b| sibling_key(a).cmp(&sibling_key(b))));
}

/// Returns the sort key of a node among its siblings.
fn sibling_key(node: &Node) -> (i64, &str) {
    (node.order, &node.id)
}

/// Marks each node with children as passed exactly if all of them pass, bottom-up.
pub fn derive_passes(tree: &mut TaskTree) {
    fn derive(node: &mut Node) -> bool {
        node.children.iter_mut().for_each(|child| {
            derive(child);
        });
        node.passes = if node.is_leaf() { node.passes } else { node.children.iter().all(|child| child.passes) };
        node.passes
    }
    derive(&mut tree.root);
}

/// Renders the tree canonically, siblings sorted.
pub fn canonical(tree: &TaskTree) -> String {
    json::to_canonical_json(to_sorted(tree).as_ref())
}

/// Whether `text` is the canonical form of the tree.
pub fn is_canonical(tree: &TaskTree, text: &[u8]) -> bool {
    json::is_canonical(to_sorted(tree).as_ref(), text)
}

fn to_sorted(tree: &TaskTree) -> Cow<'_, TaskTree> {
    if walk(tree).iter().all(|placed| placed.node.children.is_sorted_by(|a, b| sibling_key(a) <= sibling_key(b))) {
        return Cow::Borrowed(tree);
    }
    let mut sorted = tree.clone();
    sort(&mut sorted);
    Cow::Owned(sorted)
}

/// Inserts the children in an answer under `parent`: `order` counts from 1, and ids are the next free ones.
///
/// The caller has checked that the parent exists and is a leaf, and must check the limits on the result.
pub fn insert_children(tree: &mut TaskTree, parent: &str, children: &[ChildSpec], max_attempts: u32) {
    let nodes = (1_i64..).zip(children).zip(free_child_ids(tree, parent));
    let nodes: Vec<Node> = nodes.map(|((order, child), id)| new_open_node(id, order, child, max_attempts)).collect();
    if let Some(parent) = find_mut(tree, parent) {
        parent.children.extend(nodes);
    }
}

/// Returns the id that the next child of `parent` gets.
pub fn next_child_id(tree: &TaskTree, parent: &str) -> String {
    free_child_ids(tree, parent).next().unwrap_or_default()
}

/// Returns `<parent>.1`, `.2`… except for ids that the tree already has.
fn free_child_ids(tree: &TaskTree, parent: &str) -> impl Iterator<Item = String> + use<> {
    let taken: BTreeSet<String> = walk(tree).iter().map(|placed| placed.node.id.to_ascii_lowercase()).collect();
    let parent = parent.to_owned();
    (1_u64..)
        .map(move |number| format!("{parent}.{number}"))
        .filter(move |id| !taken.contains(&id.to_ascii_lowercase()))
}

fn new_open_node(id: String, order: i64, child: &ChildSpec, max_attempts: u32) -> Node {
    Node {
        id,
        order,
        title: child.title.clone(),
        goal: child.goal.clone(),
        acceptance: child.acceptance.clone(),
        passes: false,
        attempts: 0,
        max_attempts,
        children: Vec::new(),
    }
}

/// Calls `change` on every node, parents before children.
pub fn for_each_node_mut(tree: &mut TaskTree, mut change: impl FnMut(&mut Node)) {
    let mut stack = vec![&mut tree.root];
    while let Some(node) = stack.pop() {
        change(node);
        stack.extend(node.children.iter_mut());
    }
}
