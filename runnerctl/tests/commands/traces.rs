//! `export otlp`: what a collector receives, and the errors if it is down or refuses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use runner_testkit::{Home, PATIENCE, Repo};

/// A collector that gives the same response to every request.
struct FakeCollector {
    url: String,
    taken: Receiver<(String, Vec<Span>)>,
}

impl FakeCollector {
    fn new(answer: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (tell, taken) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
                let mut head = String::new();
                let mut line = String::new();
                while reader.read_line(&mut line).expect("a line") > 2 {
                    head += &std::mem::take(&mut line);
                }
                let length =
                    head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.expect("a length")];
                reader.read_exact(&mut body).expect("a body");
                let request = ExportTraceServiceRequest::decode(body.as_slice()).expect("traces");
                let scopes = request.resource_spans.into_iter().flat_map(|of| of.scope_spans);
                write!(stream, "HTTP/1.1 {answer}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                    .expect("it reads");
                if tell.send((head, scopes.flat_map(|of| of.spans).collect())).is_err() {
                    return;
                }
            }
        });
        Self { url, taken }
    }

    fn next_request(&self) -> (String, Vec<Span>) {
        self.taken.recv_timeout(PATIENCE).expect("traces come")
    }
}

/// A client that sends whatever has ended.
struct ExportWatch {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl ExportWatch {
    fn start(home: &Home, repo: &Repo, collector: &FakeCollector) -> Self {
        let mut command = home.ctl_command(repo, &["export", "otlp", &collector.url, "--watch"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the command can be started");
        let said = BufReader::new(child.stderr.take().expect("BUG: it is a pipe"));
        let mut watch = Self { child, said };
        let line = watch.line();
        assert!(line.starts_with("Sending what ends from now on"), "{line}");
        watch
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("a line");
        line
    }

    fn interrupt(&mut self) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), Signal::SIGINT).expect("it runs");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(130));
    }
}

fn started_repo(home: &Home) -> Repo {
    let repo = home.scripted_repo("one");
    repo.commit_config(&repo.config().top("max_attempts_default = 9"));
    repo.script().always("answer retry \"Not yet, $n.\"");
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it.", "--id", "told", "--queue-only"]).exits(0);
    home.ctl_in(&repo, &["step"]).exits(0);
    repo
}

#[test]
fn a_collector_gets_what_there_is_and_then_what_ends() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = started_repo(&home);
    let collector = FakeCollector::new("200 OK");
    let env = [("OTEL_EXPORTER_OTLP_HEADERS", "x-login=a%20b")];
    let sent = home.ctl_with(&repo, &["export", "otlp", &collector.url, "told", "--json"], &env).exits(0).json();
    let (head, spans) = collector.next_request();
    assert!(head.starts_with("POST /v1/traces ") && head.contains("x-login: a b\r\n"), "{head}");
    assert_eq!((&sent["iterations"], &sent["spans"]), (&1.into(), &spans.len().into()));
    assert!(spans.iter().any(|span| span.name == "work" && span.parent_span_id == spans[0].span_id), "{spans:?}");

    let mut watch = ExportWatch::start(&home, &repo, &collector);
    home.ctl_in(&repo, &["step"]).exits(0);
    let (_, second) = collector.next_request();
    assert!(second[0].name == "iteration" && second[0].trace_id != spans[0].trace_id, "{second:?}");
    watch.interrupt();
}

#[test]
fn what_a_collector_refuses_is_left_out_and_what_it_has_no_time_for_is_sent_again() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = started_repo(&home);
    for (answer, is_again) in [("400 Bad Request", false), ("503 Service Unavailable", true)] {
        let collector = FakeCollector::new(answer);
        let mut watch = ExportWatch::start(&home, &repo, &collector);
        let step_trace_id = || {
            home.ctl_in(&repo, &["step"]).exits(0);
            collector.next_request().1[0].trace_id.clone()
        };
        let first = step_trace_id();
        let second = step_trace_id();
        assert_eq!(first == second, is_again, "{answer}");
        assert!(watch.line().contains(answer));
        watch.interrupt();
    }
}

#[test]
fn a_collector_that_is_away_or_refuses_is_told() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = started_repo(&home);
    let refuses = FakeCollector::new("401 Unauthorized");
    let output = home.ctl_in(&repo, &["export", "otlp", &refuses.url]);
    assert!(output.exits(1).stderr.contains("caused by: it answered 401 Unauthorized"), "{}", output.stderr);
    drop(refuses);
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let output = home.ctl_in(&repo, &["export", "otlp", &format!("http://{}", closed.expect("a port"))]);
    assert!(output.exits(1).stderr.contains("refused") && output.stderr.contains("4318"), "{}", output.stderr);
    home.ctl_in(&repo, &["export", "otlp", "https://collector.example.org"]).exits(2);
}
