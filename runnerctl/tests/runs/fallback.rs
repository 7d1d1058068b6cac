//! Another kind of agent continues while the service of the first is unavailable, and the run returns to the first one.

use std::fs;

use protocol::view::RunView;
use protocol::words::RunStatus;

use crate::play::{ExpectedRow, RunPlay, node, sample};

const ACCEPTED: ExpectedRow = ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/9" };
const OUT: &str = "answer_json '{\"error\":{\"class\":\"unavailable\",\"message\":\"usage limit reached\"}}'";

/// Replaces the program of the kind `codex` with the scripted agent, which answers in its usual way.
const CODEX: &str = r#"#!/bin/sh
case $1 in --version) echo 'codex-cli 0.169.0'; exit;; esac
echo "$*" >> "$(dirname "$0")/codex.calls"
exec "$(dirname "$0")/agent-one"
"#;

/// A run of the kind `command` with the fallback `codex`.
fn play() -> RunPlay {
    let mut tree = sample();
    node(&mut tree, "b").max_attempts = 9;
    let play = RunPlay::with_tree(&tree, |config| config.executor("fallback = [\"codex\"]"));
    play.home.install("codex", CODEX);
    let login = play.home.path().join(".codex/auth.json");
    fs::create_dir_all(login.parent().expect("it has a folder")).expect("a folder can be made");
    fs::write(login, "{}").expect("a login can be written");
    play
}

fn calls(play: &RunPlay) -> usize {
    fs::read_to_string(play.home.path().join("bin/codex.calls")).map_or(0, |calls| calls.lines().count())
}

#[test]
fn run_continues_with_its_fallback_under_the_same_number_and_says_so() {
    let play = play();
    let gate = play.script().gate("second");
    play.script().step(1, OUT).step(2, "gate second; echo 1 > work; answer done 'Done by another.'");
    play.start_run();
    gate.wait_reached();
    let run = play.client().run(play.repo.path());
    assert_eq!((run.summary.state, run.iteration), (RunStatus::Running, 1));
    assert_eq!(run.phase.expect("it is live").agent.as_deref(), Some("codex"));
    assert_eq!(run.outages.len(), 1);
    assert_eq!(run.outages[0].agent, "command");
    let shown = play.home.ctl_in(&play.repo, &["status"]).stdout;
    assert!(shown.contains("agent codex") && shown.contains("usage limit reached"), "{shown}");
    play.script().always("answer done 'Done.'");
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Completed);
    let seen = play.iteration_at(1);
    seen.assert_row(&ACCEPTED);
    assert!(seen.receipt.trailer("Runner-Agent").is_some_and(|agent| agent.starts_with("codex")));
    assert!(play.has_record("0001.w1"), "what the first one said is kept");
    let list = play.home.ctl_in(&play.repo, &["log"]).stdout;
    let rows: Vec<&str> = list.lines().skip(1).take(2).collect();
    assert!(rows[0].starts_with("0001.w1  unavailable") && rows[0].contains("usage limit reached"), "{list}");
    assert!(rows[1].starts_with("0001     finished"), "{list}");
    let reply = play.home.ctl_in(&play.repo, &["log", "1.w1", "--json"]).json();
    assert_eq!(reply["meta"]["agent"].as_str(), Some("command"), "{reply}");
}

#[test]
fn who_is_out_is_known_to_the_next_daemon_and_is_asked_again_when_somebody_wants_it() {
    let mut play = play();
    let gate = play.script().gate("second");
    play.script().step(1, OUT).step(2, "gate second");
    play.start_run();
    gate.wait_reached();
    play.home.ctl_in(&play.repo, &["pause"]).exits(0);
    play.kill_and_restart();
    play.client().wait_for(play.repo.path(), RunStatus::Paused);
    assert_eq!(calls(&play), 1);
    let resume = |args: &[&str], sessions: usize| -> RunView {
        let gate = play.script().gate(&format!("next-{sessions}"));
        play.script().always(&format!("gate next-{sessions}; answer retry 'Nearly {sessions}.'"));
        play.home.ctl_in(&play.repo, args).exits(0);
        gate.wait_reached();
        let run = play.client().run(play.repo.path());
        assert_eq!(play.script().session_count(), sessions);
        play.home.ctl_in(&play.repo, &["pause"]).exits(0);
        gate.open();
        play.client().wait_for(play.repo.path(), RunStatus::Paused);
        run
    };
    let agent = |run: RunView| run.phase.and_then(|phase| phase.agent);
    assert_eq!(agent(resume(&["resume"], 3)).as_deref(), Some("codex"));
    assert_eq!(agent(resume(&["resume", "--now"], 4)).as_deref(), Some("command"));
    assert_eq!(agent(resume(&["resume"], 5)).as_deref(), Some("command"), "an answer ends an outage");
}

#[test]
fn run_waits_where_its_fallback_is_not_available_either() {
    let play = RunPlay::with_tree(&sample(), |config| config.executor("fallback = [\"command\"]"));
    play.script().always(OUT);
    play.start_run();
    let run = play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    assert_eq!(play.script().session_count(), 1, "a kind that names itself is asked once");
    assert!(run.wait_until.is_some());
    let shown = play.home.ctl_in(&play.repo, &["log", "--output"]).stdout;
    assert!(shown.contains("usage limit reached"), "the last try is shown where nothing is committed: {shown}");
}
