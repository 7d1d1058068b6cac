//! The task tree as rows: passed branches are folded, and the live leaf stays in view until the user moves the cursor.

use std::collections::BTreeMap;

use protocol::tree::{Node, TaskTree};

use crate::text::tree::{NodeStatus, count_leaves};

/// A visible node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeRow {
    /// Id of the node.
    pub(crate) id: String,
    /// Its title.
    pub(crate) title: String,
    /// Its state.
    pub(crate) status: NodeStatus,
    /// For each ancestor below the root, and for itself: whether it has a later sibling.
    pub(crate) trunk: Vec<bool>,
    /// Whether its children are folded; `None` for a leaf.
    pub(crate) folded: Option<bool>,
    /// Number of passed leaves, and of all leaves, below it.
    pub(crate) leaves: (usize, usize),
    /// Attempts used, and allowed.
    pub(crate) attempts: (u32, u32),
}

/// The tree of one run and how it is displayed.
#[derive(Debug, Default)]
pub(crate) struct TreeView {
    tree: Option<TaskTree>,
    current: Option<String>,
    /// What the user has folded or unfolded.
    fold_overrides: BTreeMap<String, bool>,
    rows: Vec<TreeRow>,
    cursor: usize,
    is_detached: bool,
}

impl TreeView {
    /// Shows another state of the tree.
    pub(crate) fn set_tree(&mut self, tree: TaskTree) {
        self.tree = Some(tree);
        self.rebuild();
    }

    /// Marks the leaf that is worked on, or is next.
    pub(crate) fn set_current(&mut self, current: Option<&str>) {
        if self.current.as_deref() != current {
            self.current = current.map(str::to_owned);
            self.rebuild();
        }
    }

    /// Returns the title of a task.
    pub(crate) fn title(&self, id: &str) -> Option<&str> {
        fn find<'n>(node: &'n Node, id: &str) -> Option<&'n Node> {
            if node.id == id { Some(node) } else { node.children.iter().find_map(|child| find(child, id)) }
        }
        find(&self.tree.as_ref()?.root, id).map(|node| node.title.as_str())
    }

    /// Returns the rows.
    pub(crate) fn rows(&self) -> &[TreeRow] {
        &self.rows
    }

    /// Returns the row at the cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns the node at the cursor.
    pub(crate) fn selected(&self) -> Option<&TreeRow> {
        self.rows.get(self.cursor)
    }

    /// Moves the cursor.
    pub(crate) fn move_cursor(&mut self, by: isize) {
        self.cursor = self.cursor.saturating_add_signed(by).min(self.rows.len().saturating_sub(1));
        self.is_detached = true;
    }

    /// Returns to the live leaf, and follows it.
    pub(crate) fn follow_current(&mut self) {
        self.is_detached = false;
        self.rebuild();
    }

    /// Folds the branch at the cursor, or unfolds it; returns whether there is one.
    pub(crate) fn toggle_fold(&mut self, folded: Option<bool>) -> bool {
        let Some((id, is_folded)) = self.selected().and_then(|row| Some((row.id.clone(), row.folded?))) else {
            return false;
        };
        self.fold_overrides.insert(id, folded.unwrap_or(!is_folded));
        self.is_detached = true;
        self.rebuild();
        true
    }

    fn rebuild(&mut self) {
        let previous = self.selected().map(|row| row.id.clone());
        let mut rows = Vec::new();
        if let Some(tree) = &self.tree {
            self.push_rows(&tree.root, &mut Vec::new(), &mut rows);
        }
        self.rows = rows;
        let target = if self.is_detached { previous } else { self.current.clone() };
        let found = target.and_then(|id| self.rows.iter().position(|row| row.id == id));
        self.cursor = found.unwrap_or(self.cursor).min(self.rows.len().saturating_sub(1));
    }

    fn push_rows(&self, node: &Node, trunk: &mut Vec<bool>, rows: &mut Vec<TreeRow>) {
        let folded = (!node.is_leaf()).then(|| self.fold_overrides.get(&node.id).copied().unwrap_or(node.passes));
        rows.push(TreeRow {
            id: node.id.clone(),
            title: node.title.clone(),
            status: NodeStatus::from_node(node, self.current.as_deref()),
            trunk: trunk.clone(),
            folded,
            leaves: count_leaves(node),
            attempts: (node.attempts, node.max_attempts),
        });
        let children = node.children.iter().enumerate().filter(|_| folded != Some(true));
        for (at, child) in children {
            trunk.push(at + 1 < node.children.len());
            self.push_rows(child, trunk, rows);
            trunk.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tree::tests::sample_reply;

    fn sample_view() -> TreeView {
        let mut forest = TreeView::default();
        let mut tree = sample_reply().tree;
        // The branch `parser` passes as a whole.
        tree.root.children[0].passes = true;
        tree.root.children[0].children.iter_mut().for_each(|leaf| leaf.passes = true);
        forest.set_current(Some("docs"));
        forest.set_tree(tree);
        forest
    }

    fn row_ids(forest: &TreeView) -> Vec<&str> {
        forest.rows().iter().map(|row| row.id.as_str()).collect()
    }

    #[test]
    fn a_branch_that_passes_is_folded_and_can_be_opened() {
        let mut forest = sample_view();
        assert_eq!(row_ids(&forest), ["root", "parser", "cli", "docs"]);
        forest.move_cursor(-2);
        assert!(forest.toggle_fold(None));
        assert_eq!(row_ids(&forest), ["root", "parser", "lexer", "ast", "cli", "docs"]);
        assert_eq!(forest.rows()[3].trunk, [true, false]);
    }

    #[test]
    fn the_cursor_is_on_the_live_leaf_until_it_is_moved() {
        let mut forest = sample_view();
        assert_eq!(forest.selected().map(|row| row.id.as_str()), Some("docs"));
        forest.set_current(Some("cli"));
        assert_eq!(forest.selected().map(|row| row.id.as_str()), Some("cli"));
        forest.move_cursor(-1);
        forest.set_current(Some("docs"));
        assert_eq!(forest.selected().map(|row| row.id.as_str()), Some("parser"));
        forest.follow_current();
        assert_eq!(forest.selected().map(|row| row.id.as_str()), Some("docs"));
    }

    #[test]
    fn the_cursor_stays_in_a_tree_that_shrinks() {
        let mut forest = sample_view();
        forest.move_cursor(9);
        let mut tree = sample_reply().tree;
        tree.root.children.clear();
        forest.set_tree(tree);
        assert_eq!(forest.cursor(), 0);
        assert!(!forest.toggle_fold(None), "a leaf has nothing to fold");
    }
}
