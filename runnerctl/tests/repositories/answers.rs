//! The output of every command as JSON: one object, with its format version and unchanged keys.

use std::fmt::Write as _;

use protocol::words::RunStatus;
use runner_testkit::Home;
use serde_json::Value;

use crate::place::RepoPlace;

/// Returns the keys of an object, in order, joined.
fn keys(value: &Value) -> String {
    let keys: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.join(" ")
}

#[test]
fn every_command_answers_with_one_object_that_names_its_form() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.script().step(1, "decompose 'Two parts.' One Two");
    repo.script().always("echo x >> work.txt; answer done 'Done.'");
    let place = RepoPlace::of_repo(&home, &repo);
    let commands: &[(&[&str], i32)] = &[
        (&["init"], 0),
        (&["start", "-m", "Do it.", "--id", "mine", "--queue-only"], 0),
        (&["step"], 0),
        (&["tree"], 0),
        (&["select"], 0),
        (&["explain"], 0),
        (&["validate"], 0),
        (&["status"], 0),
        (&["queue"], 0),
        (&["repos"], 0),
        (&["log"], 0),
        (&["log", "1"], 0),
        (&["config", "get", "max_iterations"], 0),
        (&["config", "set", "stall_after", "6"], 0),
        (&["config", "show"], 0),
        (&["config", "path"], 0),
        (&["daemon", "status"], 0),
        (&["start", "--id", "late", "-m", "x", "--queue-only"], 0),
        (&["cancel", "--run", "late"], 0),
        (&["resume"], 0),
        (&["help", "exit-codes"], 0),
    ];
    let mut story = String::new();
    let mut ask = |args: &[&str], code: i32| {
        let output = place.ctl(&[args, &["--json"]].concat()).assert_exits(code);
        let value = output.json();
        let schema = value["schema"].as_str().unwrap_or("none").to_owned();
        writeln!(story, "{:<12} {schema}: {}", args[0], keys(&value)).expect("a String takes everything");
        assert_eq!(output.facts().lines().count(), 1, "{args:?}: {}", output.facts());
    };
    for &(args, code) in commands {
        ask(args, code);
    }
    home.client().wait_for(repo.path(), RunStatus::Completed);
    ask(&["status", "--run", "mine"], 0);
    insta::assert_snapshot!(story);
}

#[test]
fn errors_are_objects_with_kind_message_and_hint() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    let place = RepoPlace::of_repo(&home, &repo);
    let mut story = String::new();
    for args in [
        &["step"][..],
        &["pause"],
        &["resume"],
        &["cancel"],
        &["log", "7"],
        &["status", "--run", "none"],
        &["config", "get", "no.such.key"],
        &["frobnicate"],
        &["start", "--goal", "no-such-file.md"],
    ] {
        let output = place.ctl(&[args, &["--json"]].concat());
        let error = output.error();
        assert_eq!(output.facts(), "", "{args:?}");
        let [kind, message, hint] = ["kind", "message", "hint"].map(|key| &error[key]);
        writeln!(story, "{args:?}: {kind} | {message} | {hint}").expect("a String takes everything");
    }
    insta::with_settings!({filters => vec![(home.path().to_str().expect("UTF-8"), "HOME")]}, {
        insta::assert_snapshot!(story);
    });
}

#[test]
fn without_a_daemon_every_command_says_how_to_start_one() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    let error = RepoPlace::of_repo(&home, &repo).ctl(&["status", "--json"]).assert_exits(5).error();
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("runnerctl")), "{error}");
}
