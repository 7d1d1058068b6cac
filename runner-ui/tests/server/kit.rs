//! The web view's server as a child process of the test, and requests to it as bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::tree::{Node, TREE_VERSION, TaskTree};
use runner_testkit::{Daemon, Home, PATIENCE, Repo};
use runner_ui::wire::Started;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Id of every test's run.
pub(crate) const RUN: &str = "seen";

/// A listening server. It is stopped on drop.
pub(crate) struct UiProcess {
    child: Child,
    pub(crate) port: u16,
    pub(crate) token: String,
    /// The code in the printed address, which is valid once.
    pub(crate) ticket: String,
}

impl UiProcess {
    /// Starts the server of a home.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command("runner-ui");
        command.args(["--json", "--until-eof"]).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the server can be started");
        let mut line = String::new();
        let out = child.stdout.take().expect("BUG: standard output is a pipe");
        BufReader::new(out).read_line(&mut line).expect("the server says where it listens");
        let started: Started = serde_json::from_str(&line).expect("an address");
        let (address, ticket) = started.url.split_once("/#token=").expect("an address with a token");
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Self { child, port, token: started.token, ticket: ticket.to_owned() }
    }

    /// Returns its process id.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("BUG: a process id is an i32")
    }

    /// Sends a signal, and waits for it to exit; returns its exit code.
    pub(crate) fn exit_after_signal(self, signal: Signal) -> Option<i32> {
        kill(Pid::from_raw(self.pid()), signal).expect("it can be signalled");
        self.wait_for_exit()
    }

    /// Waits for it to exit; returns its exit code.
    pub(crate) fn wait_for_exit(mut self) -> Option<i32> {
        self.child.wait().expect("it can be waited for").code()
    }

    /// Connects, with a timeout for reading.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream
    }

    /// Returns the head of a request with the token.
    pub(crate) fn request_head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let port = self.port;
        let token = &self.token;
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n{}",
            lines.concat()
        )
    }

    /// Sends a request with the token.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> HttpReply {
        self.raw(&format!("{}Connection: close\r\n\r\n", self.request_head(method, path, headers)))
    }

    /// Requests a path with the token.
    pub(crate) fn get(&self, path: &str) -> HttpReply {
        self.ask("GET", path, &[])
    }

    /// Requests a path that must exist and returns the body.
    #[track_caller]
    pub(crate) fn json<T: DeserializeOwned>(&self, path: &str) -> T {
        let reply = self.get(path);
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("application/json")),
            "{path}: {}",
            reply.text()
        );
        serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{path}: {error}: {}", reply.text()))
    }

    /// Sends bytes, and reads until the server closes the connection.
    pub(crate) fn raw(&self, request: &str) -> HttpReply {
        Self::send_request(self.connect(), request)
    }

    /// Sends bytes and nothing after them, and reads the reply.
    pub(crate) fn raw_and_close(&self, request: &str) -> HttpReply {
        let stream = self.connect();
        let twin = stream.try_clone().expect("a handle is free");
        (&twin).write_all(request.as_bytes()).expect("the system takes it");
        twin.shutdown(Shutdown::Write).expect("one side can be closed");
        Self::send_request(stream, "")
    }

    fn send_request(mut stream: TcpStream, request: &str) -> HttpReply {
        // A server that has rejected the request does not read the rest.
        let _ = stream.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        HttpReply::parse(&bytes)
    }

    /// Opens the stream of events.
    pub(crate) fn events(&self, query: &str, last: Option<&str>) -> EventReader {
        let headers: Vec<(&str, &str)> = last.iter().map(|id| ("Last-Event-ID", *id)).collect();
        let mut stream = self.connect();
        let head = self.request_head("GET", &format!("/events{query}"), &headers) + "\r\n";
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut events = EventReader { lines: BufReader::new(stream) };
        let status = events.line().expect("a status");
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        while events.line().is_some_and(|line| !line.is_empty()) {}
        events
    }
}

impl Drop for UiProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A reply.
#[derive(Debug)]
pub(crate) struct HttpReply {
    /// The status; 0 if there was no reply.
    pub(crate) status: u16,
    head: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpReply {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let head = head.split("\r\n").skip(1).filter_map(pair).collect();
        Self { status, head, body: bytes[(end + 4).min(bytes.len())..].to_vec() }
    }

    /// Returns a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the kind of the error in the reply.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        let error: Value = serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        error["error"]["code"].as_str().expect("an error").to_owned()
    }
}

/// One event of a stream.
#[derive(Debug, Default)]
pub(crate) struct ReceivedEvent {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// The stream of events.
pub(crate) struct EventReader {
    lines: BufReader<TcpStream>,
}

impl EventReader {
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).ok().filter(|count| *count > 0)?;
        Some(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Waits for the next event; `None` if the stream has ended.
    pub(crate) fn next_event(&mut self) -> Option<ReceivedEvent> {
        let mut event = ReceivedEvent::default();
        loop {
            let line = self.line()?;
            // Other lines are sizes of chunks, keep-alives, and empty.
            match line.split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut event.name),
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("data", data)) => data.clone_into(&mut event.data),
                _ if line.is_empty() && !event.name.is_empty() => return Some(event),
                _ => {}
            }
        }
    }

    /// Waits for an event with this name.
    #[track_caller]
    pub(crate) fn next_named(&mut self, name: &str) -> ReceivedEvent {
        loop {
            let event = self.next_event().unwrap_or_else(|| panic!("the stream ends before `{name}`"));
            if event.name == name {
                return event;
            }
        }
    }
}

/// A repository with a run, and a server that shows it; both stop before the home is checked.
pub(crate) struct UiStage {
    pub(crate) ui: Option<UiProcess>,
    pub(crate) daemon: Option<Daemon>,
    pub(crate) repo: Repo,
    pub(crate) home: Home,
}

impl UiStage {
    /// A root with a leaf `a`, and an idle daemon.
    pub(crate) fn new() -> Self {
        let home = Home::new();
        let repo = home.repo("one");
        repo.write(".runner/GOAL.md", "# Reach the goal\n");
        repo.commit_config(&repo.config().top("max_iterations = 1"));
        repo.commit_tree(&TaskTree { version: TREE_VERSION, root: node("root", vec![node("a", Vec::new())]) });
        let daemon = home.daemon();
        Self { ui: None, daemon: Some(daemon), repo, home }
    }

    /// One iteration that passes, shown by a server.
    pub(crate) fn with_played_run() -> Self {
        let mut stage = Self::new();
        stage.repo.script().always("printf 'says \\033[31mred\\033[0m\\n'; echo x > x; answer done 'It is done.'");
        stage.repo.script().guard_always("echo 'all tests pass'; exit 0");
        stage.home.run(&stage.repo, &["--id", RUN]).exits(0);
        stage.ui = Some(UiProcess::start(&stage.home, &[]));
        stage
    }

    /// Returns the server.
    pub(crate) fn ui(&self) -> &UiProcess {
        self.ui.as_ref().expect("a server runs")
    }
}

fn node(id: &str, children: Vec<Node>) -> Node {
    Node {
        id: id.to_owned(),
        order: 1,
        title: format!("Title of {id}"),
        goal: format!("Goal of {id}"),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children,
    }
}
