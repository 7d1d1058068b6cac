//! Reviews by a person: finished work waits for a decision, and the decision is a separate iteration.

use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::{ProgramOutput, Repo, Tty};

use crate::play::{ExpectedRow, RUN, RunPlay, SeenIteration, sample};

const PENDING: ExpectedRow = ExpectedRow { verdict: "Pending", status: "done", guard: "pass", attempts: "0/3" };
const ACCEPTED: ExpectedRow = ExpectedRow { verdict: "Accepted", ..PENDING };

fn play(iterations: u32) -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| {
        config.top(&format!("max_iterations = {iterations}")).section("[review]\nby = \"human\"")
    });
    play.script().step(1, "echo 1 > result.txt; answer done 'The result is written.'");
    play
}

/// A run that waits for a person to review `b`.
pub(crate) fn waiting_play(iterations: u32) -> RunPlay {
    let play = play(iterations);
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    play
}

/// Asserts that a command was refused, and the message.
#[track_caller]
pub(crate) fn assert_refused(output: &ProgramOutput, says: &[&str]) {
    output.exits(6);
    for says in says {
        assert!(output.stderr.contains(says), "`{}` does not say `{says}`", output.stderr);
    }
}

/// Asserts that an iteration consists only of a person's decision.
#[track_caller]
fn assert_by_person(repo: &Repo, seen: &SeenIteration, review: &str) {
    let trailer = |name| seen.receipt.trailer(name);
    assert_eq!((trailer("Runner-Role"), trailer("Runner-Review")), (Some("human"), Some(review)));
    for of_a_session in ["Runner-Agent", "Runner-Prompt", "Runner-Output", "Runner-Usage", "Runner-Notes"] {
        assert_eq!(trailer(of_a_session), None, "{of_a_session}");
    }
    let outside = repo.git(&["diff", "--name-only", &seen.meta.from, &seen.receipt.commit, "--", ".", ":!.runner"]);
    assert_eq!((trailer("Runner-Mode"), outside.as_str()), (Some("decompose"), ""));
    assert_eq!(seen.meta.review.as_ref().map(|review| review.by.as_str()), Some("human"));
}

#[test]
fn a_finished_node_waits_for_a_person_and_passes_when_it_is_approved() {
    let play = waiting_play(3);
    play.iteration_at(1).assert_row(&PENDING);
    assert_eq!((play.repo.node("b").passes, play.repo.node("b").attempts), (false, 0));
    assert_eq!(play.repo.show("HEAD", "result.txt"), "1", "what is reviewed is committed");
    let reason = play.client().run(play.repo.path()).summary.reason.expect("it says what it waits for");
    assert_eq!(reason.message, "task b is done and awaits your review: `runnerctl log 1 --diff --run play` shows it");
    assert_eq!(
        reason.command.as_deref(),
        Some("runnerctl approve --run play --iter 1, or: runnerctl reject --run play --iter 1 REASON")
    );
    play.script().step(2, "answer retry 'Later.'");
    let output = play.home.review_in(&play.repo, &["approve", "--json"]);
    output.exits(0);
    let reply = output.json();
    assert_eq!((&reply["node"], &reply["iteration"], &reply["verdict"]), (&"b".into(), &1.into(), &"accept".into()));
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let seen = play.iteration_at(2);
    seen.assert_row(&ACCEPTED);
    assert_by_person(&play.repo, &seen, "accept");
    assert_eq!(seen.receipt.trailer("Runner-Guard"), None, "nothing has changed since the guard ran");
    assert_eq!(seen.receipt.body, "approved by a person");
    assert!(play.record(2, "review.json").contains("accept"));
    assert!(play.repo.show("HEAD", ".runner/state/progress.md").contains("b — Title of b (iteration 0002)"));
    assert_eq!(play.script().session_count(), 2, "the word needs no session");
    assert_eq!(play.iteration_at(3).meta.node, "c1", "the run continues");
    assert_refused(&play.home.review_in(&play.repo, &["approve"]), &["nothing awaits your review", "runnerctl status"]);
}

#[test]
fn a_rejection_charges_an_attempt_and_its_reason_is_in_the_next_prompt() {
    let play = waiting_play(3);
    play.script().step(2, "echo 2 > result.txt; answer done 'It is two now.'");
    play.home.review_in(&play.repo, &["reject", "It must be 2, not 1."]).exits(0);
    let waits_again = |run: &RunView| run.summary.state == RunStatus::Waiting && run.recent[0].iter == 3;
    play.client().wait_until(play.repo.path(), waits_again);
    let seen = play.iteration_at(2);
    seen.assert_row(&ExpectedRow { verdict: "Rejected", attempts: "1/3", ..PENDING })
        .assert_detail("It must be 2, not 1.");
    assert_by_person(&play.repo, &seen, "reject");
    assert!(play.script().prompt(2).contains("It must be 2, not 1."));
    play.iteration_at(3).assert_row(&ExpectedRow { attempts: "1/3", ..PENDING });
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    assert!(play.iteration_at(4).meta.node == "b" && play.repo.node("b").passes, "a word is not kept off by a ceiling");
}

#[test]
fn an_approval_moves_no_branch_while_another_one_is_checked_out() {
    let play = waiting_play(2);
    let branch = format!("runner/{RUN}");
    let tip = play.repo.git(&["rev-parse", &branch]);
    play.repo.git(&["switch", "-q", "main"]);
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    let held = play.client().wait_for(play.repo.path(), RunStatus::Held);
    let reason = held.summary.reason.expect("it says what it waits for");
    assert!(reason.message.starts_with("branch main is checked out in "), "{reason:?}");
    assert_eq!(play.repo.git(&["rev-parse", &branch]), tip);
    play.repo.git(&["switch", "-q", &branch]);
    play.home.ctl_in(&play.repo, &["resume"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(2).assert_row(&ACCEPTED);
}

#[test]
fn a_word_needs_something_that_waits_for_it_and_a_rejection_a_reason() {
    let play = play(1);
    let gate = play.script().gate("session");
    play.script().step(1, "gate session; answer done 'The result is written.'");
    let output = play.home.ctl_in(&play.repo, &["approve", "--iter", "1"]);
    output.exits(1);
    assert!(output.stderr.contains("no run here yet"), "{}", output.stderr);
    play.start_run();
    gate.wait_reached();
    assert_refused(
        &play.home.review_in(&play.repo, &["approve"]),
        &["nothing awaits your review: run play is running"],
    );
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    play.home.review_in(&play.repo, &["reject", "  "]).exits(2);
    play.home.review_in(&play.repo, &["approve", "--run", "other"]).exits(1);
    play.home.review_in(&play.repo, &["approve", "--run", "pl"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(2).assert_row(&ACCEPTED);
}

#[test]
fn what_waits_for_a_person_waits_through_restarts_and_requests_that_do_not_decide() {
    let mut play = waiting_play(2);
    for restart in [RunPlay::kill_and_restart, RunPlay::stop_and_restart] {
        restart(&mut play);
        assert_eq!(play.client().run(play.repo.path()).summary.state, RunStatus::Waiting);
    }
    let ways = ["is waiting for your review of task b", "runnerctl approve"];
    assert_refused(&play.home.ctl_in(&play.repo, &["resume"]), &ways);
    assert_refused(&play.home.ctl_in(&play.repo, &["resume", "--now"]), &ways);
    assert_refused(&play.home.ctl_in(&play.repo, &["step"]), &ways);
    play.home.ctl_in(&play.repo, &["note", "Take care"]).exits(0);
    play.home.ctl_in(&play.repo, &["pause"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Paused);
    play.home.ctl_in(&play.repo, &["resume"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    assert_eq!(play.script().session_count(), 1, "no session runs meanwhile");
    play.home.ctl_in(&play.repo, &["cancel"]).exits(0);
    assert_refused(
        &play.home.review_in(&play.repo, &["approve"]),
        &["run play is cancelled", "runnerctl start --id play"],
    );
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(2).assert_row(&ACCEPTED);
}

#[test]
fn a_run_that_was_paused_is_paused_again_after_the_word() {
    let play = waiting_play(5);
    play.home.ctl_in(&play.repo, &["pause"]).exits(0);
    let status = play.home.ctl_in(&play.repo, &["status"]).stdout;
    assert!(
        status.contains("paused by the user; ") && status.contains("runnerctl approve --run play --iter 1"),
        "{status}"
    );
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Paused);
    play.iteration_at(2).assert_row(&ACCEPTED);
    assert_eq!(play.script().session_count(), 1);
}

#[test]
fn files_that_a_person_has_committed_since_are_guarded_before_an_approval_counts() {
    let play = waiting_play(2);
    play.script().guard_step(2, "echo checked; exit 0");
    play.repo.write("result.txt", "1 and a half\n");
    play.repo.commit("Finish it by hand");
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let seen = play.iteration_at(2);
    seen.assert_row(&ACCEPTED);
    assert_by_person(&play.repo, &seen, "accept");
    assert!(seen.receipt.trailer("Runner-Guard").is_some_and(|guard| guard.starts_with("exit=0 ")));
    assert_eq!(play.record(2, "guard.log"), "checked\n");
    assert_eq!(play.repo.show("HEAD", "result.txt"), "1 and a half");
}

#[test]
fn an_approval_of_what_the_guard_does_not_pass_any_more_is_red() {
    let play = waiting_play(3);
    play.script().guard_step(2, "echo 'FAIL: half'; exit 1").step(2, "answer retry 'I see.'");
    play.repo.write("result.txt", "half\n");
    play.repo.commit("Break it by hand");
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let seen = play.iteration_at(2);
    seen.assert_row(&ExpectedRow { verdict: "RedGuard", guard: "fail", attempts: "1/3", ..PENDING });
    assert!(!play.repo.node("b").passes);
    assert!(play.script().prompt(2).contains("FAIL: half"));
}

#[test]
fn a_word_that_was_acknowledged_survives_kill_and_is_said_once() {
    let mut play = waiting_play(2);
    let gate = play.script().gate("guard");
    play.script().guard_step(2, "gate guard; exit 0").guard_step(3, "exit 0");
    play.repo.write("more.txt", "more\n");
    play.repo.commit("More");
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    gate.wait_reached();
    play.kill_and_restart();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(2).assert_row(&ACCEPTED);
    let words = play.repo.receipts().into_iter().filter(|receipt| receipt.trailer("Runner-Review").is_some());
    assert_eq!(words.count(), 1);
}

#[test]
fn an_interrupted_review_is_repeated_when_the_run_continues() {
    let play = waiting_play(2);
    let gate = play.script().gate("guard");
    play.script().guard_step(2, "gate guard; exit 0").guard_step(3, "exit 0");
    play.repo.write("more.txt", "more\n");
    play.repo.commit("More");
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    gate.wait_reached();
    play.home.ctl_in(&play.repo, &["pause", "--now"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Paused);
    assert!(play.has_record("0002.w1"), "it left no commit");
    play.home.ctl_in(&play.repo, &["resume"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(2).assert_row(&ACCEPTED);
}

#[test]
fn what_a_guard_has_written_is_committed_where_the_word_is_cut_off() {
    let play = waiting_play(3);
    let gate = play.script().gate("guard");
    play.script().guard_step(2, "echo half > lock; gate guard; exit 0");
    play.repo.write("more.txt", "more\n");
    play.repo.commit("More");
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    gate.wait_reached();
    play.home.ctl_in(&play.repo, &["pause", "--now"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Paused);
    let seen = play.iteration_at(2);
    seen.assert_row(&ExpectedRow { verdict: "Interrupted", status: "interrupted", guard: "skipped", ..PENDING });
    let trailers = ["Runner-Role", "Runner-Guard-Wrote", "Runner-Guard"].map(|name| seen.receipt.trailer(name));
    assert_eq!(trailers, [Some("human"), Some("lock"), None]);
}

#[test]
fn changes_that_are_not_committed_hold_the_word_until_they_are() {
    let play = waiting_play(2);
    play.repo.write("result.txt", "by hand\n");
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Held);
    play.repo.commit("By hand");
    play.home.ctl_in(&play.repo, &["resume"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(2).assert_row(&ACCEPTED);
}

#[test]
fn without_reviews_in_the_configuration_nothing_waits_any_more() {
    let play = waiting_play(2);
    let config = play.repo.read(".runner/state/config.toml").replace("by = \"human\"", "by = \"off\"");
    play.repo.write(".runner/state/config.toml", &config);
    play.repo.commit("No reviews");
    assert_refused(&play.home.review_in(&play.repo, &["approve"]), &["nothing awaits your review"]);
    play.script().step(2, "answer done 'It was done.'");
    play.home.ctl_in(&play.repo, &["resume", "--yes"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(2).assert_row(&ACCEPTED);
    assert_eq!(play.repo.git(&["rev-parse", "--abbrev-ref", "HEAD"]), format!("runner/{RUN}"));
}

#[test]
fn what_the_guard_makes_of_the_tree_is_put_back_where_a_person_has_decided() {
    let play = waiting_play(2);
    play.script().guard_step(2, "sed -i 's/Title of c1/Title of another/' .runner/state/tree.json; exit 0");
    play.repo.write("more.txt", "more\n");
    play.repo.commit("More");
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let seen = play.iteration_at(2);
    seen.assert_row(&ACCEPTED);
    assert_eq!(play.repo.node("c1").title, "Title of c1");
    assert_eq!(seen.receipt.trailer("Runner-Reverted"), Some(".runner/state/tree.json"));
}

#[test]
fn a_review_names_its_iteration_or_is_confirmed_on_a_terminal() {
    let play = waiting_play(3);
    let unnamed = play.home.ctl_in(&play.repo, &["approve"]);
    let named = "no iteration is named; 1 of run play awaits your review, of task b";
    assert!(unnamed.exits(6).stderr.contains(named), "{}", unnamed.stderr);
    assert!(unnamed.stderr.contains("runnerctl approve --run play --iter 1"), "{}", unnamed.stderr);
    for command in [&["approve", "--iter", "2"][..], &["reject", "Not this.", "--iter", "2"]] {
        let other = "iteration 2 of run play does not await your review: iteration 1 does, of task b";
        assert_refused(&play.home.ctl_in(&play.repo, command), &[other, "runnerctl log 1 --diff --run play"]);
    }
    play.script().step(2, "answer retry 'Later.'");
    for (answer, passes) in [("n", false), ("y", true)] {
        let mut tty = Tty::start(&play.home.ctl_command(&play.repo, &["approve"]), (80, 24));
        tty.wait_for_text("iteration 1 of run play, 1 file, +1 -0");
        tty.keys(&format!("{answer}\n"));
        tty.wait_exit();
        if passes {
            play.client().wait_for(play.repo.path(), RunStatus::Limit);
        }
        assert_eq!(play.repo.node("b").passes, passes);
    }
}

#[test]
fn a_limit_hides_no_review_and_applies_after_it() {
    let play = waiting_play(1);
    let reason = play.client().run(play.repo.path()).summary.reason.expect("it says what it waits for");
    assert_eq!(
        reason.command.as_deref(),
        Some("runnerctl approve --run play --iter 1, or: runnerctl reject --run play --iter 1 REASON")
    );
    assert_refused(
        &play.home.ctl_in(&play.repo, &["resume", "--more", "5"]),
        &["is waiting for your review of task b"],
    );
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    let run = play.client().wait_for(play.repo.path(), RunStatus::Limit);
    assert_eq!(run.summary.reason.and_then(|reason| reason.command).as_deref(), Some("runnerctl resume --more 20"));
    assert!(play.repo.node("b").passes);
}
