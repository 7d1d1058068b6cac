//! Several runs: sequential in one repository, parallel in several.

use protocol::words::RunStatus;
use runner_testkit::{Home, Repo};

use runner_testkit::invariants::{assert_consistent, splitting_repo};

const AT_THE_GATE: &str = "echo $n >> done.txt; gate session; answer done 'It is done.'";

#[test]
fn second_run_waits_and_begins_where_the_first_one_ended() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "gate session; echo first >> done.txt; answer done 'It is done.'");
    repo.script().step(2, "echo second >> done.txt; answer done 'It is done.'");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", "a", "-m", "First"]).exits(0);
    gate.wait_reached();
    home.ctl_in(&repo, &["start", "--yes", "--id", "b", "-m", "Second"]).exits(0);
    assert_eq!(repo.script().session_count(), 1);
    gate.open();
    home.client().wait_until(repo.path(), |run| run.summary.id == "b" && run.summary.state == RunStatus::Completed);
    assert_eq!(repo.run_state("runner/b").base.as_deref(), Some(repo.git(&["rev-parse", "runner/a"]).as_str()));
    assert_eq!(repo.show("runner/b", "done.txt"), "first\nsecond");
    assert_consistent(&repo);
}

#[test]
fn run_that_is_resumed_goes_back_to_its_branch() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_iterations = 1"));
    repo.script().step(1, "echo a >> a.txt; answer retry 'Not yet.'");
    repo.script().always("echo $n >> b.txt; answer done 'It is done.'");
    let _daemon = home.daemon();
    home.run(&repo, &["--id", "a", "-m", "First"]).exits(4);
    home.run(&repo, &["--id", "b", "-m", "Second"]).exits(0);
    let end_of_b = repo.head();
    home.ctl_in(&repo, &["resume", "--run", "a", "--more", "3", "--wait"]).exits(0);
    assert_eq!(repo.git(&["rev-parse", "runner/b"]), end_of_b, "nothing is committed to the branch of another run");
    assert_eq!(repo.git(&["branch", "--show-current"]), "runner/a");
    assert_consistent(&repo);
}

#[test]
fn one_slot_is_used_by_one_repository_at_a_time() {
    let home = Home::new();
    home.allow_repositories(1);
    let one = home.scripted_repo("one");
    let two = home.scripted_repo("two");
    let gate = one.script().gate("session");
    one.script().step(1, AT_THE_GATE);
    let ended = one.script().folder().join("sessions.log");
    let early = format!("grep -q 'end 1' {} || touch \"$kit/overlap\"; ", ended.display());
    two.script().step(1, &format!("{early} echo $n >> done.txt; answer done 'It is done.'"));
    let _daemon = home.daemon();
    home.ctl_in(&one, &["start", "--yes", "-m", "First"]).exits(0);
    gate.wait_reached();
    home.ctl_in(&two, &["start", "--yes", "-m", "Second"]).exits(0);
    gate.open();
    home.client().wait_for(two.path(), RunStatus::Completed);
    assert_consistent(&one);
    assert_consistent(&two);
}

#[test]
fn two_slots_are_used_side_by_side() {
    let home = Home::new();
    home.allow_repositories(2);
    let repos: Vec<Repo> = ["one", "two"].map(|name| home.scripted_repo(name)).into();
    let gates: Vec<_> = repos.iter().map(|repo| repo.script().gate("session")).collect();
    let _daemon = home.daemon();
    for repo in &repos {
        repo.script().step(1, AT_THE_GATE);
        home.ctl_in(repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    }
    gates.iter().for_each(runner_testkit::SessionGate::wait_reached);
    gates.iter().for_each(runner_testkit::SessionGate::open);
    for repo in &repos {
        home.client().wait_for(repo.path(), RunStatus::Completed);
        assert_consistent(repo);
    }
}

#[test]
fn linked_work_tree_shares_the_queue_of_its_repository() {
    let home = Home::new();
    let repo = splitting_repo(&home, "one");
    let linked = home.path().join("repos/linked").display().to_string();
    repo.git(&["worktree", "add", "-q", "--detach", &linked]);
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", "a", "-m", "First"]).exits(0);
    home.ctl(&["start", "--yes", "--id", "b", "-m", "Second", "--wait", &linked]).exits(0);
    assert_eq!(repo.script().session_count(), 8);
    assert_eq!(repo.show("runner/a", "log.txt").lines().count(), 4);
    assert_eq!(repo.git(&["branch", "--show-current"]), "runner/a");
    assert_consistent(&repo);
}
