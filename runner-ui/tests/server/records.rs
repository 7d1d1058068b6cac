//! Without a daemon: the server shows the files of a work tree, and no file outside of it.

use std::fs;
use std::os::unix::fs::symlink;

use protocol::reply::{IterationReply, MemoryReply, TreeReply};
use protocol::view::{IterationView, StatusView};
use protocol::words::{RunStatus, VerdictName};
use runner_ui::wire::Health;

use crate::kit::{RUN, UiProcess, UiStage};

/// A finished run, and no daemon that knows of it.
fn stage_with_records() -> UiStage {
    let mut stage = UiStage::with_played_run();
    stage.ui = None;
    stage.daemon.take().expect("a daemon runs").stop();
    stage.ui = Some(UiProcess::start(&stage.home, &[&stage.repo.path().join(".runner").display().to_string()]));
    stage
}

#[test]
fn the_records_tell_what_was_done() {
    let stage = stage_with_records();
    let ui = stage.ui();
    let health: Health = ui.json("/api/health");
    assert!(health.from_records && !health.connected && health.only.is_some());
    let [status] = &ui.json::<Vec<StatusView>>("/api/repos")[..] else { panic!("one repository") };
    let run = status.run.as_ref().expect("a run");
    assert_eq!((run.summary.id.as_str(), run.summary.state, run.leaves_passed), (RUN, RunStatus::Completed, 1));
    assert!(ui.json::<TreeReply>("/api/tree").tree.root.passes);
    let [view] = &ui.json::<Vec<IterationView>>("/api/iterations")[..] else { panic!("one iteration") };
    assert_eq!((view.iter, view.verdict), (1, VerdictName::Accepted));
    assert!(ui.json::<IterationReply>("/api/iterations/se/1").meta.is_some());
    assert!(ui.json::<MemoryReply>("/api/memory").files.iter().any(|file| file.name == "GOAL.md"));
    let log = ui.ask("GET", "/api/iterations/seen/1/guard.log", &[("Range", "bytes=0-2")]);
    assert_eq!((log.status, log.text()), (206, "all".into()));
    assert_eq!(log.header("x-runner-complete"), Some("true"));
    assert_eq!((ui.get("/api/config").status, ui.get("/api/iterations/seen/1/activity").status), (404, 404));
    assert_eq!(ui.get("/api/iterations/seen/2").code(), "not_found");
    let mut events = ui.events("", None);
    assert!(events.next_event().expect("a first event").data.contains("\"static\":true"));
}

#[test]
fn a_daemon_that_comes_up_later_is_asked_from_then_on() {
    let mut stage = stage_with_records();
    let mut events = stage.ui().events("", None);
    stage.daemon = Some(stage.home.daemon());
    events.next_named("daemon_back");
    assert!(stage.ui().json::<Health>("/api/health").connected);
    assert_eq!(stage.ui().get("/api/config").status, 200);
}

#[test]
fn no_link_that_an_agent_has_left_leads_to_another_file() {
    let stage = stage_with_records();
    let secret = stage.home.path().join("secret.txt");
    fs::write(&secret, "nobody may read this").expect("a secret");
    let folder = stage.repo.path().join(".runner/iterations");
    let record = folder.join(RUN).join("0001");
    fs::remove_file(record.join("guard.log")).expect("it is there");
    symlink(&secret, record.join("guard.log")).expect("a link");
    fs::create_dir(stage.home.path().join("elsewhere")).expect("a folder");
    fs::write(stage.home.path().join("elsewhere/guard.log"), "nobody may read this").expect("a secret");
    symlink(stage.home.path().join("elsewhere"), folder.join(RUN).join("0002")).expect("a link");
    symlink(stage.home.path(), folder.join("out")).expect("a link");
    for path in ["seen/1/guard.log", "seen/2/guard.log", "out/1/guard.log"] {
        let reply = stage.ui().get(&format!("/api/iterations/{path}"));
        assert_eq!(reply.code(), "not_found", "{path}");
    }
    fs::remove_file(stage.repo.path().join(".runner/state/assumptions.md")).expect("it is there");
    symlink(&secret, stage.repo.path().join(".runner/state/assumptions.md")).expect("a link");
    assert!(!stage.ui().get("/api/memory").text().contains("nobody may"));
}

#[test]
fn a_file_that_is_broken_is_told_and_breaks_nothing_else() {
    let stage = stage_with_records();
    stage.repo.write(".runner/state/tree.json", "{\"version\": 1");
    let reply = stage.ui().get("/api/tree");
    assert_eq!((reply.status, reply.code().as_str()), (409, "invalid_file"));
    let [status] = &stage.ui().json::<Vec<StatusView>>("/api/repos")[..] else { panic!("one repository") };
    assert!(status.repo.held.as_ref().is_some_and(|held| held.message.contains("tree.json")));
    assert_eq!(stage.ui().get("/api/iterations").status, 200);
}

#[test]
fn a_path_without_records_and_without_a_daemon_is_refused_at_once() {
    let mut stage = UiStage::new();
    stage.daemon.take().expect("a daemon runs").stop();
    let bare = stage.home.repo("bare");
    let program = runner_testkit::binary("runner-ui");
    let output = stage.home.run_program(&program, &[&bare.path().display().to_string()]);
    assert_eq!(output.exits(1).stdout, "");
    assert!(output.stderr.starts_with("error: no daemon answers"), "{}", output.stderr);
}
