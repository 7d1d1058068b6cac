//! What a person says to a run: committed before the next session, once, whatever happens in between.

use protocol::words::RunStatus;
use runner_testkit::{Home, Output, Receipt, Repo};
use serde_json::Value;

use crate::play::{Play, RUN, sample};

const NOTES: &str = ".runner/state/notes.md";

/// Returns the messages of the commits that a command of a person's has made, oldest first.
fn humans(repo: &Repo) -> Vec<Receipt> {
    let commits = repo.git(&["rev-list", "--reverse", "--first-parent", &format!("runner/{RUN}")]);
    let receipts = commits.lines().map(|commit| Receipt::read(repo, commit));
    receipts.filter(|receipt| receipt.trailer("Runner-Human").is_some()).collect()
}

/// Asserts that a command was refused, and why.
#[track_caller]
fn refused(output: &Output, code: i32, why: &str) {
    output.exits(code);
    assert!(output.stderr.contains(why), "`{}` does not say `{why}`", output.stderr);
}

/// Returns the answer of a command.
fn told(home: &Home, repo: &Repo, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let output = home.ctl_in(repo, &args);
    output.exits(0);
    output.json()
}

#[test]
fn a_note_is_read_until_one_session_has_answered_to_it() {
    let play = Play::with(&sample(), |config| config.top("max_iterations = 3"));
    let gate = play.script().gate("session");
    play.script().step(1, "gate session; answer retry 'Not yet.'");
    play.script().step(2, "exit 3").step(3, "answer retry 'Still not.'");
    play.begin();
    gate.reached();
    let reply = told(&play.home, &play.repo, &["note", "Use sqlx,\nnot diesel"]);
    assert_eq!((&reply["id"], &reply["pending"], &reply["commit"]), (&"n1".into(), &true.into(), &Value::Null));
    assert_eq!(reply["waits_for"], "a session is at work");
    assert!(humans(&play.repo).is_empty(), "nothing is committed under a session");
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let shown: Vec<bool> = (1..=3).map(|n| play.script().prompt(n).contains("not diesel")).collect();
    assert_eq!(shown, [false, true, true], "a session that crashed has answered to nothing");
    assert_eq!(play.seen(2).receipt.trailer("Runner-Notes"), None);
    assert_eq!(play.seen(3).receipt.trailer("Runner-Notes"), Some("n1"));
    assert_eq!(play.repo.run_state("HEAD").notes_used, ["n1"]);
    let [human] = &humans(&play.repo)[..] else { panic!("one commit of a person's") };
    assert_eq!(human.trailer("Runner-Human"), Some("note"));
    assert_eq!(play.repo.git(&["diff", "--name-only", &format!("{0}~1", human.commit), &human.commit]), NOTES);
}

#[test]
fn a_note_is_committed_at_once_where_no_session_runs_and_takes_nothing_along() {
    let play = Play::new();
    play.script().step(1, "answer retry 'Not yet.'");
    play.run().exits(4);
    play.repo.write("draft.txt", "not committed\n");
    let reply = told(&play.home, &play.repo, &["note", "-m", "First"]);
    assert_eq!(reply["commit"], play.repo.head());
    let reply = told(&play.home, &play.repo, &["note", "Second"]);
    assert_eq!((&reply["id"], &reply["pending"]), (&"n2".into(), &false.into()));
    assert_eq!(play.repo.git(&["status", "--porcelain"]), "?? draft.txt");
    assert!(play.repo.read(NOTES).contains("- [n1] First\n\n- [n2] Second\n"));
    play.repo.git(&["clean", "-fq"]);
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    assert_eq!(play.seen(2).receipt.trailer("Runner-Notes"), Some("n1, n2"));
}

#[test]
fn a_note_that_was_acknowledged_survives_kill_and_is_committed_once() {
    let home = Home::new();
    home.contain_at_most("walk");
    let repo = home.repo("one");
    repo.write(".runner/GOAL.md", "# Reach the goal\n");
    repo.configure(&repo.config().top("max_iterations = 2"));
    repo.plant(&sample());
    let gate = repo.script().gate("session");
    repo.script().step(1, "gate session; answer retry 'Not yet.'").step(2, "answer retry 'Not yet.'");
    repo.script().step(3, "answer retry 'Not yet.'");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", RUN]).exits(0);
    gate.reached();
    let reply = told(&home, &repo, &["note", "Mind the gap"]);
    assert_eq!(reply["pending"], true);
    daemon.kill();
    let _next = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Limit);
    assert_eq!(humans(&repo).len(), 1);
    assert!(repo.script().prompt(2).contains("Mind the gap"));
    assert_eq!(repo.run_state("HEAD").notes_used, ["n1"]);
}

#[test]
fn a_note_needs_a_run_that_reads_it() {
    let home = Home::new();
    let repo = home.scripted("one");
    repo.script().step(1, "echo done > done.txt; answer done 'It is done.'");
    let _daemon = home.daemon();
    refused(&home.ctl_in(&repo, &["note", "Anybody there?"]), 1, "is not registered");
    home.run(&repo, &["--id", RUN, "-m", "Do it"]).exits(0);
    refused(&home.ctl_in(&repo, &["note", "Too late"]), 6, "the run is completed");
}

#[test]
fn a_note_to_a_run_that_waits_in_the_queue_is_in_its_first_prompt() {
    let play = Play::new();
    play.script().step(1, "answer retry 'Not yet.'");
    play.home.ctl_in(&play.repo, &["start", "--yes", "--id", RUN, "--queue-only"]).exits(0);
    let reply = told(&play.home, &play.repo, &["note", "From the start"]);
    assert_eq!(reply["waits_for"], "the run has not begun");
    play.home.ctl_in(&play.repo, &["resume", "--yes", "--wait"]).exits(4);
    assert!(play.script().prompt(1).contains("From the start"));
    assert_eq!(play.seen(1).receipt.trailer("Runner-Notes"), Some("n1"));
}

#[test]
fn what_somebody_has_changed_by_hand_is_not_written_over() {
    let play = Play::new();
    play.script().step(1, "answer retry 'Not yet.'");
    play.run().exits(4);
    play.repo.write(NOTES, "# Notes\n\nBy hand.\n");
    let output = play.home.ctl_in(&play.repo, &["note", "By command"]);
    refused(&output, 6, "notes.md has changes that are not committed");
    assert_eq!(play.repo.read(NOTES), "# Notes\n\nBy hand.\n");
    play.repo.commit("By hand");
    play.home.ctl_in(&play.repo, &["note", "By command"]).exits(0);
    assert!(play.repo.read(NOTES).starts_with("# Notes\n\nBy hand.\n\n- [n1] By command\n"));
}
