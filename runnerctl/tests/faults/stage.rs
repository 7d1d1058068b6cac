//! One repository with a daemon, and observations of its first iteration.

use std::time::{Duration, Instant};

use protocol::words::{PhaseName, RunStatus};
use runner_testkit::invariants::list_verdicts;
use runner_testkit::{Client, Config, Daemon, FakeClock, Home, ProgramOutput, Repo, Script};

use crate::checks::{assert_explains, assert_survived};

/// Maximum time for an end once it is due; if it takes longer, only the budget itself can have caused it.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(30);
/// Twice the budget of an iteration, in seconds.
pub(crate) const HOUR: i64 = 3600;

/// A repository with the script of the row, and its daemon. The first fault fails the run.
pub(crate) struct FaultStage {
    daemon: Option<Daemon>,
    pub(crate) repo: Repo,
    pub(crate) home: Home,
}

impl FaultStage {
    pub(crate) fn new() -> Self {
        Self::with_config(|config| config)
    }

    /// Every iteration has this many seconds; half of them are the grace.
    pub(crate) fn with_time_limit(seconds: u32) -> Self {
        Self::with_config(|config| config.top(&format!("iteration_timeout_secs = {seconds}")))
    }

    /// Without a namespace: only the walk contains the programs, so they can see their supervisors.
    pub(crate) fn without_sandbox(configure: impl FnOnce(Config) -> Config) -> Self {
        let home = Home::new();
        home.configure("containment = \"walk\"");
        Self::in_home(home, configure, Home::daemon)
    }

    /// With clocks controlled by the test, in which half an hour can pass at once.
    pub(crate) fn with_clock(home: Home) -> (Self, FakeClock) {
        let clock = FakeClock::new(&home);
        (Self::in_home(home, |config| config, |home| clock.daemon(home)), clock)
    }

    /// With the strongest containment that the system offers.
    pub(crate) fn with_config(configure: impl FnOnce(Config) -> Config) -> Self {
        Self::in_home(Home::new(), configure, Home::daemon)
    }

    fn in_home(home: Home, configure: impl FnOnce(Config) -> Config, start: impl FnOnce(&Home) -> Daemon) -> Self {
        let repo = home.repo("one");
        repo.commit_config(&configure(repo.config().top("max_consecutive_faults = 1")));
        Self { daemon: Some(start(&home)), repo, home }
    }

    pub(crate) fn script(&self) -> &Script {
        self.repo.script()
    }

    pub(crate) fn client(&self) -> Client {
        self.home.client()
    }

    /// Starts the run and waits for its end.
    pub(crate) fn run(&self) -> ProgramOutput {
        self.home.run(&self.repo, &["-m", "Do it"])
    }

    /// Starts the run, lets the budget pass once this many processes of `misbehave` are ready, and waits for the end,
    /// which must then follow at once.
    pub(crate) fn run_over_budget(&self, clock: &FakeClock, count: usize) -> ProgramOutput {
        let ready = self.script().gate("ready");
        let mut passed = None;
        let output = self.home.run_while(&self.repo, &["-m", "Do it"], || {
            (0..count).for_each(|_| ready.wait_reached());
            clock.set(HOUR, 0);
            passed = Some(Instant::now());
        });
        let took = passed.map(|passed| passed.elapsed()).expect("the budget has passed");
        assert!(took < AT_ONCE, "{took:?}");
        output
    }

    /// Starts the run without waiting for it.
    pub(crate) fn start_run(&self) {
        self.home.ctl_in(&self.repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    }

    /// Runs `runnerctl` in the repository.
    pub(crate) fn ctl(&self, args: &[&str]) -> ProgramOutput {
        self.home.ctl_in(&self.repo, args)
    }

    /// Waits until the run is in a state.
    pub(crate) fn wait_for_state(&self, state: RunStatus) {
        self.client().wait_for(self.repo.path(), state);
    }

    /// The running daemon.
    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("a daemon runs")
    }

    /// Ends the daemon with `end`, and starts the next one.
    pub(crate) fn restart(&mut self, end: impl FnOnce(Daemon)) {
        end(self.daemon.take().expect("a daemon runs"));
        self.daemon = Some(self.home.daemon());
    }

    /// Asserts the verdicts, and everything that must hold after every row.
    #[track_caller]
    pub(crate) fn assert_ended_as(&self, expected: &[&str], work: &[&str]) {
        assert_eq!(list_verdicts(&self.repo), expected);
        assert_survived(&self.home, &self.repo, work);
    }

    /// How long the session and the guard of the first iteration took.
    pub(crate) fn time_spent(&self) -> Duration {
        let phases = self.repo.meta(1).phases.into_iter();
        let spent = phases.filter(|time| matches!(time.phase, PhaseName::Work | PhaseName::Guard));
        Duration::from_millis(spent.map(|time| time.duration_ms).sum())
    }

    /// Runs until a fault fails the run, and asserts that the run says which one and what to type.
    #[track_caller]
    pub(crate) fn assert_fails_with(&self, fault: &str) {
        assert_explains(self.run().exits(9), &[fault, "`runnerctl log --agent`", "runnerctl resume"]);
    }
}
