//! The client program against a stand-in for the daemon: its requests, its output, its exit.

mod fake;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use fake::{EventScript, FakeDaemon, output_text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::error::{ErrorData, ErrorKind};
use serde_json::{Value, json};

fn run(state: &str) -> Value {
    fake::run_json("run-1", state)
}

fn status(state: &str) -> Value {
    fake::status_json("run-1", state)
}

fn event(second: u32, kind: &str, data: &Value) -> Value {
    let time = format!("2026-01-01T00:00:{second:02}Z");
    json!({"seq": second, "time": time, "repo": "r", "run": "run-1", "iter": 3, "kind": kind, "data": data})
}

fn red_iteration() -> Vec<Value> {
    let over = json!({"node": "a.b", "verdict": "RedGuard", "status": "done", "guard": "fail", "attempts": 3, "max_attempts": 3, "usage": {}});
    vec![
        event(0, "phase", &json!({"phase": "work", "node": "a.b"})),
        event(12, "phase", &json!({"phase": "guard", "node": "a.b"})),
        event(13, "from_a_later_version", &json!({"x": 1})),
        event(14, "iteration", &over),
    ]
}

fn start_reply() -> Value {
    json!({"run": run("queued"), "ahead": 0, "resumed": false})
}

#[test]
fn waiting_tells_each_phase_and_ends_with_the_state_of_the_run() {
    let chapter = EventScript { events: red_iteration(), status: status("stuck"), dies: false };
    let daemon = FakeDaemon::start().with_reply("run.start", start_reply()).with_reply("run.status", status("running"));
    let daemon = daemon.with_events(vec![chapter]);
    let output = daemon.client(&["start", "--wait", "-m", "goal"]).output().expect("runs");
    insta::assert_snapshot!(output_text(&output), @r"
    run run-1 queued on branch runner/run-1
    run run-1 stuck on branch runner/run-1
      1/3 tasks passed, 1m 01s in sessions and guards
    --- stderr
    0003 work     a.b  0s
    0003 guard    a.b  12s
    0003 guard failed  a.b  guard=fail  14s
    --- exit 3
    ");
}

#[test]
fn waiting_outlives_a_restart_of_the_daemon() {
    let first = EventScript { events: red_iteration(), status: status("running"), dies: true };
    let second = EventScript { events: Vec::new(), status: status("completed"), dies: false };
    let daemon = FakeDaemon::start().with_reply("run.start", start_reply()).with_reply("run.status", status("running"));
    let daemon = daemon.with_events(vec![first, second]);
    let output = daemon.client(&["start", "--wait"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    assert!(output_text(&output).contains("the daemon went away"), "{}", output_text(&output));
    assert!(output_text(&output).contains("run run-1 completed"), "{}", output_text(&output));
}

#[test]
fn waiting_with_json_is_a_line_per_event_and_the_state_last() {
    let chapter = EventScript { events: red_iteration(), status: status("completed"), dies: false };
    let daemon = FakeDaemon::start().with_reply("run.start", start_reply()).with_reply("run.status", status("running"));
    let daemon = daemon.with_events(vec![chapter]);
    let output = daemon.client(&["start", "--wait", "--json"]).output().expect("runs");
    let lines: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(&line.expect("text")).expect("json")).collect();
    let schemas: Vec<&str> = lines.iter().filter_map(|line| line["schema"].as_str()).collect();
    assert_eq!(schemas.first().copied(), Some("runner/start.v1"));
    assert_eq!(schemas.last().copied(), Some("runner/status.v1"));
    assert_eq!(schemas.iter().filter(|schema| **schema == "runner/event.v1").count(), 4);
    assert_eq!(output.stderr, b"");
}

#[test]
fn ctrl_c_ends_the_watching_and_not_the_run() {
    let daemon = FakeDaemon::start().with_reply("run.start", start_reply()).with_reply("run.status", status("running"));
    let daemon =
        daemon.with_events(vec![EventScript { events: red_iteration(), status: status("running"), dies: false }]);
    let mut client =
        daemon.client(&["start", "--wait"]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("spawns");
    let mut stderr = BufReader::new(client.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("reads");
    assert_eq!(line, "0003 work     a.b  0s\n");
    kill(Pid::from_raw(client.id().try_into().expect("a pid")), Signal::SIGINT).expect("signals");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("reads");
    assert_eq!(client.wait().expect("ends").code(), Some(130));
    assert!(rest.contains("the run continues"), "{rest}");
}

#[test]
fn commands_of_a_clone_are_confirmed_by_an_option_where_nobody_can_be_asked() {
    let error = ErrorData::new(ErrorKind::Unconfirmed, "this configuration was not confirmed; it runs: just ci");
    let daemon = FakeDaemon::start().with_error("run.start", error);
    let output = daemon.client(&["start"]).output().expect("runs");
    // The command is repeated as it was typed.
    let typed = format!("--no-spawn --socket {} ", daemon.socket().display());
    insta::assert_snapshot!(output_text(&output).replace(&typed, ""), @r"
    --- stderr
    error: this configuration was not confirmed; it runs: just ci

    hint: look at the commands, then: runnerctl start --yes
    --- exit 6
    ");
    let daemon = daemon.with_reply("run.start", start_reply());
    assert!(daemon.client(&["start", "--yes"]).status().expect("runs").success());
    let confirmed: Vec<Value> =
        daemon.requests_of("run.start").iter().map(|params| params["confirmed"].clone()).collect();
    assert_eq!(confirmed, [json!(false), json!(true)]);
}

#[test]
fn a_request_carries_the_absolute_path_and_no_variable_that_nobody_named() {
    let daemon = FakeDaemon::start().with_reply("run.start", start_reply());
    assert!(daemon.client(&["start", "sub/../x"]).status().expect("runs").success());
    let params = daemon.requests_of("run.start").remove(0);
    assert!(params["path"].as_str().is_some_and(|path| path.starts_with('/')), "{params}");
    let names: Vec<&String> = params["env"].as_object().expect("an object").keys().collect();
    assert_eq!(names, ["HOME", "LANG"]);
}

#[test]
fn outside_a_repository_status_lists_all() {
    let daemon = FakeDaemon::start()
        .with_error("run.status", ErrorData::new(ErrorKind::NotARepository, "/x is not in a git working tree"))
        .with_reply("run.status_all", json!([status("running"), status("stuck")]));
    let output = daemon.client(&["status"]).output().expect("runs");
    insta::assert_snapshot!(output_text(&output), @r"
    REPOSITORY  STATE    TASKS  COST  NOW
    /p          running  1/3    $?    begins
    /p          stuck    1/3    $?
    --- stderr
    --- exit 0
    ");
    let named = daemon.client(&["status", "/x"]).output().expect("runs");
    assert_eq!(named.status.code(), Some(1), "{}", output_text(&named));
}

#[test]
fn select_on_a_complete_tree_has_an_exit_code_of_its_own() {
    let daemon = FakeDaemon::start().with_reply("tree.select", json!({"status": "complete"}));
    let output = daemon.client(&["select", "--json"]).output().expect("runs");
    assert_eq!(
        output_text(&output),
        "{\"schema\":\"runner/select.v1\",\"status\":\"complete\"}\n--- stderr\n--- exit 7\n"
    );
}

#[test]
fn a_tree_as_deep_as_is_allowed_is_shown() {
    let node = |depth: u32, children: Value| {
        json!({
            "id": format!("n{depth}"), "order": 1, "title": "t", "goal": "g", "acceptance": [], "passes": false,
            "attempts": 0, "max_attempts": 3, "children": children,
        })
    };
    let root = (0..63).rev().fold(node(63, json!([])), |below, depth| node(depth, json!([below])));
    let reply = json!({"tree": {"version": 1, "root": root}, "digest": "", "current": "n63", "state": null});
    let daemon = FakeDaemon::start().with_reply("tree.get", reply).with_reply("iteration.list", json!([]));
    let output = daemon.client(&["tree"]).output().expect("runs");
    assert_eq!(output.stdout.lines().count(), 64, "{}", output_text(&output));
}

#[test]
fn a_reader_that_went_away_ends_the_client_quietly() {
    let daemon = FakeDaemon::start().with_reply("iteration.list", json!([]));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = daemon.client(&["log", "--json"]).stdout(writer).output().expect("runs");
    assert_eq!(output_text(&output), "--- stderr\n--- exit 0\n");
}

#[test]
fn a_daemon_of_another_version_is_told_apart() {
    let daemon = FakeDaemon::start().with_reply("daemon.handshake", json!({"version": "9.0.0", "api_version": 9}));
    let output = daemon.client(&["repos", "--json"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(8));
    let error: Value = serde_json::from_slice(&output.stderr).expect("json");
    assert_eq!(error["error"]["kind"], "protocol_mismatch");
}

#[test]
fn a_daemon_whose_socket_is_named_is_reached_without_a_state_folder() {
    let daemon = FakeDaemon::start().with_reply("run.status", status("running"));
    // As without a home folder, which must be missing from the list of users too.
    let output = daemon.client(&["status"]).env("RUNNERD_STATE", "relative").output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
}
