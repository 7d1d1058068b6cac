//! What was told of a request, told to the run.

use protocol::error::{ErrorData, ErrorKind};
use serde_json::json;

use crate::fake::text;
use crate::stage::{Stage, open_request};

#[test]
fn failed_checks_and_comments_become_a_note() {
    let stage = Stage::new();
    stage.says("list", &open_request(""));
    stage.says("view", include_str!("../forges/gh-pr-view.json"));
    stage.says("comments", include_str!("../forges/gh-api-comments.json"));
    let reply = json!({"told": 6, "known": 0, "left": 0, "text": "Feedback on …\n", "change": null});
    let stage = Stage { daemon: stage.daemon.answers("delivery.feedback", reply), ..stage };
    insta::assert_snapshot!(text(&stage.deliver(&["--feedback"])), @r"
    6 new pieces of feedback
    2 pieces of feedback of people without a say in the repository left out; --anyone takes them
    --- stderr
    --- exit 0
    ");
    let asked = &stage.daemon.asked("delivery.feedback")[0];
    assert_eq!((&asked["run"], &asked["add"], &asked["dry_run"]), (&json!("port"), &json!(false), &json!(false)));
    assert_eq!(asked["request"], json!("pull request 5, https://github.com/o/r/pull/5"));
    assert_eq!(asked["items"].as_array().map(Vec::len), Some(6));
    let output = stage.deliver(&["--feedback", "--add", "--anyone", "--dry-run"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("Feedback on …"), "{}", text(&output));
    let asked = &stage.daemon.asked("delivery.feedback")[1];
    assert_eq!(
        (asked["items"].as_array().map(Vec::len), &asked["add"], &asked["dry_run"]),
        (Some(8), &json!(true), &json!(true))
    );
}

#[test]
fn where_no_session_would_read_a_note_feedback_becomes_the_next_goal() {
    let stage = Stage::new();
    stage.says("list", &open_request(""));
    stage.says("view", r#"{"comments": [], "reviews": [], "statusCheckRollup": null}"#);
    stage.says("comments", "[]");
    let over = ErrorData::new(ErrorKind::WrongState, "the run is completed: no session would read the note");
    let stage = Stage { daemon: stage.daemon.refuses("delivery.feedback", over), ..stage };
    insta::assert_snapshot!(text(&stage.deliver(&["--feedback"])), @r"
    --- stderr
    error: the run is completed: no session would read the note

    hint: runnerctl deliver port --feedback --dry-run > feedback.md
      runnerctl start --goal feedback.md
    --- exit 6
    ");
}
