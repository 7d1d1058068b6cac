//! The names of tests that a guard prints: which are kept, and which count as lost.

use protocol::test_record::{TestAbsence, TestRecord};
use protocol::words::RunStatus;

use crate::audits::parse_report;
use crate::play::{RunPlay, sample};

const CONFIG: &str = ".runner/state/config.toml";

/// A run whose guard prints what is in `tests.txt`, from which three tests pass on the base.
fn named_play(max_iterations: u32) -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| config.top(&format!("max_iterations = {max_iterations}")));
    let config = play.repo.read(CONFIG).replace("baseline = false", "baseline = true");
    play.repo.write(CONFIG, &config);
    play.repo.write("tests.txt", "test adds ... ok\ntest pays ... ok\ntest rounds ... ok\n").commit("Test");
    play.script().guard_always("cat tests.txt");
    play
}

fn record_at(play: &RunPlay, revision: &str) -> TestRecord {
    serde_json::from_str(&play.repo.show(revision, ".runner/state/tests.json")).expect("a record of tests")
}

fn lost_at(play: &RunPlay, revision: &str) -> Vec<(String, u32, TestAbsence)> {
    record_at(play, revision).lost.into_iter().map(|lost| (lost.name, lost.iter, lost.now)).collect()
}

#[test]
fn a_lost_test_is_named_until_it_passes_again() {
    let play = named_play(3);
    let script = play.script();
    script.step(
        1,
        "printf 'test adds ... ok\\ntest pays ... ignored\\ntest sums ... ok\\n' > tests.txt; answer done 'One.'",
    );
    script.step(2, "printf 'test sums ... ok\\n' > tests.txt; answer done 'Two.'");
    // The first run is that on the base.
    script.guard_step(3, "cat tests.txt; echo 'test adds ... FAILED'; exit 1");
    script.step(3, "printf 'test adds ... ok\\ntest pays ... ok\\n' > tests.txt; answer done 'Three.'");
    play.run().exits(4);
    let trailer = |iter| play.iteration_at(iter).receipt.trailer("Runner-Guard-Tests").map(str::to_owned);
    assert_eq!(trailer(1).as_deref(), Some("+1 -2 pays, rounds"));
    assert_eq!(trailer(2), None, "a red guard changes nothing");
    assert_eq!(trailer(3).as_deref(), Some("+1 -1 sums"));
    let rounds = |iter| ("rounds".to_owned(), iter, TestAbsence::Gone);
    assert_eq!(lost_at(&play, "HEAD~1"), [("pays".to_owned(), 1, TestAbsence::Skipped), rounds(1)]);
    assert_eq!(lost_at(&play, "HEAD"), [("sums".to_owned(), 3, TestAbsence::Gone), rounds(1)]);
    assert_eq!(record_at(&play, "HEAD").passed, ["adds", "pays"]);
    let report = parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"]));
    assert_eq!(report.findings, []);
    assert_shown(&play);
}

#[test]
fn a_lost_test_with_a_changed_guard_waits_for_a_person() {
    let play = named_play(3);
    let config = play.repo.read(CONFIG).replace("definition = []", "definition = [\"/ci.sh\"]");
    play.repo.write(CONFIG, &config);
    play.repo.write("ci.sh", "cat tests.txt\n").commit("Check");
    let script = play.script();
    script.guard_always("sh ./ci.sh");
    script.step(1, "echo 'test adds ... ok' > tests.txt; answer done 'One.'");
    script.step(2, "echo 'cat sums.txt' > ci.sh; echo 'test sums ... ok' > sums.txt; answer done 'Two.'");
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    assert_eq!(play.iteration_at(1).receipt.trailer("Runner-Verdict"), Some("Accepted"), "lost tests only inform");
    let seen = play.iteration_at(2);
    assert_eq!(seen.receipt.trailer("Runner-Verdict"), Some("Pending"));
    assert_eq!(seen.receipt.trailer("Runner-Guard-Tests"), Some("+1 -1 adds"));
    let reason = play.client().run(play.repo.path()).summary.reason.expect("it says what it waits for");
    assert!(reason.message.contains("the guard's definition has changed"), "{}", reason.message);
    assert!(play.repo.run_state("HEAD").review_required);
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    assert_eq!(play.iteration_at(3).receipt.trailer("Runner-Verdict"), Some("Accepted"));
    let report = parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"]));
    assert_eq!(report.findings, []);
}

/// Asserts that lost tests are in the next prompt, in the log and in the status.
fn assert_shown(play: &RunPlay) {
    let prompt = |iter| play.record(iter, "prompt.md");
    assert!(prompt(2).contains("\npays (skipped)\nrounds (gone)\n"), "{}", prompt(2));
    assert!(!prompt(1).contains("passed before the last session") && !prompt(3).contains("rounds (gone)"));
    let shown = |args: &[&str]| play.home.ctl_in(&play.repo, args).exits(0).stdout.clone();
    let log = shown(&["log", "1"]);
    assert!(log.contains("+1 -2, lost: pays, rounds"), "{log}");
    let status = shown(&["status"]);
    assert!(
        status
            .contains("2 named by the guard pass; not any more: sums (gone, iteration 3), rounds (gone, iteration 1)"),
        "{status}"
    );
    let tests = play.client().run(play.repo.path()).tests;
    assert_eq!((tests.passed, tests.lost, tests.first_lost), (2, 2, record_at(play, "HEAD").lost));
}
