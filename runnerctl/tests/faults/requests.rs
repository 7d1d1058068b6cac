//! The daemon or the client dies at a call while a person makes a request. Row 98.
//!
//! Hits a sample of the calls; `FROM`, `STEP` and `LIMIT` choose it, and `just sweep-kills` hits each of the first 60.

use std::fs;

use protocol::words::RunStatus;
use runner_testkit::invariants::print_figure;
use runner_testkit::{Client, Daemon, Home, Repo, SystemFault};

use crate::checks::{assert_no_leftovers, assert_survived};
use crate::disk::course::{Sampling, sampled};
use crate::refusal::SyscallRefusal;

/// Calls that flush, rename or remove.
const CALLS: &str = "fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,link,linkat";
/// Calls by which a client talks to its daemon.
const WORDS: &str = "write,writev,sendto,sendmsg";

/// The state of a run when a request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunActivity {
    /// A session is at work.
    Working,
    /// Its limit of iterations is reached.
    Resting,
    /// A node is pending a person's review.
    Reviewed,
    /// Nothing has begun.
    Fresh,
}

/// Requests, with the state of the run at that time.
const REQUESTS: [(RunActivity, &[&str]); 19] = [
    (RunActivity::Working, &["note", "Use sqlx"]),
    (RunActivity::Working, &["config", "set", "max_iterations", "7"]),
    (RunActivity::Working, &["pause"]),
    (RunActivity::Working, &["pause", "--now"]),
    (RunActivity::Working, &["cancel"]),
    (RunActivity::Resting, &["note", "Use sqlx"]),
    (RunActivity::Resting, &["config", "set", "max_iterations", "7"]),
    (RunActivity::Resting, &["edit", "--file", "{tree}"]),
    (RunActivity::Resting, &["add", "root", "--title", "More", "--goal", "More is done"]),
    (RunActivity::Resting, &["retry", "root"]),
    (RunActivity::Resting, &["step", "--yes"]),
    (RunActivity::Resting, &["resume", "--more", "1"]),
    (RunActivity::Resting, &["cancel"]),
    (RunActivity::Reviewed, &["approve", "--iter", "1"]),
    (RunActivity::Reviewed, &["reject", "It is not.", "--iter", "1"]),
    (RunActivity::Reviewed, &["note", "Use sqlx"]),
    (RunActivity::Fresh, &["init"]),
    (RunActivity::Fresh, &["start", "--yes", "--id", "x", "-m", "Do it"]),
    (RunActivity::Fresh, &["start", "--yes", "--queue-only", "--id", "x", "-m", "Do it"]),
];

/// A run in one of these states.
struct RequestScene {
    home: Home,
    repo: Repo,
    daemon: Daemon,
    doing: RunActivity,
}

impl RequestScene {
    fn new(doing: RunActivity) -> Self {
        let home = Home::new();
        let repo = home.repo("one");
        repo.commit_config(&match doing {
            RunActivity::Reviewed => repo.config().section("[review]\nby = \"human\""),
            _ => repo.config().top("max_iterations = 1"),
        });
        let gate = repo.script().gate("working");
        let step = match doing {
            RunActivity::Working => "gate working; answer retry 'Not yet.'",
            RunActivity::Reviewed => "answer done 'Done.'",
            RunActivity::Resting | RunActivity::Fresh => "answer retry 'Not yet.'",
        };
        repo.script().step(1, &format!("echo mine > mine.txt; {step}"));
        let daemon = home.daemon();
        let scene = Self { home, repo, daemon, doing };
        if doing != RunActivity::Fresh {
            scene.home.ctl_in(&scene.repo, &["start", "--yes", "--id", "x", "-m", "Do it"]).exits(0);
        }
        match doing {
            RunActivity::Working => gate.wait_reached(),
            RunActivity::Resting => scene.wait_for_state(RunStatus::Limit),
            RunActivity::Reviewed => scene.wait_for_state(RunStatus::Waiting),
            RunActivity::Fresh => {}
        }
        scene
    }

    fn wait_for_state(&self, state: RunStatus) {
        self.home.client().wait_for(self.repo.path(), state);
    }

    /// Asks the running daemon, and does not start one; returns whether it has replied.
    fn ask(&self, request: &[&str]) -> bool {
        let tree = self.home.path().join("tree.json");
        if request.contains(&"{tree}") {
            let text = self.repo.read(".runner/state/tree.json");
            fs::write(&tree, text.replacen("\"title\": \"", "\"title\": \"New: ", 1)).expect("a tree can be written");
        }
        let tree = tree.display().to_string();
        let words = request.iter().map(|word| if *word == "{tree}" { tree.as_str() } else { word });
        let words: Vec<&str> = words.collect();
        let output = self.home.ctl_in(&self.repo, &words);
        let says_why = output.stderr.contains("error:") || !output.stdout.is_empty();
        // The killed daemon had committed it.
        let is_repeated = output.stderr.contains("nothing was changed");
        assert!(output.code == 0 || is_repeated || output.code != 2 && says_why, "it says nothing: {output:?}");
        output.code == 0
    }

    /// Continues with another daemon, repeats a request that was never answered, and completes the run.
    fn finish(self, (request, is_answered): (&[&str], bool), what: &str) {
        self.daemon.kill();
        let scene = Self { daemon: self.home.daemon(), ..self };
        if !is_answered {
            scene.ask(request);
        }
        if request[0] == "note" {
            scene.home.client().wait_until(scene.repo.path(), |_| is_noted(&scene.repo));
        }
        // The bookkeeping is that of a started run.
        let is_listed = scene.home.client().list(scene.repo.path()).is_some_and(|runs| !runs.is_empty());
        if is_listed {
            scene.ask(&["cancel"]);
            let goes_on = [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting];
            scene.home.client().wait_until(scene.repo.path(), |run| !goes_on.contains(&run.summary.state));
        }
        // A write in progress at this moment is not a leftover.
        let Self { daemon, home, repo, doing } = scene;
        daemon.stop();
        assert_no_leftovers(&home, &repo, what);
        if repo.refs("refs/heads/runner/x").is_empty() {
            return;
        }
        assert_survived(&home, &repo, if doing == RunActivity::Fresh { &[] } else { &["mine\n"] });
    }
}

/// Whether a note is in the branch.
fn is_noted(repo: &Repo) -> bool {
    let log = ["log", "-1", "--format=%B", "-S", "Use sqlx", "runner/x", "--", ".runner/state/notes.md"];
    !repo.git(&log).is_empty()
}

/// Kills the daemon at one call after another during a request, until it survives the request.
fn assert_at_each(doing: RunActivity, request: &[&str], every: Sampling) {
    for at in (every.from..every.from + every.limit).step_by(every.step) {
        let scene = RequestScene::new(doing);
        let what = format!("{request:?} while {doing:?}, call {at}");
        let refusal = SyscallRefusal::attach(scene.daemon.pid(), CALLS, &format!("signal=KILL:when={at}"));
        let is_answered = scene.ask(request);
        let is_driven = ["step", "resume", "start"].contains(&request[0]);
        if let Some(client) = Client::try_connect(&scene.home.socket()).filter(|_| is_driven) {
            client.wait_while_alive(scene.repo.path(), |run| run.summary.state != RunStatus::Running);
        }
        drop(refusal);
        let is_alive = Client::try_connect(&scene.home.socket()).is_some();
        print_figure(&format!("{what}: {}", if is_alive { "lived" } else { "died" }));
        scene.finish((request, is_answered), &what);
        if is_alive {
            break;
        }
    }
}

/// Kills the daemon at calls of every request that can be made in this state.
fn at_each_request(doing: RunActivity) {
    for (_, request) in REQUESTS.into_iter().filter(|(meanwhile, _)| *meanwhile == doing) {
        assert_at_each(doing, request, sampled(23, 60));
    }
}

#[test]
fn row_98_daemon_that_dies_while_a_session_is_at_work_and_a_person_asks_loses_nothing() {
    at_each_request(RunActivity::Working);
}

#[test]
fn row_98_daemon_that_dies_while_a_run_rests_and_a_person_asks_loses_nothing() {
    at_each_request(RunActivity::Resting);
}

#[test]
fn row_98_daemon_that_dies_while_a_person_reviews_loses_nothing() {
    at_each_request(RunActivity::Reviewed);
}

#[test]
fn row_98_daemon_that_dies_while_a_person_begins_loses_nothing() {
    at_each_request(RunActivity::Fresh);
}

#[test]
fn row_98_client_that_dies_while_it_asks_leaves_nothing() {
    for (doing, request) in [(RunActivity::Resting, &["note", "Use sqlx"][..]), (RunActivity::Resting, &["cancel"])] {
        for at in [1, 2] {
            let scene = RequestScene::new(doing);
            let place = ["-C", &scene.repo.path().display().to_string()].map(str::to_owned);
            let words: Vec<&str> = place.iter().map(String::as_str).chain(request.iter().copied()).collect();
            let output = scene.home.ctl_with_fault(&SystemFault::kill_at(WORDS, at), &words);
            print_figure(&format!("{request:?}, word {at}: {}", output.code));
            scene.finish((request, false), &format!("{request:?}, word {at} of the client"));
        }
    }
}
