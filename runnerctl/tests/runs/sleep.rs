//! The machine is kept awake while a run is active, by a system program that exits with the daemon.

use std::fs;

use protocol::words::RunStatus;
use runner_testkit::Home;

use crate::play::{RunPlay, sample};

/// Replaces `systemd-inhibit`: reports when it starts, runs the command after its options, and reports when that has
/// exited.
const INHIBIT: &str = r#"#!/bin/sh
gates=$(dirname "$0")/../scripts/one/gates
echo "$*" > "$gates/arguments"
echo 1<> "$gates/held.in"
while [ "${1#--}" != "$1" ]; do shift; done
"$@"
echo 1<> "$gates/freed.in"
"#;

/// A daemon that keeps the machine awake.
fn awake_play() -> RunPlay {
    RunPlay::in_home(Home::new().inhibit_sleep(), &sample(), |config| config.top("max_iterations = 1"))
}

fn sleep_view(play: &RunPlay) -> serde_json::Value {
    play.home.ctl_in(&play.repo, &["daemon", "status", "--json"]).json()["sleep"].clone()
}

#[test]
fn machine_is_kept_awake_while_a_run_is_active_and_no_longer() {
    let play = awake_play();
    play.home.install("systemd-inhibit", INHIBIT);
    let [held, freed, gate] = ["held", "freed", "working"].map(|name| play.script().gate(name));
    play.script().step(1, "gate working; answer done 'Done.'");
    assert_eq!(sleep_view(&play)["why"].as_str(), Some("no run is active"));
    play.start_run();
    gate.wait_reached();
    held.wait_reached();
    let seen = sleep_view(&play);
    assert_eq!(seen["inhibited"].as_bool(), Some(true), "{seen}");
    let arguments =
        fs::read_to_string(play.script().folder().join("gates/arguments")).expect("it says how it was called");
    assert!(arguments.starts_with("--what=idle:sleep --who=runnerd --why="), "{arguments}");
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    freed.wait_reached();
}

#[test]
fn machine_may_sleep_when_the_daemon_was_killed() {
    let mut play = awake_play();
    play.home.install("systemd-inhibit", INHIBIT);
    let [held, freed, gate] = ["held", "freed", "working"].map(|name| play.script().gate(name));
    play.script().step(1, "gate working");
    play.start_run();
    gate.wait_reached();
    held.wait_reached();
    play.kill();
    freed.wait_reached();
}

#[test]
fn machine_is_kept_awake_through_a_wait() {
    let play = awake_play();
    play.home.install("systemd-inhibit", INHIBIT);
    let [held, freed] = ["held", "freed"].map(|name| play.script().gate(name));
    play.script().step(1, "answer_json '{\"error\":{\"class\":\"unavailable\",\"message\":\"overloaded\"}}'");
    play.start_run();
    held.wait_reached();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    let seen = sleep_view(&play);
    assert_eq!(seen["inhibited"].as_bool(), Some(true), "{seen}");
    play.home.ctl_in(&play.repo, &["pause"]).exits(0);
    freed.wait_reached();
}

#[test]
fn refusal_of_the_system_is_shown_and_stops_nothing() {
    let play = awake_play();
    play.home.install(
        "systemd-inhibit",
        "#!/bin/sh\necho 'Failed to inhibit: Access denied' >&2\necho 1<> \"$(dirname \"$0\")/../scripts/one/gates/held.in\"\nexit 1\n",
    );
    let [held, gate] = ["held", "working"].map(|name| play.script().gate(name));
    play.script().step(1, "gate working; answer done 'Done.'");
    play.start_run();
    gate.wait_reached();
    held.wait_reached();
    play.home.ctl_in(&play.repo, &["status"]).exits(0);
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    assert_eq!(sleep_view(&play)["inhibited"].as_bool(), Some(false));
}
