//! A run that is driven a given number of iterations at a time, each of which passes a leaf.

use std::thread;
use std::time::Duration;

use protocol::tree::TaskTree;
use protocol::words::RunStatus;
use runner_testkit::{Home, Repo};

/// Id of the run.
pub(crate) const RUN_ID: &str = "it";
/// Polling interval while waiting for the iterations: long, so that polling adds no load.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Commits goal, tree and configuration of a run that stops after the given number of iterations.
pub(crate) fn plan_run(repo: &Repo, iterations: u32, tree: &TaskTree) {
    let config = repo.config().guard_command(&["true"]).top(&format!("max_iterations = {iterations}"));
    repo.write(".runner/GOAL.md", "# Do every part\n");
    repo.commit_config(&config).commit_tree(tree);
}

/// Starts the run and waits until it has used up its iterations.
pub(crate) fn start_run(home: &Home, repo: &Repo) {
    home.ctl_in(repo, &["start", "--yes", "--id", RUN_ID]).exits(0);
    wait_for_limit(home, repo);
}

/// Grants more iterations and waits until the run has used them up.
pub(crate) fn resume_run(home: &Home, repo: &Repo, iterations: u32) {
    home.ctl_in(repo, &["resume", "--more", &iterations.to_string()]).exits(0);
    wait_for_limit(home, repo);
}

fn wait_for_limit(home: &Home, repo: &Repo) {
    let client = home.client();
    loop {
        let run = client.run(repo.path());
        match run.summary.state {
            RunStatus::Limit => return,
            RunStatus::Queued | RunStatus::Running => thread::sleep(POLL_INTERVAL),
            _ => panic!("the run ended otherwise: {:?}", run.summary),
        }
    }
}
