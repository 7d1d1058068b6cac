//! Replies are valid for their schemas, under long paths and short ones.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use jsonschema::Validator;
use protocol::reply::{IterationReply, MemoryReply, TreeReply};
use protocol::view::{IterationView, RunSummary, StatusView};
use protocol::words::{RunStatus, VerdictName};
use runner_ui::wire::Health;
use serde_json::{Value, json};

use crate::kit::{RUN, UiProcess, UiStage};

/// Returns the validator for a type of a checked-in schema.
fn validator(file: &str, name: &str, is_list: bool) -> Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas").join(file);
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a schema")).expect("JSON");
    let one = json!({"$ref": format!("#/$defs/{name}")});
    let kind = if is_list { json!({"type": "array", "items": one}) } else { one };
    schema.as_object_mut().expect("an object").extend(kind.as_object().expect("an object").clone());
    jsonschema::validator_for(&schema).expect("a schema compiles")
}

#[test]
fn every_reply_is_what_its_schema_says() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let iteration = format!("iterations/{RUN}/1");
    let rpc = "rpc.v1.schema.json";
    let web = "web.v1.schema.json";
    let repo = ui.json::<Health>("/api/health").only.expect("one repository");
    let cases = [
        ("/api/health".to_owned(), web, "Health", false),
        ("/api/session".to_owned(), web, "Health", false),
        ("/api/repos".to_owned(), rpc, "StatusView", true),
        (format!("/api/repos/{repo}"), rpc, "StatusView", false),
        (format!("/api/repos/{repo}/nothing"), web, "ErrorReply", false),
    ];
    let of_repository = [
        ("tree", "TreeReply", false),
        ("run-state", "StatusView", false),
        ("config", "ConfigShowReply", false),
        ("memory", "MemoryReply", false),
        ("questions", "QuestionView", true),
        ("runs", "RunSummary", true),
        ("iterations", "IterationView", true),
        (&iteration, "IterationReply", false),
        (&format!("{iteration}/activity"), "ActivityReply", false),
    ];
    let of_repository = of_repository.into_iter().flat_map(|(path, name, is_list)| {
        [format!("/api/{path}"), format!("/api/repos/{repo}/{path}")].map(|path| (path, rpc, name, is_list))
    });
    for (path, file, name, is_list) in cases.into_iter().chain(of_repository) {
        let reply: Value = serde_json::from_slice(&ui.get(&path).body).expect("JSON");
        let errors: Vec<String> =
            validator(file, name, is_list).iter_errors(&reply).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{path} is no {name}: {errors:?}\n{reply}");
    }
}

#[test]
fn a_run_that_is_over_is_seen_with_all_that_it_left() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let [status] = &ui.json::<Vec<StatusView>>("/api/repos")[..] else { panic!("one repository") };
    assert_eq!(status.run.as_ref().map(|run| run.summary.state), Some(RunStatus::Completed));
    assert!(ui.json::<TreeReply>("/api/tree").tree.root.passes);
    let [view] = &ui.json::<Vec<IterationView>>("/api/iterations")[..] else { panic!("one iteration") };
    assert_eq!((view.iter, view.verdict), (1, VerdictName::Accepted));
    assert!(ui.json::<Vec<IterationView>>("/api/iterations?from=2").is_empty());
    assert_eq!(ui.json::<Vec<RunSummary>>("/api/runs").len(), 1);
    let reply: IterationReply = ui.json(&format!("/api/iterations/{}/1", &RUN[..2]));
    assert_eq!(reply.meta.map(|meta| meta.verdict), Some(VerdictName::Accepted));
    let memory: MemoryReply = ui.json("/api/memory");
    let goal = memory.files.iter().find(|file| file.name == "GOAL.md").expect("a goal");
    assert!(goal.text.contains("# Reach the goal"));
    assert!(memory.files.iter().any(|file| file.name == "progress.md" && file.text.contains("Title of a")));
}

#[test]
fn what_is_not_there_is_said_with_a_word_and_a_hint() {
    let stage = UiStage::with_played_run();
    let code = |path: &str| {
        let reply = stage.ui().get(path);
        (reply.status, reply.code())
    };
    let missing = (404, "not_found".to_owned());
    for path in [
        "/api/nothing",
        "/api/repos/000000000000/tree",
        "/api/iterations/seen/9",
        "/api/iterations/seen/1/review",
        "/api",
    ] {
        assert_eq!(code(path), missing, "{path}");
    }
    let invalid = (400, "invalid_request".to_owned());
    for path in [
        "/api/iterations/seen/x",
        "/api/iterations/seen/1.w",
        "/api/iterations?from=-1",
        "/api/tree?run=../x",
        "/events?repo=a&repo=b",
    ] {
        assert_eq!(code(path), invalid, "{path}");
    }
    assert!(stage.ui().get("/api/iterations/seen/9").text().contains("runnerctl log"));
}

#[test]
fn a_short_path_means_nothing_where_there_are_two_repositories() {
    let mut stage = UiStage::with_played_run();
    let other = stage.home.scripted_repo("two");
    other.write(".runner/GOAL.md", "# Another goal\n").commit("Set a goal");
    other.script().always("answer retry 'Not yet.'");
    stage.home.run(&other, &["--id", "other"]);
    assert_eq!(stage.ui().get("/api/tree").status, 404);
    let shown: Vec<StatusView> = stage.ui().json("/api/repos");
    assert_eq!(shown.len(), 2);
    for status in &shown {
        let tree: TreeReply = stage.ui().json(&format!("/api/repos/{}/tree", status.repo.id));
        assert!(tree.state.is_some());
    }
    let path = other.path().display().to_string();
    stage.ui = Some(UiProcess::start(&stage.home, &[&path]));
    let [only] = &stage.ui().json::<Vec<StatusView>>("/api/repos")[..] else { panic!("one repository") };
    assert_eq!(only.repo.path.as_path(), other.path());
    assert_eq!(stage.ui().json::<Health>("/api/health").only.as_ref(), Some(&only.repo.id));
    assert_eq!(stage.ui().json::<StatusView>("/api/run-state").run.map(|run| run.summary.id), Some("other".into()));
}

#[test]
fn a_reply_is_squeezed_for_those_who_take_it_so_and_a_text_is_not() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let plain = ui.get("/api/config");
    assert_eq!(plain.header("content-encoding"), None);
    assert!(plain.header("vary").is_some_and(|vary| vary.contains("Accept-Encoding")));
    let small = ui.ask("GET", "/api/config", &[("Accept-Encoding", "gzip, br")]);
    assert_eq!((small.status, small.header("content-encoding")), (200, Some("gzip")));
    assert!(small.body.len() * 2 < plain.body.len(), "{} of {}", small.body.len(), plain.body.len());
    let mut text = Vec::new();
    GzDecoder::new(&small.body[..]).read_to_end(&mut text).expect("what was squeezed");
    assert_eq!(text, plain.body);
    let log = format!("/api/iterations/{RUN}/1/executor.log");
    assert_eq!(ui.ask("GET", &log, &[("Accept-Encoding", "gzip")]).header("content-encoding"), None);
}
