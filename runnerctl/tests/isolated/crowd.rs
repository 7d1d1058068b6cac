//! Many at once: twenty repositories, one of which has four isolated runs alongside one in place.

use protocol::api::RunApiClient as _;
use protocol::words::RunStatus;
use runner_testkit::{Client, Home, Repo, SessionGate};

use crate::kit::{start, workspace};

/// Returns the states of all runs, as the daemon reports them.
fn run_states(client: &Client) -> Vec<RunStatus> {
    let all = client.wait(client.rpc().status_all()).expect("the daemon answers");
    all.iter().filter_map(|status| status.run.as_ref()).map(|run| run.summary.state).collect()
}

fn count(states: &[RunStatus], expected: RunStatus) -> usize {
    states.iter().filter(|state| **state == expected).count()
}

#[test]
fn four_isolated_runs_and_one_in_place_ask_and_are_answered_and_none_is_blamed_for_another() {
    const ASKS: &str =
        "printf '\\n- Which database?\\n' >> .runner/state/questions.md; echo x > x.txt; answer done 'Asked.'";
    let home = Home::new();
    home.allow_repositories(10);
    let repo = home.scripted_repo("plain");
    let gate = repo.script().gate("work");
    repo.script().step(1, &format!("gate work; {ASKS}")).always(ASKS);
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--in-place", "--id", "here", "-m", "Do it."]).exits(0);
    gate.wait_reached();
    let ids = ["a", "b", "c", "d"];
    for id in ids {
        start(&home, &repo, id, &["--base", "main"]);
    }
    let client = home.client();
    for id in ids {
        client.wait_for(&workspace(&home, &repo, id), RunStatus::Completed);
    }
    gate.open();
    client.wait_for(repo.path(), RunStatus::Completed);
    let run = client.run(repo.path());
    assert_eq!((run.summary.id.as_str(), run.notices.as_slice()), ("here", &[][..]));
    assert_eq!(
        repo.git(&["for-each-ref", "refs/runner/moved"]),
        "",
        "other runs' published branches are not blamed on a session"
    );
    let shown = home.ctl_in(&repo, &["status"]).exits(0).stdout.clone();
    assert!(shown.contains("isolated runs (4)"), "{shown}");
    let all = home.ctl_in(&repo, &["status", "--all"]).exits(0).stdout.clone();
    let names: Vec<&str> = all.lines().skip(1).take(5).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names[1..], ids, "{all}");
    let reply = home.ctl_in(&repo, &["questions", "--json", "."]).exits(0).json();
    let questions = reply["questions"].as_array().expect("questions").clone();
    assert_eq!(questions.len(), 5, "{questions:?}");
    let question = questions[0]["id"].as_str().expect("an id");
    home.ctl_in(&repo, &["answer", question, "Postgres"]).exits(2);
    home.ctl_in(&repo, &["answer", &format!("c/{question}"), "Postgres"]).exits(0);
    for id in ids {
        let has_it = repo.show(&format!("runner/{id}"), ".runner/state/questions.md").contains("Postgres");
        assert_eq!(has_it, id == "c", "{id}");
    }
}

mod slow {
    use super::*;

    #[test]
    fn twenty_repositories_have_their_turns_four_at_a_time() {
        let home = Home::new();
        let repos: Vec<Repo> = (0..20).map(|number| home.scripted_repo(&format!("r{number:02}"))).collect();
        let gates: Vec<_> = repos.iter().map(|repo| repo.script().gate("work")).collect();
        let _daemon = home.daemon();
        for repo in &repos {
            repo.script().always("gate work; echo work > work.txt; answer done 'Done.'");
            home.ctl_in(repo, &["start", "--yes", "--id", "same", "-m", "Do it."]).exits(0);
        }
        let client = home.client();
        gates[..4].iter().for_each(SessionGate::wait_reached);
        let first = run_states(&client);
        assert_eq!((count(&first, RunStatus::Running), count(&first, RunStatus::Queued)), (4, 16), "{first:?}");
        for (gate, repo) in gates.iter().zip(&repos) {
            gate.open();
            client.wait_for(repo.path(), RunStatus::Completed);
            let states = run_states(&client);
            assert!(count(&states, RunStatus::Running) <= 4, "{states:?}");
        }
        for repo in &repos {
            assert_eq!(repo.script().session_count(), 1);
            assert_eq!(repo.show("runner/same", "work.txt"), "work");
        }
    }
}
