//! Steering from a page: the required credentials, who is refused despite having them, and the effect of each request.

use std::process::Command;

use protocol::view::{IterationView, StatusView};
use protocol::words::{RunStatus, VerdictName};
use runner_ui::wire::{Health, Session, Steered};
use serde_json::{Value, json};

use crate::kit::{HttpReply, RUN, UiProcess, UiStage};

/// A page that was opened with an address.
struct OpenedPage<'a> {
    ui: &'a UiProcess,
    cookie: String,
    token: String,
    repo: String,
}

/// A paused run in the queue, and a server that can steer.
fn new_stage(script: &str) -> UiStage {
    let mut stage = UiStage::new();
    stage.repo.commit_config(&stage.repo.config().top("max_iterations = 9"));
    stage.repo.script().always(script);
    stage.repo.script().guard_always("exit 0");
    stage.home.ctl_in(&stage.repo, &["start", "--yes", "--queue-only", "--id", RUN]).exits(0);
    stage.ui = Some(UiProcess::start(&stage.home, &["--steer"]));
    stage
}

fn open_page(stage: &UiStage) -> OpenedPage<'_> {
    let ui = stage.ui();
    let shown = ui.raw(&format!(
        "GET /api/session HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        ui.port, ui.ticket
    ));
    let cookie = shown.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
    let session: Session = serde_json::from_slice(&shown.body).expect("a session");
    assert!(session.health.steers);
    let repos: Vec<StatusView> = ui.json("/api/repos");
    OpenedPage { ui, cookie, token: session.steer_token.expect("a token"), repo: repos[0].repo.id.clone() }
}

impl OpenedPage<'_> {
    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.ui.port)
    }

    /// Returns the headers that a page sends.
    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![
            ("Cookie", self.cookie.clone()),
            ("Origin", self.origin()),
            ("Sec-Fetch-Site", "same-origin".into()),
            ("Sec-Fetch-Mode", "cors".into()),
            ("Content-Type", "application/json".into()),
            ("X-Runner-Steer", self.token.clone()),
        ]
    }

    /// Returns them with one of them changed or removed.
    fn with(&self, name: &str, value: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = self.headers();
        let at = headers.iter().position(|(known, _)| *known == name).expect("a header of a page");
        match value {
            Some(value) => value.clone_into(&mut headers[at].1),
            None => drop(headers.remove(at)),
        }
        headers
    }

    fn request(&self, method: &str, headers: &[(&str, String)], body: &str) -> String {
        let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!(
            "{method} /api/repos/{}/steer HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}Content-Length: {}\r\nConnection: \
             close\r\n\r\n{body}",
            self.repo,
            self.ui.port,
            lines.concat(),
            body.len()
        )
    }

    fn post(&self, headers: &[(&str, String)], body: &Value) -> HttpReply {
        self.ui.raw(&self.request("POST", headers, &body.to_string()))
    }

    /// Sends a page's request.
    #[track_caller]
    fn post_ok(&self, body: &Value) -> Steered {
        let reply = self.post(&self.headers(), body);
        assert_eq!(reply.status, 200, "{body}: {}", reply.text());
        serde_json::from_slice(&reply.body).expect("what was done")
    }
}

fn note() -> Value {
    json!({"action": "note", "text": "from the page"})
}

#[test]
fn a_server_that_was_not_started_to_steer_takes_no_such_request() {
    let stage = UiStage::with_played_run();
    let health: Health = stage.ui().json("/api/health");
    assert!(!health.steers);
    let ui = stage.ui();
    let repos: Vec<StatusView> = ui.json("/api/repos");
    let path = format!("/api/repos/{}/steer", repos[0].repo.id);
    assert_eq!((ui.ask("POST", &path, &[]).status, ui.get(&path).status), (405, 404));
    let session = ui.raw(&format!(
        "GET /api/session HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        ui.port, ui.ticket
    ));
    let session: Session = serde_json::from_slice(&session.body).expect("a session");
    assert_eq!(session.steer_token, None);
}

#[test]
fn the_token_for_steering_is_told_to_who_comes_by_an_address_and_to_nobody_else() {
    let stage = new_stage("answer done x");
    let page = open_page(&stage);
    let by_token = page.ui.get("/api/session");
    let by_cookie = page.ui.raw(&format!(
        "GET /api/session HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nCookie: {}\r\nConnection: close\r\n\r\n",
        page.ui.port, page.cookie
    ));
    for reply in [by_token, by_cookie] {
        assert_eq!(reply.status, 200);
        let session: Session = serde_json::from_slice(&reply.body).expect("a session");
        assert_eq!(session.steer_token, None);
        assert!(!reply.text().contains(&page.token));
    }
}

#[test]
fn nothing_is_done_unless_all_is_shown() {
    let stage = new_stage("answer done x");
    let page = open_page(&stage);
    let refused = |headers: &[(&str, String)], status: u16, code: &str| {
        let reply = page.post(headers, &note());
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{headers:?}");
    };
    refused(&page.with("X-Runner-Steer", None), 403, "may_not_steer");
    refused(&page.with("X-Runner-Steer", Some("")), 403, "may_not_steer");
    refused(&page.with("X-Runner-Steer", Some(&page.ui.token)), 403, "may_not_steer");
    refused(&page.with("X-Runner-Steer", Some(page.cookie.split_once('=').expect("a pair").1)), 403, "may_not_steer");
    refused(&page.with("Cookie", None), 401, "unauthorized");
    refused(&page.with("Origin", None), 403, "forbidden");
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost:4747"] {
        refused(&page.with("Origin", Some(origin)), 403, "forbidden");
    }
    for site in ["cross-site", "same-site"] {
        refused(&page.with("Sec-Fetch-Site", Some(site)), 403, "forbidden");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""] {
        refused(&page.with("Content-Type", Some(kind)), 415, "invalid_request");
    }
    let status: StatusView = page.ui.json(&format!("/api/repos/{}", page.repo));
    let run = status.run.expect("a run");
    assert_eq!((run.notes.len(), run.changes.len()), (0, 0), "nothing was done");
}

#[test]
fn a_token_for_one_name_of_the_machine_is_worth_nothing_under_another() {
    let stage = new_stage("answer done x");
    let page = open_page(&stage);
    let body = note().to_string();
    let under = |host: &str| {
        let mut headers = page.with("Origin", Some(&format!("http://{host}")));
        headers.retain(|(name, _)| *name != "Sec-Fetch-Site");
        let request = page.request("POST", &headers, &body);
        page.ui.raw(&request.replace(&format!("Host: 127.0.0.1:{}", page.ui.port), &format!("Host: {host}")))
    };
    let reply = under(&format!("localhost:{}", page.ui.port));
    assert_eq!((reply.status, reply.code().as_str()), (403, "may_not_steer"));
    assert_eq!(under(&format!("rebound.example:{}", page.ui.port)).status, 403);
}

#[test]
fn another_method_and_another_body_steer_nothing() {
    let stage = new_stage("answer done x");
    let page = open_page(&stage);
    for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let reply = page.ui.raw(&page.request(method, &page.headers(), &note().to_string()));
        assert_eq!(reply.status, 405, "{method}");
    }
    let send = |body: &str| page.ui.raw(&page.request("POST", &page.headers(), body)).status;
    assert_eq!(send(&"x".repeat(64 * 1024 + 1)), 413);
    assert_eq!(send(&format!("{{\"action\":\"note\",\"text\":\"{}\"}}", "x".repeat(9 * 1024))), 400);
    for body in ["", "[]", "{}", "{\"action\":\"cancel\"}", "{\"action\":\"note\",\"text\":\"x\",\"path\":\"/\"}", "\0"]
    {
        assert_eq!(send(body), 400, "{body}");
    }
}

#[test]
fn a_program_of_an_iteration_is_refused_with_everything_that_a_page_has() {
    let stage = new_stage("answer done x");
    let page = open_page(&stage);
    let request = page.request("POST", &page.headers(), &note().to_string());
    let script = "exec 3<>\"/dev/tcp/127.0.0.1/$1\"; printf %s \"$2\" >&3; cat <&3";
    let ask = |mark: Option<&str>| {
        let mut shell = Command::new("bash");
        shell.args(["-c", script, "ask", &page.ui.port.to_string(), &request]);
        shell.envs(mark.map(|mark| (protocol::startup::MARK_VARIABLE, mark)));
        String::from_utf8(shell.output().expect("bash can be started").stdout).expect("text")
    };
    let inside = ask(Some("run/1"));
    assert!(inside.starts_with("HTTP/1.1 403") && inside.contains("inside_iteration"), "{inside}");
    let status: StatusView = page.ui.json(&format!("/api/repos/{}", page.repo));
    let run = status.run.expect("a run");
    assert_eq!((run.notes.len(), run.changes.len()), (0, 0), "nothing was done");
    let outside = ask(None);
    assert!(outside.starts_with("HTTP/1.1 200"), "{outside}");
}

#[test]
fn a_session_that_has_the_token_is_refused() {
    let stage = new_stage("bash \"$kit/files/ask.sh\" > said.txt 2>&1; answer done 'It is done.'");
    let page = open_page(&stage);
    let request = page.request("POST", &page.headers(), &json!({"action": "pause", "now": false}).to_string());
    let files = stage.repo.script().folder().join("files");
    let request_file = files.join("request.txt");
    std::fs::write(&request_file, request).expect("a file of the script can be written");
    let ask = format!("exec 3<>/dev/tcp/127.0.0.1/{}; cat '{}' >&3; cat <&3\n", page.ui.port, request_file.display());
    std::fs::write(files.join("ask.sh"), ask).expect("a file of the script can be written");
    stage.home.ctl_in(&stage.repo, &["resume", "--yes"]).exits(0);
    stage.home.client().wait_for(stage.repo.path(), RunStatus::Completed);
    let text = stage.repo.read("said.txt");
    assert!(text.starts_with("HTTP/1.1 403") && text.contains("inside_iteration"), "{text}");
}

#[test]
fn a_note_is_left_and_a_run_paused_and_resumed() {
    let stage = new_stage("answer done x");
    let page = open_page(&stage);
    let left = page.post_ok(&note());
    assert!(left.summary.contains("from the page") || left.pending, "{left:?}");
    let status: StatusView = page.ui.json(&format!("/api/repos/{}", page.repo));
    assert_eq!(status.run.map(|run| run.notes.len() + run.changes.len()), Some(1));
    page.post_ok(&json!({"action": "resume"}));
    stage.home.client().wait_for(stage.repo.path(), RunStatus::Completed);
    let reply = page.post(&page.headers(), &json!({"action": "pause"}));
    assert_eq!((reply.status, reply.code().as_str()), (409, "wrong_state"), "it is over: {}", reply.text());
}

#[test]
fn what_waits_for_a_person_is_decided_as_it_was_shown() {
    let mut stage = UiStage::new();
    stage.repo.commit_config(&stage.repo.config().top("max_iterations = 9").section("[review]\nby = \"human\""));
    stage.repo.script().always("echo x >> x; answer done 'It is done.'");
    stage.repo.script().guard_always("exit 0");
    stage.ui = Some(UiProcess::start(&stage.home, &["--steer"]));
    stage.home.ctl_in(&stage.repo, &["start", "--yes", "--id", RUN]).exits(0);
    // The iteration that waits, after another one.
    let waits_after = |before: u32| {
        let is_pending = |last: &IterationView| last.iter > before && last.verdict == VerdictName::Pending;
        let run = stage.home.client().wait_until(stage.repo.path(), |run| run.recent.first().is_some_and(is_pending));
        run.recent[0].iter
    };
    let first = waits_after(0);
    let page = open_page(&stage);
    let other = page.post(&page.headers(), &json!({"action": "approve", "iter": first + 1}));
    assert_eq!((other.status, other.code().as_str()), (409, "wrong_state"), "{}", other.text());
    let rejected = page.post_ok(&json!({"action": "reject", "iter": first, "reason": "Another time."}));
    assert_eq!(rejected.summary, "rejected: a");
    let second = waits_after(first);
    assert_eq!(page.post_ok(&json!({"action": "approve", "iter": second})).summary, "approved: a");
    stage.home.client().wait_for(stage.repo.path(), RunStatus::Completed);
}
