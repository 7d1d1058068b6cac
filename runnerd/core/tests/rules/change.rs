//! The changes to a run's files that a person may request, and their effects.

use protocol::state::RunState;
use protocol::tree::{Node, TaskTree};
use runner_core::files::change::{
    ChangeRefusal, ChangeRequest, ChangeResult, NodeAddition, RunDocuments, select_files_to_accept,
};
use runner_core::files::notes;
use runner_core::files::questions;
use runner_core::guard::definition::DefinitionState;
use runner_core::tree;

/// A root of a passed `a`, an exhausted `b`, and an open `c`.
fn documents() -> RunDocuments {
    let mut tree = tree::new_tree(3);
    let leaf = |id: &str, order: i64| Node { id: id.to_owned(), order, ..tree::new_tree(3).root };
    let a = leaf("a", 1);
    let b = leaf("b", 2);
    let c = leaf("c", 3);
    tree.root.children = vec![Node { passes: true, ..a }, Node { attempts: 3, ..b }, c];
    let questions = "# Questions\n\n- Which database?\n".to_owned();
    let config = "max_iterations = 7\n".to_owned();
    let of = |blob: &str| [("justfile".to_owned(), blob.to_owned())].into();
    let guarded = DefinitionState { accepted: of("1"), committed: of("2"), is_absence_accepted: false };
    let run_state = RunState { guard_definition: of("1"), ..RunState::default() };
    RunDocuments {
        tree,
        notes: "# Notes\n".to_owned(),
        questions,
        config,
        run_state,
        definition_state: guarded,
        max_attempts: 3,
    }
}

fn addition(parent: &str) -> NodeAddition {
    NodeAddition {
        parent: parent.to_owned(),
        title: "More".to_owned(),
        goal: "There is more.".to_owned(),
        acceptance: vec!["it is there".to_owned()],
        after: None,
        order: None,
    }
}

#[track_caller]
fn apply(change: &ChangeRequest) -> ChangeResult {
    change.apply(&documents()).expect("is done")
}

#[track_caller]
fn refusal(change: &ChangeRequest) -> String {
    change.apply(&documents()).expect_err("is refused").to_string()
}

fn tree_edit(change: impl FnOnce(&mut TaskTree)) -> ChangeRequest {
    let base = tree::canonical(&documents().tree);
    let mut tree = documents().tree;
    change(&mut tree);
    ChangeRequest::Edit { base, edited: tree::canonical(&tree) }
}

fn node<'a>(tree: &'a mut TaskTree, id: &str) -> &'a mut Node {
    tree::find_mut(tree, id).expect("is there")
}

#[test]
fn a_note_gets_into_its_file_under_the_id_that_was_acknowledged() {
    let changed = apply(&ChangeRequest::Note { id: "n1".into(), text: "Use sqlx.\nNot diesel.".into() });
    assert_eq!(changed.id.as_deref(), Some("n1"));
    assert_eq!(notes::parse_notes(&changed.documents.notes)[0].text, "Use sqlx.\nNot diesel.");
    assert_eq!(changed.documents.tree, documents().tree);
    assert!(refusal(&ChangeRequest::Note { id: "n1".into(), text: " \n".into() }).contains("needs a text"));
    let long = "x".repeat(notes::MAX_NOTE_BYTES + 1);
    assert!(refusal(&ChangeRequest::Note { id: "n1".into(), text: long }).contains("8192 bytes"));
}

#[test]
fn a_question_is_answered_once() {
    let id = questions::parse_questions(&documents().questions)[0].id.clone();
    let answer = ChangeRequest::Answer { question: id, text: "Postgres.".into() };
    let changed = apply(&answer);
    assert_eq!(questions::count_open(&changed.documents.questions), 0);
    assert!(
        matches!(answer.apply(&changed.documents), Err(ChangeRefusal::Rule(why)) if why.contains("is already answered"))
    );
    let unknown = ChangeRequest::Answer { question: "00000000".into(), text: "a".into() };
    assert!(matches!(unknown.apply(&documents()), Err(ChangeRefusal::NotFound(_))));
}

#[test]
fn an_exhausted_node_gets_as_many_attempts_as_a_new_one() {
    let changed = apply(&ChangeRequest::Retry { node: "b".into() });
    let node = tree::find(&changed.documents.tree, "b").expect("is there");
    assert_eq!((node.attempts, node.max_attempts), (3, 6));
    assert_eq!(changed.summary, "node b may now be tried 6 times, 3 more than before");
}

#[test]
fn a_retry_is_for_an_exhausted_leaf() {
    assert_eq!(refusal(&ChangeRequest::Retry { node: "c".into() }), "task c has 3 of its 3 attempts left");
    assert!(refusal(&ChangeRequest::Retry { node: "a".into() }).contains("has passed"));
    assert!(refusal(&ChangeRequest::Retry { node: "root".into() }).contains("has subtasks"));
    assert!(refusal(&ChangeRequest::Retry { node: "x".into() }).contains("no task x"));
    // A unique prefix is enough, and no other id begins like the root's.
    assert!(refusal(&ChangeRequest::Retry { node: "ro".into() }).contains("task root"));
}

#[test]
fn an_added_node_comes_last_or_where_it_was_put() {
    let orders = |change: NodeAddition| {
        let changed = apply(&ChangeRequest::Add(change));
        let children = &changed.documents.tree.root.children;
        children.iter().map(|node| format!("{}:{}", node.order, node.id)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(orders(addition("root")), "1:a 2:b 3:c 4:root.1");
    assert_eq!(orders(NodeAddition { order: Some(-5), ..addition("root") }), "-5:root.1 1:a 2:b 3:c");
    assert_eq!(orders(NodeAddition { after: Some("b".into()), ..addition("root") }), "1:a 2:b 3:root.1 4:c");
    let unknown = NodeAddition { after: Some("x".into()), ..addition("root") };
    assert!(refusal(&ChangeRequest::Add(unknown)).contains("no subtask x"));
}

#[test]
fn a_stuck_leaf_is_decomposed_by_adding_to_it() {
    let changed = apply(&ChangeRequest::Add(addition("b")));
    let node = tree::find(&changed.documents.tree, "b.1").expect("is there");
    assert_eq!((node.attempts, node.max_attempts, node.passes), (0, 3, false));
    assert_eq!(changed.id.as_deref(), Some("b.1"));
    assert!(refusal(&ChangeRequest::Add(addition("a"))).contains("has passed"));
    let nameless = NodeAddition { title: " ".into(), ..addition("b") };
    assert!(refusal(&ChangeRequest::Add(nameless)).contains("title"));
    let long = NodeAddition { title: "t".repeat(201), ..addition("b") };
    assert!(refusal(&ChangeRequest::Add(long)).contains("title is longer than 200 bytes"));
}

#[test]
fn an_edit_may_do_what_a_person_may() {
    let changed = apply(&tree_edit(|tree| {
        node(tree, "b").goal = "smaller".into();
        node(tree, "b").max_attempts = 4;
        tree.root.children.remove(2);
    }));
    assert_eq!(changed.summary, "changed b; removed c");
    assert_eq!(changed.id, None);
}

#[test]
fn the_last_open_node_may_be_removed_without_counting_what_passes() {
    let changed = apply(&tree_edit(|tree| tree.root.children.truncate(1)));
    assert!(changed.documents.tree.root.passes);
}

#[test]
fn an_edit_may_not_do_what_a_person_may_not() {
    assert!(refusal(&tree_edit(|tree| node(tree, "c").passes = true)).contains("task c was set to pass"));
    assert!(refusal(&tree_edit(|tree| node(tree, "a").title = "x".into())).contains("passed task a was changed"));
    assert!(refusal(&tree_edit(|tree| node(tree, "b").attempts = 0)).contains("were lowered"));
    assert!(refusal(&tree_edit(|tree| node(tree, "b").id = "C".into())).contains("not unique"));
    assert!(refusal(&tree_edit(|_| ())).contains("nothing was changed"));
    let broken = ChangeRequest::Edit { base: tree::canonical(&documents().tree), edited: "{".into() };
    assert!(refusal(&broken).contains("it is not JSON"));
}

#[test]
fn an_edit_is_done_to_the_tree_that_a_session_has_left_meanwhile() {
    let edit = tree_edit(|tree| node(tree, "b").max_attempts = 5);
    let mut later = documents();
    node(&mut later.tree, "c").passes = true;
    let changed = edit.apply(&later).expect("no conflict");
    let now = |id| tree::find(&changed.documents.tree, id).expect("is there");
    assert!(now("c").passes);
    assert_eq!(now("b").max_attempts, 5);
    node(&mut later.tree, "c").title = "passed with another title".into();
    let edit = tree_edit(|tree| node(tree, "c").goal = "too late".into());
    assert!(matches!(edit.apply(&later), Err(ChangeRefusal::Rule(why)) if why.contains("passed task c")));
}

#[test]
fn a_key_is_set_in_the_text_for_which_it_was_requested() {
    let set = |base: &str, text: &str, value: Option<&str>| ChangeRequest::Config {
        key: "max_iterations".into(),
        value: value.map(str::to_owned),
        base: base.into(),
        text: text.into(),
    };
    let base = documents().config;
    let changed = apply(&set(&base, "max_iterations = 9\n", Some("9")));
    assert_eq!(
        (changed.documents.config.as_str(), changed.summary.as_str()),
        ("max_iterations = 9\n", "max_iterations is 9")
    );
    assert_eq!(apply(&set(&base, "", None)).summary, "max_iterations is reset to default");
    assert!(refusal(&set(&base, &base, Some("7"))).contains("is already 7"));
    assert!(refusal(&set("stall_after = 2\n", "", None)).contains("has changed since you asked to set max_iterations"));
}

#[test]
fn a_request_that_waits_is_shown_in_one_line() {
    let note = ChangeRequest::Note { id: "n2".into(), text: "Use\nsqlx.".into() };
    assert_eq!(note.describe(), (Some("n2"), "Use sqlx.".to_owned()));
    assert_eq!(ChangeRequest::Add(addition("b")).describe().0, None);
}

#[test]
fn what_is_accepted_is_what_was_committed_when_it_was_asked() {
    let mut documents = documents();
    let none: [String; 0] = [];
    let files = select_files_to_accept(&documents.definition_state, none.iter()).expect("it has changed");
    // Meanwhile a session has changed it again.
    documents.definition_state.committed.insert("justfile".to_owned(), "3".to_owned());
    let changed = ChangeRequest::Accept { files }.apply(&documents).expect("it can be accepted");
    assert_eq!(changed.documents.run_state.guard_definition["justfile"], "2");
    assert_eq!(
        changed.documents.definition_state.changed_paths(),
        ["justfile"],
        "what nobody has seen is not accepted"
    );
    assert_eq!((changed.summary.as_str(), changed.id), ("justfile", None));
}

#[test]
fn a_file_that_is_gone_is_accepted_as_gone() {
    let mut documents = documents();
    documents.definition_state.committed.clear();
    let files =
        select_files_to_accept(&documents.definition_state, ["justfile".to_owned()].iter()).expect("it has changed");
    let changed = ChangeRequest::Accept { files }.apply(&documents).expect("it can be accepted");
    assert!(changed.documents.run_state.guard_definition.is_empty());
}

#[test]
fn only_what_has_changed_can_be_accepted_and_once() {
    let documents = documents();
    let select = |file: &str| select_files_to_accept(&documents.definition_state, [file.to_owned()].iter());
    assert!(matches!(select("README.md"), Err(ChangeRefusal::NotFound(_))));
    let files = select("justfile").expect("it has changed");
    let accepted =
        ChangeRequest::Accept { files: files.clone() }.apply(&documents).expect("it can be accepted").documents;
    let again = select_files_to_accept(&accepted.definition_state, ["justfile".to_owned()].iter());
    assert!(matches!(again, Err(ChangeRefusal::Rule(_))));
    assert!(matches!(ChangeRequest::Accept { files }.apply(&accepted), Err(ChangeRefusal::Rule(_))));
}
