//! How many runs one git server carries: the cost of pushes and clones is measured on this machine, and the rest is
//! simulated in virtual time, with the same numbers for the same seed.
//!
//! The server is a FIFO queue with one slot per core. Networks, disks and nodes are not simulated: the result shows
//! where a server's processors saturate.

mod costs;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use anyhow::ensure;

use self::costs::CLONED_MIB;
use crate::report::{FigureGroup, Report, print_progress};
use crate::samples::{Samples, format_duration};

/// Grace period that an engine gives a job after SIGTERM by default, and the one `submit` requests from Slurm.
const GRACES: [Duration; 2] = [Duration::from_secs(30), Duration::from_mins(2)];
/// Longest time a session takes to end after a request.
const AGENT_GRACE: Duration = Duration::from_secs(10);
/// Simulated time span.
const SIMULATED_TIME: Duration = Duration::from_hours(2);
/// Heartbeat interval of other systems of this kind; this one sends none.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// What is played.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ScaleArgs {
    /// Runs that are driven at once.
    #[arg(long, value_delimiter = ',', default_values_t = [500, 2_000, 10_000])]
    runs: Vec<u32>,
    /// References that the server has.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 10_000, 100_000])]
    refs: Vec<u32>,
    /// Cores of the server.
    #[arg(long, default_value_t = 8)]
    cores: u32,
    /// Seconds of a session in the middle: half of them are shorter.
    #[arg(long, default_value_t = 300)]
    session: u32,
    /// Mebibytes of the project's packs.
    #[arg(long, default_value_t = 1024)]
    clone: u32,
    /// Milliseconds of the server's processor that a connection takes before git begins, as ssh's key exchange does.
    #[arg(long, default_value_t = 20)]
    connection: u32,
    /// What all numbers are drawn from.
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// Measures, simulates and reports.
pub(crate) fn measure(args: &ScaleArgs, report: &mut Report) -> anyhow::Result<()> {
    ensure!(args.cores > 0 && args.session > 0, "a server has a core at least, and a session takes time");
    let folder = tempfile::tempdir()?;
    print_progress("scale: what a clone costs");
    let clone = costs::measure_clone(&folder.path().join("clone"))? * args.clone / CLONED_MIB;
    let mut group = report.group("scale: processor time of the server");
    group.add(format!("a clone of {} MiB", args.clone), format_duration(clone));
    let mut pushes = Vec::new();
    for refs in &args.refs {
        print_progress(&format!("scale: what a push costs where there are {refs} references"));
        let push = costs::measure_push(&folder.path().join(refs.to_string()), *refs)?;
        group.add(format!("a push of an iteration, {refs} references"), format_duration(push));
        pushes.push((*refs, push + Duration::from_millis(args.connection.into())));
    }
    for (refs, push) in pushes {
        for runs in &args.runs {
            let mut group = report.group(format!("scale: {runs} runs at once, {refs} references"));
            ServerSimulation { args, runs: *runs, push, clone }.add_figures(&mut group);
        }
    }
    Ok(())
}

/// One simulation: a number of runs on one server.
struct ServerSimulation<'a> {
    args: &'a ScaleArgs,
    runs: u32,
    /// Processor time of a push, including its connection.
    push: Duration,
    /// Processor time of a clone, including its connection.
    clone: Duration,
}

impl ServerSimulation<'_> {
    fn add_figures(&self, group: &mut FigureGroup<'_>) {
        let sessions = self.session_ends();
        let per_second = f64::from(len_u32(&sessions)) / SIMULATED_TIME.as_secs_f64();
        group.add("pushes a second", format!("{per_second:.1}"));
        group.add("its processors are at work", self.percent_of_cores(per_second));
        let steady_load = self.serve(sessions, self.push);
        group.add(
            "a push takes",
            format!(
                "{}, 99 %: {}",
                format_duration(steady_load.times.median()),
                format_duration(steady_load.times.percentile(99))
            ),
        );
        for (cost, how) in [(self.clone, "a full clone each"), (self.push, "a cache on the node")] {
            let start_load = self.serve(vec![Duration::ZERO; self.runs as usize], cost);
            group.add(
                format!("all begin at once with {how}: the last but 1 % after"),
                format_duration(start_load.times.percentile(99)),
            );
        }
        let mut random = fastrand::Rng::with_seed(self.args.seed);
        let ends = (0..self.runs).map(|_| AGENT_GRACE.mul_f64(random.f64())).collect();
        let stop_load = self.serve(ends, self.push);
        for grace in GRACES {
            let published: Vec<_> = stop_load.ends.iter().filter(|end| **end <= grace).collect();
            let share = 100.0 * f64::from(len_u32(&published)) / f64::from(self.runs);
            group.add(format!("all are told to end: published within {} s", grace.as_secs()), format!("{share:.0} %"));
        }
        let beats = self.percent_of_cores(f64::from(self.runs) / HEARTBEAT_INTERVAL.as_secs_f64());
        group.add("heartbeats of 15 s, if there were any, would take", beats);
    }

    /// Returns the share of the server's processor time that this many pushes per second take.
    fn percent_of_cores(&self, per_second: f64) -> String {
        format!("{:.0} %", 100.0 * per_second * self.push.as_secs_f64() / f64::from(self.args.cores))
    }

    /// Returns when sessions end, each with a push. Their lengths are drawn from a log-normal distribution: half are
    /// shorter than the median, a few much longer.
    fn session_ends(&self) -> Vec<Duration> {
        let median = Duration::from_secs(self.args.session.into());
        let mut random = fastrand::Rng::with_seed(self.args.seed);
        let mut ends = Vec::new();
        for _ in 0..self.runs {
            // Runs are not in step.
            let mut time = median.mul_f64(random.f64());
            while time < SIMULATED_TIME {
                ends.push(time);
                time += median.mul_f64(normal_sample(&mut random).exp());
            }
        }
        ends
    }

    /// Simulates the server processing the arrivals in order.
    fn serve(&self, mut arrivals: Vec<Duration>, cost: Duration) -> SimulationResult {
        arrivals.sort();
        let mut cores: BinaryHeap<_> = (0..self.args.cores).map(|_| Reverse(Duration::ZERO)).collect();
        let mut ends = Vec::new();
        for arrival in &arrivals {
            let Reverse(free) = cores.pop().expect("BUG: there is a core");
            ends.push(free.max(*arrival) + cost);
            cores.extend(ends.last().copied().map(Reverse));
        }
        let times = ends.iter().zip(&arrivals).map(|(end, arrival)| end.saturating_sub(*arrival)).collect();
        SimulationResult { times, ends }
    }
}

/// Result of processing all arrivals.
struct SimulationResult {
    /// Times from arrival to completion.
    times: Samples,
    /// When each request completed.
    ends: Vec<Duration>,
}

/// Returns a number drawn from the standard normal distribution.
fn normal_sample(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * random.f64().max(f64::MIN_POSITIVE).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

fn len_u32<T>(all: &[T]) -> u32 {
    u32::try_from(all.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_args(runs: u32) -> ScaleArgs {
        let cores = 2;
        let session = 60;
        ScaleArgs { runs: vec![runs], refs: vec![10], cores, session, clone: 1, connection: 0, seed: 1 }
    }

    #[test]
    fn what_arrives_together_is_done_by_as_many_as_there_are_cores() {
        let args = test_args(5);
        let cost = Duration::from_secs(1);
        let simulation = ServerSimulation { args: &args, runs: 5, push: cost, clone: cost };
        let result = simulation.serve(vec![Duration::ZERO; 5], cost);
        assert_eq!(result.ends.iter().map(Duration::as_secs).collect::<Vec<_>>(), [1, 1, 2, 2, 3]);
        assert_eq!(result.times.percentile(100), Duration::from_secs(3));
    }

    #[test]
    fn the_same_seed_is_the_same_day_and_half_of_the_sessions_are_short() {
        let args = test_args(400);
        let cost = Duration::from_millis(1);
        let simulation = ServerSimulation { args: &args, runs: 400, push: cost, clone: cost };
        let sessions = simulation.session_ends();
        assert_eq!(sessions, simulation.session_ends());
        // The mean of such lengths is e^½ times the median.
        let expected = 400.0 * SIMULATED_TIME.as_secs_f64() / (60.0 * 0.5_f64.exp());
        assert!((f64::from(len_u32(&sessions)) / expected - 1.0).abs() < 0.05, "{} for {expected}", sessions.len());
    }
}
