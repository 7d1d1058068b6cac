//! A disturbed run: first under the fault, then under an undisturbed daemon.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::{env, fs};

use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::invariants::{assert_work_kept, print_figure, splitting_repo};
use runner_testkit::{Client, FaultyDaemon, Home, ProgramOutput, Repo, SystemFault, TmpfsDisk};

use crate::checks::{assert_no_leftovers, assert_survived};

const TREE: &str = ".runner/state/tree.json";

/// A home with a run that splits its goal into three parts and completes them.
pub(super) struct FaultCourse {
    /// The disk with the repository; removed before the home is.
    disk: Option<TmpfsDisk>,
    pub(super) home: Home,
    pub(super) repo: Repo,
}

impl FaultCourse {
    pub(super) fn new() -> Self {
        let home = Home::new();
        let repo = splitting_repo(&home, "one");
        Self { disk: None, home, repo }
    }

    /// Returns a scene whose repository is on a disk of 4 MiB.
    pub(super) fn on_small_disk() -> Self {
        let home = Home::new();
        let disk = Some(TmpfsDisk::mount_over(&home.path().join("repos"), "size=4m"));
        let repo = splitting_repo(&home, "one");
        Self { disk, home, repo }
    }

    /// Returns the disk of the repository.
    pub(super) fn disk(&self) -> &TmpfsDisk {
        self.disk.as_ref().expect("BUG: this course has no separate disk")
    }

    /// Requests the run, and waits for its end or the daemon's.
    pub(super) fn run(&self) -> ProgramOutput {
        self.home.run(&self.repo, &["--id", "same", "-m", "Do it"])
    }

    /// Puts the run into the queue without starting it; returns the path of its journal.
    pub(super) fn queued(&self) -> PathBuf {
        let _daemon = self.home.daemon();
        let queue = ["start", "--yes", "--queue-only", "--id", "same", "-m", "Do it"];
        self.home.ctl_in(&self.repo, &queue).exits(0);
        let folders = fs::read_dir(self.home.private().join("repos")).expect("the daemon keeps its state there");
        let folder = folders.flatten().next().expect("the repository is registered");
        folder.path().join("journal.jsonl")
    }

    /// Drives the run under a fault until the run or the daemon ends; returns how often the fault occurred.
    pub(super) fn run_with_fault(&self, fault: &SystemFault) -> usize {
        let daemon = FaultyDaemon::start(&self.home, fault);
        if daemon.is_up() {
            let output = self.home.ctl_in(&self.repo, &["start", "--yes", "--id", "same", "-m", "Do it"]);
            assert!(output.code == 0 || output.stderr.contains("error:"), "it says nothing: {output:?}");
            self.follow();
        }
        daemon.stop()
    }

    /// Waits until the run cannot continue on its own, or the daemon has exited. A client that waits for a run would
    /// wait for the next daemon, too.
    fn follow(&self) {
        let goes_on = [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting];
        let is_over = |run: &RunView| !goes_on.contains(&run.summary.state);
        if let Some(client) = Client::try_connect(&self.home.socket()) {
            client.wait_while_alive(self.repo.path(), is_over);
        }
    }

    /// Completes the run with an undisturbed daemon, and asserts that the result is that of an undisturbed run.
    pub(super) fn finish(&self, what: &str) {
        let daemon = self.home.daemon();
        // A request without a reply may not have been received.
        if self.home.client().list(self.repo.path()).is_none_or(|runs| runs.is_empty()) {
            self.home.ctl_in(&self.repo, &["start", "--yes", "--id", "same", "-m", "Do it"]).exits(0);
        }
        let run = self.home.client().wait_until(self.repo.path(), |run| run.summary.state.is_terminal());
        assert_eq!(run.summary.state, RunStatus::Completed, "{what}: {run:#?}");
        self.assert_undisturbed(what);
        // A write in progress at this moment is not a leftover.
        daemon.stop();
        assert_no_leftovers(&self.home, &self.repo, what);
    }

    /// Asserts that the run, which is completed, has the same result as an undisturbed one.
    pub(super) fn assert_undisturbed(&self, what: &str) {
        assert_eq!(self.repo.show("HEAD", TREE), undisturbed_tree(), "{what}: {:#?}", self.repo.receipts());
        assert_survived(&self.home, &self.repo, &[]);
        assert_work_kept(&self.repo);
    }
}

/// Returns the task tree of an undisturbed run.
fn undisturbed_tree() -> &'static str {
    static TREE_OF_ITS_END: OnceLock<String> = OnceLock::new();
    TREE_OF_ITS_END.get_or_init(|| {
        let course = FaultCourse::new();
        let _daemon = course.home.daemon();
        course.run().exits(0);
        course.repo.show("HEAD", TREE)
    })
}

/// Injects a fault at the first, the second… call until it does not occur during a run, or `limit` calls were hit;
/// `step` calls are skipped in between. Fails if the fault never occurs, because that proves nothing.
pub(super) fn at_each(calls: &str, what: &str, every: Sampling) {
    let mut hit = 0;
    for at in (every.from..every.from + every.limit).step_by(every.step) {
        let course = FaultCourse::new();
        let fault = SystemFault::new(calls, &what.replace("{at}", &at.to_string()));
        let times = course.run_with_fault(&fault);
        print_figure(&format!("{calls} {what} at {at}: {times}"));
        course.finish(&format!("{fault:?}"));
        if times == 0 {
            break;
        }
        hit += 1;
    }
    assert!(hit > 0, "no {calls} was hit");
}

/// Returns which calls are hit: a sample, unless the environment overrides it.
pub(crate) fn sampled(step: usize, limit: u32) -> Sampling {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse().expect("a number"));
    let limit = number("LIMIT").unwrap_or(limit);
    let step = number("STEP").map_or(step, |step| usize::try_from(step).expect("a small number"));
    Sampling { from: number("FROM").unwrap_or(1), step, limit }
}

/// Which calls are hit.
#[derive(Clone, Copy)]
pub(crate) struct Sampling {
    /// The first, counted from 1.
    pub(crate) from: u32,
    /// The distance from one to the next.
    pub(crate) step: usize,
    /// How many calls are hit.
    pub(crate) limit: u32,
}
