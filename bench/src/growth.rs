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
use crate::report::{Report, progress};
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
    /// Clients that are told of every event.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 20, 200])]
    subscribers: Vec<u32>,
    /// Mebibytes that each session prints.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 10, 100])]
    output: Vec<u32>,
}

/// Measures everything, on tmpfs.
pub(crate) fn measure(args: &GrowthArgs, report: &mut Report) {
    let grown =
        [("repositories", &args.repositories), ("subscribers", &args.subscribers), ("MiB of output", &args.output)];
    for (what, sizes) in grown {
        progress(&format!("growth: {what}"));
        let measured: Vec<_> = sizes.iter().map(|size| (*size, with(what, *size))).collect();
        let mut group = report.group(format!("phases without a program, against {what}"));
        for (size, times) in measured {
            group.add_times(size.to_string(), &times);
        }
    }
    long_run(&args.iterations, report);
}

/// Measures a few iterations with the given amount of something.
fn with(what: &str, size: u32) -> Samples {
    let home = Home::new_in(&DiskKind::Memory.folder());
    let repo = fixture::repository(&home, "one", FILES);
    if what == "MiB of output" {
        repo.script().always(&format!("head -c {} /dev/zero\nanswer done 'Printed.'", u64::from(size) << 20));
    }
    drive::plan(&repo, 2 * WINDOW, &fixture::tree(6 * WINDOW));
    if what == "repositories" {
        crowd::register(&home, size - 1);
    }
    let _daemon = home.daemon();
    let listeners = if what == "subscribers" { size } else { 0 };
    let _open: Vec<_> = (0..listeners).map(|_| listening(&home)).collect();
    drive::begin(&home, &repo);
    overhead(&last(&repo))
}

/// Returns a client that is subscribed to every event and reads none.
fn listening(home: &Home) -> (Client, impl Sized + use<>) {
    let client = home.client();
    let events = client.wait(client.rpc().subscribe_events(Subscription::default()));
    (client, events.expect("the daemon sends its events"))
}

/// Returns the last [`WINDOW`] iterations.
fn last(repo: &Repo) -> Vec<IterationPhases> {
    let mut all = phases::iterations(repo, drive::RUN);
    all.split_off(all.len().saturating_sub(WINDOW as usize))
}

/// Returns their overhead.
fn overhead(iterations: &[IterationPhases]) -> Samples {
    iterations.iter().map(IterationPhases::between).collect()
}

/// Drives one run to each of the sizes, and reports what it costs and leaves behind.
fn long_run(sizes: &[u32], report: &mut Report) {
    let home = Home::new_in(&DiskKind::Memory.folder());
    let repo = fixture::repository(&home, "one", FILES);
    let leaves = sizes.iter().max().copied().unwrap_or_default() + 1;
    drive::plan(&repo, WINDOW, &fixture::flat_tree(leaves, 3));
    let daemon = home.daemon();
    drive::begin(&home, &repo);
    let mut done = WINDOW;
    for size in sizes {
        progress(&format!("growth: {size} iterations"));
        if *size > done {
            drive::go_on(&home, &repo, size - done);
            done = *size;
        }
        tell((&home, &repo, &daemon), *size, report);
    }
}

fn tell((home, repo, daemon): (&Home, &Repo, &Daemon), iterations: u32, report: &mut Report) {
    let mut group = report.group(format!("after {iterations} iterations on the branch"));
    let last = last(repo);
    group.add_times("phases without a program, the last ones", &overhead(&last));
    phases::add_parts(&last, &mut group);
    group.add_number("daemon, resident", (resident_mib(daemon.pid()), "MiB"), None);
    let count = repo.git(&["count-objects", "-v"]);
    for (name, what) in [("count: ", "objects that lie about"), ("packs: ", "packs")] {
        let count = count.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown");
        group.add(what, count);
    }
    let kept = [
        ("git's folder", repo.path().join(".git")),
        ("records", repo.path().join(".runner/iterations")),
        ("committed state", repo.path().join(".runner/state")),
        ("the daemon's state and logs", home.state()),
    ];
    for (what, folder) in kept {
        group.add_number(what, (size_mib(&folder), "MiB"), None);
    }
}

/// Returns the disk usage of everything in a folder, in MiB.
fn size_mib(folder: &Path) -> f64 {
    let output = Command::new("du").arg("-sk").arg(folder).output().expect("du can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).map_or(f64::NAN, |kib| kib / 1024.0)
}
