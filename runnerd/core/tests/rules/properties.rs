//! Properties of random trees: canonical form, selection, and what a legal edit may change.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use protocol::tree::{Node, TaskTree};
use protocol::words::Role;
use runner_core::iteration::tree_examination::{SessionTree, examine_tree};
use runner_core::tree::select::{LeafSelection, select};
use runner_core::tree::validate::{load, load_agent_tree};
use runner_core::tree::{canonical, derive_passes, for_each_node_mut, index, sort, walk};

use crate::fixture::{leaf, tree};

/// A valid tree of random shape: ids from positions, random order, texts and passes.
fn trees() -> impl Strategy<Value = TaskTree> {
    let leaf = (any::<i8>(), any::<bool>(), "\\PC{0,12}").prop_map(|(order, passes, title)| Node {
        title,
        passes,
        ..leaf("x", i64::from(order))
    });
    let node = leaf.prop_recursive(4, 40, 4, |inner| {
        (any::<i8>(), vec(inner, 0..4))
            .prop_map(|(order, children)| Node { children, ..crate::fixture::leaf("x", i64::from(order)) })
    });
    node.prop_map(|root| {
        let mut tree = tree(root);
        let mut number = 0;
        for_each_node_mut(&mut tree, |node| {
            number += 1;
            node.id = format!("n{number}");
        });
        derive_passes(&mut tree);
        sort(&mut tree);
        tree
    })
}

/// An edit by an agent to the node with this number.
#[derive(Debug, Clone)]
enum Edit {
    Retitle(String),
    Reword(String),
    Accept(Vec<String>),
    Reorder(i64),
    Own(bool, u32, u32),
    AddChild(String),
    Remove,
    Rename(String),
}

fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, Edit)>> {
    let edit = prop_oneof![
        3 => "\\PC{0,8}".prop_map(Edit::Retitle),
        3 => "\\PC{0,8}".prop_map(Edit::Reword),
        2 => vec("\\PC{0,8}", 0..3).prop_map(Edit::Accept),
        2 => any::<i64>().prop_map(Edit::Reorder),
        3 => (any::<bool>(), 0..9_u32, 0..9_u32).prop_map(|(passes, attempts, max)| Edit::Own(passes, attempts, max)),
        2 => "[a-z]{1,4}".prop_map(Edit::AddChild),
        1 => Just(Edit::Remove),
        1 => "[a-z]{1,4}".prop_map(Edit::Rename),
    ];
    vec((any::<prop::sample::Index>(), edit), 0..5)
}

fn apply(tree: &mut TaskTree, at: prop::sample::Index, edit: Edit) {
    let ids: Vec<String> = walk(tree).iter().map(|placed| placed.node.id.clone()).collect();
    let id = &ids[at.index(ids.len())];
    if matches!(edit, Edit::Remove) {
        return for_each_node_mut(tree, |node| node.children.retain(|child| &child.id != id));
    }
    let node = crate::fixture::node(tree, id);
    match edit {
        Edit::Retitle(title) => node.title = title,
        Edit::Reword(goal) => node.goal = goal,
        Edit::Accept(acceptance) => node.acceptance = acceptance,
        Edit::Reorder(order) => node.order = order,
        Edit::Own(passes, attempts, max) => (node.passes, node.attempts, node.max_attempts) = (passes, attempts, max),
        Edit::AddChild(id) => node.children.push(Node { passes: true, ..leaf(&id, 1) }),
        Edit::Rename(id) => node.id = id,
        Edit::Remove => {}
    }
}

/// What must not change about passed nodes (P6): records, parents, positions among siblings.
fn fixed_nodes(tree: &TaskTree) -> BTreeMap<String, (Option<String>, Node)> {
    let passed = walk(tree).into_iter().filter(|placed| placed.node.passes);
    passed
        .map(|placed| {
            let parent = placed.parent.map(|parent| parent.id.clone());
            (placed.node.id.clone(), (parent, placed.node.clone()))
        })
        .collect()
}

fn first_open(tree: &TaskTree) -> String {
    match select(tree) {
        LeafSelection::Open(leaf) | LeafSelection::Exhausted(leaf) => leaf.id.clone(),
        LeafSelection::Complete => tree.root.id.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_canonical_form_is_a_fixpoint(tree in trees()) {
        let text = canonical(&tree);
        let read = load(text.as_bytes());
        prop_assert_eq!(read.as_ref(), Ok(&tree));
        prop_assert_eq!(canonical(&read.expect("valid")), text);
    }

    #[test]
    fn selection_and_canonical_form_do_not_depend_on_the_order_of_siblings(tree in trees(), turn in 0..4_usize) {
        let mut turned = tree.clone();
        for_each_node_mut(&mut turned, |node| {
            let count = node.children.len().max(1);
            node.children.rotate_left(turn % count);
            if turn % 2 == 1 {
                node.children.reverse();
            }
        });
        prop_assert_eq!(first_open(&turned), first_open(&tree));
        prop_assert_eq!(canonical(&turned), canonical(&tree));
    }

    #[test]
    fn a_selected_leaf_is_open_and_none_left_of_it_is(tree in trees()) {
        let leaves: Vec<&Node> = walk(&tree).into_iter().map(|placed| placed.node).filter(|node| node.is_leaf()).collect();
        let expect = leaves.iter().find(|leaf| !leaf.passes);
        prop_assert_eq!(select(&tree) == LeafSelection::Complete, expect.is_none());
        prop_assert_eq!(select(&tree) == LeafSelection::Complete, tree.root.passes);
        if let Some(leaf) = expect {
            prop_assert_eq!(&first_open(&tree), &leaf.id);
        }
    }

    #[test]
    fn a_legal_edit_changes_nothing_that_passed_and_nothing_that_the_runner_owns(tree in trees(), edits in edits()) {
        let mut left = tree.clone();
        for (at, edit) in edits {
            apply(&mut left, at, edit);
        }
        let text = canonical(&left);
        let node = first_open(&tree);
        let session = SessionTree { from: &tree, node: &node, role: Role::Worker, text: Some(text.as_bytes()), answer: None, max_attempts: 3 };
        let Some(taken) = examine_tree(&session).tree else { return Ok(()) };
        prop_assert_eq!(load(canonical(&taken).as_bytes()), Ok(taken.clone()));
        let before = index(&tree);
        let after = index(&taken);
        for (id, old) in &before {
            let new = after.get(id);
            prop_assert!(new.is_some(), "{} is gone", id);
            let new = new.expect("it is there").node;
            prop_assert_eq!((new.attempts, new.max_attempts), (old.node.attempts, old.node.max_attempts));
            prop_assert!(!new.is_leaf() || new.passes == old.node.passes);
        }
        prop_assert!(after.iter().all(|(id, new)| before.contains_key(id) || !new.node.passes));
        prop_assert_eq!(fixed_nodes(&taken), fixed_nodes(&tree));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(load(&bytes).is_err());
        prop_assert!(load_agent_tree(&bytes).is_err());
    }

    #[test]
    fn a_damaged_tree_is_read_or_refused_with_a_fault(tree in trees(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = canonical(&tree).into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        match load(&text) {
            Ok(read) => prop_assert_eq!(load(canonical(&read).as_bytes()).map(|again| canonical(&again)), Ok(canonical(&read))),
            Err(faults) => prop_assert!(!faults.is_empty()),
        }
    }
}
