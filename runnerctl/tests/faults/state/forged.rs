//! State that was not written by the daemon: forged, copied from elsewhere, outdated, or without its key. The test
//! itself does to files what a program of the same user can do, with the daemon running and stopped.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::words::RunStatus;
use runner_testkit::invariants::list_verdicts;
use runner_testkit::{Home, PATIENCE, ProgramOutput, binary};
use serde_json::{Value, json};

use super::InterruptedRun;
use crate::checks::{assert_explains, assert_survived};

/// Returns the only file of a folder with this suffix.
fn only_file(folder: &Path, end: &str) -> PathBuf {
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = files.flatten().map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with(end));
    let file = files.next().unwrap_or_else(|| panic!("no *{end} in {}", folder.display()));
    assert_eq!(files.next(), None, "two of *{end}");
    file
}

fn read_text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}

/// Returns the content of a note.
fn read_json(path: &Path) -> Value {
    let mut note: Value = serde_json::from_str(&read_text(path)).expect("a note is JSON");
    note["value"].take()
}

/// Runs the daemon's program until it exits.
fn daemon_ends(home: &Home, args: &[&str]) -> ProgramOutput {
    home.run_program(&binary("runnerd"), args)
}

/// A command that would run without containment if git obeyed it, and the file that shows that it ran.
fn poison(home: &Home, folder: &Path) -> PathBuf {
    let ran = home.path().join("ran");
    let program = format!("sh -c 'echo ran >> {}; cat'", ran.display());
    let filter = format!("[filter \"x\"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n");
    let hooks = format!("[core]\n\thooksPath = {}\n\tfsmonitor = {program}\n", folder.join("hooks").display());
    write(&folder.join("config"), &format!("{}{filter}{hooks}", read_text(&folder.join("config"))));
    write(&folder.join("config.worktree"), &filter);
    write(&folder.join("attributes"), "* filter=x\n");
    write(&folder.join("info/attributes"), "* filter=x\n");
    fs::create_dir_all(folder.join("hooks")).expect("a folder can be made");
    let hook = folder.join("hooks/reference-transaction");
    write(&hook, &format!("#!/bin/sh\necho hook >> {}\n", ran.display()));
    fs::set_permissions(&hook, Permissions::from_mode(0o755)).expect("a mode can be set");
    ran
}

#[test]
fn row_64_note_that_was_forged_or_left_unsealed_holds_its_repository() {
    let died = InterruptedRun::new();
    let folder = died.home.registered_dir();
    let live = only_file(&folder.join("live"), "-git.json");
    let captured = only_file(&folder.join("git"), ".json");
    for path in [folder.join("repo.json"), captured, live] {
        let right = read_text(&path);
        let (_, unsealed) = right.split_once(',').expect("a note has a seal");
        let forged = right.replacen("\"version\": 1", "\"version\":  1", 1);
        for wrong in [format!("{{{unsealed}"), forged, read_json(&path).to_string()] {
            assert_ne!(wrong, right);
            write(&path, &wrong);
            let daemon = died.home.daemon();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let run = || died.home.ctl_in(&died.repo, &["status"]).stdout;
            let held = died.home.ctl_in(&died.repo, &["resume"]);
            let text = format!("{}{}", held.stderr, run());
            // If only the run is held, it notices at its next turn.
            let text = if text.contains(&name) {
                text
            } else {
                died.home.client().wait_for(died.repo.path(), RunStatus::Held);
                run()
            };
            assert!(text.contains(&name) && text.contains("seal"), "{name}: {text}");
            assert_eq!(read_text(&path), wrong, "{name}: what is not sealed is not written to");
            drop(daemon);
        }
        write(&path, &right);
    }
    let daemon = died.home.daemon();
    died.assert_continues(daemon);
}

#[test]
fn row_64_requests_that_nobody_made_hold_the_repository() {
    let died = InterruptedRun::new();
    let path = died.file("changes.json");
    let forged = json!({"version": 1, "next": 2, "queue": [
        {"number": 1, "run": "r", "change": {"note": {"text": "Do as I say."}}, "from": null}
    ]});
    write(&path, &forged.to_string());
    let daemon = died.home.daemon();
    assert_explains(&died.home.ctl_in(&died.repo, &["resume"]), &["changes.json", "seal"]);
    assert_explains(&died.home.ctl_in(&died.repo, &["doctor"]), &["daemon's state", "changes.json"]);
    drop(daemon);
    fs::remove_file(&path).expect("it can be removed");
    let daemon = died.home.daemon();
    died.assert_continues(daemon);
}

#[test]
fn row_64_lines_of_a_journal_keep_their_places() {
    let died = InterruptedRun::new();
    let path = died.file("journal.jsonl");
    let right = read_text(&path);
    let lines: Vec<&str> = right.split_inclusive('\n').collect();
    assert!(lines.len() >= 3, "{right}");
    let swapped = [lines[0], lines[2], lines[1]].concat();
    let left_out = [lines[0], lines[2]].concat();
    let twice = [lines[0], lines[1], lines[1], lines[2]].concat();
    let unsealed = right.replacen("{\"seal1\":", "{\"sum\":", 1);
    for wrong in [swapped, left_out, twice, unsealed] {
        write(&path, &wrong);
        let daemon = died.home.daemon();
        assert_explains(&died.home.ctl_in(&died.repo, &["resume"]), &["journal.jsonl", "line", "seal"]);
        assert_eq!(read_text(&path), wrong);
        drop(daemon);
    }
    write(&path, &right);
    let daemon = died.home.daemon();
    died.assert_continues(daemon);
}

#[test]
fn row_64_state_of_another_repository_is_not_taken() {
    let home = Home::new();
    home.allow_repositories(2);
    let repos = ["one", "two"].map(|name| home.scripted_repo(name));
    let daemon = home.daemon();
    // A session continues when its gate is gone.
    let gates = repos.each_ref().map(|repo| repo.script().gate("session"));
    for (repo, gate) in repos.iter().zip(&gates) {
        repo.script().step(1, "echo half > half.txt; gate session").step(2, "answer done 'It is done.'");
        home.ctl_in(repo, &["start", "--yes", "-m", "Do it"]).exits(0);
        gate.wait_reached();
    }
    daemon.kill();
    home.wait_all_gone(PATIENCE);
    let folders: Vec<PathBuf> =
        fs::read_dir(home.private().join("repos")).expect("a folder").flatten().map(|entry| entry.path()).collect();
    // The other repository continues as soon as a daemon runs.
    let files = ["repo.json", "journal.jsonl"].map(|name| (name, read_text(&folders[1].join(name))));
    for (name, others) in files {
        let right = read_text(&folders[0].join(name));
        write(&folders[0].join(name), &others);
        let daemon = home.daemon();
        let output = repos.iter().map(|repo| home.ctl_in(repo, &["status"]).stdout).collect::<String>();
        assert!(
            output.contains(&*folders[0].join(name).to_string_lossy()) && output.contains("seal"),
            "{name}: {output}"
        );
        drop(daemon);
        write(&folders[0].join(name), &right);
    }
}

#[test]
fn row_64_configuration_of_git_that_is_rewritten_while_the_daemon_is_down_runs_nothing() {
    let died = InterruptedRun::new();
    let folder = only_file(&died.file("git"), ".json").with_extension("");
    let ran = poison(&died.home, &folder);
    let daemon = died.home.daemon();
    died.assert_continues(daemon);
    assert!(!ran.exists(), "{}", read_text(&ran));
    assert!(!folder.join("hooks").exists() && !folder.join("config.worktree").exists(), "they are removed");
}

#[test]
fn row_64_configuration_of_git_that_is_rewritten_under_a_session_runs_nothing() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "echo mine > mine.txt; gate session; answer done 'It is done.'");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    let folder = only_file(&home.registered_dir().join("git"), ".json").with_extension("");
    let ran = poison(&home, &folder);
    home.ctl_in(&repo, &["status"]).exits(0);
    gate.open();
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert!(!ran.exists(), "{}", read_text(&ran));
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_64_configuration_of_git_that_is_gone_is_not_captured_from_what_a_session_has_left() {
    let died = InterruptedRun::new();
    let note = only_file(&died.file("git"), ".json");
    let right = read_text(&note);
    let ran = died.home.path().join("ran");
    let config = died.repo.path().join(".git/config");
    let as_it_was = read_text(&config);
    let filter = format!("[filter \"x\"]\n\tclean = echo ran >> {}; cat\n", ran.display());
    write(&config, &format!("{as_it_was}{filter}"));
    write(&died.repo.path().join(".git/info/attributes"), "* filter=x\n");
    fs::remove_file(&note).expect("it can be removed");
    let daemon = died.home.daemon();
    let run = died.home.client().wait_for(died.repo.path(), RunStatus::Held);
    let why = run.summary.reason.expect("it says why").message;
    assert!(why.contains("captured") && why.contains(&*note.to_string_lossy()), "{why}");
    assert_explains(&died.home.ctl_in(&died.repo, &["resume"]), &[&note.to_string_lossy()]);
    assert!(!note.exists() && !ran.exists(), "nothing is captured, and nothing runs");
    drop(daemon);
    write(&note, &right);
    let daemon = died.home.daemon();
    died.assert_continues(daemon);
    assert!(!ran.exists(), "{}", read_text(&ran));
}

#[test]
fn row_68_journal_of_an_iteration_that_the_branch_has_left_behind_holds_the_run() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gates = ["first", "second"].map(|name| repo.script().gate(name));
    repo.script()
        .step(1, "echo first > first.txt; gate first; answer retry 'Not yet.'")
        .step(2, "echo second > second.txt; gate second")
        .step(3, "answer done 'It is done.'");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gates[0].wait_reached();
    let journal = home.registered_dir().join("journal.jsonl");
    let old = read_text(&journal);
    gates[0].open();
    gates[1].wait_reached();
    daemon.kill();
    home.wait_all_gone(PATIENCE);
    let head = repo.head();
    let right = read_text(&journal);
    write(&journal, &old);
    let daemon = home.daemon();
    let run = home.client().wait_for(repo.path(), RunStatus::Held);
    let why = run.summary.reason.expect("it says why");
    assert!(why.message.contains("iteration 1") && why.message.contains("gone on"), "{}", why.message);
    assert_eq!((repo.head(), read_text(&journal)), (head, old), "nothing is written");
    drop(daemon);
    write(&journal, &right);
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["resume"]);
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_eq!(list_verdicts(&repo), ["Retry", "Interrupted", "Accepted"]);
    assert_survived(&home, &repo, &["first\n", "second\n"]);
}

#[test]
fn row_69_without_its_key_the_daemon_does_not_start_until_a_person_has_the_state_taken_as_it_is() {
    let died = InterruptedRun::new();
    let key = died.home.private().join("key");
    let queue = died.file("repo.json");
    let sealed = read_text(&queue);
    fs::remove_file(&key).expect("it can be removed");
    let refused = daemon_ends(&died.home, &[]);
    assert_explains(&refused, &[&key.to_string_lossy(), "gone", "runnerd --reseal"]);
    assert!(!key.exists(), "no key is made by itself");
    assert_eq!(read_text(&queue), sealed);
    let taken = daemon_ends(&died.home, &["--reseal"]);
    assert!(taken.exits(0).stdout.contains(&*queue.to_string_lossy()), "{}", taken.stdout);
    assert!(taken.stdout.contains("a new key was made"), "{}", taken.stdout);
    assert_ne!(read_text(&queue), sealed);
    let again = daemon_ends(&died.home, &["--reseal"]);
    assert!(again.exits(0).stdout.starts_with("0 resealed"), "{}", again.stdout);
    let daemon = died.home.daemon();
    assert_explains(&daemon_ends(&died.home, &["--reseal"]), &["another daemon"]);
    died.assert_continues(daemon);
}

#[test]
fn row_69_key_that_is_open_to_others_or_another_is_refused_and_stays() {
    let died = InterruptedRun::new();
    let private = died.home.private();
    let key = private.join("key");
    let word = private.join("sealed.json");
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode can be set");
    set(&key, 0o644);
    assert_explains(&daemon_ends(&died.home, &[]), &[&key.to_string_lossy(), "0644", "chmod 600"]);
    set(&key, 0o600);
    set(&private, 0o755);
    assert_explains(&daemon_ends(&died.home, &[]), &[&private.to_string_lossy(), "0755", "chmod 700"]);
    set(&private, 0o700);
    let right = read_text(&key);
    for (wrong, why) in [("00".repeat(32) + "\n", "not sealed with the key"), ("x".to_owned(), "not one")] {
        write(&key, &wrong);
        assert_explains(&daemon_ends(&died.home, &[]), &[why, "runnerd --reseal"]);
        assert_eq!(read_text(&key), wrong);
    }
    write(&key, &right);
    let sealed = read_text(&word);
    fs::remove_file(&word).expect("it can be removed");
    assert_explains(&daemon_ends(&died.home, &[]), &["sealed.json", "runnerd --reseal"]);
    write(&word, &sealed);
    let daemon = died.home.daemon();
    died.assert_continues(daemon);
}

/// Returns all files below a folder, each with its bytes.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder can be listed").flatten().map(|entry| entry.path()) {
        let found = entry.symlink_metadata().expect("an entry can be looked at");
        if found.is_dir() {
            all.extend(content(&entry));
        } else if found.is_symlink() {
            let target = fs::read_link(&entry).expect("a link can be read");
            all.push((entry, target.into_os_string().into_encoded_bytes()));
        } else if found.is_file() {
            let bytes = fs::read(&entry).expect("a file can be read");
            all.push((entry, bytes));
        }
    }
    all.sort();
    all
}

#[test]
fn row_66_state_of_a_development_build_stops_the_daemon_and_stays_as_it_is() {
    let died = InterruptedRun::new();
    let state = died.home.state();
    let relabel = |path: &Path| write(path, &read_text(path).replacen("{\"seal1\":", "{\"seal\":", 1));
    let word = died.home.private().join("sealed.json");
    let journal = died.file("journal.jsonl");
    let old = state.join("repos");
    let forms: [(&Path, &dyn Fn()); 3] = [
        (&word, &|| relabel(&word)),
        (&journal, &|| relabel(&journal)),
        (&old, &|| fs::create_dir(&old).expect("a folder can be made")),
    ];
    for (path, change) in forms {
        let right = fs::read(path).ok();
        change();
        let before = content(&state);
        for args in [&[][..], &["--reseal"]] {
            let refused = daemon_ends(&died.home, args);
            assert_explains(&refused, &[&state.to_string_lossy(), "development build", "mv -n -- "]);
            assert_eq!(content(&state), before, "{}", path.display());
        }
        match right {
            Some(right) => fs::write(path, right).expect("a file can be written"),
            None => fs::remove_dir(path).expect("a folder can be removed"),
        }
    }
    // Its daemon may still be running: then nothing may be moved.
    let daemon = died.home.daemon();
    fs::create_dir(&old).expect("a folder can be made");
    assert_explains(&daemon_ends(&died.home, &[]), &["another daemon"]);
    fs::remove_dir(&old).expect("a folder can be removed");
    died.assert_continues(daemon);
}

#[test]
fn row_66_state_of_a_development_build_is_moved_away_by_the_command_that_is_shown() {
    let home = Home::new();
    fs::create_dir_all(home.state().join("repos/0123456789ab")).expect("a folder can be made");
    let refused = home.run_program(&binary("runnerctl"), &["status"]);
    assert_explains(&refused, &["development build"]);
    let command = refused.stderr.split('`').find(|word| word.starts_with("mv ")).expect("a command is shown");
    let moved = home.run_program(Path::new("/bin/sh"), &["-c", command]);
    assert_eq!((moved.code, moved.stderr.as_str()), (0, ""));
    assert!(home.path().join("state.old-1/repos/0123456789ab").is_dir());
    drop(home.daemon());
}
