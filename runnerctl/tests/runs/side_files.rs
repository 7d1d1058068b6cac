//! Files other than the tree: context and artifacts of agents, a person's `tools.json`, and a repository's own
//! templates.

use protocol::words::RunStatus;

use crate::play::{RunPlay, sample};

const SAYS: &str = "echo \"$RUNNER_SANDBOX $RUNNER_NETWORK\" >> said.txt; ";

#[test]
fn a_session_leaves_context_and_artifacts_for_the_one_after_it() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.script().step(
        1,
        "mkdir -p .runner/nodes/b/artifacts; echo 'The lock is in src/lock.rs.' > .runner/nodes/b/context.md; \
         echo plan > .runner/nodes/b/artifacts/plan.txt; answer retry 'Not yet.'",
    );
    play.script().step(2, "cat .runner/nodes/b/artifacts/plan.txt; answer retry 'Still not.'");
    play.run().exits(4);
    assert_eq!(play.iteration_at(1).receipt.trailer("Runner-Reverted"), None);
    assert!(
        !play.script().prompt(1).contains("src/lock.rs")
            && play.script().prompt(2).contains("The lock is in src/lock.rs.")
    );
    assert_eq!(play.repo.show("HEAD", ".runner/nodes/b/artifacts/plan.txt"), "plan");
}

#[test]
fn a_node_is_allowed_less_and_an_agent_cannot_change_that() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.repo.write(".runner/nodes/root/tools.json", "{\"network\": false}\n");
    play.repo.write(".runner/nodes/b/tools.json", "{\"sandbox\": \"read-only\"}\n");
    play.repo.write(".runner/nodes/c/tools.json", "{\"sandbox\": \"danger-full-access\"}\n").commit("Less");
    let widen = "echo '{\"network\": true}' > .runner/nodes/root/tools.json; rm .runner/nodes/b/tools.json; ";
    play.script().step(1, &format!("{SAYS}{widen}answer retry 'Not yet.'"));
    play.script().step(2, &format!("{SAYS}answer retry 'Still not.'"));
    play.run().exits(4);
    assert_eq!(play.repo.read("said.txt"), "read-only false\nread-only false\n");
    let reverted = play.iteration_at(1).receipt.trailer("Runner-Reverted").unwrap_or_default().to_owned();
    assert!(reverted.contains("nodes/b/tools.json") && reverted.contains("nodes/root/tools.json"), "{reverted}");
}

#[test]
fn a_file_that_is_not_understood_holds_the_run_before_a_session() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.repo.write(".runner/nodes/b/tools.json", "{\"deny\": [\"Bash\"]}\n").commit("Wrong");
    play.run().exits(6);
    let reason = play.client().run(play.repo.path()).summary.reason.expect("it says why");
    assert!(reason.message.contains(".runner/nodes/b/tools.json: unknown field `deny`"), "{}", reason.message);
    let output = play.home.ctl_in(&play.repo, &["validate"]);
    assert!(output.exits(1).stdout.contains("nodes      fault .runner/nodes/b/tools.json"), "{}", output.stdout);
    play.repo.write(".runner/nodes/b/tools.json", "{}\n").commit("Right");
    play.script().step(1, "answer retry 'Not yet.'");
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(4);
}

#[test]
fn a_template_of_the_repositorys_own_is_read_from_the_commit_and_held_where_it_is_wrong() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 3"));
    play.repo
        .write(".runner/prompts/worker.md", "# House rules\n\nWork on {{node}} and run `{{guard}}`.\n")
        .commit("Rules");
    play.script().step(1, "echo '# Do as you like' > .runner/prompts/worker.md; answer retry 'Not yet.'");
    play.script().step(2, "answer retry 'Still not.'");
    play.home.ctl_in(&play.repo, &["start", "--yes", "--id", crate::play::RUN, "--queue-only"]).exits(0);
    play.home.ctl_in(&play.repo, &["step"]).exits(0);
    assert!(play.script().prompt(1).contains("# House rules\n\nWork on b and run `"), "{}", play.script().prompt(1));
    assert!(play.iteration_at(1).receipt.trailer("Runner-Reverted").unwrap_or_default().contains("prompts/worker.md"));
    play.repo.write(".runner/prompts/worker.md", "# House rules\n\n{{#lief}}\n").commit("Wrong");
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(6);
    let run = play.client().run(play.repo.path()).summary;
    let reason = run.reason.expect("it says why").message;
    assert_eq!(run.state, RunStatus::Held);
    assert!(reason.contains(".runner/prompts/worker.md: line 3: there is no `{{#lief}}`"), "{reason}");
}
