//! What a person's commit may do to the task tree: anything but set `passes`, change a passed node, or lower attempts.

use protocol::tree::{Node, TaskTree};

use crate::tree;

/// Most nodes of each kind that a summary names.
const MAX_NAMED: usize = 10;

/// A change by a person that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForbiddenChange {
    /// A passed node must not change.
    #[error("passed task {node} was changed")]
    Passed {
        /// Id of the node.
        node: String,
    },
    /// Attempts already made must not be forgotten.
    #[error("attempts of task {node} were lowered to {attempts}")]
    Attempts {
        /// Id of the node.
        node: String,
        /// Its attempts after the change.
        attempts: u32,
    },
    /// Only the runner decides what passes.
    #[error("task {node} was set to pass")]
    SetToPass {
        /// Id of the node.
        node: String,
    },
}

/// Compares the tree of the runner's last commit with the one left by a person.
pub fn check_edit(before: &TaskTree, after: &TaskTree) -> Result<(), ForbiddenChange> {
    let old = tree::index(before);
    let new = tree::index(after);
    for (id, was) in &old {
        let now = new.get(id);
        if was.node.passes {
            let parent = |placed: &tree::PlacedNode<'_>| placed.parent.map(|node| node.id.clone());
            let same = now.is_some_and(|now| now.node == was.node && parent(now) == parent(was));
            if !same {
                return Err(ForbiddenChange::Passed { node: (*id).to_owned() });
            }
        } else if let Some(now) = now.filter(|now| now.node.attempts < was.node.attempts) {
            return Err(ForbiddenChange::Attempts { node: (*id).to_owned(), attempts: now.node.attempts });
        }
    }
    let passed = new.values().find(|now| {
        now.node.is_leaf() && now.node.passes && !old.get(now.node.id.as_str()).is_some_and(|was| was.node.passes)
    });
    passed.map_or(Ok(()), |now| Err(ForbiddenChange::SetToPass { node: now.node.id.clone() }))
}

/// Compares the tree with which a run starts with the one at its base: nothing that a person has prepared may pass
/// unless it does at the base.
pub fn check_start(base: Option<&TaskTree>, start: &TaskTree) -> Result<(), ForbiddenChange> {
    let old = base.map(tree::index).unwrap_or_default();
    let has_passed = |id: &str| old.get(id).is_some_and(|placed| placed.node.passes);
    let nodes = tree::walk(start).into_iter().map(|placed| placed.node);
    let passed = nodes.filter(|node| node.is_leaf() && node.passes).find(|node| !has_passed(&node.id));
    passed.map_or(Ok(()), |node| Err(ForbiddenChange::SetToPass { node: node.id.clone() }))
}

/// Describes a person's changes in one line, with at most [`MAX_NAMED`] nodes of each kind.
pub fn summarize_edit(before: &TaskTree, after: &TaskTree) -> String {
    let old = tree::index(before);
    let new = tree::index(after);
    let differs = |id: &&str| {
        let was = &old[*id];
        let now = &new[*id];
        let own = |node: &Node| (node.order, node.title.clone(), node.goal.clone(), node.acceptance.clone());
        let limits = |node: &Node| (node.attempts, node.max_attempts);
        own(was.node) != own(now.node)
            || limits(was.node) != limits(now.node)
            || was.parent.map(|node| &node.id) != now.parent.map(|node| &node.id)
    };
    let changed = old.keys().copied().filter(|id| new.contains_key(id)).filter(differs).collect::<Vec<_>>();
    let added = new.keys().copied().filter(|id| !old.contains_key(id)).collect::<Vec<_>>();
    let removed = old.keys().copied().filter(|id| !new.contains_key(id)).collect::<Vec<_>>();
    let kinds = [("changed", changed), ("added", added), ("removed", removed)];
    let named = kinds.into_iter().filter(|(_, ids)| !ids.is_empty()).map(|(what, ids)| {
        let more = ids.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{what} {}{more}", ids.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", "))
    });
    named.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{find_mut, insert_children, new_tree};

    fn tree() -> TaskTree {
        let mut tree = new_tree(3);
        let child = |title: &str| protocol::tree::ChildSpec {
            title: title.to_owned(),
            goal: title.to_owned(),
            acceptance: Vec::new(),
        };
        insert_children(&mut tree, "root", &[child("a"), child("b")], 3);
        let first = find_mut(&mut tree, "root.1").expect("is there");
        first.passes = true;
        first.attempts = 1;
        tree
    }

    #[test]
    fn an_open_node_may_be_reworded_removed_and_added() {
        let before = tree();
        let mut after = before.clone();
        find_mut(&mut after, "root.2").expect("is there").goal = "other".to_owned();
        assert_eq!(check_edit(&before, &after), Ok(()));
        after.root.children.pop();
        // With its last open child gone, the root passes by derivation.
        crate::tree::derive_passes(&mut after);
        assert_eq!(check_edit(&before, &after), Ok(()));
    }

    #[test]
    fn passes_passed_nodes_and_attempts_are_not_a_persons() {
        let before = tree();
        let changed = |change: fn(&mut TaskTree)| {
            let mut after = before.clone();
            change(&mut after);
            check_edit(&before, &after).expect_err("refused")
        };
        let passed = ForbiddenChange::Passed { node: "root.1".to_owned() };
        let set = ForbiddenChange::SetToPass { node: "root.2".to_owned() };
        assert_eq!(changed(|tree| find_mut(tree, "root.2").expect("is there").passes = true), set);
        assert_eq!(changed(|tree| find_mut(tree, "root.1").expect("is there").title = "x".into()), passed);
        assert_eq!(changed(|tree| drop(tree.root.children.remove(0))), passed);
        let mut before = before.clone();
        find_mut(&mut before, "root.2").expect("is there").attempts = 2;
        let lowered = check_edit(&before, &tree()).expect_err("refused");
        assert_eq!(lowered.to_string(), "attempts of task root.2 were lowered to 0");
    }
}
