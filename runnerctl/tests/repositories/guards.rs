//! Typical guards: ones that write files, and `just` if it is installed.

use runner_testkit::Home;

use crate::place::RepoPlace;

#[test]
fn what_a_guard_writes_is_committed_and_named() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.script().always("echo work > work.txt; answer done 'Wrote work.txt.'");
    repo.script().guard_always("echo report > report.txt; exit 0");
    home.run(&repo, &["-m", "Do it."]).exits(0);
    assert_eq!(repo.show("HEAD", "report.txt"), "report");
    let message = repo.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("Runner-Guard-Wrote: ") && message.contains("report.txt"), "{message}");
    repo.assert_sound();
}

#[test]
fn what_a_guard_commits_is_named_too() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.script().always("echo work > work.txt; answer done 'Wrote work.txt.'");
    repo.script().guard_always("echo report > report.txt; git add report.txt; git commit -qm report; exit 0");
    home.run(&repo, &["-m", "Do it."]).exits(0);
    assert_eq!(repo.show("HEAD~1", "report.txt"), "report");
    let message = repo.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("Runner-Guard-Wrote: report.txt\n"), "{message}");
    repo.assert_sound();
}

/// Runs with a guard that does `deed` on the base, and returns the message of the baseline's commit.
fn baseline_message(deed: &str) -> String {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    let config = repo.read(".runner/state/config.toml").replace("baseline = false", "baseline = true");
    repo.write(".runner/state/config.toml", &config).commit("With a baseline");
    repo.script().guard_step(1, deed);
    repo.script().guard_always("true");
    repo.script().always("echo work > work.txt; answer done 'Wrote work.txt.'");
    home.run(&repo, &["-m", "Do it."]).exits(0);
    home.ctl_in(&repo, &["verify"]).exits(0);
    repo.git(&["log", "-1", "--grep=baseline run", "--format=%B"])
}

#[test]
fn what_a_guard_writes_and_commits_on_the_base_is_named() {
    let message =
        baseline_message("echo made > made.txt; echo report > report.txt; git add report.txt; git commit -qm report");
    assert!(message.ends_with("\nRunner-Guard-Wrote: made.txt, report.txt"), "{message}");
}

#[test]
fn history_that_a_guard_rewrites_on_the_base_is_told() {
    let message = baseline_message("echo lost > lost.txt; git add lost.txt; git commit -q --amend -m Mine");
    assert!(message.contains("The guard must not rewrite history: branch runner/"), "{message}");
    assert!(!message.contains("Runner-Guard-Wrote"), "the branch is as before: {message}");
}

#[test]
fn a_run_does_not_begin_with_a_submodule_that_the_guard_has_moved_on_the_base() {
    for then in ["true", "git add sub", "git commit -qam Moved"] {
        let home = Home::new();
        let _daemon = home.daemon();
        let module = home.repo("module");
        module.write("inner.txt", "").commit("One");
        module.write("inner.txt", "inner\n").commit("Two");
        let url = module.path().display().to_string();
        let repo = home.scripted_repo("around");
        repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
        let config = repo.read(".runner/state/config.toml").replace("baseline = false", "baseline = true");
        repo.write(".runner/state/config.toml", &config).commit("With a module");
        repo.script().guard_step(1, &format!("git -C sub checkout -q HEAD~1; {then}; echo report > report.txt"));
        repo.script().guard_always("echo report > report.txt");
        repo.script().always("echo work > work.txt; answer done 'Wrote work.txt.'");
        let held = home.run(&repo, &["--id", "x", "-m", "Do it."]);
        let said = format!("{}{}", held.stdout, held.stderr);
        assert!(said.contains("not at the commits that the base names: sub\n"), "{then}: {said}");
        assert_eq!(repo.script().session_count(), 0);
        let start = repo.git(&["log", "-1", "--grep=start run x", "--format=%H"]);
        assert!(said.contains(&format!("git reset {start}, then: git submodule update --init -- sub")), "{said}");
        repo.git(&["reset", "-q", &start]);
        repo.git(&["submodule", "--quiet", "update", "--init", "--", "sub"]);
        home.ctl_in(&repo, &["resume", "--wait"]).exits(0);
        let changed = repo.git(&["diff", "--name-only", "main", "HEAD", "--", ".", ":!.runner"]);
        assert_eq!(changed, "report.txt\nwork.txt", "{then}");
    }
}

#[test]
fn a_justfile_is_the_guard_where_just_is_installed_and_asked_for_where_not() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.repo("plain");
    let place = RepoPlace::of_repo(&home, &repo);
    repo.write("justfile", "ci:\n    @grep -q good work.txt || { echo 'FAIL: not good'; exit 1; }\n").commit("Check");
    repo.commit_config(&repo.config().guard_command(&["just", "ci"]));
    repo.script().step(1, "echo bad > work.txt; answer done 'Tried.'");
    repo.script().step(2, "echo good > work.txt; answer done 'Done.'");
    let has_just = place.command("sh").args(["-c", "command -v just"]).output().expect("a shell").status.success();
    if !has_just {
        place.ctl(&["start", "-m", "Do it."]).assert_exits(6).assert_contains("just");
        return;
    }
    home.run(&repo, &["-m", "Do it."]).exits(0);
    let ends: Vec<String> = repo
        .receipts()
        .iter()
        .filter_map(|receipt| receipt.trailer("Runner-Guard")?.split(' ').next().map(str::to_owned))
        .collect();
    assert_eq!(ends, ["exit=1", "exit=0"]);
    assert!(repo.script().prompt(2).contains("FAIL: not good"));
}
