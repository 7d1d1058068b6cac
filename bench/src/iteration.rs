//! The overhead of an iteration: everything except agent and guard, compared with what git alone needs for status and
//! commit.
//!
//! The product drives a run, then git performs its indispensable commands on an identical repository; the two
//! alternate.

use std::process::Command;
use std::time::Duration;

use protocol::words::PhaseName;
use runner_testkit::{Home, Repo};

use crate::fixture::{self, DiskKind};
use crate::phases::{self, IterationPhases};
use crate::report::{FigureGroup, Report, print_progress};
use crate::samples::Samples;
use crate::{drive, durable};

/// Sizes of repositories with their budgets: a share of git's own time, or for the smallest a time.
const RATIO_LIMIT: f64 = 0.75;
const SMALL_LIMIT: Duration = Duration::from_millis(10);
/// Files of a small repository, and nodes of a minimal tree.
const FEW_FILES: u32 = 10;
const MANY_NODES: u32 = 1_000;

/// How much is measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct IterationArgs {
    /// Tracked files of the repositories.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 10_000, 100_000])]
    files: Vec<u32>,
    /// Nodes of the task trees; the files are then as few as can be.
    #[arg(long, value_delimiter = ',', default_values_t = [20_000])]
    nodes: Vec<u32>,
    /// Turns of each.
    #[arg(long, default_value_t = 6)]
    rounds: u32,
    /// Iterations of a turn.
    #[arg(long, default_value_t = 5)]
    iterations: u32,
    /// Only on one kind of disk.
    #[arg(long)]
    place: Option<DiskKind>,
}

impl Default for IterationArgs {
    fn default() -> Self {
        Self { files: vec![10, 10_000, 100_000], nodes: vec![20_000], rounds: 6, iterations: 5, place: None }
    }
}

/// Measures every size on every kind of disk.
pub(crate) fn measure(args: &IterationArgs, report: &mut Report) {
    for place in
        [DiskKind::Memory, DiskKind::Disk].into_iter().filter(|place| args.place.is_none_or(|only| only == *place))
    {
        for files in &args.files {
            measure_rounds(args, RepoSize { disk: place, files: *files, nodes: 2 * args.leaves() }, report);
        }
        for nodes in &args.nodes {
            measure_rounds(args, RepoSize { disk: place, files: FEW_FILES, nodes: *nodes }, report);
        }
        durable::measure(place, report);
    }
}

impl IterationArgs {
    /// Leaves passed along the way, including the warm-up turn, plus one that stays open.
    fn leaves(&self) -> u32 {
        (self.rounds + 1) * self.iterations + 1
    }
}

#[derive(Debug, Clone, Copy)]
struct RepoSize {
    disk: DiskKind,
    files: u32,
    nodes: u32,
}

/// Times measured at one size.
#[derive(Debug, Default)]
struct IterationTimes {
    iterations: Vec<IterationPhases>,
    git: Samples,
    agent: Samples,
    guard: Samples,
}

fn measure_rounds(args: &IterationArgs, size: RepoSize, report: &mut Report) {
    let RepoSize { disk: place, files, nodes } = size;
    print_progress(&format!("iteration: {files} files, {nodes} nodes, {}", place.name()));
    let home = Home::new_in(&place.folder());
    let [ours, theirs] = ["ours", "theirs"].map(|name| fixture::create_repository(&home, name, files));
    for repo in [&ours, &theirs] {
        drive::plan_run(repo, args.iterations, &fixture::build_tree(nodes));
    }
    let _daemon = home.daemon();
    drive::start_run(&home, &ours);
    let mut times = IterationTimes::default();
    run_git_alone(&home, &theirs, &mut IterationTimes::default());
    for _ in 0..args.rounds {
        drive::resume_run(&home, &ours, args.iterations);
        for _ in 0..args.iterations {
            run_git_alone(&home, &theirs, &mut times);
        }
    }
    times.iterations = phases::read_iterations(&ours, drive::RUN_ID).split_off(args.iterations as usize);
    assert_eq!(times.iterations.len(), (args.rounds * args.iterations) as usize, "each iteration left its events");
    report_times(&times, size, report);
}

/// Lets a session change files, and has git check twice and commit them.
fn run_git_alone(home: &Home, repo: &Repo, times: &mut IterationTimes) {
    times.agent.time(|| fixture::run_agent_bare(home, repo));
    times.guard.time(|| Command::new("true").status().expect("`true` can be started"));
    times.git.time(|| {
        repo.git(&["status", "--porcelain"]);
        repo.git(&["status", "--porcelain"]);
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "-m", "A part is done"]);
    });
}

fn report_times(times: &IterationTimes, RepoSize { disk: place, files, nodes }: RepoSize, report: &mut Report) {
    let mut group = report.group(format!("iteration, {files} files, {nodes} nodes, {}", place.name()));
    let programs = times.agent.median() + times.guard.median();
    let between: Samples = times.iterations.iter().map(IterationPhases::overhead).collect();
    let all = times.iterations.iter().map(IterationPhases::total).collect::<Samples>().minus(programs);
    for (what, overhead) in [("phases without a program", &between), ("all but agent's and guard's own time", &all)] {
        if files == FEW_FILES && nodes < MANY_NODES {
            group.add_bounded(what, overhead, 50, SMALL_LIMIT);
        } else {
            group.add_times(what, overhead);
        }
    }
    group.add_times("git status twice, git add -A, git commit", &times.git);
    let limit = (files > FEW_FILES).then_some(RATIO_LIMIT);
    group.add_ratio("phases without a program, against git", &between, &times.git, limit);
    group.add_ratio("all but agent and guard, against git", &all, &times.git, limit);
    report_breakdown(times, &mut group);
}

fn report_breakdown(times: &IterationTimes, group: &mut FigureGroup<'_>) {
    let phase_samples =
        |phase: &str| times.iterations.iter().map(|iteration| iteration.phase_time(phase)).collect::<Samples>();
    phases::report_phases(&times.iterations, group);
    for (phase, bare) in [(PhaseName::Work, &times.agent), (PhaseName::Guard, &times.guard)] {
        let phase = phase.to_string();
        group.add_times(format!("around the program: {phase}"), &phase_samples(&phase).minus(bare.median()));
    }
}
