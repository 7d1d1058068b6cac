//! Guards as projects have them: ones that write, and `just` where it is installed.

use runner_testkit::Home;

use crate::place::Place;

#[test]
fn what_a_guard_writes_is_committed_and_named() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted("plain");
    repo.script().always("echo work > work.txt; answer done 'Wrote work.txt.'");
    repo.script().guard_always("echo report > report.txt; exit 0");
    home.run(&repo, &["-m", "Do it."]).exits(0);
    assert_eq!(repo.show("HEAD", "report.txt"), "report");
    let message = repo.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("Runner-Guard-Wrote: ") && message.contains("report.txt"), "{message}");
    repo.assert_sound();
}

#[test]
fn a_justfile_is_the_guard_where_just_is_installed() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.repo("plain");
    let place = Place::of(&home, &repo);
    if !place.command("sh").args(["-c", "command -v just"]).output().expect("a shell").status.success() {
        eprintln!("just is not installed: nothing is shown here; scripts/test.sh installs it");
        return;
    }
    repo.write("justfile", "ci:\n    @grep -q good work.txt || { echo 'FAIL: not good'; exit 1; }\n").commit("Check");
    repo.configure(&repo.config().guarded_by(&["just", "ci"]));
    repo.script().step(1, "echo bad > work.txt; answer done 'Tried.'");
    repo.script().step(2, "echo good > work.txt; answer done 'Done.'");
    home.run(&repo, &["-m", "Do it."]).exits(0);
    let ends: Vec<String> =
        repo.receipts().iter().map(|receipt| receipt.trailer("Runner-Guard").unwrap_or("-")[..6].to_owned()).collect();
    assert_eq!(ends, ["exit=1", "exit=0"]);
    assert!(repo.script().prompt(2).contains("FAIL: not good"));
}
