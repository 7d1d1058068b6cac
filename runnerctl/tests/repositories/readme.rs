//! The first run of the README, typed as it stands there.

use std::fs;
use std::path::Path;

use runner_testkit::{Home, binary};

use crate::place::Place;

/// Returns the block of the README that is marked `first-run`.
fn first_run() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = fs::read_to_string(&readme).expect("the README can be read");
    let (_, after) = text.split_once("```sh first-run\n").expect("the README has a first run");
    after.split_once("```").expect("the block ends").0.to_owned()
}

#[test]
fn the_first_run_of_the_readme_completes_after_one_red_guard() {
    let home = Home::new();
    let daemon = home.daemon();
    let place = Place::folder(&home, b"typed");
    let programs = binary("runnerctl");
    let folder = programs.parent().expect("the program is in a folder").display();
    let path = home.env().iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()).expect("a PATH");
    let mut shell = place.command("sh");
    let output = shell.args(["-euc", &first_run()]).env("PATH", format!("{folder}:{path}")).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("completed on branch runner/run-"), "{said}");
    let greeter = place.at("greeter");
    let log = greeter.git(&["log", "--format=%s", "--reverse", "main.."]);
    let ends: Vec<&str> = log.lines().filter_map(|line| line.split_once("status=")).map(|(_, end)| end).collect();
    assert_eq!(ends, ["done guard=fail", "done guard=pass"], "{log}");
    assert_eq!(fs::read_to_string(greeter.path.join("greeting.txt")).expect("it is there"), "Hello, world\n");
    greeter.assert_sound();
    drop(daemon);
}
