//! Output without end: how fast it is taken, against a pipe into `cat > /dev/null`, and what memory that needs.

use std::process::Command;
use std::time::{Duration, Instant};

use protocol::words::PhaseName;
use runner_testkit::Home;

use crate::figure::{Report, progress};
use crate::watched::peak_kib;

const GROUP: &str = "output taken";
const MIB: u64 = 1 << 20;

/// How much output.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Mebibytes that the agent prints.
    #[arg(long, default_value_t = 10 * 1024)]
    mib: u64,
    /// Measurements of each; the two alternate.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

impl Default for Args {
    fn default() -> Self {
        Self { mib: 10 * 1024, rounds: 3 }
    }
}

/// Measures both, alternating.
pub(crate) fn measure(args: &Args, report: &mut Report) {
    let bytes = args.mib * MIB;
    let (mut floors, mut ours, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=args.rounds {
        progress(&format!("flood: round {round} of {}", args.rounds));
        floors.push(floor(bytes));
        let (time, peak) = run(bytes);
        ours.push(time);
        peaks.push(peak);
    }
    let ratios = floors.iter().zip(&ours).map(|(floor, ours)| floor.as_secs_f64() / ours.as_secs_f64());
    let ratios: Vec<String> = ratios.map(|ratio| format!("{ratio:.2}")).collect();
    report.add(GROUP, "bytes", bytes.to_string());
    report.add(GROUP, "through a pipe into cat > /dev/null", seconds(&floors));
    report.add(GROUP, "as the output of a session, to its end", seconds(&ours));
    report.add(GROUP, "speed against cat > /dev/null, per round", ratios.join(", "));
    report.add(GROUP, "peak memory of the daemon, per round", peaks.join(", "));
}

fn floor(bytes: u64) -> Duration {
    let began = Instant::now();
    let status = Command::new("sh").args(["-c", &format!("head -c {bytes} /dev/zero | cat > /dev/null")]).status();
    assert!(status.expect("a shell can be started").success(), "the floor fails");
    began.elapsed()
}

/// Runs one session that prints so much, and returns the time of its phase and the daemon's peak memory.
fn run(bytes: u64) -> (Duration, String) {
    let home = Home::new();
    let repo = home.scripted("one");
    repo.script().always(&format!("echo work > work.txt; head -c {bytes} /dev/zero; answer done 'Printed.'"));
    let daemon = home.daemon();
    home.run(&repo, &["--id", "it", "-m", "Do it"]).exits(0);
    let peak = peak_kib(daemon.pid()).map_or("unknown".to_owned(), |kib| format!("{:.1} MiB", as_mib(kib)));
    let meta = repo.read(".runner/iterations/it/0001/meta.json");
    let meta: protocol::meta::IterationMeta = serde_json::from_str(&meta).expect("the record can be read");
    assert!(meta.captured_bytes + meta.dropped_bytes >= bytes, "output is missing");
    let work = meta.phases.iter().find(|phase| phase.phase == PhaseName::Work).expect("there was a session");
    (Duration::from_millis(work.duration_ms), peak)
}

fn seconds(times: &[Duration]) -> String {
    times.iter().map(|time| format!("{:.2} s", time.as_secs_f64())).collect::<Vec<_>>().join(", ")
}

#[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
fn as_mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
