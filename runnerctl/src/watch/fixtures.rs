//! A model for tests, filled with typical messages of a daemon.

use std::path::Path;

use jiff::Timestamp;
use protocol::event::{Activity, ActivityKind, Event, EventKind};
use protocol::reply::TreeReply;
use protocol::request::LogStream;
use protocol::tree::{Node, TREE_VERSION, TaskTree};
use protocol::view::{RepoView, StatusView, TextView};
use protocol::words::{PhaseName, RunStatus};

use super::capabilities::TermCapabilities;
use super::message::{Key, LogPosition, Message, Request};
use super::model::{Focus, Model};
use crate::text::samples;

/// Id of the first repository.
pub(super) const REPO: &str = "9f86d081";

pub(super) fn fixed_now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

/// The state of a running repository, of a stuck one, and of one without a run.
pub(super) fn sample_statuses() -> Vec<StatusView> {
    let repo = |id: &str, name: &str| RepoView {
        id: id.into(),
        path: Path::new("/home/me").join(name).as_path().into(),
        queue: Vec::new(),
        ..samples::repo()
    };
    let mut stuck = samples::stuck();
    stuck.summary.path = Path::new("/home/me/site").into();
    vec![
        samples::status(),
        StatusView { repo: repo("b2", "site"), run: Some(stuck), isolated: Vec::new(), on_run: None },
        StatusView { repo: repo("c3", "tools"), run: None, isolated: Vec::new(), on_run: None },
    ]
}

fn sample_node(id: &str, title: &str, children: Vec<Node>) -> Node {
    Node {
        id: id.into(),
        order: 1,
        title: title.into(),
        goal: String::new(),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children,
    }
}

/// A tree with a branch that passes, a live leaf and one without attempts left.
pub(super) fn sample_tree() -> TreeReply {
    let passed = |id, title| Node { passes: true, ..sample_node(id, title, Vec::new()) };
    let model = Node {
        passes: true,
        ..sample_node("model", "The data", vec![passed("model.a", "Types"), passed("model.b", "Storage")])
    };
    let lex = Node { attempts: 1, ..sample_node("parser.lex", "Cut the text into tokens", Vec::new()) };
    let parser = vec![passed("parser.ast", "The syntax tree"), lex, sample_node("parser.err", "Errors", Vec::new())];
    let cli = Node { attempts: 3, ..sample_node("cli", "The command line", Vec::new()) };
    let root = sample_node("root", "A calculator", vec![model, sample_node("parser", "The parser", parser), cli]);
    TreeReply {
        tree: TaskTree { version: TREE_VERSION, root },
        current: Some("parser.lex".into()),
        state: Some(RunStatus::Running),
        digest: String::new(),
    }
}

pub(super) fn event_message(second: u32, kind: EventKind) -> Message {
    let time = format!("2026-01-01T11:59:{second:02}Z").parse().expect("a time");
    Message::Event(Box::new(Event {
        seq: 1,
        time,
        repo: Some(REPO.into()),
        run: Some("run-1a2b3c4d".into()),
        iter: Some(4),
        kind,
    }))
}

pub(super) fn step_message(what: ActivityKind, text: &str) -> Message {
    event_message(50, EventKind::Activity(Activity { what, text: text.into() }))
}

pub(super) fn phase_message(second: u32, phase: PhaseName) -> Message {
    event_message(second, EventKind::Phase { phase, node: Some("parser.lex".into()) })
}

/// Answers every request that only reads, and returns those that steer.
pub(super) fn answer_reads(model: &mut Model, requests: Vec<Request>) -> Vec<Request> {
    let mut unanswered = Vec::new();
    for request in requests {
        let message = match request {
            Request::Statuses => Message::Statuses(Ok(sample_statuses())),
            Request::Tree(target) => Message::Tree(target, Ok(Box::new(sample_tree()))),
            Request::Iterations(target) => {
                Message::Iterations(target, Ok(samples::run().recent.into_iter().rev().collect()))
            }
            Request::LogChunk(place) => Message::LogChunk(place.clone(), Ok(sample_chunk(&place))),
            request => {
                unanswered.push(request);
                continue;
            }
        };
        let more = model.update(fixed_now(), message);
        unanswered.extend(answer_reads(model, more));
    }
    unanswered
}

fn sample_chunk(position: &LogPosition) -> TextView {
    let text = match position.key.stream {
        LogStream::Guard => "running 3 tests\ntest numbers ... ok\ntest strings ... FAILED\n",
        _ => "{\"type\":\"item.started\"}\n",
    };
    let is_new = position.offset == 0;
    TextView {
        text: if is_new { text.into() } else { String::new() },
        next_offset: text.len() as u64,
        complete: false,
        size: None,
    }
}

/// A model that has received everything, and shows the panes of a repository.
pub(super) fn populated_model(look: TermCapabilities, size: (u16, u16)) -> Model {
    let mut model = Model::new(look, size, Some(REPO.into()));
    let requests = model.update(fixed_now(), Message::Connected);
    answer_reads(&mut model, requests);
    model.focus = Focus::Tree;
    for message in [
        phase_message(48, PhaseName::Open),
        phase_message(48, PhaseName::Brief),
        phase_message(49, PhaseName::Work),
        step_message(ActivityKind::Reasoning, "Numbers may have a sign."),
        step_message(ActivityKind::Message, "I add a state for signs."),
        step_message(ActivityKind::FileChange, "src/lex.rs"),
        step_message(ActivityKind::Tool, "cargo test"),
        step_message(ActivityKind::ToolResult, "exit 0: 3 passed"),
        phase_message(57, PhaseName::Inspect),
        phase_message(58, PhaseName::Guard),
    ] {
        let requests = model.update(fixed_now(), message);
        answer_reads(&mut model, requests);
    }
    model
}

/// Presses keys and returns the resulting commands, except those that only read.
pub(super) fn press_keys(model: &mut Model, keys: &[Key]) -> Vec<Request> {
    let mut unanswered = Vec::new();
    for key in keys {
        let requests = model.update(fixed_now(), Message::Key(*key));
        unanswered.extend(answer_reads(model, requests));
    }
    unanswered
}
