//! The schemas in `schemas/`: they are up to date, and agree with the types that they describe.

use std::collections::BTreeSet;
use std::path::Path;

use protocol::answer::AnswerStatus;
use protocol::tree::TaskTree;
use runner_core::tree::schema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::fixture::{answer, decomposed, sample};

const COMMAND: &str = "cargo run -p runner-core --example schemas";

#[expect(clippy::disallowed_methods, reason = "the test compares files")]
fn checked_in(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}; {COMMAND} writes it", path.display()))
}

fn schema_of(name: &str) -> Value {
    let files = schema::schema_files();
    let (_, text) = files.iter().find(|(file, _)| *file == name).expect("a schema");
    serde_json::from_str(text).expect("JSON")
}

fn accepts(name: &str, value: &impl Serialize) -> bool {
    let value = serde_json::to_value(value).expect("serializes");
    jsonschema::validator_for(&schema_of(name)).expect("compiles").is_valid(&value)
}

#[test]
fn the_schemas_that_are_checked_in_are_the_generated_ones() {
    for (name, text) in schema::schema_files() {
        assert!(checked_in(&format!("schemas/{name}")) == text, "schemas/{name} is stale; {COMMAND} rewrites it");
    }
}

#[test]
fn no_other_schema_is_checked_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    #[expect(clippy::disallowed_methods, reason = "the test compares files")]
    let entries = std::fs::read_dir(folder).expect("schemas/ is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    // Schemas of the harness and of the web view are generated and compared in their own crates.
    let found: BTreeSet<String> =
        names.filter(|name| !name.starts_with("eval-") && !name.starts_with("web.")).collect();
    assert_eq!(found, schema::schema_files().into_iter().map(|(name, _)| name.to_owned()).collect());
}

#[test]
fn what_the_runner_writes_is_valid_by_its_schema() {
    assert!(accepts("tree.v1.schema.json", &sample()));
    assert!(accepts("run-state.v1.schema.json", &protocol::state::RunState::default()));
    assert!(accepts("feedback.v1.schema.json", &protocol::state::Feedback::default()));
    let tests =
        json!({"passed": ["a"], "is_cut": false, "lost": [{"name": "b", "iter": 3, "now": "expected_failure"}]});
    assert!(serde_json::from_value::<protocol::test_record::TestRecord>(tests.clone()).is_ok());
    assert!(accepts("tests.v1.schema.json", &tests));
    assert!(accepts("agent-output.v1.schema.json", &answer(AnswerStatus::Done)));
    assert!(accepts("agent-output.v1.schema.json", &json!({"status": "retry", "summary": "x"})));
    assert!(accepts("review-output.v1.schema.json", &json!({"verdict": "reject", "reasons": ["x"]})));
    assert!(!accepts("review-output.v1.schema.json", &json!({"verdict": "reject"})));
    let event = json!({
        "seq": 1, "time": "2026-01-01T00:00:00Z", "repo": null, "run": null, "iter": null,
        "kind": "phase", "data": {"phase": "work", "node": "b"},
    });
    assert!(serde_json::from_value::<protocol::event::Event>(event.clone()).is_ok());
    assert!(accepts("event.v1.schema.json", &event));
    let runner_core::verdict::SessionEndKind::Answered(split) = decomposed(2).how else { panic!("an answer") };
    assert!(accepts("agent-output.v1.schema.json", &split));
}

#[test]
fn an_unknown_field_is_valid_by_no_schema_of_a_contract() {
    let with_extra = |value: Value| {
        let mut value = value;
        value["extra"] = json!(1);
        value
    };
    let state = serde_json::to_value(protocol::state::RunState::default()).expect("serializes");
    assert!(!accepts("run-state.v1.schema.json", &with_extra(state)));
    let feedback = serde_json::to_value(protocol::state::Feedback::default()).expect("serializes");
    assert!(!accepts("feedback.v1.schema.json", &with_extra(feedback)));
    let tree: TaskTree = sample();
    assert!(!accepts("tree.v1.schema.json", &with_extra(serde_json::to_value(tree).expect("serializes"))));
    assert!(!accepts("agent-output.v1.schema.json", &json!({"status": "done", "summary": "x", "passes": true})));
    assert!(!accepts("agent-output.v1.schema.json", &json!({"status": "done", "summary": ""})));
}

#[test]
fn every_type_of_the_methods_is_defined() {
    let api = checked_in("protocol/src/api.rs");
    let named = |before: &str, after: char| -> Vec<String> {
        let rest = api.split(before).skip(1).filter_map(|rest| rest.split(after).next());
        rest.map(|name| name.trim_start_matches("Vec<").to_owned()).collect()
    };
    let types: BTreeSet<String> =
        [named("params: ", ')'), named("RpcResult<", '>'), named("item = ", ')')].into_iter().flatten().collect();
    assert!(types.len() > 20, "{types:?}");
    let schema = schema_of("rpc.v1.schema.json");
    let missing: Vec<&String> = types.iter().filter(|name| schema["$defs"].get(name).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?} are not in rpc.v1.schema.json: add them to schema.rs");
}
