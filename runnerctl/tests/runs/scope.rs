//! A run with a scope: what a session or a guard changes elsewhere is kept, restored and told.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use protocol::verify::AuditRule;
use protocol::words::RunStatus;

use crate::play::{ExpectedRow, RunPlay, sample};

const PASSED: ExpectedRow = ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" };
const BROKEN: ExpectedRow = ExpectedRow { verdict: "Broken", status: "retry", guard: "skipped", attempts: "1/3" };

/// A run that may change `src` and Markdown files, but not `src/vendor`.
fn scoped_play(iterations: u32) -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| {
        let config = config.top(&format!("max_iterations = {iterations}"));
        config.section("[scope]\nwrite = [\"/src\", \"*.md\"]\nnever = [\"src/vendor/\"]")
    });
    play.repo.write("src/a.rs", "a\n").write("src/vendor/v.rs", "v\n").write("lib/b.rs", "b\n");
    play.repo.write("docs", "docs\n").write(".gitignore", "/target\n").commit("Code");
    play.script().guard_always("echo green");
    play
}

/// Returns what was restored, according to the receipt.
fn restored(seen: &crate::play::SeenIteration) -> &str {
    seen.receipt.trailer("Runner-Reverted").unwrap_or_default()
}

fn rescue(play: &RunPlay, path: &str) -> String {
    play.repo.show("refs/runner/rescue/play/0001", path)
}

fn assert_proven(play: &RunPlay) {
    play.home.ctl_in(&play.repo, &["verify", "--strict"]).exits(0);
}

#[test]
fn what_a_session_changes_outside_is_kept_and_restored_and_the_rest_passes() {
    let play = scoped_play(2);
    play.script().step(
        1,
        "echo new > src/a.rs; echo new > src/vendor/v.rs; rm lib/b.rs; mkdir x; echo x > x/y; chmod +x docs; \
         mkdir target; echo ignored > target/o; echo s > .env; echo hi > x/README.md; answer done 'Done.'",
    );
    play.script().step(2, "answer retry 'Not yet.'");
    play.run().exits(4);
    let seen = play.iteration_at(1);
    seen.assert_row(&PASSED);
    assert_eq!(restored(&seen), "docs, lib/b.rs, src/vendor/v.rs, x/y");
    assert_eq!(play.repo.git(&["diff", "--name-only", "HEAD~2", "HEAD~1", "--", ":!.runner"]), "src/a.rs\nx/README.md");
    assert_eq!((play.repo.read("src/vendor/v.rs"), play.repo.read("lib/b.rs")), ("v\n".to_owned(), "b\n".to_owned()));
    assert_eq!((play.repo.read("target/o"), play.repo.read(".env")), ("ignored\n".to_owned(), "s\n".to_owned()));
    let mode = fs::metadata(play.repo.path().join("docs")).expect("it is there").permissions().mode();
    assert_eq!((mode & 0o111, play.repo.path().join("x/y").exists()), (0, false));
    assert_eq!((rescue(&play, "src/vendor/v.rs"), rescue(&play, "x/y")), ("new".to_owned(), "x".to_owned()));
    let prompts = [1, 2].map(|session| play.script().prompt(session));
    assert!(prompts[0].contains("## Files that you may change"), "{}", prompts[0]);
    assert!(!prompts[0].contains("outside of the scope") && prompts[1].contains("outside of the scope of this run"));
    assert_proven(&play);
}

#[test]
fn a_claim_of_which_everything_is_outside_is_charged() {
    let play = scoped_play(1);
    play.script().step(1, "echo new > lib/b.rs; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&BROKEN).assert_detail("all that this session changed is outside of it: lib/b.rs");
    assert_eq!((restored(&seen), rescue(&play, "lib/b.rs")), ("lib/b.rs", "new".to_owned()));
    assert_eq!(play.repo.read("lib/b.rs"), "b\n");
    assert_proven(&play);
}

#[test]
fn a_sessions_commits_count_by_what_they_change_together() {
    let play = scoped_play(1);
    play.script().step(
        1,
        "git mv lib/b.rs src/b.rs; git mv src/a.rs lib/a.rs; git commit -qm one; echo x > c; git add c; git commit -qm two; \
         git rm -q c; git commit -qm three; answer done 'Done.'",
    );
    let seen = play.run_first(4);
    seen.assert_row(&PASSED);
    assert_eq!(restored(&seen), "lib/a.rs, lib/b.rs");
    let from = seen.receipt.trailer("Runner-From").expect("it names From");
    let changed = play.repo.git(&["diff", "--no-renames", "--name-status", from, "HEAD", "--", ":!.runner"]);
    assert_eq!(changed, "D\tsrc/a.rs\nA\tsrc/b.rs");
    assert_eq!(rescue(&play, "lib/a.rs"), "a");
    assert_proven(&play);
}

#[test]
fn an_iteration_that_changes_a_file_outside_is_a_violation_and_a_persons_commit_is_none() {
    let play = scoped_play(2);
    play.script().step(1, "echo new > src/a.rs; answer retry 'Not yet.'").step(2, "answer retry 'Nor now.'");
    play.run().exits(4);
    play.repo.write("lib/b.rs", "mine\n").commit("Change it by hand");
    assert_proven(&play);
    let genuine = play.repo.head();
    let message = play.repo.git(&["log", "-1", "--format=%B", "HEAD~1"]);
    play.repo.git(&["reset", "-q", "--hard", "HEAD~2"]);
    let from = play.repo.head();
    play.repo.git(&["checkout", "-q", "ORIG_HEAD~1", "--", "."]);
    play.repo.write("lib/b.rs", "evil\n").git(&["add", "-A"]);
    play.repo.git(&["commit", "-q", "--no-verify", "--cleanup=verbatim", "-m", &(message + "\n")]);
    assert_ne!(from, play.repo.head());
    let output = play.home.ctl_in(&play.repo, &["verify", "--json"]);
    let report = crate::audits::parse_report(&output);
    let found: Vec<_> = report.findings.iter().filter(|finding| finding.rule == AuditRule::Scope).collect();
    assert!(found.len() == 1 && found[0].at == "lib/b.rs", "{report:#?}");
    play.repo.git(&["reset", "-q", "--hard", &genuine]);
}

#[test]
fn links_and_folders_in_the_place_of_a_file_give_way() {
    let play = scoped_play(1);
    play.script().step(
        1,
        "rm docs; mkdir docs; echo in > docs/in.md; rm -r lib; ln -s src lib; ln -sf /bin/true src/vendor/v.rs; \
         echo new > src/a.rs; answer done 'Done.'",
    );
    let seen = play.run_first(4);
    seen.assert_row(&PASSED);
    assert_eq!(restored(&seen), "docs, docs/in.md, lib, lib/b.rs, src/vendor/v.rs");
    assert_eq!((play.repo.read("docs"), play.repo.read("lib/b.rs")), ("docs\n".to_owned(), "b\n".to_owned()));
    assert_eq!((play.repo.read("src/vendor/v.rs"), rescue(&play, "docs/in.md")), ("v\n".to_owned(), "in".to_owned()));
    assert_proven(&play);
}

#[test]
fn a_green_guard_that_writes_outside_is_red() {
    let play = scoped_play(1);
    play.script().guard_step(1, "echo log > report.txt; echo more > README.md; echo green");
    play.script().step(1, "echo new > src/a.rs; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&ExpectedRow { verdict: "RedGuard", status: "done", guard: "fail", attempts: "1/3" });
    assert_eq!((restored(&seen), rescue(&play, "report.txt")), ("report.txt", "log".to_owned()));
    assert_eq!(seen.receipt.trailer("Runner-Guard-Wrote"), Some("README.md"));
    assert!(!play.repo.path().join("report.txt").exists());
    let log = play.record(1, "guard.log");
    assert!(log.contains("The guard wrote outside of the scope of this run: report.txt."), "{log}");
    let failure = play.repo.feedback("HEAD").nodes["b"].failures.last().cloned().expect("it failed");
    assert!(failure.text.contains("outside of the scope of this run: report.txt"), "{}", failure.text);
    assert_proven(&play);
}

#[test]
fn what_is_restored_is_the_same_where_the_daemon_is_killed_before_the_guard_ends() {
    let mut play = scoped_play(1);
    play.home.limit_containment("walk");
    play.kill_and_restart();
    let gate = play.script().gate("guard");
    play.script().guard_step(1, "echo log > report.txt; gate guard");
    play.script().step(1, "echo new > src/a.rs; echo new > lib/b.rs; answer done 'Done.'");
    play.start_run();
    gate.wait_reached();
    assert_eq!(play.repo.read("lib/b.rs"), "b\n");
    play.kill_and_restart();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let seen = play.iteration_at(1);
    assert_eq!((seen.receipt.verdict(), restored(&seen)), ("RedGuard", "lib/b.rs, report.txt"));
    assert_proven(&play);
}
