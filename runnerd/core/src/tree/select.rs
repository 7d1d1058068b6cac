//! Selection: depth-first, the leftmost leaf that does not pass.

use std::cmp::Ordering;

use protocol::tree::{Node, TaskTree};

/// Which leaf is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafSelection<'a> {
    /// This leaf is next.
    Open(&'a Node),
    /// This leaf is next, but it has no attempts left.
    Exhausted(&'a Node),
    /// No leaf is next: every leaf passes.
    Complete,
}

/// Returns the next leaf of `tree`, regardless of the order in which siblings are stored.
pub fn select(tree: &TaskTree) -> LeafSelection<'_> {
    match leftmost_open(&tree.root) {
        None => LeafSelection::Complete,
        Some(leaf) if leaf.attempts >= leaf.max_attempts => LeafSelection::Exhausted(leaf),
        Some(leaf) => LeafSelection::Open(leaf),
    }
}

fn leftmost_open(node: &Node) -> Option<&Node> {
    if node.is_leaf() {
        return (!node.passes).then_some(node);
    }
    let mut children: Vec<&Node> = node.children.iter().collect();
    children.sort_by(|a, b| compare_siblings(a, b));
    children.into_iter().find_map(leftmost_open)
}

/// Orders siblings by `(order, id)`, ids by their bytes.
fn compare_siblings(a: &Node, b: &Node) -> Ordering {
    (a.order, a.id.as_bytes()).cmp(&(b.order, b.id.as_bytes()))
}
