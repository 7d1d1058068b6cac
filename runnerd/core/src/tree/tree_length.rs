//! Computes the length of a task tree in canonical form without writing it.
//!
//! The form itself is defined by `json::to_canonical_json`; a test keeps the two consistent.

use protocol::tree::{Node, TaskTree};

use crate::tree::{self, PlacedNode};

/// One level deeper: two more spaces for the list, two for the object in it.
const INDENT_STEP: usize = 4;

/// Returns the length of a tree in canonical form, in bytes, regardless of the order of siblings.
pub(crate) fn canonical_len(tree: &TaskTree) -> usize {
    const AROUND: usize = "{\n  \"version\": ,\n  \"root\": \n}\n".len();
    let nodes: usize = tree::walk(tree).into_iter().map(node_len).sum();
    AROUND + number_len(i64::from(tree.version)) + nodes
}

/// Length of a node without its children's nodes, in bytes.
fn node_len(PlacedNode { node, depth, .. }: PlacedNode<'_>) -> usize {
    let Node { id, order, title, goal, acceptance, passes, attempts, max_attempts, children } = node;
    let names = ["id", "order", "title", "goal", "acceptance", "passes", "attempts", "max_attempts", "children"];
    let members =
        names.iter().map(|name| INDENT_STEP * depth + name.len() + "\"\": ,\n".len()).sum::<usize>() - ",".len();
    let braces = "{\n".len() + INDENT_STEP * depth - 2 + "}".len();
    let numbers = number_len(*order) + number_len(i64::from(*attempts)) + number_len(i64::from(*max_attempts));
    let texts =
        text_len(id) + text_len(title) + text_len(goal) + acceptance.iter().map(|item| text_len(item)).sum::<usize>();
    let lists = list_len(acceptance.len(), depth) + list_len(children.len(), depth);
    members + braces + numbers + texts + lists + if *passes { "true".len() } else { "false".len() }
}

/// Length of a list with this many items, without the items themselves, in bytes.
fn list_len(items: usize, depth: usize) -> usize {
    if items == 0 {
        return "[]".len();
    }
    "[\n".len() + items * (INDENT_STEP * depth + 2 + ",\n".len()) - ",".len() + INDENT_STEP * depth + "]".len()
}

fn number_len(value: i64) -> usize {
    let digits = value.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
    digits + usize::from(value < 0)
}

fn text_len(value: &str) -> usize {
    let escaped = |byte| match byte {
        b'"' | b'\\' | 0x08 | b'\t' | b'\n' | 0x0c | b'\r' => 1,
        0x00..0x20 => 5,
        _ => 0,
    };
    value.len() + 2 + value.bytes().map(escaped).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json;

    fn tree_of(order: i64, texts: &str, acceptance: usize, children: usize) -> TaskTree {
        let mut tree = tree::new_tree(3);
        let root = &mut tree.root;
        (root.order, root.goal) = (order, texts.to_owned());
        root.acceptance = vec![texts.to_owned(); acceptance];
        let child = Node { id: "c".to_owned(), passes: true, max_attempts: 4_000_000_000, ..root.clone() };
        root.children = vec![Node { children: vec![child.clone(); children / 2], ..child }; children];
        tree
    }

    #[test]
    fn as_many_bytes_are_counted_as_are_written() {
        let every: String = (0..0x100_u32).filter_map(char::from_u32).collect();
        for order in [0, 9, 10, -1, -10, i64::MAX, i64::MIN] {
            for (texts, items) in [("", 0), ("plain", 1), (every.as_str(), 2), ("✓\u{2028}", 5)] {
                let tree = tree_of(order, texts, items, items);
                assert_eq!(canonical_len(&tree), json::to_canonical_json(&tree).len(), "{order}, {items}");
            }
        }
    }
}
