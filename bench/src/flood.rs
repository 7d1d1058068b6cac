//! Unlimited output: how fast the daemon takes it compared with a pipe into `cat > /dev/null`, and how much memory that
//! needs.

use std::process::Command;
use std::time::Duration;

use protocol::words::PhaseName;
use runner_testkit::Home;

use crate::observe::peak_mib;
use crate::report::{Report, print_progress};
use crate::samples::Samples;

const MIB: u64 = 1 << 20;

/// How much output.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FloodArgs {
    /// Mebibytes that the agent prints.
    #[arg(long, default_value_t = 10 * 1024)]
    mib: u64,
    /// Measurements of each; the two alternate.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

impl Default for FloodArgs {
    fn default() -> Self {
        Self { mib: 10 * 1024, rounds: 3 }
    }
}

/// Measures both, alternating.
pub(crate) fn measure(args: &FloodArgs, report: &mut Report) {
    let bytes = args.mib * MIB;
    let mut floor = Samples::default();
    let mut ours = Samples::default();
    let mut peak = 0.0_f64;
    for round in 1..=args.rounds {
        print_progress(&format!("flood: round {round} of {}", args.rounds));
        floor.time(|| run_pipe(bytes));
        let (time, memory) = run_session(bytes);
        ours.add(time);
        peak = peak.max(memory);
    }
    let (_, baseline_peak) = run_session(0);
    let mut group = report.group(format!("an agent that prints {} MiB", args.mib));
    group.add_times("through a pipe into cat > /dev/null", &floor);
    group.add_times("as the output of a session, to its end", &ours);
    group.add_ratio("time of the session against cat > /dev/null", &ours, &floor, 1.0);
    group.add_number("peak memory of the daemon, no output", baseline_peak, "MiB", None);
    group.add_number("peak memory of the daemon, worst round", peak, "MiB", Some((baseline_peak + 8.0).round()));
}

fn run_pipe(bytes: u64) {
    let status = Command::new("sh").args(["-c", &format!("head -c {bytes} /dev/zero | cat > /dev/null")]).status();
    assert!(status.expect("a shell can be started").success(), "the floor fails");
}

/// Runs one session that prints the given number of bytes; returns the time of its phase and the daemon's peak memory
/// in MiB.
fn run_session(bytes: u64) -> (Duration, f64) {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.script().always(&format!("echo work > work.txt; head -c {bytes} /dev/zero; answer done 'Printed.'"));
    let daemon = home.daemon();
    home.run(&repo, &["--id", "it", "-m", "Do it"]).exits(0);
    let peak = peak_mib(daemon.pid());
    let meta = repo.meta(1);
    assert!(meta.captured_bytes + meta.dropped_bytes >= bytes, "output is missing");
    let work = meta.phases.iter().find(|phase| phase.phase == PhaseName::Work).expect("there was a session");
    (Duration::from_millis(work.duration_ms), peak)
}
