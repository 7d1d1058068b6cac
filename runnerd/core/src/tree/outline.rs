//! Outlines the rest of the task tree in a few lines: ids, titles and state marks, giving priority to what is near the
//! selected node.
//!
//! Work and memory are bounded: distances are found in one pass, and lines that do not fit are not built. The full tree
//! is in `tree.json`; the outline only gives orientation.

use protocol::tree::TaskTree;

use crate::text::fence::one_line;
use crate::tree::{PlacedNode, walk};

/// Longest title that is shown, in bytes.
const TITLE_LIMIT: usize = 120;
/// Room for a line that stands for omitted nodes, in bytes.
const GAP_LEN: usize = 36;
/// Number of levels that are indented; deeper ones are aligned with the last.
const INDENTED_LEVELS: usize = 20;
/// How much farther away the children of a passed node count than those of an open one.
const PASSED_DISTANCE: u32 = 3;

/// A tree as seen from one of its nodes.
pub(crate) struct TreeOutline<'a> {
    nodes: Vec<PlacedNode<'a>>,
    selected: usize,
    /// Indices into `nodes`, nearest first.
    nearest: Vec<usize>,
}

impl<'a> TreeOutline<'a> {
    /// Views the tree from the node with this id, or from the root if there is no such node.
    pub(crate) fn new(tree: &'a TaskTree, node: &str) -> Self {
        let nodes = walk(tree);
        let selected = nodes.iter().position(|placed| placed.node.id == node).unwrap_or(0);
        let distances = distances(&nodes, selected);
        let mut nearest: Vec<usize> = (0..nodes.len()).collect();
        nearest.sort_unstable_by_key(|&at| (distances[at], at.abs_diff(selected), at));
        Self { nodes, selected, nearest }
    }

    /// Returns whether there are nodes other than the selected one.
    pub(crate) fn has_others(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Draws what fits into `limit` bytes; also returns how many bytes of ids and titles did not fit.
    pub(crate) fn render(&self, limit: usize) -> (String, usize) {
        let lines = self.choose_lines(limit);
        let mut text = String::new();
        let mut left_out = 0;
        let mut bytes_left_out = 0;
        for (placed, line) in self.nodes.iter().zip(&lines) {
            if let Some(line) = line {
                text.push_str(&render_gap(left_out));
                text.push_str(line);
                left_out = 0;
            } else {
                left_out += 1;
                bytes_left_out += placed.node.id.len() + placed.node.title.len();
            }
        }
        (text + &render_gap(left_out), bytes_left_out)
    }

    /// The lines that fit, by index; the search ends at the first one that does not.
    fn choose_lines(&self, limit: usize) -> Vec<Option<String>> {
        let mut lines: Vec<Option<String>> = vec![None; self.nodes.len()];
        let mut left = limit.saturating_sub(GAP_LEN);
        for &at in &self.nearest {
            let line = self.render_line(at);
            let touches = [at.checked_sub(1), Some(at + 1)]
                .into_iter()
                .flatten()
                .any(|at| matches!(lines.get(at), Some(Some(_))));
            let cost = line.len() + if touches { 0 } else { GAP_LEN };
            let Some(rest) = left.checked_sub(cost) else { break };
            left = rest;
            lines[at] = Some(line);
        }
        lines
    }

    fn render_line(&self, at: usize) -> String {
        let PlacedNode { node, depth, .. } = self.nodes[at];
        let mark = match (at == self.selected, node.passes) {
            (true, _) => "[>]",
            (false, true) => "[x]",
            (false, false) => "[ ]",
        };
        let indent = "  ".repeat((depth - 1).min(INDENTED_LEVELS));
        format!("{indent}{mark} {}  {}\n", one_line(&node.id, 200), one_line(&node.title, TITLE_LIMIT))
    }
}

/// Number of steps from the selected node to every other one, up and down the tree.
fn distances(nodes: &[PlacedNode<'_>], selected: usize) -> Vec<u32> {
    let parents = parent_indices(nodes);
    let mut distances = vec![u32::MAX; nodes.len()];
    let ancestors = std::iter::successors(Some(selected), |&at| parents[at]);
    for (steps, at) in (0..).zip(ancestors) {
        distances[at] = steps;
    }
    for at in 0..nodes.len() {
        if let (u32::MAX, Some(parent)) = (distances[at], parents[at]) {
            let step = if nodes[parent].node.passes { PASSED_DISTANCE } else { 1 };
            distances[at] = distances[parent].saturating_add(step);
        }
    }
    distances
}

/// Index of every node's parent; parents come before their children.
fn parent_indices(nodes: &[PlacedNode<'_>]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let parent_of = |(at, placed): (usize, &PlacedNode<'_>)| {
        open.truncate(placed.depth - 1);
        let parent = open.last().copied();
        open.push(at);
        parent
    };
    nodes.iter().enumerate().map(parent_of).collect()
}

fn render_gap(left_out: usize) -> String {
    match left_out {
        0 => String::new(),
        1 => "… 1 more task\n".to_owned(),
        n => format!("… {n} more tasks\n"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::tree::Node;

    use super::*;

    fn node(id: &str, passes: bool, children: Vec<Node>) -> Node {
        Node {
            id: id.to_owned(),
            order: 0,
            title: format!("title of {id}"),
            goal: String::new(),
            acceptance: Vec::new(),
            passes,
            attempts: 0,
            max_attempts: 3,
            children,
        }
    }

    fn sample_tree() -> TaskTree {
        let group = |name: &str, passes| {
            let children = (1..=4).map(|n| node(&format!("{name}.{n}"), passes, Vec::new())).collect();
            node(name, passes, children)
        };
        TaskTree { version: 1, root: node("root", false, vec![group("a", true), group("b", false), group("c", false)]) }
    }

    #[test]
    fn a_tree_that_fits_is_shown_whole() {
        insta::assert_snapshot!(TreeOutline::new(&sample_tree(), "b.2").render(2000).0, @r"
        [ ] root  title of root
          [x] a  title of a
            [x] a.1  title of a.1
            [x] a.2  title of a.2
            [x] a.3  title of a.3
            [x] a.4  title of a.4
          [ ] b  title of b
            [ ] b.1  title of b.1
            [>] b.2  title of b.2
            [ ] b.3  title of b.3
            [ ] b.4  title of b.4
          [ ] c  title of c
            [ ] c.1  title of c.1
            [ ] c.2  title of c.2
            [ ] c.3  title of c.3
            [ ] c.4  title of c.4
        ");
    }

    #[test]
    fn what_is_near_is_kept_when_room_is_short() {
        insta::assert_snapshot!(TreeOutline::new(&sample_tree(), "b.2").render(360).0, @r"
        [ ] root  title of root
          [x] a  title of a
        … 4 more tasks
          [ ] b  title of b
            [ ] b.1  title of b.1
            [>] b.2  title of b.2
            [ ] b.3  title of b.3
            [ ] b.4  title of b.4
          [ ] c  title of c
            [ ] c.1  title of c.1
        … 3 more tasks
        ");
    }

    #[test]
    fn twenty_thousand_nodes_are_drawn_within_the_limit() {
        let children = (0..20_000).map(|n| node(&format!("n{n}"), n < 10_000, Vec::new())).collect();
        let tree = TaskTree { version: 1, root: node("root", false, children) };
        let (text, left_out) = TreeOutline::new(&tree, "n10000").render(4096);
        assert!(text.len() <= 4096 && left_out > 100_000);
        assert!(text.contains("[x] n9999 ") && text.contains("[>] n10000 ") && text.contains("[ ] n10001 "), "{text}");
    }

    proptest! {
        #[test]
        fn never_above_the_limit(limit in 0usize..900, which in 0usize..16) {
            let tree = sample_tree();
            let id = walk(&tree)[which].node.id.clone();
            let (text, _) = TreeOutline::new(&tree, &id).render(limit);
            prop_assert!(text.len() <= limit.max(GAP_LEN));
        }
    }
}
