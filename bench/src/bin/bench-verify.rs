//! `bench-verify`: the time of `runnerctl verify` against `git log --stat` over the same commits, in one run on the same
//! machine.
//!
//! The branch is made by the product: sessions that change a file and ask for another one. Nothing is asserted.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Parser;
use protocol::tree::{Node, TREE_VERSION, TaskTree};
use runner_testkit::Home;

/// Measures how fast a branch is audited.
#[derive(Debug, Parser)]
#[command(name = "bench-verify", version)]
struct Args {
    /// Iterations of the branch.
    #[arg(long, default_value_t = 1_000)]
    iterations: u32,
    /// Leaves of the task tree.
    #[arg(long, default_value_t = 50)]
    leaves: u32,
    /// Times that each is measured; the shortest counts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let home = Home::new();
    let repo = home.repo("one");
    let limits = format!("max_iterations = {}\nstall_after = 1000000", args.iterations);
    repo.write(".runner/GOAL.md", "# Reach the goal\n");
    repo.configure(&repo.config().top(&limits)).plant(&tree(&args));
    repo.script().always("echo $n > \"file$((n % 20))\"\nanswer retry \"Try $n was not enough.\"");
    let _daemon = home.daemon();
    let made = Instant::now();
    let mut run = home.command("runnerctl");
    run.args(["--no-spawn", "start", "--wait", "--yes", "--id", "bench"]).current_dir(repo.path());
    let output = run.output().context("starting the run")?;
    ensure!(output.status.code() == Some(4), "the run did not reach its limit: {output:?}");
    let made = made.elapsed();
    let base = repo.run_state("HEAD").base.context("a run has a base")?;
    let range = format!("{base}..HEAD");
    let log = fastest(args.rounds, || repo.git(&["log", "--stat", &range]).is_empty())?;
    let audit = fastest(args.rounds, || home.ctl_in(&repo, &["verify"]).code != 0)?;
    let ratio = audit.as_secs_f64() / log.as_secs_f64();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} iterations made in {made:.1?}", args.iterations)?;
    writeln!(out, "git log --stat   {log:>10.1?}")?;
    writeln!(out, "runnerctl verify {audit:>10.1?}")?;
    writeln!(out, "ratio            {ratio:>10.2}   (at most 2)")?;
    Ok(())
}

fn tree(args: &Args) -> TaskTree {
    let leaf = |number: u32| Node {
        id: format!("leaf.{number}"),
        order: i64::from(number),
        title: format!("Part {number}"),
        goal: format!("Part {number} of the whole works, and nothing that worked before is lost."),
        acceptance: vec![format!("the tests of part {number} are green")],
        passes: false,
        attempts: 0,
        max_attempts: args.iterations.saturating_add(10),
        children: Vec::new(),
    };
    let root = Node { id: "root".to_owned(), children: (1..=args.leaves).map(leaf).collect(), ..leaf(0) };
    TaskTree { version: TREE_VERSION, root }
}

/// Returns the shortest time of several; an error where one of them has `failed`.
fn fastest(rounds: u32, failed: impl Fn() -> bool) -> anyhow::Result<Duration> {
    let mut shortest = Duration::MAX;
    for _ in 0..rounds.max(1) {
        let begun = Instant::now();
        ensure!(!failed(), "it has nothing to say, or found a violation");
        shortest = shortest.min(begun.elapsed());
    }
    Ok(shortest)
}
