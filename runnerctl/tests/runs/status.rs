//! `status --watch`: a block or an object per change.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::words::RunStatus;
use runner_testkit::{SessionGate, Tty};
use serde_json::Value;

use crate::play::{RunPlay, sample};

/// A run in its first session, which continues once its gate is open; a second one follows.
fn working_play() -> (RunPlay, SessionGate) {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    let gate = play.script().gate("session");
    play.script().step(1, "gate session; answer retry 'Not yet.'");
    play.script().step(2, "answer retry 'Still not.'");
    play.start_run();
    gate.wait_reached();
    (play, gate)
}

/// A `status --watch` whose output is piped; it is killed on drop.
struct PipedStatus {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl PipedStatus {
    fn start(play: &RunPlay, args: &[&str]) -> Self {
        let mut command = play.home.ctl_command(&play.repo, args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the client starts");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        Self { child, lines }
    }

    /// Reads lines until one satisfies the condition.
    fn read_until(&mut self, matches: impl Fn(&str) -> bool) -> Vec<String> {
        let mut seen = Vec::new();
        for line in self.lines.by_ref() {
            seen.push(line.expect("its output is text"));
            if matches(seen.last().expect("a line was just read")) {
                return seen;
            }
        }
        panic!("it ended before that: {seen:#?}");
    }

    fn interrupt(mut self) -> i32 {
        let pid = i32::try_from(self.child.id()).expect("a process id is an i32");
        kill(Pid::from_raw(pid), Signal::SIGINT).expect("it lives");
        self.child.wait().expect("it can be waited for").code().unwrap_or(-1)
    }
}

impl Drop for PipedStatus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn on_a_terminal_each_change_is_a_block_and_the_live_view_is_named() {
    let (play, gate) = working_play();
    let mut tty = Tty::start(&play.home.ctl_command(&play.repo, &["status", "--watch"]), (120, 50));
    tty.wait_until_screen("the first state, and how to see more", |screen| {
        screen.contains("runnerctl watch") && screen.contains("0001 work") && screen.contains("tasks        1/4 passed")
    });
    gate.open();
    tty.wait_until_screen("a state below the one before", |screen| {
        screen.contains("run play limit") && screen.matches("run play ").count() > 1
    });
    tty.keys("\u{3}");
    assert_eq!(tty.wait_exit(), 130);
    assert!(tty.is_restored(), "nothing was taken from it");
}

#[test]
fn a_daemon_that_is_killed_is_waited_for() {
    let (mut play, gate) = working_play();
    let mut tty = Tty::start(&play.home.ctl_command(&play.repo, &["status", "--watch"]), (120, 50));
    tty.wait_for_text("0001 work");
    play.kill();
    tty.wait_until_screen("it is said, and what was seen stays", |screen| {
        screen.contains("the daemon went away; waiting for it to come back") && screen.contains("run play running")
    });
    play.restart();
    tty.wait_for_text("run play limit");
    drop(gate);
}

#[test]
fn in_a_pipe_each_change_is_a_block() {
    let (play, gate) = working_play();
    let mut piped = PipedStatus::start(&play, &["status", "--watch"]);
    let first = piped.read_until(|line| line.contains("containment"));
    assert_eq!(first[1], "Reach the goal");
    assert!(first[2].starts_with("run play running"), "{first:#?}");
    gate.open();
    let rest = piped.read_until(|line| line.starts_with("run play limit"));
    assert!(rest.iter().any(String::is_empty), "an empty line is between two of them: {rest:#?}");
    assert_eq!(piped.interrupt(), 130);
}

#[test]
fn each_change_is_an_object_on_a_line_where_json_is_wanted() {
    let (play, gate) = working_play();
    let mut one = PipedStatus::start(&play, &["status", "--watch", "--json"]);
    let mut all = PipedStatus::start(&play, &["status", "--all", "--watch", "--json"]);
    let mut lines = one.read_until(|line| line.contains(r#""state":"running""#));
    all.read_until(|line| line.contains(r#""state":"running""#));
    gate.open();
    lines.extend(one.read_until(|line| line.contains(r#""state":"limit""#)));
    let states: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("each is an object")).collect();
    assert!(states.len() > 1 && states.iter().all(|state| state["schema"] == "runner/status.v1"), "{lines:#?}");
    assert!(lines.windows(2).all(|two| two[0] != two[1]), "nothing is printed twice");
    let lines = all.read_until(|line| line.contains(r#""state":"limit""#));
    let last: Value = serde_json::from_str(lines.last().expect("there is one")).expect("it is an object");
    assert_eq!(
        (last["schema"].as_str(), last["repos"].as_array().map(Vec::len)),
        (Some("runner/statuses.v1"), Some(1))
    );
    assert_eq!((one.interrupt(), all.interrupt()), (130, 130));
}

#[test]
fn a_run_that_an_invalid_tree_holds_is_told_as_it_was_last_valid() {
    let mut play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.home.expect_forgery();
    play.script()
        .step(1, "answer retry 'Not yet: this summary is as long as a line of a commit message and still goes on.'");
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let tree = play.repo.read(".runner/state/tree.json");
    play.repo.write(".runner/state/tree.json", &tree.replacen('{', "{\"bogus\": 1, ", 1)).commit("Break the tree");
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(6);
    let status = play.home.ctl_in(&play.repo, &["status"]).stdout;
    assert!(status.contains("run play held") && status.contains("tree.json is not valid"), "{status}");
    for known in
        ["tasks        1/4 passed", "task         root/b", "sessions 1", "0001  handed over", "and still goes on."]
    {
        assert!(status.contains(known), "`{known}` is not in\n{status}");
    }
}

#[test]
fn what_an_earlier_session_changed_in_gits_folder_is_still_shown() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.script().step(1, "mkdir -p .git/info; echo '* text' > .git/info/attributes; answer retry 'Later.'");
    play.script().step(2, "answer retry 'Still not.'");
    play.run().exits(4);
    let status = play.home.ctl_in(&play.repo, &["status"]);
    let notice = "iteration 1 changed .git/info/attributes, which was put back";
    assert!(status.exits(0).stdout.contains(notice), "{}", status.stdout);
}
