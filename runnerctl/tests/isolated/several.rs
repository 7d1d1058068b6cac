//! Several runs of one repository at once: which one a command refers to, which ones have a slot, and who asks.

use protocol::words::RunStatus;
use runner_testkit::Home;

use crate::kit::{start, workspace};

#[test]
fn two_isolated_runs_and_one_in_place_are_driven_at_once_and_the_others_wait() {
    let home = Home::new();
    home.allow_repositories(10);
    let repo = home.scripted_repo("plain");
    let gate = repo.script().gate("work");
    repo.script().always("gate work; echo work > work.txt; answer done 'Done.'");
    let _daemon = home.daemon();
    let ids = ["a", "b", "c", "d"];
    for id in ids {
        start(&home, &repo, id, &[]);
    }
    home.ctl_in(&repo, &["start", "--yes", "--in-place", "--id", "here", "-m", "Do it."]).exits(0);
    for _ in 0..3 {
        gate.wait_reached();
    }
    let status = home.ctl_in(&repo, &["status", "--json"]).exits(0).json();
    let found: Vec<&str> =
        status["isolated"].as_array().expect("runs").iter().filter_map(|run| run["state"].as_str()).collect();
    assert_eq!(found.iter().filter(|state| **state == "running").count(), 2, "{found:?}");
    assert_eq!(found.iter().filter(|state| **state == "queued").count(), 2, "{found:?}");
    assert_eq!(status["run"]["summary"]["id"], "here");
    let refused = home.ctl_in(&repo, &["pause"]);
    refused.exits(2);
    assert!(refused.stderr.contains("5 runs of") && refused.stderr.contains("pause --run c"), "{}", refused.stderr);
    home.ctl_in(&repo, &["pause", "--run", "b"]).exits(0);
    for _ in 0..5 {
        gate.open();
    }
    let client = home.client();
    for id in ["a", "c", "d"] {
        client.wait_for(&workspace(&home, &repo, id), RunStatus::Completed);
    }
    client.wait_for(repo.path(), RunStatus::Completed);
    for id in ids {
        assert!(repo.git(&["log", "-1", "--format=%s", &format!("runner/{id}")]).contains(id));
    }
    let queue = home.ctl_in(&repo, &["queue", "--ended", "--json"]).exits(0).json();
    assert_eq!(queue["runs"].as_array().map(Vec::len), Some(5));
}

#[test]
fn the_same_question_of_two_runs_is_answered_by_naming_the_run() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    let question = "printf '\\n- Which database?\\n' >> .runner/state/questions.md; echo x > x; answer done 'Asked.'";
    repo.script().always(question);
    let _daemon = home.daemon();
    for id in ["a", "b"] {
        start(&home, &repo, id, &[]);
        home.client().wait_for(&workspace(&home, &repo, id), RunStatus::Completed);
    }
    let reply = home.ctl_in(&repo, &["questions", "--json", "."]).exits(0).json();
    let questions = reply["questions"].as_array().expect("questions").clone();
    assert_eq!(questions.len(), 2, "{questions:?}");
    let id = questions[0]["id"].as_str().expect("an id");
    assert_eq!(questions[1]["id"].as_str(), Some(id));
    let shown = home.ctl_in(&repo, &["questions"]).exits(0).stdout.clone();
    assert!(shown.contains(&format!("a/{id}")) && shown.contains(&format!("b/{id}")), "{shown}");
    let refused = home.ctl_in(&repo, &["answer", id, "Postgres"]);
    refused.exits(2);
    assert!(refused.stderr.contains(&format!("b/{id}")), "{}", refused.stderr);
    home.ctl_in(&repo, &["answer", &format!("b/{id}"), "Postgres"]).exits(0);
    assert!(repo.git(&["show", "runner/b:.runner/state/questions.md"]).contains("Postgres"));
    assert!(!repo.git(&["show", "runner/a:.runner/state/questions.md"]).contains("Postgres"));
}
