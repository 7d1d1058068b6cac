//! A repository in which nothing was started yet: what commands answer, and the settings that are detected.

use runner_testkit::{Home, Tty};

/// Commands about a run, which have nothing to be about.
const ABOUT_A_RUN: [&[&str]; 14] = [
    &["status"],
    &["queue"],
    &["log"],
    &["log", "7"],
    &["tree"],
    &["select"],
    &["explain"],
    &["verify"],
    &["deliver"],
    &["bisect", "--", "true"],
    &["pause"],
    &["resume"],
    &["note", "hi"],
    &["path"],
];

#[test]
fn every_command_about_a_run_says_that_there_is_none_and_how_to_start_one() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    for args in ABOUT_A_RUN {
        let said = home.ctl_in(&repo, args);
        said.exits(1);
        assert!(said.stderr.starts_with("error: no run here yet: "), "{args:?}: {}", said.stderr);
        assert!(said.stderr.contains("hint: runnerctl start -m "), "{args:?}: {}", said.stderr);
    }
    let said = home.ctl_in(&repo, &["land"]);
    said.exits(1);
    assert!(said.stderr.contains("no run here yet"), "{}", said.stderr);
}

#[test]
fn a_run_that_has_not_begun_is_told_from_one_that_is_not_there() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--queue-only", "--id", "tidy", "-m", "Tidy."]).exits(0);
    assert_eq!(home.ctl_in(&repo, &["log"]).exits(0).stdout, "No iteration has ended yet.\n");
    let told = |args: &[&str], message: &str| {
        let said = home.ctl_in(&repo, args);
        said.exits(1);
        assert!(said.stderr.contains(message), "{args:?}: {}", said.stderr);
    };
    told(&["log", "1"], "run tidy has not begun its first iteration");
    told(&["log", "--run", "port"], "there is no run port in ");
    told(&["tree", "--run", "tidy"], "run tidy has not made its first commit yet");
    told(&["land", "tidy"], "run tidy has not made its first commit yet");
}

#[test]
fn a_detected_guard_is_taken_only_if_the_user_agrees() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.write("Cargo.toml", "[package]\n").commit("Begin");
    let _daemon = home.daemon();
    let refused = home.ctl_in(&repo, &["init"]);
    refused.exits(6);
    assert!(refused.stderr.contains("guard.command = [\"cargo\", \"test\"]"), "{}", refused.stderr);
    assert!(refused.stderr.contains(" init --yes; others:"), "{}", refused.stderr);
    let start = home.ctl_in(&repo, &["start", "-m", "Do it."]);
    start.exits(6);
    assert!(start.stderr.contains(" start -m 'Do it.' --yes"), "{}", start.stderr);
    assert!(!repo.path().join(".runner").exists());
    let mut tty = Tty::start(&home.ctl_command(&repo, &["init"]), (100, 30));
    tty.wait_for_text("Take these settings? [y/N]");
    tty.keys("y\r");
    assert_eq!(tty.wait_exit(), 0);
    assert!(repo.read(".runner/state/config.toml").contains("\ncommand = [\"cargo\", \"test\"]\n"));
    home.ctl_in(&repo, &["init"]).exits(0);
}

#[test]
fn a_detected_guard_whose_program_is_missing_says_so() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.write("package.json", r#"{"scripts": {"test": "vitest"}}"#).write("pnpm-lock.yaml", "").commit("Begin");
    let _daemon = home.daemon();
    let detect = || home.ctl_in(&repo, &["init"]).exits(6).stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing = "has the script `test`; pnpm is not installed: install it";
    let detected = detect();
    assert!(detected.contains(missing), "{detected}");
    home.install("pnpm", "#!/bin/sh\n");
    let detected = detect();
    assert!(detected.contains("\"pnpm\"") && !detected.contains("is not installed: install it"), "{detected}");
}

#[test]
fn where_no_guard_is_detected_what_the_ci_runs_is_a_hint() {
    let home = Home::new();
    let repo = home.repo("one");
    let workflow = "on: push\njobs:\n  t:\n    steps:\n      - run: |\n          ./run-tests.sh --all\n";
    repo.write(".github/workflows/ci.yml", workflow).commit("Begin");
    let _daemon = home.daemon();
    let command = "runnerctl config set guard.command ./run-tests.sh --all\n";
    let doctor = home.ctl_in(&repo, &["doctor"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(doctor.contains(command.trim_end()), "{doctor}");
    let output = home.ctl_in(&repo, &["init", "--yes"]);
    assert!(output.exits(0).stderr.contains(command), "{}", output.stderr);
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    home.ctl_in(&repo, &words).exits(0);
    let value = home.ctl_in(&repo, &["config", "get", "guard.command"]).exits(0).stdout.clone();
    assert_eq!(value, "[\"./run-tests.sh\",\"--all\"]\n");
}

#[test]
fn a_command_in_the_configuration_is_set_by_its_words() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["config", "set", "guard.command", "cargo", "test", "--quiet"]).exits(0);
    let value = home.ctl_in(&repo, &["config", "get", "guard.command"]).exits(0).stdout.clone();
    assert_eq!(value, "[\"cargo\",\"test\",\"--quiet\"]\n");
    home.ctl_in(&repo, &["config", "set", "workspace.setup", "npm", "ci"]).exits(0);
    home.ctl_in(&repo, &["config", "set", "guard.command", "make"]).exits(0);
    assert_eq!(home.ctl_in(&repo, &["config", "get", "guard.command"]).exits(0).stdout, "[\"make\"]\n");
}

#[test]
fn without_a_terminal_no_editor_is_guessed() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    let mut command = home.ctl_command(&repo, &["config", "edit"]);
    let output = command.env_remove("VISUAL").env_remove("EDITOR").output().expect("it can be started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("no editor is named") && stderr.contains("set VISUAL or EDITOR"), "{stderr}");
}

#[test]
fn of_several_runs_the_user_chooses_one_by_its_number() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    for id in ["port", "tidy"] {
        home.ctl_in(&repo, &["start", "--queue-only", "--id", id, "-m", "Do it."]).exits(0);
    }
    let refused = home.ctl_in(&repo, &["cancel"]);
    refused.exits(2);
    assert!(refused.stderr.contains("cancel --run port") && refused.stderr.contains("cancel --run tidy"));
    let mut tty = Tty::start(&home.ctl_command(&repo, &["cancel"]), (80, 24));
    let screen = tty.wait_for_text("Number: ");
    assert!(screen.contains("Which run?") && screen.contains("2  tidy  paused"), "{screen}");
    tty.keys("2\r");
    assert_eq!(tty.wait_exit(), 0);
    let runs = home.ctl_in(&repo, &["queue", "--ended", "--json"]).exits(0).json().to_string();
    assert!(runs.contains("cancelled"), "{runs}");
}
