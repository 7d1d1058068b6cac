//! The overhead of an iteration as various things grow, each at three sizes, and what a long run leaves behind
//! permanently.
//!
//! Growth of the repository's files and of the tree's nodes is measured in `iteration`.

use std::path::Path;
use std::process::Command;

use protocol::api::EventApiClient as _;
use protocol::request::Subscription;
use runner_testkit::{Client, Daemon, Home, Repo};

use crate::fixture::{self, DiskKind};
use crate::observe::resident_mib;
use crate::phases::{self, IterationPhases};
use crate::report::{Report, print_progress};
use crate::samples::Samples;
use crate::{crowd, drive};

/// Number of iterations over which the median is taken.
const WINDOW: u32 = 10;
const FILES: u32 = 10;

/// How far it goes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GrowthArgs {
    /// Iterations on the branch.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 2_000])]
    iterations: Vec<u32>,
    /// Repositories that are registered.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100])]
    repositories: Vec<u32>,
    /// Clients that receive every event.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 20, 200])]
    subscribers: Vec<u32>,
    /// Mebibytes that each session prints.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 10, 100])]
    output: Vec<u32>,
}

/// Measures everything, on tmpfs.
pub(crate) fn measure(args: &GrowthArgs, report: &mut Report) {
    let dimensions =
        [("repositories", &args.repositories), ("subscribers", &args.subscribers), ("MiB of output", &args.output)];
    for (what, sizes) in dimensions {
        print_progress(&format!("growth: {what}"));
        let measured: Vec<_> = sizes.iter().map(|size| (*size, measure_with(what, *size))).collect();
        let mut group = report.group(format!("phases without a program, against {what}"));
        for (size, times) in measured {
            group.add_times(size.to_string(), &times);
        }
    }
    measure_long_run(&args.iterations, report);
}

/// Measures a few iterations with the given amount of something.
fn measure_with(what: &str, size: u32) -> Samples {
    let home = Home::new_in(&DiskKind::Memory.folder());
    let repo = fixture::create_repository(&home, "one", FILES);
    if what == "MiB of output" {
        repo.script().always(&format!("head -c {} /dev/zero\nanswer done 'Printed.'", u64::from(size) << 20));
    }
    drive::plan_run(&repo, 2 * WINDOW, &fixture::build_tree(6 * WINDOW));
    if what == "repositories" {
        crowd::register_repositories(&home, size - 1);
    }
    let _daemon = home.daemon();
    let listeners = if what == "subscribers" { size } else { 0 };
    let _open: Vec<_> = (0..listeners).map(|_| subscribe_client(&home)).collect();
    drive::start_run(&home, &repo);
    overhead_samples(&last_iterations(&repo))
}

/// Returns a client that is subscribed to every event and reads none.
fn subscribe_client(home: &Home) -> (Client, impl Sized + use<>) {
    let client = home.client();
    let events = client.wait(client.rpc().subscribe_events(Subscription::default()));
    (client, events.expect("the daemon sends its events"))
}

/// Returns the last [`WINDOW`] iterations.
fn last_iterations(repo: &Repo) -> Vec<IterationPhases> {
    let mut all = phases::read_iterations(repo, drive::RUN_ID);
    all.split_off(all.len().saturating_sub(WINDOW as usize))
}

/// Returns their overhead.
fn overhead_samples(iterations: &[IterationPhases]) -> Samples {
    iterations.iter().map(IterationPhases::overhead).collect()
}

/// Drives one run to each of the sizes, and reports what it costs and leaves behind.
fn measure_long_run(sizes: &[u32], report: &mut Report) {
    let home = Home::new_in(&DiskKind::Memory.folder());
    let repo = fixture::create_repository(&home, "one", FILES);
    let leaves = sizes.iter().max().copied().unwrap_or_default() + 1;
    drive::plan_run(&repo, WINDOW, &fixture::build_flat_tree(leaves, 3));
    let daemon = home.daemon();
    drive::start_run(&home, &repo);
    let mut done = WINDOW;
    for size in sizes {
        print_progress(&format!("growth: {size} iterations"));
        if *size > done {
            drive::resume_run(&home, &repo, size - done);
            done = *size;
        }
        report_size(&home, &repo, &daemon, *size, report);
    }
}

fn report_size(home: &Home, repo: &Repo, daemon: &Daemon, iterations: u32, report: &mut Report) {
    let mut group = report.group(format!("after {iterations} iterations on the branch"));
    let last = last_iterations(repo);
    group.add_times("phases without a program, the last ones", &overhead_samples(&last));
    phases::report_phases(&last, &mut group);
    group.add_number("daemon, resident", resident_mib(daemon.pid()), "MiB", None);
    let count = repo.git(&["count-objects", "-v"]);
    for (name, what) in [("count: ", "objects that lie about"), ("packs: ", "packs")] {
        let count = count.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown");
        group.add(what, count);
    }
    let folders = [
        ("git's folder", repo.path().join(".git")),
        ("records", repo.path().join(".runner/iterations")),
        ("committed state", repo.path().join(".runner/state")),
        ("the daemon's state and logs", home.state()),
    ];
    for (what, folder) in folders {
        group.add_number(what, size_mib(&folder), "MiB", None);
    }
}

/// Returns the disk usage of everything in a folder, in MiB.
fn size_mib(folder: &Path) -> f64 {
    let output = Command::new("du").arg("-sk").arg(folder).output().expect("du can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).map_or(f64::NAN, |kib| kib / 1024.0)
}
