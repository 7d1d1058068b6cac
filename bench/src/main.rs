//! `runner-bench`: measures how fast, how large and how hard to kill the product is.
//!
//! It drives the real daemon and client in separate homes and observes them from outside. It is not a test: no figure
//! is asserted. A missed budget is reported; the exit code is 1 if something was lost, duplicated or left alive.

mod counts;
mod crashes;
mod crowd;
mod drive;
mod durable;
mod fixture;
mod flood;
mod growth;
mod iteration;
mod kills;
mod machine;
mod observe;
mod phases;
mod publish;
mod report;
mod samples;
mod scale;
mod stop;
mod tree;
mod verify;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::report::Report;

/// Measures the product.
#[derive(Debug, Parser)]
#[command(name = "runner-bench", version)]
struct BenchArgs {
    #[command(subcommand)]
    what: Option<Measurement>,
    /// Prints one JSON object instead of tables.
    #[arg(long, global = true)]
    json: bool,
}

/// One measurement; without one, all that have a budget.
#[derive(Debug, Clone, Subcommand)]
enum Measurement {
    /// Overhead of an iteration, phase by phase, against git's own time, and what durable writes cost.
    Iteration(iteration::IterationArgs),
    /// The rules on large task trees.
    Tree(tree::TreeArgs),
    /// A daemon with many repositories: `status`, memory, wake-ups.
    Crowd(crowd::CrowdArgs),
    /// Time from `cancel` and `pause --now` to the end of every process.
    Stop(stop::StopArgs),
    /// Speed of taking output and the daemon's memory, against `cat > /dev/null`.
    Flood(flood::FloodArgs),
    /// `runnerctl verify` against `git log --stat`.
    Verify(verify::VerifyArgs),
    /// Making a workspace, against `git worktree add` and a copy of the packs.
    Workspace(workspace::WorkspaceArgs),
    /// Publishing a commit of an isolated run, against `git push`.
    Publish(publish::PublishArgs),
    /// Overhead against what grows: iterations, repositories, subscribers, output; and what is kept for ever.
    Growth(growth::GrowthArgs),
    /// How many runs one git server carries: costs that are measured here, in virtual time.
    Scale(scale::ScaleArgs),
    /// Instructions of the rules and of `runnerctl status`, against what is checked in; needs valgrind.
    Counts(counts::CountsArgs),
    /// Time from the death of the daemon to the death of all that it had started, for each case and level.
    Kills(kills::KillsArgs),
    /// Random kills of daemon and shims over a long run: what is lost, doubled, left alive, and when the run continues.
    Crashes(crashes::CrashesArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    let args = BenchArgs::parse();
    let selected = args.what.map_or_else(Measurement::all_with_budget, |what| vec![what]);
    let mut report = Report::new(machine::describe_machine(), args.json);
    for what in selected {
        what.measure(&mut report)?;
    }
    report.finish()?;
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Measurement {
    fn all_with_budget() -> Vec<Self> {
        vec![
            Self::Iteration(iteration::IterationArgs::default()),
            Self::Tree(tree::TreeArgs::default()),
            Self::Crowd(crowd::CrowdArgs::default()),
            Self::Stop(stop::StopArgs::default()),
            Self::Flood(flood::FloodArgs::default()),
            Self::Verify(verify::VerifyArgs::default()),
            Self::Workspace(workspace::WorkspaceArgs::default()),
            Self::Publish(publish::PublishArgs::default()),
        ]
    }

    fn measure(&self, report: &mut Report) -> anyhow::Result<()> {
        match self {
            Self::Iteration(args) => iteration::measure(args, report),
            Self::Tree(args) => tree::measure(args, report),
            Self::Crowd(args) => crowd::measure(args, report),
            Self::Stop(args) => stop::measure(args, report),
            Self::Flood(args) => flood::measure(args, report),
            Self::Verify(args) => verify::measure(args, report),
            Self::Workspace(args) => workspace::measure(args, report),
            Self::Publish(args) => publish::measure(args, report),
            Self::Growth(args) => growth::measure(args, report),
            Self::Scale(args) => scale::measure(args, report)?,
            Self::Counts(args) => counts::measure(args, report)?,
            Self::Kills(args) => kills::measure(args, report),
            Self::Crashes(args) => crashes::measure(args, report),
        }
        Ok(())
    }
}
