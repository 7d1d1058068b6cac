//! Feedback on a pull request, passed on to the run.

use protocol::error::{ErrorData, ErrorKind};
use serde_json::json;

use crate::fake::output_text;
use crate::stage::{DeliveryStage, open_pr_json};

#[test]
fn failed_checks_and_comments_become_a_note() {
    let stage = DeliveryStage::new();
    stage.write_reply("list", &open_pr_json(""));
    stage.write_reply("view", include_str!("../forges/gh-pr-view.json"));
    stage.write_reply("comments", include_str!("../forges/gh-api-comments.json"));
    stage.write_reply("log", include_str!("../forges/gh-run-log-failed.txt"));
    let reply = json!({"told": 6, "known": 0, "left": 0, "text": "Feedback on …\n", "change": null});
    let stage = DeliveryStage { daemon: stage.daemon.with_reply("delivery.feedback", reply), ..stage };
    insta::assert_snapshot!(output_text(&stage.deliver(&["--feedback"])), @r"
    6 new pieces of feedback
    skipped 2 pieces of feedback by people without write access; --anyone includes them
    --- stderr
    --- exit 0
    ");
    let request = &stage.daemon.requests_of("delivery.feedback")[0];
    assert_eq!((&request["run"], &request["add"], &request["dry_run"]), (&json!("port"), &json!(false), &json!(false)));
    assert_eq!(request["request"], json!("pull request 5, https://github.com/o/r/pull/5"));
    assert_eq!(request["items"].as_array().map(Vec::len), Some(6));
    let log = request["items"][0]["log"].as_str().unwrap_or_default();
    assert!(log.starts_with("Run cargo test\ncargo test\ntest store::keeps_the_last_line ... FAILED\n"), "{request}");
    assert_eq!(request["items"][1].get("log"), None, "a check of others has no log here");
    assert!(stage.requests_made().contains("  --log-failed"), "{}", stage.requests_made());
    let output = stage.deliver(&["--feedback", "--add", "--anyone", "--dry-run"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("Feedback on …"), "{}", output_text(&output));
    let request = &stage.daemon.requests_of("delivery.feedback")[1];
    assert_eq!(
        (request["items"].as_array().map(Vec::len), &request["add"], &request["dry_run"]),
        (Some(8), &json!(true), &json!(true))
    );
}

#[test]
fn a_log_that_is_gone_keeps_nothing_from_being_told() {
    let stage = DeliveryStage::new();
    stage.write_reply("list", &open_pr_json(""));
    stage.write_reply("view", include_str!("../forges/gh-pr-view.json"));
    stage.write_reply("comments", "[]");
    let reply = json!({"told": 4, "known": 0, "left": 0, "text": "Feedback on …\n", "change": null});
    let stage = DeliveryStage { daemon: stage.daemon.with_reply("delivery.feedback", reply), ..stage };
    assert_eq!(stage.deliver(&["--feedback"]).status.code(), Some(0));
    let request = &stage.daemon.requests_of("delivery.feedback")[0];
    assert_eq!((&request["items"][0]["kind"], request["items"][0].get("log")), (&json!("check"), None));
}

#[test]
fn the_logs_of_failed_jobs_are_read_from_gitlab_too() {
    let stage = DeliveryStage::new();
    stage.run_git(&["remote", "set-url", "origin", "ssh://git@gitlab.com/o/r.git"]);
    stage.write_program("glab", GLAB);
    for (name, answer) in [
        ("discussions", include_str!("../forges/glab-discussions.json")),
        ("members", include_str!("../forges/glab-members.json")),
        ("jobs", include_str!("../forges/glab-jobs.json")),
        ("trace", include_str!("../forges/glab-trace.txt")),
    ] {
        stage.write_reply(name, answer);
    }
    let reply = json!({"told": 3, "known": 0, "left": 0, "text": "Feedback on …\n", "change": null});
    let stage = DeliveryStage { daemon: stage.daemon.with_reply("delivery.feedback", reply), ..stage };
    let output = stage.deliver(&["--feedback"]);
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    let request = &stage.daemon.requests_of("delivery.feedback")[0];
    assert!(
        request["items"][0]["log"].as_str().unwrap_or_default().starts_with("$ bundle exec rspec\nFailures:\n"),
        "{request}"
    );
    assert!(stage.requests_made().contains("/jobs/8/trace"), "{}", stage.requests_made());
}

/// Plays `glab`, as the stand-in for `gh` does.
const GLAB: &str = r#"#!/bin/sh
case "$1 $2" in "--version "*|"auth status") exit ;; esac
printf '  %s\n' "$@" >> "$FORGE/told"
case "$*" in
*/trace*) cat "$FORGE/trace" ;;
*/jobs*) cat "$FORGE/jobs" ;;
*/discussions*) cat "$FORGE/discussions" ;;
*/members*) cat "$FORGE/members" ;;
*/pipelines*) echo '[{"id": 4}]' ;;
*) echo '[{"iid": 5, "web_url": "https://gitlab.com/o/r/-/merge_requests/5", "state": "opened", "draft": true, "title": "Draft: T", "description": "", "source_project_id": 1, "target_project_id": 1}]' ;;
esac
"#;

#[test]
fn where_no_session_would_read_a_note_feedback_becomes_the_next_goal() {
    let stage = DeliveryStage::new();
    stage.write_reply("list", &open_pr_json(""));
    stage.write_reply("view", r#"{"comments": [], "reviews": [], "statusCheckRollup": null}"#);
    stage.write_reply("comments", "[]");
    let over = ErrorData::new(ErrorKind::WrongState, "the run is completed: no session would read the note");
    let stage = DeliveryStage { daemon: stage.daemon.with_error("delivery.feedback", over), ..stage };
    insta::assert_snapshot!(output_text(&stage.deliver(&["--feedback"])), @r"
    --- stderr
    error: the run is completed: no session would read the note

    hint: runnerctl deliver port --feedback --start
    --- exit 6
    ");
}
