//! A cancel that meets an obstacle: the run ends within seconds, reports what it has left, and loses nothing. Row 33.

use std::fs;
use std::time::{Duration, Instant};

use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::invariants::list_verdicts;
use runner_testkit::{Home, Repo, SessionGate};

/// Maximum time for a cancel on a busy machine; its attempts take eight seconds.
const SOON: Duration = Duration::from_mins(1);

/// A run whose first session has left work and waits at a gate.
struct WorkingRun {
    home: Home,
    repo: Repo,
    gate: SessionGate,
}

impl WorkingRun {
    fn new(prepare: &str) -> Self {
        let home = Home::new();
        let repo = home.repo("one");
        repo.commit_config(&repo.config());
        let gate = repo.script().gate("working");
        repo.script().step(1, &format!("echo mine > mine.txt\n{prepare}\ngate working\nanswer done 'Done.'"));
        repo.script().always("echo more > more.txt; answer done 'It is done.'");
        Self { home, repo, gate }
    }

    fn begin(&self) {
        self.home.ctl_in(&self.repo, &["start", "--yes", "--id", "x", "-m", "Do it"]).exits(0);
        self.gate.wait_reached();
    }

    /// Cancels the run, which must end soon, and returns its view.
    #[track_caller]
    fn assert_cancelled(&self) -> RunView {
        let begun = Instant::now();
        self.home.ctl_in(&self.repo, &["cancel"]).exits(0);
        self.home.client().wait_for(self.repo.path(), RunStatus::Cancelled);
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        self.home.assert_no_survivors();
        assert_eq!(self.repo.read("mine.txt"), "mine\n", "the work is where the session left it");
        self.home.client().run(self.repo.path())
    }

    /// Asserts that the end names the obstacle, the work tree, and the command to continue.
    #[track_caller]
    fn assert_ends_naming(&self, words: &[&str]) {
        let reason = self.assert_cancelled().summary.reason.expect("it says why");
        let text = format!("{}\n{}", reason.message, reason.command.unwrap_or_default());
        let path = self.repo.path().display().to_string();
        for word in words.iter().copied().chain(["cancelled by the user", &path, "runnerctl start --id x"]) {
            assert!(text.contains(word), "`{word}` is missing: {text}");
        }
        let status = self.home.ctl_in(&self.repo, &["status"]);
        assert!(status.stdout.contains("what is not committed stays"), "{}", status.stdout);
    }
}

#[test]
fn row_33_cancel_ends_a_run_though_another_program_holds_the_index() {
    let working = WorkingRun::new("");
    let _daemon = working.home.daemon();
    working.begin();
    let lock = fs::File::create(working.repo.path().join(".git/index.lock")).expect("a lock can be made");
    working.assert_ends_naming(&["index.lock"]);
    drop(lock);
}

#[test]
fn row_33_cancel_ends_a_run_whose_state_cannot_be_read_any_more() {
    let mut working = WorkingRun::new("rm -f .git/objects/*/* .git/objects/pack/*");
    working.home.expect_forgery();
    let _daemon = working.home.daemon();
    working.begin();
    working.assert_ends_naming(&["its objects were removed"]);
}

#[test]
fn row_33_cancel_ends_a_run_that_is_held_with_an_iteration_that_was_not_settled() {
    let mut working = WorkingRun::new("rm -f .git/objects/*/* .git/objects/pack/*");
    working.home.expect_forgery();
    let daemon = working.home.daemon();
    working.begin();
    daemon.kill();
    working.gate = working.repo.script().gate("never");
    let _daemon = working.home.daemon();
    working.assert_ends_naming(&["fsck"]);
}

#[test]
fn row_33_what_is_started_after_a_cancel_begins_when_that_has_ended() {
    let working = WorkingRun::new("trap '' TERM");
    let _daemon = working.home.daemon();
    working.begin();
    working.home.ctl_in(&working.repo, &["cancel"]).exits(0);
    let started = working.home.ctl_in(&working.repo, &["start", "--yes", "--id", "y", "-m", "Another"]);
    started.exits(0);
    assert!(!started.stdout.contains("behind"), "{}", started.stdout);
    assert!(started.stderr.contains("to end: it is being cancelled\n"), "{}", started.stderr);
    working.home.client().wait_for(working.repo.path(), RunStatus::Completed);
    assert_eq!(list_verdicts(&working.repo).last().map(String::as_str), Some("Accepted"));
    let runs = working.home.ctl_in(&working.repo, &["queue", "--ended"]);
    assert!(runs.stdout.contains("cancelled"), "{}", runs.stdout);
}
