//! The level of containment as a person sees it: shown, recorded, required.

use runner_testkit::{Home, Repo};
use serde_json::Value;

/// Runs one iteration and returns the level in its record, and in the status of its run.
fn recorded_and_shown(home: &Home, repo: &Repo) -> [Value; 2] {
    repo.script().step(1, "echo mine > mine.txt; answer done 'It is done.'");
    home.run(repo, &["--id", "one", "-m", "Do it"]).exits(0);
    let record = repo.path().join(".runner/iterations/one/0001/meta.json");
    let record: Value = serde_json::from_slice(&std::fs::read(record).expect("a record")).expect("JSON");
    let status = home.ctl_in(repo, &["status", "--json"]).json();
    [record["containment"].clone(), status["run"]["containment"].clone()]
}

#[test]
fn strongest_level_of_the_machine_is_used_shown_and_recorded() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    let daemon = home.ctl(&["daemon", "status", "--json"]).json();
    let level = &daemon["containment"];
    assert_eq!(recorded_and_shown(&home, &repo), [level.clone(), level.clone()]);
    let missing = daemon["containment_missing"].as_array().expect("a list");
    assert!(missing.iter().all(|missing| missing["why"] != "" && missing["raise"] != ""), "{daemon}");
    assert!(missing.iter().all(|missing| missing["level"] != *level), "{daemon}");
}

#[test]
fn daemon_that_was_told_so_uses_no_more_than_a_walk_and_says_why() {
    let home = Home::new();
    home.limit_containment("walk");
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    assert_eq!(recorded_and_shown(&home, &repo), ["walk", "walk"]);
    let status = home.ctl(&["daemon", "status"]);
    assert!(status.exits(0).stdout.contains("config.toml has containment = \"walk\""), "{}", status.stdout);
}

#[test]
fn level_that_is_required_and_not_reached_is_refused_before_anything_begins() {
    let home = Home::new();
    home.limit_containment("walk");
    let repo = home.repo("one");
    repo.commit_config(&repo.config().section("[containment]\nrequire = \"pidns\""));
    let _daemon = home.daemon();
    let refused = home.run(&repo, &["-m", "Do it"]);
    refused.exits(6);
    for part in ["containment.require is \"pidns\"", "no more than \"walk\"", "hint:", "the daemon's config.toml"] {
        assert!(refused.stderr.contains(part), "`{part}` is missing: {}", refused.stderr);
    }
    assert!(repo.receipts().is_empty());
}

#[test]
fn step_is_refused_once_a_commit_requires_more() {
    let home = Home::new();
    home.limit_containment("walk");
    let repo = home.scripted_repo("one");
    repo.script().step(1, "decompose 'Split.' first");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    home.ctl_in(&repo, &["step", "--yes"]).exits(0);
    repo.commit_config(&repo.config().section("[containment]\nrequire = \"cgroup\""));
    home.ctl_in(&repo, &["step", "--yes"]).exits(6);
    assert_eq!(repo.receipts().len(), 1, "the iteration was begun");
}

#[test]
fn agent_that_sheds_its_environment_and_its_parents_does_not_steer() {
    let ctl = runner_testkit::binary("runnerctl");
    for level in ["pidns", "walk"] {
        let home = Home::new();
        home.limit_containment(level);
        let repo = home.scripted_repo("one");
        let daemon = home.daemon();
        let call = format!("{} --socket {} --no-spawn daemon stop", ctl.display(), home.socket().display());
        let pipe = "\"$TMPDIR/said\"";
        let orphan = format!("(setsid env -i HOME=\"$HOME\" {call} > call.txt 2>&1; echo \"exit $?\" > {pipe}) &");
        repo.script().step(1, &format!("mkfifo {pipe}; {orphan}\ncat {pipe} > exit.txt; answer done 'It is done.'"));
        home.run(&repo, &["-m", "Do it"]).exits(0);
        assert_eq!(repo.show("HEAD", "exit.txt").trim(), "exit 6", "{level}");
        let text = repo.show("HEAD", "call.txt");
        assert!(text.contains("where only reading is allowed"), "{level}: {text}");
        assert!(daemon.stop().success());
    }
}
