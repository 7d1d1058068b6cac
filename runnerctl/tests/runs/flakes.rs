//! Guards that fail and then pass on the same files: what is charged, and where it is shown.

use protocol::words::VerdictName;

use crate::audits::parse_report;
use crate::play::{RunPlay, sample};

/// What a guard prints whose test `TestGet` fails.
const FAILS: &str = "echo '--- FAIL: TestGet (0.00s)'; echo '    net_test.go:12: no'; echo FAIL; exit 1";
const NAME: &str = "net_test.go TestGet";

/// A run in which a red guard runs once more.
fn flaky_play(max_iterations: u32) -> RunPlay {
    RunPlay::with_tree(&sample(), |config| {
        config.top(&format!("max_iterations = {max_iterations}")).guard("flakes = true")
    })
}

#[track_caller]
fn assert_proven(play: &RunPlay) {
    let report = parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"]));
    assert_eq!(report.findings, []);
}

#[test]
fn a_guard_that_passes_the_second_time_charges_nothing_and_is_shown() {
    let play = flaky_play(2);
    play.script().step(1, "echo one > one.txt; answer done 'One.'").guard_step(1, FAILS).guard_step(2, "echo green");
    play.script().step(2, "echo two > two.txt; answer done 'Two.'");
    play.run().exits(4);
    let first = play.iteration_at(1);
    assert_eq!(
        (first.meta.verdict, first.receipt.trailer("Runner-Guard-Flaky")),
        (VerdictName::Accepted, Some("1/2 net_test.go TestGet"))
    );
    assert_eq!(first.receipt.trailer("Runner-Attempts"), Some("0/3"));
    assert!(first.receipt.trailer("Runner-Guard").is_some_and(|guard| guard.starts_with("exit=0 ")));
    assert_eq!(play.iteration_at(2).receipt.trailer("Runner-Guard-Flaky"), None, "it passed at once");
    assert!(play.record(1, "guard.log").contains("TestGet"));
    assert_eq!(play.record(1, "guard-rerun.log"), "green\n");
    assert!(!play.has_record("0002/guard-rerun.log"));
    assert_proven(&play);
    let shown = |args: &[&str]| play.home.ctl_in(&play.repo, args).exits(0).stdout.clone();
    let log = shown(&["log", "1"]);
    assert!(log.contains(&format!("failed, then passed on the same files: {NAME}")), "{log}");
    assert_eq!(shown(&["log", "1", "--guard-rerun"]), "green\n");
    let status = shown(&["status"]);
    assert!(status.contains(&format!("failed, then passed on the same files: {NAME} (once)")), "{status}");
    assert!(!play.record(1, "prompt.md").contains(NAME) && play.record(2, "prompt.md").contains(NAME));
    assert_eq!(play.client().run(play.repo.path()).flakes.len(), 1);
}

#[test]
fn a_failure_in_a_file_that_the_session_changed_is_charged_all_the_same() {
    let play = flaky_play(1);
    play.script().step(1, "echo 'func TestGet() {}' > net_test.go; answer done 'One.'").guard_step(1, FAILS);
    let first = play.run_first(4);
    assert_eq!(
        (first.meta.verdict, first.receipt.trailer("Runner-Guard-Flaky")),
        (VerdictName::RedGuard, Some("1/2 net_test.go TestGet"))
    );
    assert_eq!((first.receipt.trailer("Runner-Attempts"), first.meta.guard_exit), (Some("1/3"), Some(1)));
    let feedback = play.repo.read(".runner/state/feedback.json");
    assert!(feedback.contains("this session changed what failed: net_test.go"), "{feedback}");
    assert_proven(&play);
}

#[test]
fn a_guard_that_names_no_test_is_charged_if_the_session_changed_a_file_of_tests() {
    for (file, verdict) in [("tests/get.sh", VerdictName::RedGuard), ("get.sh", VerdictName::Accepted)] {
        let play = flaky_play(1);
        play.script()
            .step(1, &format!("mkdir -p tests; echo true > {file}; answer done 'One.'"))
            .guard_step(1, "exit 7");
        let first = play.run_first(4);
        assert_eq!((first.meta.verdict, first.receipt.trailer("Runner-Guard-Flaky")), (verdict, Some("1/2")), "{file}");
        assert_proven(&play);
    }
}

#[test]
fn a_guard_that_fails_twice_is_charged_once_and_one_that_wrote_a_file_runs_once() {
    let play = flaky_play(2);
    play.script().step(1, "echo one > one.txt; answer done 'One.'").guard_step(1, FAILS).guard_step(2, FAILS);
    play.script().step(2, "echo two > two.txt; answer done 'Two.'").guard_step(3, "echo done > formatted.txt; exit 1");
    play.run().exits(4);
    for (iter, attempts, has_rerun) in [(1, "1/3", true), (2, "2/3", false)] {
        let seen = play.iteration_at(iter);
        assert_eq!(
            (seen.meta.verdict, seen.receipt.trailer("Runner-Attempts")),
            (VerdictName::RedGuard, Some(attempts))
        );
        assert_eq!(seen.receipt.trailer("Runner-Guard-Flaky"), None);
        assert_eq!(play.has_record(&format!("{iter:04}/guard-rerun.log")), has_rerun, "{iter}");
    }
    assert_proven(&play);
}
