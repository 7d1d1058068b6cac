//! The time of `runnerctl verify` against `git log --stat` over the same commits.
//!
//! The product itself creates the branch, with sessions that change a file and ask for another one.

use runner_testkit::{Home, Repo};

use crate::fixture;
use crate::report::{Report, print_progress};
use crate::samples::Samples;

/// How long a branch is audited.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Iterations of the branch.
    #[arg(long, default_value_t = 1_000)]
    iterations: u32,
    /// Leaves of the task tree.
    #[arg(long, default_value_t = 50)]
    leaves: u32,
    /// Times that each is measured.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

impl Default for VerifyArgs {
    fn default() -> Self {
        Self { iterations: 1_000, leaves: 50, rounds: 5 }
    }
}

/// Creates the branch and measures both, alternating.
pub(crate) fn measure(args: &VerifyArgs, report: &mut Report) {
    print_progress(&format!("verify: making {} iterations", args.iterations));
    let home = Home::new();
    let repo = create_long_branch(&home, args);
    let _daemon = home.daemon();
    start_run(&home, &repo);
    let base = repo.run_state("HEAD").base.expect("a run has a base");
    let range = format!("{base}..HEAD");
    let mut log = Samples::default();
    let mut audit = Samples::default();
    for _ in 0..args.rounds {
        log.time(|| repo.git(&["log", "--stat", &range]));
        audit.time(|| home.ctl_in(&repo, &["verify"])).exits(0);
    }
    let mut group = report.group(format!("verify, {} iterations", args.iterations));
    group.add_times("git log --stat", &log);
    group.add_times("runnerctl verify", &audit);
    group.add_ratio("runnerctl verify against git log --stat", &audit, &log, 2.0);
}

fn create_long_branch(home: &Home, args: &VerifyArgs) -> Repo {
    let repo = home.repo("one");
    let limits = format!("max_iterations = {}\nstall_after = 1000000", args.iterations);
    repo.write(".runner/GOAL.md", "# Reach the goal\n");
    repo.commit_config(&repo.config().top(&limits));
    repo.commit_tree(&fixture::build_flat_tree(args.leaves, args.iterations.saturating_add(10)));
    repo.script().always("echo $n > \"file$((n % 20))\"\nanswer retry \"Try $n was not enough.\"");
    repo
}

/// Starts the run and waits until it has used up its iterations, however long that takes.
fn start_run(home: &Home, repo: &Repo) {
    let mut run = home.ctl_command(repo, &["start", "--wait", "--yes", "--id", "bench"]);
    let output = run.output().expect("the client can be started");
    assert_eq!(output.status.code(), Some(4), "the run did not reach its limit: {output:?}");
}
