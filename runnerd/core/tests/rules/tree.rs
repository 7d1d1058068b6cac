//! Parsing a task tree: what is valid, what is refused, which path a refusal names, and the size limits.

use protocol::tree::{Node, TaskTree};
use runner_core::tree::select::{LeafSelection, select};
use runner_core::tree::validate::{TreeFault, check_tree, load, load_agent_tree};
use runner_core::tree::{canonical, insert_children, new_tree, path_to};
use serde_json::{Value, json};

use crate::fixture::{child, inner, leaf, node, passed, sample, tree};

fn text(tree: &TaskTree) -> Vec<u8> {
    canonical(tree).into_bytes()
}

/// The sample with the value at a JSON pointer replaced or added.
fn with(pointer: &str, value: Value) -> Vec<u8> {
    let mut json = serde_json::to_value(sample()).expect("serializes");
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    json.pointer_mut(parent).expect("a parent")[key] = value;
    json.to_string().into_bytes()
}

/// The first fault of a text that must be refused, both as the runner's file and as an agent's.
fn fault(text: &[u8]) -> TreeFault {
    let faults = load(text).expect_err("refused");
    faults.into_iter().next().expect("a fault")
}

fn check_fault(text: &[u8], path: &str, rule: &str) {
    let fault = fault(text);
    assert!(fault.path == path && fault.rule.contains(rule), "{fault}");
    assert!(fault.to_string().len() < 2_000, "{} bytes", fault.to_string().len());
}

/// A chain of nodes that is `depth` levels deep.
fn chain(depth: usize) -> TaskTree {
    let last = leaf(&format!("n{depth}"), 0);
    tree((1..depth).rev().fold(last, |below, depth| inner(&format!("n{depth}"), 0, vec![below])))
}

/// A root with enough children for a tree of `nodes` nodes.
fn wide(nodes: i64) -> TaskTree {
    tree(inner("root", 0, (1..nodes).map(|order| leaf(&format!("n{order}"), order)).collect()))
}

#[test]
fn a_valid_tree_is_read_as_it_was_written() {
    assert_eq!(load(&text(&sample())), Ok(sample()));
    assert_eq!(load(&text(&new_tree(3))), Ok(new_tree(3)));
}

#[test]
fn twenty_thousand_nodes_are_allowed_and_no_more() {
    assert_eq!(load(&text(&wide(20_000))).map(|tree| tree.root.leaves()), Ok((0, 19_999)));
    check_fault(&text(&wide(20_001)), "", "more than 20000 tasks");
    let faults = check_tree(&wide(20_001)).expect_err("too many");
    assert_eq!(faults[0].to_string(), "it has 20001 tasks, more than 20000");
}

#[test]
fn sixty_four_levels_are_allowed_and_the_next_one_is_named() {
    assert_eq!(load(&text(&chain(64))), Ok(chain(64)));
    for depth in [65, 66, 100] {
        let place = format!("root{} (id n65)", ".children[0]".repeat(64));
        check_fault(&text(&chain(depth)), &place, "deeper than 64 levels");
        assert_eq!(load_agent_tree(&text(&chain(depth))).expect_err("too deep")[0].path, place);
    }
    assert!(check_tree(&chain(65)).expect_err("too deep")[0].to_string().contains("(id n65): it is 65 levels deep"));
}

#[test]
fn hostile_nesting_is_refused_before_anything_recurses() {
    let open = r#"{"version":1,"root":{"id":"n","children":["#;
    let deep = format!("{open}{}", r#"{"id":"n","children":["#.repeat(4_999));
    check_fault(deep.as_bytes(), "", "nests deeper than 256 levels (line 1, column");
    for byte in [b'[', b'{'] {
        check_fault(&vec![byte; 1_000_000], "", "nests deeper than 256 levels (line 1, column 257)");
    }
    let closed = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    check_fault(closed.as_bytes(), "", "nests deeper");
}

#[test]
fn ids_are_unique_whatever_their_case() {
    let same = tree(inner("root", 0, vec![leaf("Lexer", 1), leaf("lexer", 2)]));
    check_fault(&text(&same), "root.children[1] (id lexer)", "id is not unique (ignoring case)");
    let below = tree(inner("root", 0, vec![inner("a", 1, vec![leaf("ROOT", 1)])]));
    check_fault(&text(&below), "root.children[0].children[0] (id ROOT)", "it is also at root");
}

#[test]
fn an_id_keeps_to_its_grammar() {
    for id in ["-a", "a/b", "a..b", "a.", "a.lock", "ä", "a b"] {
        let tree = tree(inner("root", 0, vec![leaf(id, 1)]));
        let fault = load(&text(&tree)).expect_err(id).remove(0);
        assert_eq!(fault.path, format!("root.children[0] (id {id})"));
    }
    check_fault(&with("/root/children/1/id", json!("")), "root.children[1].id (id )", "shorter than 1");
    let long = fault(&with("/root/id", json!("x".repeat(201))));
    assert!(long.path.starts_with("root.id (id xxx") && long.rule.contains("longer than 200"), "{long}");
}

#[test]
fn an_unknown_field_is_refused_at_any_depth_and_the_path_is_named() {
    check_fault(&with("/extra", json!(1)), "", "'extra' was unexpected");
    check_fault(&with("/root/extra", json!(1)), "root (id root)", "'extra' was unexpected");
    let place = "root.children[2].children[1] (id c2)";
    check_fault(&with("/root/children/2/children/1/extra", json!({})), place, "'extra' was unexpected");
    assert!(load_agent_tree(&with("/root/children/2/children/1/status", json!("done"))).is_err());
}

#[test]
fn a_missing_field_is_refused_and_the_path_is_named() {
    for field in ["id", "order", "title", "goal", "acceptance", "passes", "attempts", "max_attempts", "children"] {
        let mut json = serde_json::to_value(sample()).expect("serializes");
        json["root"]["children"][1].as_object_mut().expect("a node").remove(field);
        let found = fault(json.to_string().as_bytes());
        assert!(found.path.starts_with("root.children[1]"), "{found}");
        assert!(found.rule.contains(&format!("\"{field}\" is a required property")), "{found}");
    }
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let twice = canonical(&new_tree(3)).replacen("\"order\": 0", "\"order\": 0, \"order\": 1", 1);
    check_fault(twice.as_bytes(), "", "the key `order` stands twice in one object at line 5");
}

#[test]
fn what_is_not_json_is_refused() {
    let canonical = canonical(&sample());
    assert!(load(canonical.replace('\n', "\r\n\t").as_bytes()).is_ok(), "white space does not count");
    let bom = [b"\xef\xbb\xbf", canonical.as_bytes()].concat();
    let not_utf8 = canonical
        .replace("Title of b", "\u{1}")
        .into_bytes()
        .iter()
        .map(|&byte| if byte == 1 { 0xff } else { byte })
        .collect();
    let numbers = |number: &str| canonical.replacen("\"order\": 1", &format!("\"order\": {number}"), 1).into_bytes();
    let comment = format!("// the plan\n{canonical}").into_bytes();
    let cut = canonical.as_bytes()[..canonical.len() / 2].to_vec();
    let surrogate = canonical.replace("Title of b", r"\ud800").into_bytes();
    let twice = canonical.repeat(2).into_bytes();
    for text in
        [bom, not_utf8, numbers("NaN"), numbers("1e400"), numbers("01"), comment, cut, surrogate, twice, Vec::new()]
    {
        check_fault(&text, "", "it is not JSON");
        assert!(load_agent_tree(&text).is_err());
    }
}

/// The schema refuses what the types would accept.
#[test]
fn an_array_of_the_right_values_is_no_object() {
    let mut tree = serde_json::to_value(sample()).unwrap();
    let fields = |value: &Value, names: &[&str]| -> Value { names.iter().map(|name| value[name].clone()).collect() };
    let node = ["id", "order", "title", "goal", "acceptance", "passes", "attempts", "max_attempts", "children"];
    let outermost = fields(&tree, &["version", "root"]);
    check_fault(outermost.to_string().as_bytes(), "", "is not of type \"object\"");
    tree["root"]["children"][0] = fields(&tree["root"]["children"][0], &node);
    check_fault(tree.to_string().as_bytes(), "root.children[0] (id root)", "is not of type \"object\"");
}

#[test]
fn a_number_that_does_not_fit_is_named() {
    let order = "/root/children/1/order";
    for number in ["9223372036854775808", "-9223372036854775809", "1.0", "1e3", "0.5", "\"1\"", "null", "true"] {
        let value: Value = serde_json::from_str(number).expect("a number");
        for faults in [load(&with(order, value.clone())), load_agent_tree(&with(order, value))] {
            let fault = faults.expect_err(number).remove(0);
            assert_eq!(fault.path, "root.children[1].order (id b)", "{fault}");
        }
    }
    for order in [i64::MIN, i64::MAX] {
        assert!(load(&with("/root/children/1/order", json!(order))).is_ok());
    }
    check_fault(
        &with("/root/children/1/max_attempts", json!(5_000_000_000_u64)),
        "root.children[1].max_attempts (id b)",
        "32 bits",
    );
    check_fault(&with("/root/children/1/max_attempts", json!(0)), "root.children[1].max_attempts (id b)", "less than");
    check_fault(&with("/root/children/1/attempts", json!(-1)), "root.children[1].attempts (id b)", "less than");
}

#[test]
fn a_value_of_another_type_is_named() {
    for (field, value) in [
        ("id", json!(1)),
        ("title", json!(null)),
        ("goal", json!(["a"])),
        ("acceptance", json!("it holds")),
        ("passes", json!("false")),
        ("attempts", json!(0.5)),
        ("children", json!(null)),
    ] {
        let found = fault(&with(&format!("/root/children/1/{field}"), value));
        assert!(found.path.starts_with(&format!("root.children[1].{field}")), "{found}");
    }
    let found = fault(&with("/root/children/1/acceptance", json!(["a", 1])));
    assert_eq!(found.path, "root.children[1].acceptance[1] (id b)");
    check_fault(&with("/root", json!([])), "root", "not of type");
    for whole in ["[]", "null", "\"tree\""] {
        check_fault(whole.as_bytes(), "", "not of type");
    }
}

#[test]
fn another_version_is_refused() {
    for version in [json!(0), json!(2), json!("1"), json!(1.0)] {
        assert!(load(&with("/version", version)).is_err());
    }
}

#[test]
fn texts_are_bounded_by_bytes_and_not_by_characters() {
    let set = |change: &dyn Fn(&mut Node)| {
        let mut tree = sample();
        change(node(&mut tree, "b"));
        text(&tree)
    };
    let a = "a";
    let e = "ä";
    assert!(load(&set(&|node| node.title = a.repeat(200))).is_ok());
    assert!(load(&set(&|node| node.title = e.repeat(100))).is_ok());
    assert!(load(&set(&|node| node.goal = e.repeat(4_096))).is_ok());
    assert!(load(&set(&|node| node.acceptance = vec![e.repeat(200); 20])).is_ok());
    let place = "root.children[1] (id b)";
    check_fault(&set(&|node| node.title = e.repeat(101)), place, "title is longer than 200 bytes");
    check_fault(&set(&|node| node.goal = format!("{}a", e.repeat(4_096))), place, "goal is longer than 8192 bytes");
    check_fault(&set(&|node| node.acceptance = vec![e.repeat(201)]), place, "longer than 400 bytes");
    check_fault(
        &set(&|node| node.acceptance = vec!["a".into(); 21]),
        "root.children[1].acceptance (id b)",
        "more than 20",
    );
}

#[test]
fn a_fault_stays_short_whatever_was_written() {
    let long = "x".repeat(1_000_000);
    for text in [
        with("/root/children/1/title", json!(long)),
        with("/root/children/1/id", json!(long)),
        with(&format!("/root/children/1/{long}"), json!(1)),
        format!("{{\"{long}\":1,\"{long}\":2}}").into_bytes(),
    ] {
        let faults = load(&text).expect_err("refused");
        assert!(faults.iter().all(|fault| fault.to_string().len() < 1_000));
    }
}

#[test]
fn faults_are_counted_up_to_a_limit() {
    let mut bad = wide(1_000);
    runner_core::tree::for_each_node_mut(&mut bad, |node| node.id = "same id".to_owned());
    let faults = load(&text(&bad)).expect_err("refused");
    assert!((1..=40).contains(&faults.len()), "{}", faults.len());
}

#[test]
fn eight_mebibytes_of_canonical_form_are_allowed_and_no_more() {
    let limit = 8 * 1024 * 1024;
    let mut tree = wide(1_100);
    for order in 1..1_100 {
        node(&mut tree, &format!("n{order}")).goal = "g".repeat(8_000);
    }
    let surplus = canonical(&tree).len() - limit;
    let mut short = surplus;
    for order in 1..1_100 {
        let goal = &mut node(&mut tree, &format!("n{order}")).goal;
        let cut = short.min(goal.len());
        goal.truncate(goal.len() - cut);
        short -= cut;
    }
    assert_eq!(canonical(&tree).len(), limit);
    assert!(load(&text(&tree)).is_ok());
    tree.root.title.push('x');
    check_fault(&text(&tree), "", "canonical form is larger than 8388608 bytes");
    check_fault(&vec![b' '; 4 * limit + 1], "", "bytes, more than");
}

#[test]
fn attempts_stay_within_what_is_allowed() {
    let mut tree = sample();
    node(&mut tree, "b").attempts = 3;
    assert!(load(&text(&tree)).is_ok());
    node(&mut tree, "b").attempts = 4;
    check_fault(&text(&tree), "root.children[1] (id b)", "attempts is 4, more than max_attempts 3");
}

#[test]
fn a_node_with_children_passes_exactly_when_all_of_them_pass() {
    let mut early = sample();
    node(&mut early, "c").passes = true;
    check_fault(&text(&early), "root.children[2] (id c)", "passes exactly when all of them do");
    let mut late = sample();
    for id in ["c1", "c2"] {
        node(&mut late, id).passes = true;
    }
    check_fault(&text(&late), "root.children[2] (id c)", "passes is false");
    node(&mut late, "c").passes = true;
    assert!(load(&text(&late)).is_ok());
}

#[test]
fn what_the_runner_owns_cannot_make_an_agents_tree_invalid() {
    for (field, value) in [
        ("passes", json!("yes")),
        ("passes", json!(true)),
        ("attempts", json!(99)),
        ("attempts", json!(-1)),
        ("max_attempts", json!(0)),
        ("max_attempts", json!({"a": []})),
    ] {
        let tree = load_agent_tree(&with(&format!("/root/children/1/{field}"), value)).expect("legal");
        let node = runner_core::tree::find(&tree, "b").expect("b");
        assert_eq!((node.passes, node.attempts, node.max_attempts), (false, 0, 1));
    }
}

#[test]
fn the_canonical_form_is_two_spaces_sorted_siblings_and_a_newline() {
    let shuffled = tree(inner("root", 0, vec![leaf("z", 2), leaf("b", 1), leaf("B", 1), leaf("a", -1)]));
    let canonical = canonical(&shuffled);
    let order: Vec<usize> =
        ["\"a\"", "\"B\"", "\"b\"", "\"z\""].iter().map(|id| canonical.find(id).expect("it is there")).collect();
    assert!(order.is_sorted());
    assert!(canonical.starts_with("{\n  \"version\": 1,\n  \"root\": {\n    \"id\": \"root\",\n    \"order\": 0,\n"));
    assert!(canonical.ends_with("}\n"));
}

#[test]
fn the_leftmost_open_leaf_is_selected() {
    let selected = |tree: &TaskTree| match select(tree) {
        LeafSelection::Open(leaf) => leaf.id.clone(),
        LeafSelection::Exhausted(leaf) => format!("{} is exhausted", leaf.id),
        LeafSelection::Complete => "complete".to_owned(),
    };
    assert_eq!(selected(&sample()), "b");
    let ties = tree(inner("root", 0, vec![leaf("b", 1), leaf("a", 1), leaf("Z", 1), leaf("a.1", 1)]));
    assert_eq!(selected(&ties), "Z");
    let deep = tree(inner("root", 0, vec![leaf("z", 9), inner("c", 1, vec![passed("c1", 1), leaf("c2", i64::MIN)])]));
    assert_eq!(selected(&deep), "c2");
    let mut stuck = sample();
    node(&mut stuck, "b").attempts = 3;
    assert_eq!(selected(&stuck), "b is exhausted");
    assert_eq!(selected(&tree(inner("root", 0, vec![passed("a", 1)]))), "complete");
    assert_eq!(selected(&new_tree(1)), "root");
}

#[test]
fn passes_is_derived_bottom_up_in_both_directions() {
    let derived = |root: Node| {
        let mut tree = tree(root);
        runner_core::tree::derive_passes(&mut tree);
        tree.root.passes
    };
    let below = |passes| inner("d", 1, vec![passed("d1", 1), Node { passes, ..leaf("d2", 2) }]);
    assert!(derived(Node { passes: false, ..inner("root", 0, vec![Node { passes: false, ..below(true) }]) }));
    assert!(!derived(Node { passes: true, ..inner("root", 0, vec![Node { passes: true, ..below(false) }]) }));
    assert!(derived(passed("root", 0)) && !derived(leaf("root", 0)));
}

#[test]
fn a_path_leads_from_the_root_to_the_node() {
    assert_eq!(path_to(&sample(), "c2"), ["root", "c", "c2"]);
    assert_eq!(path_to(&sample(), "root"), ["root"]);
    assert!(path_to(&sample(), "none").is_empty());
}

#[test]
fn brought_children_get_the_next_free_ids_in_their_order() {
    let mut tree = tree(inner("root", 0, vec![leaf("b", 1), leaf("B.2", 2)]));
    insert_children(&mut tree, "b", &[child("one"), child("two"), child("three")], 5);
    let made: Vec<_> = node(&mut tree, "b")
        .children
        .iter()
        .map(|node| (node.id.clone(), node.order, node.title.clone(), node.passes, node.attempts, node.max_attempts))
        .collect();
    let expect = |id: &str, order, title: &str| (id.to_owned(), order, title.to_owned(), false, 0, 5);
    assert_eq!(made, [expect("b.1", 1, "one"), expect("b.3", 2, "two"), expect("b.4", 3, "three")]);
    assert_eq!(check_tree(&tree), Ok(()));
}
