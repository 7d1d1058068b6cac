//! Runs that are interrupted repeatedly at random moments and must end like an uninterrupted one.
//!
//! `SEED` sets the random seed, `RUNS` the number of runs.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use protocol::words::RunStatus;

use crate::invariants::{assert_consistent, assert_work_kept, print_figure};
use crate::{Daemon, Home, RandomSource, Repo};

/// Interruptions of one random run; after that it may finish.
const MAX_INTERRUPTIONS: u32 = 12;

/// A repository and the daemon that works on it.
#[derive(Debug)]
pub struct InterruptedRun {
    daemon: Option<Daemon>,
    /// The repository; its sessions are [`SPLIT_AND_DO`](crate::invariants::SPLIT_AND_DO).
    pub repo: Repo,
    /// Home of daemon and repository.
    pub home: Home,
}

impl InterruptedRun {
    /// Starts the daemon of a home.
    pub fn new(home: Home, repo: Repo) -> Self {
        Self { daemon: Some(home.daemon()), repo, home }
    }

    /// Ends the daemon by the given means and starts the next one.
    ///
    /// # Panics
    ///
    /// Panics if the next one does not start.
    pub fn restart(&mut self, end: impl FnOnce(Daemon, &Self)) {
        end(self.daemon.take().expect("a daemon runs"), self);
        self.daemon = Some(self.home.daemon());
    }

    /// Interrupts the run until it is over or the maximum is reached, and returns the number of interruptions.
    fn run_interrupted(
        &mut self,
        random: &mut RandomSource,
        max_pause: Duration,
        interrupt: &impl Fn(&mut Self),
    ) -> u32 {
        let max_pause_ms = u64::try_from(max_pause.as_millis()).expect("a short run");
        self.home.ctl_in(&self.repo, &["start", "--yes", "-m", "Do it"]).exits(0);
        for count in 0..MAX_INTERRUPTIONS {
            thread::sleep(Duration::from_millis(random.below(max_pause_ms)));
            if self.home.client().run(self.repo.path()).summary.state.is_terminal() {
                return count;
            }
            interrupt(self);
        }
        MAX_INTERRUPTIONS
    }

    fn final_tree(&self) -> String {
        self.repo.show("HEAD", ".runner/state/tree.json")
    }
}

/// Interrupts runs of what `prepare` creates; each must end with the task tree of an uninterrupted run.
///
/// # Panics
///
/// Panics if a run ends otherwise, loses work, or leaves something alive.
pub fn assert_same_end(prepare: impl Fn() -> InterruptedRun, interrupt: impl Fn(&mut InterruptedRun)) {
    let number = |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let undisturbed = prepare();
    let began = Instant::now();
    undisturbed.home.run(&undisturbed.repo, &["-m", "Do it"]).exits(0);
    let mut longest = began.elapsed() / 2;
    let expected = undisturbed.final_tree();
    assert_consistent(&undisturbed.repo);
    let first = number("SEED", 1);
    for seed in first..first + number("RUNS", 1) {
        let (interrupted, interruptions) = loop {
            let mut interrupted = prepare();
            match interrupted.run_interrupted(&mut RandomSource::new(seed), longest, &interrupt) {
                // It ended sooner than the run that the pauses are based on and was never interrupted, so interrupt
                // sooner.
                0 => longest /= 2,
                count => break (interrupted, count),
            }
        };
        let run = interrupted.home.client().wait_until(interrupted.repo.path(), |run| run.summary.state.is_terminal());
        assert_eq!(run.summary.state, RunStatus::Completed, "seed {seed}: {run:#?}");
        assert_eq!(interrupted.final_tree(), expected, "seed {seed}");
        interrupted.home.assert_no_survivors();
        assert!(!interrupted.repo.script().is_any_alive(), "seed {seed}: something outlives the run");
        assert_consistent(&interrupted.repo);
        assert_work_kept(&interrupted.repo);
        print_figure(&format!(
            "seed {seed}: {interruptions} interruptions, {} iterations",
            interrupted.repo.receipts().len()
        ));
    }
}
