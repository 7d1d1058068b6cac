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
