//! `mcp`, used as a client of the protocol uses it: line by line, in order and out of order, and from inside an
//! iteration.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use runner_testkit::{Daemon, Home, Repo, binary};
use serde_json::{Value, json};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// A daemon, and a repository with a run that has an open question.
struct McpFixture {
    home: Home,
    _daemon: Daemon,
    repo: Repo,
}

impl McpFixture {
    fn new() -> Self {
        let home = Home::new();
        let repo = home.scripted_repo("one");
        let ask = "echo '- Which port?' >> .runner/state/questions.md; echo work > work.txt; answer done 'Done.'";
        repo.script().step(1, ask);
        let served = Self { _daemon: home.daemon(), home, repo };
        served.home.run(&served.repo, &["--id", "x", "-m", "Make it work."]).exits(0);
        served
    }

    /// Sends these lines after the greeting; returns the replies by id.
    fn converse(&self, options: &[&str], lines: &[String]) -> impl Fn(u64) -> Value + use<> {
        let answers = read_replies(self.home.ctl_command(&self.repo, &[&["mcp"], options].concat()), lines);
        move |id| {
            let found = answers.iter().find(|answer| answer["id"] == id);
            found.unwrap_or_else(|| panic!("{id} was not answered: {answers:?}")).clone()
        }
    }
}

/// Runs a server on these lines; it exits after the last one.
fn read_replies(mut command: Command, lines: &[String]) -> Vec<Value> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let text = HELLO.to_owned() + &lines.join("\n") + "\n";
    child.stdin.take().expect("it is a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let output = String::from_utf8(output.stdout).expect("it is text");
    output.lines().map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
}

fn tool_call(id: u64, tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

#[test]
fn a_client_sees_what_the_daemon_tells_and_steers_nothing() {
    let served = McpFixture::new();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let lines = [
        list,
        tool_call(2, "runs", &json!({})),
        tool_call(3, "log", &json!({"what": "diff", "iteration": 1, "bytes": 20})),
        tool_call(4, "questions", &json!({})),
        tool_call(5, "status", &json!({"path": "/nowhere"})),
        tool_call(6, "note", &json!({"text": "More."})),
        tool_call(7, "tree", &json!({"run": "x"})),
        tool_call(8, "iteration", &json!({"iteration": 99})),
    ];
    let answer = served.converse(&[], &lines);
    let tools = answer(1)["result"]["tools"].as_array().expect("it is a list").clone();
    assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{tools:?}");
    let runs = &answer(2)["result"]["structuredContent"]["repos"][0];
    assert_eq!((&runs["run"], &runs["state"], &runs["questions"]), (&json!("x"), &json!("completed"), &json!(1)));
    let log = &answer(3)["result"]["structuredContent"];
    assert!(log["text"].as_str().is_some_and(|text| text.len() <= 20) && log["offset"] != 0, "{log}");
    assert_eq!(answer(4)["result"]["structuredContent"]["questions"][0]["text"], "Which port?");
    assert_eq!(answer(5)["result"]["isError"], true);
    assert_eq!(answer(5)["result"]["structuredContent"]["error"]["kind"], "not_a_repository");
    assert!(answer(6)["error"].is_object(), "{}", answer(6));
    assert_eq!(answer(7)["result"]["structuredContent"]["tree"]["root"]["passes"], true);
    assert_eq!(answer(8)["result"]["structuredContent"]["error"]["kind"], "not_found");
}

#[test]
fn nonsense_is_answered_or_passed_over() {
    let served = McpFixture::new();
    let lines = [
        "garbage".to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"nope"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"runs","arguments":[1]}}"#.to_owned(),
        tool_call(3, "log", &json!({"what": "nothing"})),
        tool_call(4, "status", &json!({"path": "here"})),
        tool_call(5, "log", &json!({"what": "prompt", "iteration": 1, "offset": u64::MAX})),
        tool_call(6, "runs", &json!({})),
    ];
    let answer = served.converse(&[], &lines);
    assert!([1, 2].iter().all(|id| answer(*id)["error"].is_object()));
    assert!([3, 4].iter().all(|id| answer(*id)["result"]["isError"] == true || answer(*id)["error"].is_object()));
    assert_eq!(answer(5)["result"]["structuredContent"]["text"], "");
    assert_eq!(answer(6)["result"]["isError"], false);
}

#[test]
fn asked_for_it_steers_and_never_from_inside_an_iteration() {
    let served = McpFixture::new();
    // A confirmation by a person is remembered.
    let answer = served.converse(&["--steer"], &[tool_call(1, "start", &json!({"goal": "More.", "run": "y"}))]);
    assert_eq!(answer(1)["result"]["structuredContent"]["run"]["id"], "y", "{}", answer(1));
    served.home.ctl_in(&served.repo, &["cancel"]);

    let lines = HELLO.to_owned() + &tool_call(1, "note", &json!({"text": "From inside."}));
    let file = served.home.path().join("lines");
    fs::write(&file, lines + "\n").expect("it can be written");
    let out = served.home.path().join("said");
    let ctl = binary("runnerctl").display().to_string();
    let socket = served.home.socket();
    let serve =
        format!("'{ctl}' --socket '{}' mcp --steer < '{}' > '{}'", socket.display(), file.display(), out.display());
    let ask = format!("{serve}; echo 2 > two; answer done 'Done.'");
    served.repo.script().always(&ask);
    served.home.run(&served.repo, &["--id", "z", "-m", "Again."]);
    let text = fs::read_to_string(&out).expect("the session has written it");
    assert!(text.contains("inside_iteration"), "{text}");
}
