//! Merges a person's edit of the task tree into a tree that has changed since: node by node, field by field.
//!
//! Differing changes by the two sides are a conflict that names the node; nothing is guessed.

use std::collections::BTreeMap;

use protocol::tree::{Node, TaskTree};

use crate::tree::{self, PlacedNode};

/// A node without its children, and its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodeRow {
    node: Node,
    parent: Option<String>,
}

type NodeRows = BTreeMap<String, NodeRow>;

/// A change made by both sides.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MergeConflict {
    /// Both sides have added a node.
    #[error("task {node} was also added by someone else")]
    Added { node: String },
    /// The person has changed a node that was removed on the other side.
    #[error("task {node} no longer exists")]
    Gone { node: String },
    /// Both sides have changed a field.
    #[error("{field} of task {node} was also changed by someone else")]
    Field { field: &'static str, node: String },
    /// The person has removed a node that was changed on the other side.
    #[error("task {node} was changed by someone else, and removed by you")]
    Removed { node: String },
    /// The remaining nodes do not form a tree.
    #[error("the tree has no root, or more than one")]
    Root,
    /// The person has placed something under a node that was removed on the other side.
    #[error("task {node}, under which you have placed something, no longer exists")]
    Orphaned { node: String },
}

/// A person's version of a node.
#[derive(Debug, Clone, Copy)]
struct NodeEdit<'a> {
    before: &'a NodeRow,
    after: &'a NodeRow,
}

/// Applies the changes from `base` to `edited` to `now`. Does not check whether the result is valid.
pub(crate) fn merge(base: &TaskTree, edited: &TaskTree, now: &TaskTree) -> Result<TaskTree, MergeConflict> {
    if base == now {
        return Ok(edited.clone());
    }
    let base = to_rows(base);
    let edited = to_rows(edited);
    let mut rows = to_rows(now);
    for (id, row) in &edited {
        match (base.get(id), rows.get_mut(id)) {
            (None, None) => drop(rows.insert(id.clone(), row.clone())),
            (None, Some(_)) => return Err(MergeConflict::Added { node: id.clone() }),
            (Some(before), _) if before == row => {}
            (Some(_), None) => return Err(MergeConflict::Gone { node: id.clone() }),
            (Some(before), Some(now)) => merge_node(id, NodeEdit { before, after: row }, now)?,
        }
    }
    for (id, before) in base.iter().filter(|(id, _)| !edited.contains_key(*id)) {
        if rows.get(id).is_some_and(|now| now != before) {
            return Err(MergeConflict::Removed { node: id.clone() });
        }
        rows.remove(id);
    }
    build_tree(rows)
}

/// Applies the person's changes to the fields of one node.
fn merge_node(id: &str, NodeEdit { before, after }: NodeEdit<'_>, now: &mut NodeRow) -> Result<(), MergeConflict> {
    macro_rules! fields {
        ($($field:ident).+) => {{
            let was = &before.$($field).+;
            let edited = &after.$($field).+;
            let is = &mut now.$($field).+;
            if was != edited && is != edited {
                if is != was {
                    let field = stringify!($($field).+).trim_start_matches("node.");
                    return Err(MergeConflict::Field { field, node: id.to_owned() });
                }
                is.clone_from(edited);
            }
        }};
    }
    fields!(parent);
    fields!(node.order);
    fields!(node.title);
    fields!(node.goal);
    fields!(node.acceptance);
    fields!(node.attempts);
    fields!(node.max_attempts);
    Ok(())
}

fn to_rows(tree: &TaskTree) -> NodeRows {
    let row = |PlacedNode { node, parent, .. }: PlacedNode<'_>| NodeRow {
        node: Node {
            children: Vec::new(),
            // A node with children passes through them.
            passes: node.passes && node.is_leaf(),
            id: node.id.clone(),
            title: node.title.clone(),
            goal: node.goal.clone(),
            acceptance: node.acceptance.clone(),
            ..*node
        },
        parent: parent.map(|parent| parent.id.clone()),
    };
    tree::walk(tree).into_iter().map(|placed| (placed.node.id.clone(), row(placed))).collect()
}

/// Rebuilds a tree from the rows: each must have another as its parent, except for a single root.
fn build_tree(rows: NodeRows) -> Result<TaskTree, MergeConflict> {
    let count = rows.len();
    let mut below: BTreeMap<Option<String>, Vec<Node>> = BTreeMap::new();
    for NodeRow { node, parent } in rows.into_values() {
        below.entry(parent).or_default().push(node);
    }
    let roots = below.remove(&None).unwrap_or_default();
    let [root] = <[Node; 1]>::try_from(roots).map_err(|_| MergeConflict::Root)?;
    let mut tree = TaskTree { version: protocol::tree::TREE_VERSION, root };
    tree::for_each_node_mut(&mut tree, |node| node.children = below.remove(&Some(node.id.clone())).unwrap_or_default());
    if tree::walk(&tree).len() < count {
        let lost = below.into_keys().flatten().next();
        return Err(MergeConflict::Orphaned { node: lost.unwrap_or_else(|| "?".to_owned()) });
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{find, find_mut, insert_children, new_tree, sort};

    fn base() -> TaskTree {
        let mut tree = new_tree(3);
        let child = |title: &str| protocol::tree::ChildSpec {
            title: title.to_owned(),
            goal: title.to_owned(),
            acceptance: Vec::new(),
        };
        insert_children(&mut tree, "root", &[child("a"), child("b")], 3);
        tree
    }

    fn edited_tree(tree: &TaskTree, change: impl FnOnce(&mut TaskTree)) -> TaskTree {
        let mut tree = tree.clone();
        change(&mut tree);
        tree
    }

    fn node<'a>(tree: &'a mut TaskTree, id: &str) -> &'a mut Node {
        find_mut(tree, id).expect("is there")
    }

    #[test]
    fn both_sides_keep_what_they_did_to_different_fields() {
        let edited = edited_tree(&base(), |tree| node(tree, "root.1").goal = "narrower".into());
        let now = edited_tree(&base(), |tree| {
            node(tree, "root.1").attempts = 2;
            node(tree, "root.2").title = "other".into();
        });
        let merged = merge(&base(), &edited, &now).expect("no conflict");
        let first = find(&merged, "root.1").expect("is there");
        assert_eq!((first.goal.as_str(), first.attempts), ("narrower", 2));
        assert_eq!(find(&merged, "root.2").expect("is there").title, "other");
    }

    #[test]
    fn nodes_of_both_sides_are_there_and_removed_ones_are_not() {
        let edited = edited_tree(&base(), |tree| {
            tree.root.children.remove(1);
            let added = Node { id: "mine".into(), order: 9, ..tree.root.children[0].clone() };
            tree.root.children.push(added);
        });
        let now = edited_tree(&base(), |tree| {
            let added = Node { id: "theirs".into(), ..tree.root.children[0].clone() };
            tree.root.children[0].children.push(added);
        });
        let mut merged = merge(&base(), &edited, &now).expect("no conflict");
        sort(&mut merged);
        let ids: Vec<&str> = tree::walk(&merged).iter().map(|placed| placed.node.id.as_str()).collect();
        assert_eq!(ids, ["root", "root.1", "theirs", "mine"]);
    }

    #[test]
    fn a_conflict_names_the_node_and_the_field() {
        let edited = edited_tree(&base(), |tree| node(tree, "root.1").goal = "mine".into());
        let now = edited_tree(&base(), |tree| node(tree, "root.1").goal = "theirs".into());
        let error = merge(&base(), &edited, &now).expect_err("a conflict");
        assert_eq!(error.to_string(), "goal of task root.1 was also changed by someone else");
        let removed = edited_tree(&base(), |tree| drop(tree.root.children.remove(0)));
        let error = merge(&base(), &removed, &now).expect_err("a conflict");
        assert_eq!(error, MergeConflict::Removed { node: "root.1".to_owned() });
    }

    #[test]
    fn nothing_hangs_on_a_node_that_is_gone() {
        let edited = edited_tree(&base(), |tree| drop(tree.root.children.remove(0)));
        let now = edited_tree(&base(), |tree| {
            let added = Node { id: "theirs".into(), ..tree.root.children[0].clone() };
            tree.root.children[0].children.push(added);
        });
        let orphaned = MergeConflict::Orphaned { node: "root.1".to_owned() };
        assert_eq!(merge(&base(), &edited, &now).expect_err("a conflict"), orphaned);
    }
}
