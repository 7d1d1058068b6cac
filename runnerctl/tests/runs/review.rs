//! Reviews by an agent: a reviewer's session decides, and leaves no other trace.

use std::fs;

use protocol::words::{ReviewVerdict, RunStatus};

use crate::play::{ExpectedRow, HOUR, RUN, RunPlay, node, sample};

const ACCEPTED: ExpectedRow = ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" };

/// A run of `iterations` that an agent reviews; the reviewer uses the same script.
fn play(iterations: u32) -> RunPlay {
    RunPlay::with_tree(&sample(), |config| {
        config
            .top(&format!("max_iterations = {iterations}"))
            .section("[review]\nby = \"agent\"\ncriteria = \"No stubs.\"")
    })
}

#[test]
fn a_node_that_the_reviewer_accepts_passes() {
    let play = play(1);
    play.script().step(1, "echo 1 > result.txt; answer done 'The result is written.'");
    play.script().step(2, "echo looking; accept 'result.txt:1'");
    let seen = play.run_first(4);
    seen.assert_row(&ACCEPTED);
    let review = seen.receipt.trailer("Runner-Review").expect("the receipt names the review");
    assert!(review.starts_with("accept prompt=sha256:") && review.contains(" output=sha256:"), "{review}");
    let facts = seen.meta.review.as_ref().expect("the record has its facts");
    assert_eq!((facts.by.as_str(), facts.verdict, facts.tries), ("command", Some(ReviewVerdict::Accept), 1));
    assert_eq!(play.record(1, "reviewer.log"), "looking\n");
    assert!(play.record(1, "review.json").contains("result.txt:1"));
    let prompt = play.script().prompt(2);
    assert_eq!(play.record(1, "review.prompt.md"), prompt);
    for part in ["# Your role: reviewer", "Goal of b", "b holds", "No stubs.", "+++ b/result.txt", "+1\n"] {
        assert!(prompt.contains(part), "no `{part}` in {prompt}");
    }
    assert!(!prompt.contains("b/.runner/"), "the runner's own files are not under review");
    play.home.ctl_in(&play.repo, &["log", "1", "--review"]).exits(0);
    let phases: Vec<&str> = seen.meta.phases.iter().map(|time| time.phase.as_str()).collect();
    assert!(phases.contains(&"review"), "{phases:?}");
    assert_eq!(play.repo.run_state("HEAD").usage.sessions, 2, "the reviewer's session counts");
}

#[test]
fn a_rejection_charges_an_attempt_and_its_reasons_are_in_the_next_prompt() {
    let play = play(2);
    play.script().step(1, "echo 1 > result.txt; answer done 'It is done.'");
    play.script().step(2, "reject 'result.txt:1 is a stub; wanted: 2'");
    play.script().step(3, "echo 2 > result.txt; answer done 'It is done now.'").step(4, "accept 'It is 2.'");
    play.run().exits(4);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Rejected", status: "done", guard: "pass", attempts: "1/3" })
        .assert_detail("is a stub");
    assert!(seen.receipt.trailer("Runner-Review").unwrap().starts_with("reject prompt="));
    assert!(play.script().prompt(3).contains("result.txt:1 is a stub; wanted: 2"));
    assert!(play.script().prompt(3).contains("the review rejected"));
    play.iteration_at(2).assert_row(&ExpectedRow { attempts: "1/3", ..ACCEPTED });
    assert_eq!((play.repo.node("b").passes, play.repo.node("b").attempts), (true, 1));
}

#[test]
fn a_red_guard_is_not_reviewed() {
    let play = play(1);
    play.script().guard_step(1, "exit 1");
    play.run_first(4).assert_row(&ExpectedRow { verdict: "RedGuard", status: "done", guard: "fail", attempts: "1/3" });
    assert_eq!(play.script().session_count(), 1);
}

#[test]
fn a_reviewer_that_fails_is_asked_again_and_three_times_are_a_fault_that_keeps_the_work() {
    let play = play(2);
    play.script().step(1, "echo 1 > result.txt; answer done 'It is done.'");
    play.script().step(2, "echo first; exit 3").step(3, "answer done 'That is no review.'").step(4, "kill -9 $$");
    play.script().step(5, "answer done 'Done before.'").step(6, "exit 3").step(7, "accept 'At last.'");
    play.run().exits(4);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Fault", status: "fault", guard: "pass", attempts: "0/3" });
    seen.assert_detail("reviewer failed: crash: it died of signal 9");
    assert_eq!(seen.receipt.trailer("Runner-Review"), None);
    assert!(seen.receipt.trailer("Runner-Guard").unwrap().starts_with("exit=0 "));
    assert_eq!(seen.meta.review.as_ref().map(|facts| (facts.tries, facts.verdict)), Some((3, None)));
    assert_eq!(play.record(1, "reviewer.1.log"), "first\n");
    assert!(play.record(1, "review.2.json").contains("That is no review."));
    assert_eq!(play.repo.show(&seen.receipt.commit, "result.txt"), "1");
    let seen = play.iteration_at(2);
    seen.assert_row(&ACCEPTED);
    assert_eq!(seen.meta.review.as_ref().map(|facts| facts.tries), Some(2));
    assert_eq!(play.repo.run_state("HEAD").consecutive_faults, 0);
}

/// The refs under a prefix, by name.
fn refs(play: &RunPlay, prefix: &str) -> Vec<String> {
    let listed = play.repo.git(&["for-each-ref", "--format=%(refname)", prefix]);
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn what_a_reviewer_writes_is_kept_under_a_ref_and_undone() {
    let play = play(1);
    play.script().step(1, "echo 1 > result.txt; echo 1 > more.txt; git add more.txt; answer done 'It is done.'");
    play.script().step(
        2,
        "echo 2 > result.txt; rm more.txt; echo x > planted.txt; echo '- A question?' >> .runner/state/questions.md
         echo {} > .runner/state/run_state.json; git config core.pager cat; accept 'I fixed it myself.'",
    );
    let seen = play.run_first(4);
    seen.assert_row(&ACCEPTED);
    assert_eq!((play.repo.show("HEAD", "result.txt"), play.repo.show("HEAD", "more.txt")), ("1".into(), "1".into()));
    assert_eq!(play.repo.git(&["ls-files", "planted.txt"]), "");
    assert!(!play.repo.show("HEAD", ".runner/state/questions.md").contains("A question?"));
    let [rescue] = &refs(&play, "refs/runner/rescue")[..] else { panic!("one rescue") };
    assert_eq!(rescue, &format!("refs/runner/rescue/{RUN}/0001-review1"));
    assert_eq!((play.repo.show(rescue, "result.txt"), play.repo.show(rescue, "planted.txt")), ("2".into(), "x".into()));
    assert!(play.repo.show(rescue, ".runner/state/questions.md").contains("A question?"));
    let wrote = &seen.meta.review.as_ref().expect("facts").wrote;
    for path in ["more.txt", "planted.txt", "result.txt", ".runner/state/questions.md"] {
        assert!(wrote.iter().any(|written| written == path), "{path} is not in {wrote:?}");
    }
    let reverted = seen.receipt.trailer("Runner-Reverted").expect("the receipt lists the restored paths");
    assert!(reverted.contains(".runner/state/run_state.json") && reverted.contains(".git/config"), "{reverted}");
    assert_eq!(play.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_reviewer_that_rewrites_history_leaves_the_work_as_it_was() {
    for step in [
        "git reset -q --hard HEAD~2; accept 'Fine.'",
        "git add -A; git commit -qm mine; accept 'Fine.'",
        "git checkout -q -f main; accept 'Fine.'",
        "git update-ref -d refs/heads/runner/play; accept 'Fine.'",
        "git checkout -q --detach; git rm -rq --cached .; rm -r .runner/state; accept 'Fine.'",
    ] {
        let play = play(1);
        play.script()
            .step(1, "echo 0 > own.txt; git add own.txt; git commit -qm own; echo 1 > result.txt; answer done 'Done.'");
        play.script().step(2, step);
        let seen = play.run_first(4);
        seen.assert_row(&ACCEPTED);
        assert_eq!(play.repo.git(&["log", "--format=%s", "-2"]).lines().last(), Some("own"), "{step}");
        assert_eq!(play.repo.show("HEAD", "result.txt"), "1", "{step}");
        assert_eq!(refs(&play, "refs/runner/rescue").len(), 1, "{step}");
        assert_eq!(seen.meta.review.as_ref().expect("facts").wrote.len(), 1, "{step}");
    }
}

const UNAVAILABLE: &str =
    r#"answer_json '{"error":{"class":"unavailable","message":"usage limit","until":"2099-01-01T00:00:00Z"}}'"#;

#[test]
fn a_reviewer_whose_service_is_out_is_waited_for_and_the_work_is_committed() {
    let play = play(2);
    play.script().step(1, "echo 1 > result.txt; answer done 'It is done.'").step(2, UNAVAILABLE);
    play.script().step(3, "answer done 'It was done.'").step(4, "accept 'It is.'");
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Unavailable", status: "waiting", guard: "pass", attempts: "0/3" });
    assert_eq!(play.repo.show("HEAD", "result.txt"), "1");
    play.home.ctl_in(&play.repo, &["resume", "--now"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(2).assert_row(&ACCEPTED);
}

/// Replaces the program of the kind `codex` with the scripted agent, which answers in its usual way.
const CODEX: &str = r#"#!/bin/sh
case $1 in --version) echo 'codex-cli 0.169.0'; exit;; esac
exec "$(dirname "$0")/agent-one"
"#;

/// A run of the kind `codex` that the kind `command` reviews.
fn play_of_two_kinds(more: &str) -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| {
        let review = "[review]\nby = \"agent\"\n[executor.review]\nkind = \"command\"\ncommand = [\"agent-one\"]\n";
        config.kind("codex").top("max_iterations = 2").section(&format!("{review}{more}"))
    });
    play.home.install("codex", CODEX);
    let login = play.home.path().join(".codex/auth.json");
    fs::create_dir_all(login.parent().expect("it has a folder")).expect("a folder can be made");
    fs::write(login, "{}").expect("a login can be written");
    play.script().step(1, "echo 1 > result.txt; answer done 'It is done.'").step(2, UNAVAILABLE);
    play.script().step(3, "answer done 'It was done.'").step(4, "accept 'It is.'");
    play
}

#[test]
fn no_session_is_begun_while_nobody_can_review_it() {
    let play = play_of_two_kinds("");
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    let run = play.client().run(play.repo.path());
    let out: Vec<&str> = run.outages.iter().map(|outage| outage.agent.as_str()).collect();
    assert_eq!(out, ["command"], "it is the reviewer's service that is out");
    assert_eq!(
        (play.script().session_count(), run.iteration),
        (2, 2),
        "no session works on a task that nobody can review"
    );
}

#[test]
fn a_fallback_reviews_while_the_service_of_the_reviewer_is_out() {
    let play = play_of_two_kinds("fallback = [\"codex\"]");
    play.run().exits(4);
    let seen = play.iteration_at(2);
    seen.assert_row(&ACCEPTED);
    assert_eq!(seen.meta.review.expect("facts").by, "codex 0.169.0");
}

#[test]
fn a_reviewer_that_is_misconfigured_fails_the_run_with_the_fix_and_keeps_the_work() {
    let play = play(1);
    play.script().step(1, "echo 1 > result.txt; answer done 'It is done.'");
    play.script().step(2, r#"answer_json '{"error":{"class":"misconfigured","message":"log in first"}}'"#);
    play.run().exits(9);
    play.iteration_at(1).assert_row(&ExpectedRow {
        verdict: "Misconfigured",
        status: "fault",
        guard: "skipped",
        attempts: "0/3",
    });
    assert_eq!(play.repo.show("HEAD", "result.txt"), "1");
    let reason = play.client().run(play.repo.path()).summary.reason.expect("it says why");
    assert_eq!(reason.message, "the reviewer: log in first");
}

#[test]
fn a_reviewer_has_what_agent_and_guard_have_left_of_the_budget() {
    let (play, clock) = RunPlay::with_clock(|config| config.section("[review]\nby = \"agent\""));
    let gates = ["working", "guarding", "reviewing"].map(|name| play.script().gate(name));
    play.script()
        .step(1, "echo 1 > result.txt; gate working; answer done 'It is done.'")
        .guard_step(1, "gate guarding")
        .step(2, "echo 2 > result.txt; gate reviewing; exec sleep 600");
    // Each of the three takes a third of the budget, which is less than the silence limit.
    let late = || {
        for (gate, part) in gates.iter().zip(1..) {
            gate.wait_reached();
            clock.set(part * (HOUR / 6 + 1), 0);
            gate.open();
        }
    };
    play.run_while(late).exits(4);
    play.iteration_at(1)
        .assert_row(&ExpectedRow { verdict: "Timeout", status: "timeout", guard: "skipped", attempts: "0/3" })
        .assert_detail("review");
    assert_eq!(play.repo.show("HEAD", "result.txt"), "1", "the reviewer's changes are reverted nevertheless");
    assert_eq!(play.client().run(play.repo.path()).summary.state, RunStatus::TimedOut);
}

#[test]
fn a_reviewer_that_is_cut_off_leaves_the_node_open_and_nothing_behind() {
    for (command, state) in [("pause", RunStatus::Paused), ("cancel", RunStatus::Cancelled)] {
        let play = play(3);
        let gate = play.script().gate("review");
        play.script().step(1, "echo 1 > result.txt; answer done 'It is done.'");
        play.script().step(2, "echo 2 > result.txt; gate review; accept 'Fine.'");
        play.start_run();
        gate.wait_reached();
        let phase = play.client().run(play.repo.path()).phase.expect("a phase");
        assert_eq!(phase.name.as_str(), "review");
        let args: &[&str] = if command == "pause" { &["pause", "--now"] } else { &["cancel"] };
        play.home.ctl_in(&play.repo, args).exits(0);
        play.client().wait_for(play.repo.path(), state);
        play.iteration_at(1).assert_row(&ExpectedRow {
            verdict: "Interrupted",
            status: "interrupted",
            guard: "skipped",
            attempts: "0/3",
        });
        assert_eq!(play.repo.show("HEAD", "result.txt"), "1");
        assert!(!play.repo.node("b").passes);
    }
}

#[test]
fn a_review_that_died_with_the_daemon_is_given_again_on_what_was_there() {
    let mut play = play(1);
    let gate = play.script().gate("review");
    play.script().step(1, "echo 1 > result.txt; answer done 'It is done.'");
    play.script().step(2, "echo 2 > result.txt; git add -A; git commit -qm mine; gate review; accept 'Fine.'");
    play.script().step(3, "cat result.txt; accept 'Fine, too.'");
    play.start_run();
    gate.wait_reached();
    play.kill_and_restart();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(1).assert_row(&ACCEPTED);
    assert_eq!(play.script().session_count(), 3, "the session that had ended is not repeated");
    assert_eq!(play.record(1, "reviewer.log"), "1\n", "the second one sees what the session has left");
    assert_eq!(play.script().prompt(3), play.script().prompt(2));
    assert_eq!(refs(&play, "refs/runner/rescue").len(), 1);
}

#[test]
fn an_orderly_stop_of_the_daemon_leaves_the_review_to_the_next_one() {
    let mut play = play(1);
    let gate = play.script().gate("review");
    play.script().step(1, "answer done 'It is done.'").step(2, "gate review; accept 'Fine.'").step(3, "accept 'Fine.'");
    play.start_run();
    gate.wait_reached();
    play.stop_and_restart();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(1).assert_row(&ACCEPTED);
    assert_eq!(play.script().session_count(), 3);
}

#[test]
fn a_secret_that_a_session_has_written_is_not_in_the_record_of_its_review() {
    let play = RunPlay::with_tree(&sample(), |config| {
        config.top("max_iterations = 1").section("[review]\nby = \"agent\"\n[env]\nagent = [\"SERVICE_TOKEN\"]")
    });
    play.script().step(1, "printf %s \"$SERVICE_TOKEN\" > leak.txt; answer done 'It is done.'");
    play.script().step(2, "reject \"leak.txt holds $SERVICE_TOKEN\"");
    let env = [("SERVICE_TOKEN", "geheim-0123456789")];
    play.home.ctl_with(&play.repo, &["start", "--wait", "--yes", "--id", RUN], &env).exits(4);
    for file in ["review.prompt.md", "review.json", "meta.json"] {
        assert!(!play.record(1, file).contains("geheim-0123456789"), "{file}");
    }
    let feedback = play.repo.show("HEAD", ".runner/state/feedback.json");
    assert!(feedback.contains("leak.txt holds [redacted: SERVICE_TOKEN]"), "{feedback}");
}

#[test]
fn the_root_itself_is_reviewed() {
    let mut tree = sample();
    tree.root.children.clear();
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 3").section("[review]\nby = \"agent\""));
    play.script().step(1, "echo 1 > result.txt; answer done 'All of it.'").step(2, "accept 'All of it.'");
    play.run().exits(0);
    assert!(play.repo.tree("HEAD").root.passes);
    let mut tree = play.repo.tree("HEAD");
    assert!(node(&mut tree, "root").passes);
}
