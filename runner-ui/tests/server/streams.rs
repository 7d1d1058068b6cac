//! The stream of events: new events arrive, missed ones are sent later, and the end of a daemon or of the server is
//! reported.

use std::io::{Read as _, Write as _};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use protocol::event::{Event, EventKind};
use protocol::view::StatusView;
use runner_testkit::{ServiceManager, binary};
use runner_ui::wire::{ErrorReply, Health, Notice};

use crate::kit::{RUN, UiProcess, UiStage};

fn add_answer(stage: &mut UiStage) {
    stage.repo.script().always("echo working; answer retry 'Not yet.'");
    stage.ui = Some(UiProcess::start(&stage.home, &[]));
}

fn start_run(stage: &UiStage) {
    stage.home.run(&stage.repo, &["--id", RUN]).exits(4);
}

#[test]
fn what_happens_comes_as_it_happens() {
    let mut stage = UiStage::new();
    // Output is not stored, and the server subscribes to it only once a page does: it is repeated until it is received.
    let script = stage.repo.script();
    script.always("until [ -e \"$kit/files/heard\" ]; do echo working; sleep 0.02; done; answer retry 'Not yet.'");
    stage.ui = Some(UiProcess::start(&stage.home, &[]));
    let mut events = stage.ui().events("?output=1", None);
    let hello: Health = serde_json::from_str(&events.next_event().expect("a first event").data).expect("health");
    assert!(hello.connected && !hello.from_records);
    let hears = || {
        assert!(events.next_named("phase_changed").id.is_some());
        let output = events.next_named("output");
        assert!(output.data.contains("working") && output.id.is_none());
        script.file("heard", "");
    };
    stage.home.run_while(&stage.repo, &["--id", RUN], hears).exits(4);
    let ended: Event = serde_json::from_str(&events.next_named("iteration_added").data).expect("an event");
    assert!(matches!(ended.kind, EventKind::Iteration { .. }) && ended.iter == Some(1));
    let over: Event = serde_json::from_str(&events.next_named("run_state_changed").data).expect("an event");
    assert!(matches!(over.kind, EventKind::RunState { .. }));
}

#[test]
fn a_page_that_comes_back_gets_what_it_missed_and_no_more() {
    let mut stage = UiStage::new();
    add_answer(&mut stage);
    let mut events = stage.ui().events("", None);
    let place = events.next_event().expect("a first event").id.expect("a place");
    start_run(&stage);
    let mut seen = Vec::new();
    while seen.last() != Some(&"iteration_added".to_owned()) {
        seen.push(events.next_event().expect("an event").name);
    }
    let mut again = stage.ui().events("", Some(&place));
    assert_eq!(again.next_event().map(|hello| hello.name), Some("hello".into()));
    for name in &seen {
        assert_eq!(again.next_event().map(|event| event.name).as_ref(), Some(name));
    }
    let elsewhere: StatusView = stage.ui().json("/api/run-state");
    let mut other = stage.ui().events(&format!("?repo={}", "0".repeat(elsewhere.repo.id.len())), Some(&place));
    assert_eq!(other.next_event().map(|hello| hello.name), Some("hello".into()));
    stage.daemon.take().expect("a daemon runs").stop();
    let next = other.next_event().expect("an event").name;
    assert_eq!(next, "daemon_stopping", "what another repository does is left out");
}

#[test]
fn an_unknown_place_in_the_stream_makes_the_page_read_again() {
    let stage = UiStage::with_played_run();
    for id in ["", "x", "1-1", "0-0", "99999999999999999999-1", "1-99999999999999999999", "1795358295745-99999"] {
        let mut events = stage.ui().events("", Some(id));
        assert_eq!(events.next_event().map(|hello| hello.name), Some("hello".into()));
        let lost = events.next_event().expect("an event");
        assert_eq!(lost.name, "resync", "{id}");
        assert!(lost.id.is_some_and(|now| now != id));
    }
}

#[test]
fn a_daemon_that_dies_and_comes_back_is_told_of() {
    let mut stage = UiStage::with_played_run();
    let mut events = stage.ui().events("", None);
    let place = events.next_event().expect("a first event").id.expect("a place");
    stage.daemon.take().expect("a daemon runs").kill();
    let gone: Notice = serde_json::from_str(&events.next_named("daemon_gone").data).expect("a notice");
    let reply = stage.ui().get("/api/repos");
    let error: ErrorReply = serde_json::from_slice(&reply.body).expect("an error");
    assert_eq!((reply.status, error.error.code.as_str()), (503, "daemon_away"));
    assert!(error.error.as_of.is_some_and(|as_of| as_of <= gone.time));
    let health: Health = stage.ui().json("/api/health");
    assert!(!health.connected && health.as_of == error.error.as_of);
    stage.daemon = Some(stage.home.daemon());
    events.next_named("daemon_back");
    assert!(stage.ui().json::<Health>("/api/health").connected);
    assert_eq!(stage.ui().get("/api/tree").status, 200);
    let mut late = stage.ui().events("", Some(&place));
    assert_eq!(late.next_named("resync").name, "resync", "numbers of another life mean nothing");
}

#[test]
fn a_daemon_that_ends_in_order_is_waited_for_and_without_a_successor_ends_all() {
    let mut stage = UiStage::with_played_run();
    let mut events = stage.ui().events("", None);
    let stop = |stage: &mut UiStage| {
        stage.home.ctl(&["daemon", "stop"]).exits(0);
        stage.daemon.take().expect("a daemon runs").stop();
    };
    stop(&mut stage);
    events.next_named("daemon_gone");
    stage.daemon = Some(stage.home.daemon());
    events.next_named("daemon_back");
    stop(&mut stage);
    while events.next_event().is_some() {}
    assert_eq!(stage.ui.take().expect("a server runs").wait_for_exit(), Some(0));
}

#[test]
fn a_daemon_that_a_signal_ends_says_so_and_ends_all() {
    let mut stage = UiStage::with_played_run();
    let mut events = stage.ui().events("", None);
    assert!(stage.daemon.take().expect("a daemon runs").stop().success());
    events.next_named("daemon_stopping");
    while events.next_event().is_some() {}
    assert_eq!(stage.ui.take().expect("a server runs").wait_for_exit(), Some(0));
}

#[test]
fn a_daemon_that_is_started_by_asking_is_not_asked_for_after_its_end() {
    let mut stage = UiStage::with_played_run();
    drop(stage.ui.take());
    stage.daemon.take().expect("a daemon runs").stop();
    let manager = ServiceManager::new(&stage.home);
    let daemon = manager.start(&binary("runnerd"), Duration::from_mins(1));
    let ui = UiProcess::start(&stage.home, &[]);
    daemon.stop();
    assert_eq!(ui.wait_for_exit(), Some(0));
    assert!(!manager.has_connection(), "a connection waits for another daemon");
}

#[test]
fn a_signal_ends_the_server_and_every_open_stream() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut stage = UiStage::with_played_run();
        let mut streams: Vec<_> = (0..3).map(|_| stage.ui().events("?output=1", None)).collect();
        let half = stage.ui().connect();
        (&half).write_all(b"GET / HTTP/1.1\r\n").expect("it reads");
        let server = stage.ui.take().expect("a server runs");
        assert_eq!(server.exit_after_signal(signal), Some(0), "{signal}");
        for events in &mut streams {
            while events.next_event().is_some() {}
        }
    }
}

#[test]
fn the_server_and_its_streams_end_with_its_parent() {
    let mut stage = UiStage::with_played_run();
    let mut events = stage.ui().events("", None);
    drop(stage.ui.take());
    while events.next_event().is_some() {}
}

#[test]
fn a_thousand_reconnects_leave_nothing_behind() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let handles = || std::fs::read_dir(format!("/proc/{}/fd", ui.pid())).expect("its handles").count();
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", ui.pid())).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    let reconnect = || drop(ui.events("?output=1", None).next_event().expect("a first event"));
    (0..100).for_each(|_| reconnect());
    let before = (handles(), memory());
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| (0..250).for_each(|_| reconnect())))));
    // The last ones are closed once their end was noticed: a later reply shows that, and so does a free place.
    while handles() > before.0 + 4 {
        assert_eq!(ui.get("/api/health").status, 200);
    }
    let grown = memory().saturating_sub(before.1);
    assert!(grown < 4 * 1024, "{grown} kB more than before");
}

#[test]
fn a_page_that_reads_nothing_holds_up_nobody() {
    let mut stage = UiStage::new();
    stage
        .repo
        .script()
        .always("i=0; while [ $i -lt 20000 ]; do echo \"line $i of a long log\"; i=$((i+1)); done; answer retry 'x'");
    stage.ui = Some(UiProcess::start(&stage.home, &[]));
    let mut idle = stage.ui().connect();
    idle.write_all((stage.ui().request_head("GET", "/events?output=1", &[]) + "\r\n").as_bytes()).expect("it reads");
    idle.read_exact(&mut [0; 12]).expect("a status");
    let mut events = stage.ui().events("", None);
    start_run(&stage);
    events.next_named("iteration_added");
    assert_eq!(stage.ui().get("/api/tree").status, 200);
}
