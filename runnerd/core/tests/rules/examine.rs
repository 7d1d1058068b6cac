//! Who may change which part of the task tree, checked on the tree that a session left.

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::tree::{Node, TaskTree};
use protocol::words::Role;
use runner_core::iteration::tree_examination::{
    SessionTree, TreeExamination, examine_parsed_tree, examine_tree, examine_unchanged_tree,
};
use runner_core::tree::validate::load;
use runner_core::tree::{canonical, find};
use runner_core::verdict::{RuleBreach, SessionEndKind, SessionRule, TreeFinding};

use crate::fixture::{answer, decomposed, inner, leaf, node, passed, sample, tree};

/// The tree that sessions start with: a passed leaf and a passed branch, the open leaf `b`, an open branch.
fn from() -> TaskTree {
    let done = inner("p", 0, vec![passed("p1", 1), passed("p2", 2)]);
    let mut tree = sample();
    tree.root.children.insert(0, done);
    node(&mut tree, "b").attempts = 1;
    tree
}

fn look(left: &[u8], answer: Option<&AgentAnswer>) -> TreeExamination {
    examine_tree(&SessionTree {
        from: &from(),
        node: "b",
        role: Role::Worker,
        text: Some(left),
        answer,
        max_attempts: 4,
    })
}

/// The findings if a session applies `change` to the tree and answers `retry`.
fn examine_edit(change: impl FnOnce(&mut TaskTree)) -> TreeExamination {
    let mut left = from();
    change(&mut left);
    look(canonical(&left).as_bytes(), Some(&answer(AnswerStatus::Retry)))
}

fn rule(examined: &TreeExamination) -> (SessionRule, &str) {
    let TreeFinding::Illegal(RuleBreach { rule, at, .. }) = &examined.finding else { panic!("{examined:?}") };
    assert_eq!(examined.tree, None);
    (*rule, at)
}

fn legal(examined: TreeExamination) -> (u32, bool, TaskTree) {
    let TreeFinding::Legal { gained, reworded } = examined.finding else { panic!("{examined:?}") };
    let tree = examined.tree.expect("a legal tree can be taken");
    assert_eq!(load(canonical(&tree).as_bytes()).as_ref(), Ok(&tree), "what is taken is strictly valid");
    (gained, reworded, tree)
}

fn faults(examined: TreeExamination) -> Vec<String> {
    let TreeFinding::Invalid { faults, .. } = examined.finding else { panic!("{examined:?}") };
    assert_eq!(examined.tree, None);
    faults.iter().map(ToString::to_string).collect()
}

fn answer_with_children(children: u32) -> AgentAnswer {
    let SessionEndKind::Answered(answer) = decomposed(children).how else { panic!("an answer") };
    answer
}

#[test]
fn a_session_adds_at_most_twelve_nodes_by_answer_or_by_edit() {
    let text = canonical(&from());
    let by_answer = |count| look(text.as_bytes(), Some(&answer_with_children(count)));
    let by_edit = |count: u32| {
        examine_edit(|tree| {
            node(tree, "b").children = (0..count).map(|n| leaf(&format!("new{n}"), n.cast_signed().into())).collect();
        })
    };
    let elsewhere = examine_edit(|tree| {
        let children = &mut tree.root.children;
        children.extend((0..13).map(|n| leaf(&format!("new{n}"), 10 + n)));
    });
    for count in [1, 12] {
        assert!(legal(by_answer(count)).2 != from() && legal(by_edit(count)).0 == count, "{count}");
    }
    for examined in [by_answer(13), by_edit(13), elsewhere, by_answer(500)] {
        assert_eq!(rule(&examined), (SessionRule::NodeCount, "b"));
    }
}

#[test]
fn a_repair_brings_back_what_was_lost_beside_its_own() {
    let repaired = |count: u32| {
        let mut left = from();
        let added = (0..count).map(|n| leaf(&format!("new{n}"), 10 + i64::from(n)));
        node(&mut left, "b").children = added.collect();
        let text = canonical(&left);
        let role = Role::Repair;
        let text = Some(text.as_bytes());
        examine_tree(&SessionTree { from: &from(), node: "b", role, text, answer: None, max_attempts: 4 })
    };
    assert_eq!(legal(repaired(24)).0, 24);
    assert_eq!(rule(&repaired(25)), (SessionRule::NodeCount, "b"));
}

#[test]
fn a_third_single_child_in_a_row_is_refused() {
    let chain = |length: u32| {
        examine_edit(|tree| {
            let deepest = (1..length)
                .rev()
                .fold(leaf(&format!("only{length}"), 0), |below, n| inner(&format!("only{n}"), 0, vec![below]));
            node(tree, "b").children = vec![deepest];
        })
    };
    assert_eq!(legal(chain(2)).0, 1);
    assert_eq!(rule(&chain(3)), (SessionRule::SingleChild, "only3"));
    let mut began = from();
    node(&mut began, "b").children = vec![inner("only1", 0, vec![leaf("only2", 0)])];
    let text = canonical(&began);
    let divide = |count| {
        let answer = answer_with_children(count);
        let session = SessionTree {
            from: &began,
            node: "only2",
            role: Role::Worker,
            text: Some(text.as_bytes()),
            answer: Some(&answer),
            max_attempts: 4,
        };
        examine_tree(&session)
    };
    assert_eq!(rule(&divide(1)).0, SessionRule::SingleChild);
    legal(divide(2));
}

#[test]
fn an_untouched_tree_is_legal() {
    assert_eq!(legal(examine_edit(|_| {})), (0, false, from()));
}

#[test]
fn a_tree_that_is_not_read_again_is_judged_as_if_it_were() {
    let text = canonical(&from());
    let too_many = answer_with_children(20_000);
    for answer in [None, Some(&answer(AnswerStatus::Done)), Some(&answer_with_children(2)), Some(&too_many)] {
        let from = from();
        let session = SessionTree {
            from: &from,
            node: "b",
            role: Role::Worker,
            text: Some(text.as_bytes()),
            answer,
            max_attempts: 4,
        };
        assert_eq!(examine_unchanged_tree(&session), examine_tree(&session));
        assert_eq!(examine_parsed_tree(&session, from.clone()), examine_tree(&session));
    }
}

#[test]
fn what_the_runner_owns_is_silently_reset() {
    let (gained, reworded, tree) = legal(examine_edit(|tree| {
        runner_core::tree::for_each_node_mut(tree, |node| {
            (node.passes, node.attempts, node.max_attempts) = (!node.passes, 0, 99);
        });
    }));
    assert_eq!((gained, reworded, tree), (0, false, from()));
    assert_eq!(legal(examine_edit(|tree| node(tree, "b").passes = true)).2, from());
    assert_eq!(legal(examine_edit(|tree| node(tree, "p1").passes = false)).2, from());
    assert_eq!(legal(examine_edit(|tree| node(tree, "b").max_attempts = 100)).2, from());
}

#[test]
fn new_nodes_begin_open_with_the_configured_attempts() {
    let left = examine_edit(|tree| {
        let new = Node { passes: true, attempts: 3, max_attempts: 77, ..leaf("new", 9) };
        tree.root.children.push(new.clone());
        node(tree, "c").children.push(Node { id: "c3".to_owned(), ..new });
    });
    let tree = legal(left).2;
    for id in ["new", "c3"] {
        let node = find(&tree, id).expect("it is there");
        assert_eq!((node.passes, node.attempts, node.max_attempts), (false, 0, 4), "{id}");
    }
}

#[test]
fn open_nodes_may_be_retitled_reworded_reordered_and_extended() {
    let edits: [fn(&mut TaskTree); 7] = [
        |tree| node(tree, "c1").title = "another".to_owned(),
        |tree| node(tree, "c1").goal = "another".to_owned(),
        |tree| node(tree, "c1").acceptance.clear(),
        |tree| node(tree, "c1").order = 100,
        |tree| node(tree, "root").goal = "another".to_owned(),
        |tree| node(tree, "c1").children.push(leaf("c1a", 1)),
        |tree| tree.root.children.insert(0, leaf("first", -5)),
    ];
    for edit in edits {
        let mut expect = from();
        edit(&mut expect);
        runner_core::tree::sort(&mut expect);
        let (gained, reworded, tree) = legal(examine_edit(edit));
        let owned = |tree: &TaskTree| {
            let mut tree = tree.clone();
            runner_core::tree::for_each_node_mut(&mut tree, |node| node.max_attempts = 1);
            tree
        };
        assert_eq!((gained, reworded, owned(&tree)), (0, false, owned(&expect)));
    }
}

#[test]
fn a_changed_wording_of_the_selected_node_is_told() {
    let reworded = |change: fn(&mut Node)| legal(examine_edit(|tree| change(node(tree, "b")))).1;
    assert!(reworded(|node| node.goal.push('x')));
    assert!(reworded(|node| node.acceptance.push("more".to_owned())));
    assert!(!reworded(|node| node.title.push('x')));
    assert!(!reworded(|node| node.order = 7));
}

#[test]
fn a_changed_wording_of_a_node_that_passes_with_the_selected_one_is_told() {
    let reworded = |id: &str, is_last: bool| {
        let mut from = from();
        node(&mut from, "c1").passes = is_last;
        let mut left = from.clone();
        node(&mut left, id).acceptance = vec!["nothing is needed".to_owned()];
        let text = canonical(&left);
        let node = "c2";
        let session = SessionTree {
            from: &from,
            node,
            role: Role::Worker,
            text: Some(text.as_bytes()),
            answer: None,
            max_attempts: 4,
        };
        legal(examine_tree(&session)).1
    };
    assert!(reworded("c", true));
    assert!(!reworded("c", false), "another task is still open in it");
    assert!(!reworded("root", true), "so is `b`");
}

#[test]
fn children_that_the_selected_node_gained_are_counted() {
    let (gained, _, tree) = legal(examine_edit(|tree| node(tree, "b").children = vec![leaf("x", 1), leaf("y", 2)]));
    assert_eq!((gained, find(&tree, "b").map(|node| node.children.len())), (2, Some(2)));
}

#[test]
fn no_field_of_a_passed_node_may_change() {
    for id in ["a", "p", "p1"] {
        let edits: [fn(&mut Node); 5] = [
            |node| node.order = 50,
            |node| node.title.push('x'),
            |node| node.goal.push('x'),
            |node| node.acceptance.push("x".to_owned()),
            |node| node.children.push(leaf("new", 1)),
        ];
        for edit in edits {
            assert_eq!(rule(&examine_edit(|tree| edit(node(tree, id)))), (SessionRule::PassedNode, id));
        }
    }
}

#[test]
fn a_passed_node_is_neither_removed_nor_moved_nor_renamed() {
    let remove = |tree: &mut TaskTree, id: &str| tree.root.children.retain(|node| node.id != id);
    assert_eq!(rule(&examine_edit(|tree| remove(tree, "a"))), (SessionRule::PassedNode, "a"));
    assert_eq!(rule(&examine_edit(|tree| node(tree, "a").id = "A".to_owned())), (SessionRule::PassedNode, "a"));
    let moved = examine_edit(|tree| {
        remove(tree, "a");
        node(tree, "c").children.push(passed("a", 1));
    });
    assert_eq!(rule(&moved), (SessionRule::PassedNode, "a"));
    assert_eq!(rule(&examine_edit(|tree| node(tree, "p").children.clear())), (SessionRule::PassedNode, "p"));
}

#[test]
fn an_open_node_is_neither_removed_nor_renamed() {
    assert_eq!(
        rule(&examine_edit(|tree| tree.root.children.retain(|node| node.id != "c"))),
        (SessionRule::KeepNodes, "c")
    );
    assert_eq!(rule(&examine_edit(|tree| node(tree, "c2").id = "c3".to_owned())), (SessionRule::KeepNodes, "c2"));
    assert_eq!(rule(&examine_edit(|tree| node(tree, "b").id = "B".to_owned())), (SessionRule::KeepNodes, "b"));
    assert_eq!(rule(&examine_edit(|tree| node(tree, "c").id = "d".to_owned())), (SessionRule::KeepNodes, "c"));
    let rename_root = |tree: &mut TaskTree| tree.root.id = "goal".to_owned();
    assert_eq!(
        rule(&examine_edit(rename_root)),
        (SessionRule::PassedNode, "p"),
        "the parent of a passed node is another"
    );
}

#[test]
fn an_open_node_is_not_moved() {
    let moved = examine_edit(|tree| {
        let branch = node(tree, "c");
        let c2 = branch.children.pop().expect("c2");
        tree.root.children.push(c2);
    });
    assert_eq!(rule(&moved), (SessionRule::KeepPlace, "c2"));
    let wrapped = examine_edit(|tree| {
        let old = tree.root.clone();
        tree.root = inner("above", 0, vec![old]);
    });
    assert_eq!(rule(&wrapped), (SessionRule::KeepPlace, "root"));
}

#[test]
fn of_two_breaches_the_first_rule_of_the_list_is_reported() {
    let removed_first = examine_edit(|tree| {
        tree.root.children.retain(|node| node.id != "b");
        let last = inner("z", 90, vec![passed("z1", 1)]);
        tree.root.children.push(last);
        node(tree, "a").goal.push('x');
        node(tree, "p").order = 99;
    });
    assert_eq!(rule(&removed_first), (SessionRule::PassedNode, "p"));
    let moved_first = examine_edit(|tree| {
        let b = tree.root.children.remove(2);
        assert_eq!(b.id, "b");
        node(tree, "c1").children.push(b);
        node(tree, "c").children.retain(|node| node.id != "c2");
    });
    assert_eq!(rule(&moved_first), (SessionRule::KeepNodes, "c2"));
    let from = tree(inner("root", 0, vec![leaf("o", 1), passed("q", 2), leaf("s", 3)]));
    let left = canonical(&tree(inner("root", 0, vec![leaf("s", 3)])));
    let session = SessionTree {
        from: &from,
        node: "o",
        role: Role::Worker,
        text: Some(left.as_bytes()),
        answer: None,
        max_attempts: 3,
    };
    assert_eq!(rule(&examine_tree(&session)), (SessionRule::PassedNode, "q"));
}

#[test]
fn children_of_an_answer_are_inserted_under_the_selected_node() {
    let mut left = from();
    left.root.children.push(leaf("B.1", 9));
    let (gained, _, tree) = legal(look(canonical(&left).as_bytes(), Some(&answer_with_children(2))));
    assert_eq!(gained, 0);
    let made: Vec<_> =
        find(&tree, "b").expect("b").children.iter().map(|node| (node.id.as_str(), node.order)).collect();
    assert_eq!(made, [("b.2", 1), ("b.3", 2)]);
    assert!(find(&tree, "b").expect("b").children.iter().all(|node| node.max_attempts == 4 && !node.passes));
}

#[test]
fn children_of_an_answer_are_not_inserted_beside_those_in_the_tree() {
    let mut left = from();
    node(&mut left, "b").children.push(leaf("own", 1));
    let (gained, _, tree) = legal(look(canonical(&left).as_bytes(), Some(&answer_with_children(2))));
    assert_eq!((gained, find(&tree, "b").map(|node| node.children.len())), (1, Some(1)));
}

#[test]
fn children_of_another_answer_are_not_inserted() {
    for status in [AnswerStatus::Done, AnswerStatus::Retry] {
        let answer = AgentAnswer { status, ..answer_with_children(2) };
        assert_eq!(legal(look(canonical(&from()).as_bytes(), Some(&answer))).2, from());
    }
}

#[test]
fn children_that_would_stand_too_deep_make_the_tree_invalid() {
    let last = leaf("n64", 0);
    let from = tree((1..64).rev().fold(last, |below, depth| inner(&format!("n{depth}"), 0, vec![below])));
    let text = canonical(&from);
    let answer = answer_with_children(1);
    let session = SessionTree {
        from: &from,
        node: "n64",
        role: Role::Worker,
        text: Some(text.as_bytes()),
        answer: Some(&answer),
        max_attempts: 3,
    };
    assert!(faults(examine_tree(&session))[0].contains("(id n64.1): it is 65 levels deep, more than 64"));
}

#[test]
fn children_beyond_the_limit_of_nodes_make_the_tree_invalid() {
    let from = tree(inner("root", 0, (1..20_000).map(|order| leaf(&format!("n{order}"), order)).collect()));
    let text = canonical(&from);
    let answer = answer_with_children(1);
    let session = SessionTree {
        from: &from,
        node: "n1",
        role: Role::Worker,
        text: Some(text.as_bytes()),
        answer: Some(&answer),
        max_attempts: 3,
    };
    assert_eq!(faults(examine_tree(&session)), ["it has 20001 tasks, more than 20000"]);
}

#[test]
fn a_tree_that_is_gone_or_cannot_be_read_is_invalid() {
    let gone = examine_tree(&SessionTree {
        from: &from(),
        node: "b",
        role: Role::Worker,
        text: None,
        answer: None,
        max_attempts: 3,
    });
    assert_eq!(faults(gone), ["the file is gone"]);
    for text in ["", "{", "null", "<<<<<<< HEAD"] {
        assert!(!faults(look(text.as_bytes(), None)).is_empty());
    }
}

#[test]
fn the_text_of_an_invalid_tree_is_kept_and_bounded() {
    let kept = |text: &[u8]| match look(text, None).finding {
        TreeFinding::Invalid { text, .. } => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(kept(b"{\"version\": 1,"), "{\"version\": 1,");
    for byte in [b'[', b'x', 0xff] {
        let text = kept(&vec![byte; 1_000_000]);
        assert!((1..=32 * 1024).contains(&text.len()), "{}", text.len());
    }
}
