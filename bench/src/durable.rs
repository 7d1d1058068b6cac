//! Durable writes: the cost of one on a kind of disk, and how many the product makes per iteration.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use runner_testkit::{FaultyDaemon, Home, SystemFault};

use crate::drive;
use crate::fixture::{self, DiskKind};
use crate::report::Report;
use crate::samples::Samples;

const ROUNDS: u32 = 50;
/// Iterations of two runs: calls that the longer one makes more often belong to iterations, not to startup or shutdown.
/// Few, because every call of the daemon stops under strace, so each iteration takes seconds.
const ITERATIONS: [u32; 2] = [1, 3];
/// More leaves than the runs pass.
const LEAVES: u32 = 10;
const SYNC_CALLS: &str = "fsync,fdatasync,syncfs,sync";

/// Measures a write the way the product does it, and counts the calls that wait for the disk.
pub(crate) fn measure(disk: DiskKind, report: &mut Report) {
    let mut group = report.group(format!("durable writes, {}", disk.name()));
    let folder = tempfile::tempdir_in(disk.folder()).expect("a folder can be made");
    let mut plain = Samples::default();
    let mut durable = Samples::default();
    for _ in 0..ROUNDS {
        plain.time(|| write_file(folder.path(), false));
        durable.time(|| write_file(folder.path(), true));
    }
    group.add_times("4 KiB written and renamed", &plain);
    group.add_times("the same, file and folder flushed", &durable);
    match count_calls(disk) {
        Some(calls) => {
            for (call, count) in calls {
                group.add_number(format!("{call} in an iteration"), count, "calls", None);
            }
        }
        None => group.add("calls in an iteration", "not counted: strace is missing"),
    }
}

fn write_file(folder: &Path, is_durable: bool) {
    let new = folder.join("new");
    let path = folder.join("file");
    let mut file = File::create(&new).expect("a file can be made");
    file.write_all(&[b'x'; 4096]).expect("a file can be written");
    if is_durable {
        file.sync_all().expect("a file can be flushed");
    }
    fs::rename(new, path).expect("a file can be renamed");
    if is_durable {
        File::open(folder).and_then(|folder| folder.sync_all()).expect("a folder can be flushed");
    }
}

/// Returns how often the daemon itself makes each call per iteration; `None` without strace.
fn count_calls(disk: DiskKind) -> Option<Vec<(String, f64)>> {
    Command::new("strace").arg("-V").output().ok()?;
    let [short, long] = ITERATIONS.map(|iterations| trace_run(disk, iterations));
    let difference = f64::from(ITERATIONS[1] - ITERATIONS[0]);
    let per_iteration = |call: &str| (count_in_trace(&long, call) - count_in_trace(&short, call)) / difference;
    Some(SYNC_CALLS.split(',').map(|call| (call.to_owned(), per_iteration(call))).collect())
}

/// Returns a trace of the daemon's own calls during a whole run.
fn trace_run(disk: DiskKind, iterations: u32) -> String {
    let home = Home::new_in(&disk.folder());
    let repo = fixture::create_repository(&home, "one", 10);
    drive::plan_run(&repo, iterations, &fixture::build_tree(LEAVES));
    // With a delay of one microsecond every call is logged; processes started by the daemon are not traced.
    let observed = FaultyDaemon::start(&home, &SystemFault::new(SYNC_CALLS, "delay_enter=1"));
    drive::start_run(&home, &repo);
    observed.stop();
    fs::read_to_string(home.path().join("strace.log")).expect("strace has left what it saw")
}

fn count_in_trace(trace: &str, call: &str) -> f64 {
    let calls = trace.lines().filter(|line| line.contains(&format!(" {call}("))).count();
    f64::from(u32::try_from(calls).unwrap_or(u32::MAX))
}
