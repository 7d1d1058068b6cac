//! The course that a disturbed run takes: under the fault, then under a daemon to which nothing happens.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::{env, fs};

use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::invariants::{assert_work_kept, print_figure, splitting_repo};
use runner_testkit::{Client, FaultyDaemon, Home, ProgramOutput, Repo, SystemFault, TmpfsDisk};

use crate::checks::{assert_no_leftovers, assert_survived};

const TREE: &str = ".runner/state/tree.json";

/// A home with a run that splits its goal in three and does the parts.
pub(super) struct FaultCourse {
    /// What the repository is on; taken away before the home is removed.
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

    /// Returns one whose repository is on a disk of 4 MiB.
    pub(super) fn on_small_disk() -> Self {
        let home = Home::new();
        let disk = Some(TmpfsDisk::mount_over(&home.path().join("repos"), "size=4m"));
        let repo = splitting_repo(&home, "one");
        Self { disk, home, repo }
    }

    /// Returns the disk of the repository.
    pub(super) fn disk(&self) -> &TmpfsDisk {
        self.disk.as_ref().expect("BUG: this course has no disk of its own")
    }

    /// Asks for the run, and waits for its end or the daemon's.
    pub(super) fn run(&self) -> ProgramOutput {
        self.home.run(&self.repo, &["--id", "same", "-m", "Do it"])
    }

    /// Puts the run into the queue, not to be begun yet; returns the path of its journal.
    pub(super) fn queued(&self) -> PathBuf {
        let _daemon = self.home.daemon();
        let queue = ["start", "--yes", "--queue-only", "--id", "same", "-m", "Do it"];
        self.home.ctl_in(&self.repo, &queue).exits(0);
        let folders = fs::read_dir(self.home.private().join("repos")).expect("the daemon keeps its state there");
        let folder = folders.flatten().next().expect("the repository is registered");
        folder.path().join("journal.jsonl")
    }

    /// Lets the run be driven under a fault until its end or the daemon's; returns how often the fault happened.
    pub(super) fn run_with_fault(&self, fault: &SystemFault) -> usize {
        let daemon = FaultyDaemon::start(&self.home, fault);
        if daemon.is_up() {
            let asked = self.home.ctl_in(&self.repo, &["start", "--yes", "--id", "same", "-m", "Do it"]);
            assert!(asked.code == 0 || asked.stderr.contains("error:"), "it says nothing: {asked:?}");
            self.follow();
        }
        daemon.stop()
    }

    /// Waits until the run has come as far as it can by itself, or the daemon to its end. A client that waits for a
    /// run would wait for the next daemon too.
    fn follow(&self) {
        let goes_on = [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting];
        let is_over = |run: &RunView| !goes_on.contains(&run.summary.state);
        if let Some(client) = Client::try_connect(&self.home.socket()) {
            client.wait_while_alive(self.repo.path(), is_over);
        }
    }

    /// Lets an undisturbed daemon bring the run to its end, and asserts that it is the one of an undisturbed run.
    pub(super) fn finish(&self, what: &str) {
        let daemon = self.home.daemon();
        // A request that was never answered may not have been heard.
        if self.home.client().list(self.repo.path()).is_none_or(|runs| runs.is_empty()) {
            self.home.ctl_in(&self.repo, &["start", "--yes", "--id", "same", "-m", "Do it"]).exits(0);
        }
        let run = self.home.client().wait_until(self.repo.path(), |run| run.summary.state.is_terminal());
        assert_eq!(run.summary.state, RunStatus::Completed, "{what}: {run:#?}");
        self.assert_undisturbed(what);
        // What it writes at this moment is not left behind.
        daemon.stop();
        assert_no_leftovers(&self.home, &self.repo, what);
    }

    /// Asserts that the run, which is completed, has come to the same end as an undisturbed one.
    pub(super) fn assert_undisturbed(&self, what: &str) {
        assert_eq!(self.repo.show("HEAD", TREE), undisturbed(), "{what}: {:#?}", self.repo.receipts());
        assert_survived(&self.home, &self.repo, &[]);
        assert_work_kept(&self.repo);
    }
}

/// Returns the task tree of a run that nothing happens to.
fn undisturbed() -> &'static str {
    static TREE_OF_ITS_END: OnceLock<String> = OnceLock::new();
    TREE_OF_ITS_END.get_or_init(|| {
        let course = FaultCourse::new();
        let _daemon = course.home.daemon();
        course.run().exits(0);
        course.repo.show("HEAD", TREE)
    })
}

/// Lets a fault happen at the first, the second… call until a run passes in which it did not happen, or `limit` calls
/// were hit; `step` calls are left out in between. A fault that never happens shows nothing, and fails.
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

/// Returns which calls are hit: a sample, unless the environment says it.
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
    /// From one to the next.
    pub(crate) step: usize,
    /// Numbers that are looked at.
    pub(crate) limit: u32,
}
