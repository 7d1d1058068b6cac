//! Secrets of the user that agents and guards get: the runner writes their names, and never their values.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::words::RunStatus;
use runner_testkit::{Home, Repo};

const KEY: &str = "sk-live-0123456789abcdef";
const PASSWORD: &str = "correct horse/battery+staple";
const GIVEN: &str = "[env]\nagent = [\"ACME_API_KEY\"]\nguard = [\"DB_PASSWORD\"]";

/// A home whose user has two secrets, and a repository that passes one to the agent and one to the guard.
fn with_secret(iterations: u32) -> (Home, Repo) {
    let home = Home::new().export("ACME_API_KEY", KEY).export("DB_PASSWORD", PASSWORD);
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top(&format!("max_iterations = {iterations}")).section(GIVEN));
    (home, repo)
}

/// Returns the files below a folder that contain one of the secrets.
fn files_with_secrets(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))).expect("an entry");
        if kind.is_dir() {
            found.append(&mut files_with_secrets(&path));
        } else if kind.is_file() && has_secret(&fs::read(&path).expect("a file can be read")) {
            found.push(path);
        }
    }
    found
}

fn has_secret(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    [KEY, PASSWORD, &KEY[4..20], &PASSWORD[3..20]].iter().any(|secret| text.contains(secret))
}

/// Returns all contents of git in a repository.
fn stored_objects(repo: &Repo) -> String {
    let objects = repo.git(&["rev-list", "--objects", "--all"]);
    let ids = objects.lines().filter_map(|line| line.split(' ').next());
    let commits_and_blobs = ids.filter(|id| repo.git(&["cat-file", "-t", id]) != "tree");
    commits_and_blobs.map(|id| repo.git(&["cat-file", "-p", id]) + "\n").collect()
}

#[test]
fn secret_that_is_printed_or_answered_is_written_nowhere() {
    let (home, repo) = with_secret(3);
    repo.script()
        .step(1, "touch work; echo \"key=$ACME_API_KEY, again: $ACME_API_KEY\"; answer done \"Called it with $ACME_API_KEY.\"")
        .guard_step(1, "echo \"cannot log in with $DB_PASSWORD\"; exit 1")
        .step(2, "echo \"{ $ACME_API_KEY\" > \"$tree\"; answer retry 'Broke it.'")
        .step(3, "answer_json \"{\\\"status\\\": \\\"$ACME_API_KEY\\\", \\\"summary\\\": \\\"x\\\"}\"");
    let daemon = home.daemon();
    home.run(&repo, &["-m", "Do it", "--id", "told"]).exits(4);
    let shown = home.ctl_in(&repo, &["log", "1", "--agent"]);
    assert_eq!(shown.stdout, "key=[redacted: ACME_API_KEY], again: [redacted: ACME_API_KEY]\n");
    assert!(repo.read(".runner/iterations/told/0001/guard.log").contains("log in with [redacted: DB_PASSWORD]"));
    assert!(repo.git(&["log", "--format=%B"]).contains("Called it with [redacted: ACME_API_KEY]."));
    assert!(repo.script().prompt(2).contains("log in with [redacted: DB_PASSWORD]"), "{}", repo.script().prompt(2));
    assert!(repo.script().prompt(3).contains("{ [redacted: ACME_API_KEY]"), "{}", repo.script().prompt(3));
    for command in [&["status", "--json"][..], &["log"], &["log", "1"], &["log", "3", "--output"], &["tree"]] {
        let output = home.ctl_in(&repo, command);
        assert!(!has_secret(output.stdout.as_bytes()), "{command:?}: {}", output.stdout);
    }
    drop(daemon);
    let env = files_with_secrets(&home.state());
    assert_eq!(env.len(), 1, "{env:?}");
    assert!(env[0].ends_with("env.json"), "the caller's environment alone: {env:?}");
    assert_eq!(files_with_secrets(home.path()), env);
    let kept = stored_objects(&repo);
    let raw = kept.lines().filter(|line| has_secret(line.as_bytes())).collect::<Vec<_>>();
    assert_eq!(raw, [format!("{{ {KEY}")], "the tree that was not taken is the agent's, and is kept as it was");
}

#[test]
fn secret_in_a_file_of_the_agents_is_told_and_the_file_is_kept() {
    let (home, repo) = with_secret(1);
    repo.script().step(1, "echo \"token: $ACME_API_KEY\" > config.yml; answer done 'Configured it.'");
    let _daemon = home.daemon();
    let ended = home.run(&repo, &["-m", "Do it", "--id", "told"]);
    let warning = "secrets were committed: config.yml (ACME_API_KEY)";
    assert!(ended.exits(0).stderr.contains(warning), "{}", ended.stderr);
    let shown = home.ctl_in(&repo, &["log", "1"]);
    assert!(shown.stdout.contains("the value of ACME_API_KEY is in config.yml"), "{}", shown.stdout);
    let status = home.ctl_in(&repo, &["status"]);
    assert!(status.stdout.contains("config.yml: ACME_API_KEY"), "{}", status.stdout);
    assert_eq!(repo.show("HEAD", "config.yml"), format!("token: {KEY}"));
    let patch = repo.read(".runner/iterations/told/0001/diff.patch");
    assert!(patch.contains("+token: [redacted: ACME_API_KEY]"), "{patch}");
    repo.assert_sound();
}

#[test]
fn secret_in_names_and_memory_is_masked_in_records() {
    let (home, repo) = with_secret(2);
    let memory = ".runner/state/assumptions.md";
    repo.script()
        .step(1, &format!("touch \"$ACME_API_KEY.txt\"; echo \"- $ACME_API_KEY\" >> {memory}; answer retry 'Not yet.'"))
        .step(2, "git branch \"of-$ACME_API_KEY\"; answer done 'Done.'");
    let _daemon = home.daemon();
    home.run(&repo, &["-m", "Do it", "--id", "told"]).exits(0);
    assert!(repo.script().prompt(2).contains("- [redacted: ACME_API_KEY]"), "{}", repo.script().prompt(2));
    let records = repo.path().join(".runner/iterations");
    assert!(repo.read(".runner/iterations/told/0002/prompt.md").contains("- [redacted: ACME_API_KEY]"));
    assert_eq!(files_with_secrets(&records), Vec::<PathBuf>::new());
}

#[test]
fn secret_of_the_guards_is_not_the_agents_nor_the_other_way_round() {
    let (home, repo) = with_secret(1);
    repo.script()
        .step(1, "touch work; env > \"$kit/agent-env\"; answer done 'Looked.'")
        .guard_step(1, "env > \"$kit/guard-env\"");
    let _daemon = home.daemon();
    home.run(&repo, &["-m", "Do it"]);
    let read = |name: &str| fs::read_to_string(repo.script().folder().join(name)).expect("a program has looked");
    let agent = read("agent-env");
    let guard = read("guard-env");
    assert!(agent.contains(KEY) && !agent.contains(PASSWORD), "{agent}");
    assert!(guard.contains(PASSWORD) && !guard.contains(KEY), "{guard}");
    assert!(!guard.contains("RUNNER_OUTPUT="), "{guard}");
}

/// Returns every path below a folder, itself included, with its mode; links have none that matters.
fn modes(path: &Path) -> Vec<(PathBuf, u32)> {
    let found = fs::symlink_metadata(path).expect("it is there");
    if found.is_symlink() {
        return Vec::new();
    }
    let mut all = vec![(path.to_owned(), found.permissions().mode() & 0o777)];
    if found.is_dir() {
        for entry in fs::read_dir(path).expect("a folder can be listed") {
            all.append(&mut modes(&entry.expect("an entry").path()));
        }
    }
    all
}

#[test]
fn what_the_daemon_keeps_is_open_to_its_user_alone() {
    let (home, repo) = with_secret(1);
    repo.script().step(1, "touch work; gate middle; answer done 'Done.'");
    let gate = repo.script().gate("middle");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    let kept = modes(&home.state());
    for (path, mode) in kept.iter().chain(&modes(home.socket().parent().expect("a folder"))) {
        assert_eq!(mode & 0o077 & if path.is_dir() { 0o777 } else { 0o022 }, 0, "{}: {mode:o}", path.display());
    }
    for name in ["env.json", "journal.jsonl", "repo.json", "lock"] {
        let mut named = kept.iter().filter(|(path, _)| path.file_name().is_some_and(|found| found == name));
        assert!(named.clone().count() > 0, "there is no {name}");
        assert!(named.all(|(_, mode)| *mode == 0o600), "{name} is open to others: {kept:?}");
    }
    assert_eq!(modes(&home.socket()), [(home.socket(), 0o600)]);
    gate.open();
    home.client().wait_for(repo.path(), RunStatus::Completed);
}

#[test]
fn answer_of_a_session_that_was_cut_keeps_no_secret() {
    let (home, repo) = with_secret(1);
    repo.script().step(1, "touch work; answer done \"Used $ACME_API_KEY.\"; gate middle; exec sleep 600");
    let gate = repo.script().gate("middle");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it", "--id", "told"]).exits(0);
    gate.wait_reached();
    daemon.kill();
    let _daemon = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Limit);
    assert!(repo.read(".runner/iterations/told/0001/output.json").contains("Used [redacted: ACME_API_KEY]."));
}
