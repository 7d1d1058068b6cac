//! Control by a person: pause, resume, cancel, step, and their own commits between iterations.

use std::process::Stdio;
use std::time::{Duration, Instant};

use protocol::words::RunStatus;
use runner_testkit::{Config, Home, PATIENCE};

use runner_testkit::invariants::{assert_consistent, list_verdicts, print_figure, splitting_repo};

/// Starts a run whose first session waits at a gate with unfinished work.
const AT_THE_GATE: &str = "echo half > half.txt; gate session; answer retry 'Not yet.'";

#[test]
fn pause_takes_effect_after_the_iteration() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, AT_THE_GATE);
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    home.ctl_in(&repo, &["pause"]).exits(0);
    gate.open();
    home.client().wait_for(repo.path(), RunStatus::Paused);
    assert_eq!(list_verdicts(&repo), ["Retry"]);
    home.ctl_in(&repo, &["resume", "--wait"]).exits(0);
    assert_eq!(list_verdicts(&repo), ["Retry", "Accepted"]);
    assert_consistent(&repo);
}

#[test]
fn pause_now_ends_the_session_and_commits_its_work() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, AT_THE_GATE);
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    let client = home.client();
    let began = Instant::now();
    home.ctl_in(&repo, &["pause", "--now"]).exits(0);
    client.wait_for(repo.path(), RunStatus::Paused);
    print_figure(&format!("paused after {:?}", began.elapsed()));
    assert!(began.elapsed() < Duration::from_secs(8), "an agent that obeys is not waited for: {:?}", began.elapsed());
    assert_eq!(list_verdicts(&repo), ["Interrupted"]);
    assert_eq!(repo.show("HEAD", "half.txt"), "half");
    assert_eq!(repo.node("root").attempts, 0);
    home.ctl_in(&repo, &["resume", "--wait"]).exits(0);
    assert_consistent(&repo);
}

#[test]
fn resume_with_more_grants_iterations_in_a_commit_of_its_own() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_iterations = 1"));
    repo.script().step(1, "echo half > half.txt; answer retry 'Not yet.'");
    let _daemon = home.daemon();
    home.run(&repo, &["-m", "Do it"]).exits(4);
    home.ctl_in(&repo, &["resume", "--more", "5", "--wait"]).exits(0);
    assert_eq!(repo.run_state("HEAD").allowance, 5);
    let resumes = repo.git(&["log", "--format=%(trailers:key=Runner-Commit,valueonly)"]);
    assert_eq!(resumes.lines().filter(|line| *line == "resume").count(), 1, "{resumes}");
    assert_consistent(&repo);
}

#[test]
fn cancel_ends_a_live_run_and_keeps_branch_and_work() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, AT_THE_GATE);
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", "it", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    home.ctl_in(&repo, &["cancel"]).exits(0);
    home.client().wait_for(repo.path(), RunStatus::Cancelled);
    assert_eq!(list_verdicts(&repo), ["Interrupted"]);
    assert_eq!(repo.show("runner/it", "half.txt"), "half");
    assert_consistent(&repo);
}

#[test]
fn cancel_of_a_run_that_a_death_interrupted_commits_its_work_first() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().always(AT_THE_GATE);
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    daemon.kill();
    home.wait_all_gone(PATIENCE);
    let _daemon = home.daemon();
    // Before the run's next turn, or in its next session: it could be either.
    home.ctl_in(&repo, &["cancel"]).exits(0);
    home.client().wait_for(repo.path(), RunStatus::Cancelled);
    assert_eq!(repo.show(&repo.receipts()[0].commit, "half.txt"), "half");
    assert!(list_verdicts(&repo).iter().all(|verdict| verdict == "Interrupted"));
    assert_consistent(&repo);
}

#[test]
fn cancel_removes_what_is_queued_and_what_is_paused() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "--id", "it", "-m", "Do it"]).exits(0);
    home.ctl_in(&repo, &["cancel"]).exits(0);
    assert_eq!(home.client().run(repo.path()).summary.state, RunStatus::Cancelled);
    assert_eq!(repo.refs("refs/heads/runner"), Vec::<String>::new(), "nothing was begun");
}

#[test]
fn step_runs_one_iteration_and_pauses() {
    let home = Home::new();
    let repo = splitting_repo(&home, "one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    for iteration in 1..=3 {
        home.ctl_in(&repo, &["step"]).exits(0);
        assert_eq!(repo.script().session_count(), iteration);
        let run = home.client().run(repo.path());
        assert_eq!(run.summary.state, RunStatus::Paused, "{run:#?}");
        assert!(run.summary.reason.expect("it says why").message.contains("the iteration you asked for is done"));
    }
    home.ctl_in(&repo, &["step"]).exits(0);
    assert_eq!(home.client().run(repo.path()).summary.state, RunStatus::Completed);
    home.ctl_in(&repo, &["step"]).exits(6);
    assert_consistent(&repo);
}

#[test]
fn step_that_died_with_the_daemon_stays_a_step() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, AT_THE_GATE);
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    let mut step = home.command("runnerctl");
    step.args(["--no-spawn", "step"]).current_dir(repo.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut step = step.spawn().unwrap();
    gate.wait_reached();
    daemon.kill();
    assert!(!step.wait().unwrap().success());
    let _daemon = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Paused);
    assert_eq!(list_verdicts(&repo), ["Interrupted"]);
    assert_eq!(repo.script().session_count(), 1, "no other session was requested");
}

#[test]
fn step_continues_when_its_client_disconnects() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, AT_THE_GATE);
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    let mut step = home.command("runnerctl");
    step.args(["--no-spawn", "step"]).current_dir(repo.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut step = step.spawn().unwrap();
    gate.wait_reached();
    step.kill().unwrap();
    step.wait().unwrap();
    gate.open();
    home.client().wait_for(repo.path(), RunStatus::Paused);
    assert_eq!(list_verdicts(&repo), ["Retry"]);
}

#[test]
fn step_on_a_stuck_run_says_that_it_is_stuck() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_attempts_default = 1"));
    repo.script().always("echo half > half.txt; answer retry 'Not yet.'");
    let _daemon = home.daemon();
    home.run(&repo, &["-m", "Do it"]).exits(3);
    home.ctl_in(&repo, &["step"]);
    assert_eq!(home.client().run(repo.path()).summary.state, RunStatus::Stuck);
    assert_eq!(repo.script().session_count(), 1);
}

#[test]
fn resume_of_a_stuck_run_is_refused_until_its_node_has_changed() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_attempts_default = 1"));
    repo.script().step(1, "echo half > half.txt; answer retry 'Not yet.'");
    let _daemon = home.daemon();
    home.run(&repo, &["-m", "Do it"]).exits(3);
    let head = repo.head();
    let refused = home.ctl_in(&repo, &["resume", "--more", "5"]);
    refused.exits(6);
    assert!(
        refused.stderr.contains("still stuck") && refused.stderr.contains("runnerctl retry root"),
        "{}",
        refused.stderr
    );
    assert_eq!(repo.head(), head, "a refusal changes nothing");
    let tree = repo.read(".runner/state/tree.json");
    repo.write(".runner/state/tree.json", &tree.replace("\"max_attempts\": 1", "\"max_attempts\": 2"));
    repo.commit("Give it one more attempt");
    home.ctl_in(&repo, &["resume", "--wait"]).exits(0);
}

#[test]
fn start_of_a_run_that_is_running_says_so_and_begins_nothing() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "gate session; echo done > done.txt; answer done 'It is done.'");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", "same", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    let again = home.ctl_in(&repo, &["start", "--yes", "--id", "same"]);
    assert!(again.exits(0).stdout.contains("running already"), "{again:?}");
    gate.open();
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_eq!(repo.script().session_count(), 1);
}

#[test]
fn run_continues_when_the_client_that_waits_for_it_disconnects() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "echo done > done.txt; gate session; answer done 'It is done.'");
    let _daemon = home.daemon();
    let mut wait = home.command("runnerctl");
    wait.args(["--no-spawn", "start", "--yes", "--wait", "-m", "Do it"]);
    let mut wait = wait.current_dir(repo.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    gate.wait_reached();
    wait.kill().unwrap();
    wait.wait().unwrap();
    gate.open();
    home.client().wait_for(repo.path(), RunStatus::Completed);
}

#[test]
fn commit_of_a_person_that_passes_a_node_holds_the_run_until_it_is_taken_back() {
    let home = Home::new();
    let repo = splitting_repo(&home, "one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    home.ctl_in(&repo, &["step"]).exits(0);
    repo.write("notes.txt", "Mine.\n").commit("A harmless commit");
    let tree = repo.read(".runner/state/tree.json");
    repo.write(
        ".runner/state/tree.json",
        &tree.replacen("\"passes\": false", "\"passes\": true", 2).replacen("\"passes\": true", "\"passes\": false", 1),
    );
    repo.commit("Cheat");
    home.ctl_in(&repo, &["resume", "--wait"]).exits(6);
    let run = home.client().run(repo.path());
    assert_eq!(run.summary.state, RunStatus::Held, "{run:#?}");
    assert_eq!(repo.script().session_count(), 1);
    repo.git(&["revert", "--no-edit", "HEAD"]);
    home.ctl_in(&repo, &["resume", "--wait"]).exits(0);
    assert_consistent(&repo);
}

#[test]
fn pass_that_a_person_forged_neither_completes_a_run_nor_is_hidden_by_a_resume() {
    let mut home = Home::new();
    home.expect_forgery();
    let repo = home.scripted_repo("one");
    repo.script().step(1, "answer retry 'Not yet.'");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "-m", "Do it"]).exits(0);
    home.ctl_in(&repo, &["step"]);
    let tree = repo.read(".runner/state/tree.json");
    repo.write(".runner/state/tree.json", &tree.replace("\"passes\": false", "\"passes\": true"));
    repo.commit("Cheat");
    let cheat = repo.head();
    for more in [&["resume", "--wait"][..], &["resume", "--more", "1", "--wait"]] {
        home.ctl_in(&repo, more).exits(6);
        assert_eq!(home.client().run(repo.path()).summary.state, RunStatus::Held);
        assert_eq!(repo.head(), cheat, "nothing is committed on top of it");
    }
    assert_eq!(repo.script().session_count(), 1);
}

#[test]
fn id_that_a_person_changed_in_the_goal_begins_with_a_fresh_tree() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.script().always("echo more >> work.txt; answer done 'It is done.'");
    let _daemon = home.daemon();
    home.run(&repo, &["--id", "first", "-m", "Do it"]).exits(0);
    let goal = repo.read(".runner/GOAL.md");
    repo.write(".runner/GOAL.md", &goal.replace("first", "second"));
    repo.commit("Another id");
    home.run(&repo, &[]).exits(0);
    assert_eq!(repo.run_state("HEAD").run_id.as_deref(), Some("second"));
    assert_eq!(repo.script().session_count(), 2, "the second run did its own work");
    home.ctl_in(&repo, &["start", "--yes", "--id", "FIRST"]).exits(2);
}

#[test]
fn configuration_of_a_clone_is_confirmed_once_and_a_clone_continues_with_the_same_prompt() {
    let home = Home::new();
    let repo = splitting_repo(&home, "one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--queue-only", "--id", "it", "-m", "Do it"]).exits(0);
    home.ctl_in(&repo, &["step"]).exits(0);
    let copy = home.path().join("repos/copy").display().to_string();
    repo.git(&["clone", "-q", "--branch", "main", ".", &copy]);
    home.ctl_in(&repo, &["step"]).exits(0);
    let refused = home.ctl(&["start", "--queue-only", "--id", "it", &copy]);
    refused.exits(6);
    assert!(refused.stderr.contains(&repo.script().agent_program()), "the commands are shown: {}", refused.stderr);
    home.ctl(&["start", "--yes", "--queue-only", "--id", "it", &copy]).exits(0);
    home.ctl(&["step", &copy]).exits(0);
    assert_eq!(repo.script().session_count(), 3);
    assert_eq!(repo.script().prompt(2), repo.script().prompt(3));
}

#[test]
fn configuration_that_was_written_here_is_not_asked_about() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&Config::new(&[&repo.script().agent_program()], &["true"]).guard("baseline = false"));
    let _daemon = home.daemon();
    repo.script().step(1, "echo done > done.txt; answer done 'It is done.'");
    home.ctl_in(&repo, &["start", "--wait", "-m", "Do it"]).exits(0);
}
