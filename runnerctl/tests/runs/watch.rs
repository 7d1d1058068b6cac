//! The live view on its own terminal: what it shows, what its keys do, and how it leaves the terminal.

use nix::sys::signal::Signal;
use protocol::words::RunStatus;
use runner_testkit::{SessionGate, Tty};

use crate::play::{RunPlay, sample};

const SMALL: (u16, u16) = (80, 24);
const SIZES: [(u16, u16); 3] = [SMALL, (120, 40), (200, 50)];
/// The agent's output, which contains a sequence that sets the terminal's title.
const SAYS: &str = "printf 'reading src/main.rs\\033]0;HACKED\\007 now\\n'\n";

fn watch(play: &RunPlay, size: (u16, u16), env: &[(&str, &str)]) -> Tty {
    let mut command = play.home.ctl_command(&play.repo, &["watch"]);
    Tty::start(command.envs(env.iter().copied()), size)
}

/// An action of a person or the system.
enum WatchAction {
    Keys(&'static str),
    Signal(Signal),
}

impl WatchAction {
    fn perform(&self, tty: &mut Tty) {
        match self {
            Self::Keys(keys) => drop(tty.keys(keys).screen()),
            Self::Signal(signal) => tty.signal(*signal),
        }
    }
}

/// A run in its first session, which continues once its gate is open; the second session answers at once.
fn working_play() -> (RunPlay, SessionGate) {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    let gate = play.script().gate("session");
    play.script().step(1, &format!("{SAYS}gate session; answer retry 'Not yet.'"));
    play.script().step(2, "answer retry 'Still not.'");
    play.script().guard_always("echo 'all 7 tests pass'; exit 0");
    play.start_run();
    gate.wait_reached();
    (play, gate)
}

#[test]
fn a_run_is_seen_live_at_three_sizes() {
    let (play, gate) = working_play();
    for size in SIZES {
        let mut tty = watch(&play, size, &[]);
        for text in ["reading src/main.rs", "work on b", "✔ a", "running", "1/4 tasks", "✔ open", "● work", "30m 00s"]
        {
            tty.wait_for_text(text);
        }
        for text in ["Title of b", "worker on b", "p:pause"] {
            tty.wait_for_text(text);
        }
        tty.keys("q");
        assert_eq!(tty.wait_exit(), 0);
        assert!(tty.is_restored());
    }
    gate.open();
    let mut tty = watch(&play, SIZES[2], &[]);
    tty.wait_for_text("limit: ");
    tty.wait_for_text("to continue: runnerctl resume --more");
}

#[test]
fn what_happens_is_seen_as_it_happens() {
    let (play, gate) = working_play();
    let mut tty = watch(&play, SIZES[1], &[]);
    tty.wait_for_text("reading src/main.rs");
    gate.open();
    tty.wait_for_text("handed over b");
    tty.wait_for_text("limit: ");
    tty.wait_for_text("Agent 0002");
}

#[test]
fn keys_pause_tell_and_resume() {
    let (play, gate) = working_play();
    let mut tty = watch(&play, SMALL, &[]);
    tty.wait_for_text("running: root/b");
    tty.keys("n").wait_for_text("Note to the next session");
    tty.keys("Use sqlx, quickly\r").wait_for_text("note n1: the next session that answers reads it");
    tty.keys("p").wait_for_text("pauses after this iteration");
    gate.open();
    tty.wait_for_text("paused: ");
    assert_eq!(play.client().run(play.repo.path()).summary.state, RunStatus::Paused);
    tty.wait_for_text("to continue: runnerctl resume");
    tty.keys("r").wait_for_text("limit: ");
    assert!(play.script().prompt(2).contains("Use sqlx, quickly"));
}

#[test]
fn a_run_is_stepped_and_cancelled_after_a_yes() {
    let (play, gate) = working_play();
    let mut tty = watch(&play, SMALL, &[]);
    tty.wait_for_text("running: root/b");
    tty.keys("p").wait_for_text("pauses after this iteration");
    gate.open();
    tty.wait_for_text("to continue: runnerctl resume");
    // The reply is shown until the state of the run changes; the result of the iteration stays.
    tty.keys("s").wait_for_text("0002 handed over b");
    tty.keys("c").wait_for_text("Cancel run play?");
    tty.keys("n").wait_for_absence("Cancel run play?");
    assert_ne!(play.client().run(play.repo.path()).summary.state, RunStatus::Cancelled);
}

#[test]
fn the_daemon_is_killed_and_comes_back_under_the_view() {
    let (mut play, gate) = working_play();
    let mut tty = watch(&play, SMALL, &[]);
    tty.wait_for_text("● b");
    play.kill();
    tty.wait_until_screen("what was seen stays", |screen| {
        screen.contains("reconnecting; as of ") && screen.contains("Title of b")
    });
    play.script().step(2, "printf 'here again\\n'; gate session; answer retry 'Still not.'");
    play.restart();
    tty.wait_for_text("here again");
    tty.wait_for_absence("reconnecting");
    gate.wait_reached();
    gate.open();
    tty.wait_for_text("limit: ");
}

#[test]
fn the_log_is_read_and_searched_on_the_whole_screen() {
    let (play, gate) = working_play();
    let mut tty = watch(&play, SMALL, &[]);
    tty.wait_for_text("reading src/main.rs");
    tty.keys("l").wait_for_text("1-1 of 1");
    tty.keys("3").wait_for_text("# Rules");
    assert!(!tty.screen().contains("Goal of b"));
    tty.keys("/goal of b\r").wait_for_text("Goal of b");
    tty.keys("/nobody's goal\r").wait_for_text("not found: nobody's goal");
    tty.keys("q").wait_for_text("Tree 1/4");
    gate.open();
    tty.wait_for_text("limit: ");
    tty.keys("l2").wait_for_text("has no guard.log");
    tty.keys("[").wait_for_text("0001  handed over  b");
}

#[test]
fn another_size_is_another_layout() {
    let (play, _gate) = working_play();
    let mut tty = watch(&play, SMALL, &[]);
    assert!(!tty.wait_for_text("running: root/b").contains("Repositories"));
    tty.resize((120, 40));
    tty.wait_for_text("Repositories");
    tty.resize((40, 10));
    tty.wait_for_text("watch needs 60x16");
    tty.resize(SMALL);
    tty.wait_for_text("running: root/b");
}

#[test]
fn nothing_that_an_agent_prints_is_obeyed() {
    let (play, _gate) = working_play();
    let mut tty = watch(&play, SMALL, &[]);
    tty.wait_for_text("reading src/main.rs");
    tty.keys("l").wait_for_text("1-1 of 1");
    assert!(!tty.bytes().windows(4).any(|window| window == b"\x1b]0;"), "the window has another name");
}

#[test]
fn neither_colours_nor_characters_are_drawn_that_are_not_wanted() {
    let (play, _gate) = working_play();
    let mut tty = watch(&play, SMALL, &[("NO_COLOR", "1"), ("LANG", "C")]);
    tty.wait_for_text("> running");
    tty.wait_for_text("[>] b");
    assert!(tty.bytes().is_ascii());
    let has_color = |window: &[u8]| window.starts_with(b"\x1b[3") && window[3].is_ascii_digit();
    assert!(!tty.bytes().windows(4).any(|window| has_color(window) && window != b"\x1b[39"));
    let mut tty = watch(&play, SMALL, &[]);
    tty.wait_for_text("● running");
    assert!(tty.bytes().windows(4).any(has_color), "where they are wanted there are some");
}

#[test]
fn the_terminal_is_given_back_whatever_ends_the_view() {
    let (play, _gate) = working_play();
    let ways = [
        (WatchAction::Keys("q"), 0),
        (WatchAction::Keys("\u{3}"), 0),
        (WatchAction::Signal(Signal::SIGTERM), 130),
        (WatchAction::Signal(Signal::SIGINT), 130),
    ];
    for (way, code) in ways {
        let mut tty = watch(&play, SMALL, &[]);
        tty.wait_for_text("running: root/b");
        assert!(!tty.is_restored());
        way.perform(&mut tty);
        assert_eq!(tty.wait_exit(), code);
        assert!(tty.is_restored());
    }
}

#[test]
fn the_view_stops_and_continues_like_a_job_of_the_shell() {
    let (play, gate) = working_play();
    let mut tty = watch(&play, SMALL, &[]);
    for way in [WatchAction::Keys("\u{1a}"), WatchAction::Signal(Signal::SIGTSTP)] {
        tty.wait_for_text("running: root/b");
        way.perform(&mut tty);
        tty.wait_stopped();
        assert!(tty.is_restored());
        tty.signal(Signal::SIGCONT);
        tty.wait_for_text("running: root/b");
        assert!(!tty.is_restored());
    }
    gate.open();
    tty.wait_for_text("limit: ");
}

#[test]
fn without_a_terminal_another_command_is_named() {
    let play = RunPlay::new();
    for args in [["watch"].as_slice(), &["watch", "--json"]] {
        let output = play.home.ctl_in(&play.repo, args);
        output.exits(2);
        assert!(output.stderr.contains("runnerctl status"), "{}", output.stderr);
    }
    let mut command = play.home.ctl_command(&play.repo, &["watch", "/nowhere"]);
    let mut tty = Tty::start(&command, SMALL);
    assert_eq!(tty.wait_exit(), 1, "{}", tty.screen());
    assert!(tty.is_restored() && tty.screen().contains("/nowhere"));
    let mut tty = Tty::start(command.env("TERM", "dumb"), SMALL);
    assert_eq!(tty.wait_exit(), 2, "{}", tty.screen());
}

#[test]
fn a_repository_that_is_registered_while_the_view_is_open_appears() {
    let play = RunPlay::new();
    let mut tty = Tty::start(&play.home.ctl_command(&play.repo, &["watch"]), SIZES[1]);
    tty.wait_for_text("no repositories yet");
    let gate = play.script().gate("session");
    play.script().step(1, "gate session; answer retry 'Not yet.'");
    play.start_run();
    gate.wait_reached();
    tty.wait_for_text("● running");
    tty.wait_for_text("running: root/b");
}

#[test]
fn a_question_is_chosen_and_answered_with_keys_at_three_sizes() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    let asks = "printf '%s\\n' '- Which port?' '- Which host?' '- Which user?' >> .runner/state/questions.md\n";
    play.script().step(1, &format!("{asks}answer retry 'I must ask.'"));
    play.run().exits(4);
    let mut questions: Vec<&str> = vec!["Which port?", "Which host?", "Which user?"];
    for size in SIZES {
        let mut tty = watch(&play, size, &[]);
        tty.wait_for_text("to continue: runnerctl resume");
        let is_listed = |screen: &str| screen.contains("Questions: Enter") && !screen.contains("reading the questions");
        tty.keys("a").wait_until_screen("the questions are listed", is_listed);
        for question in &questions {
            tty.wait_for_text(question);
        }
        let question = questions.pop().expect("there are as many as sizes");
        tty.keys("jjjj\r").wait_for_text("Your answer: Enter sends");
        tty.wait_for_text(question);
        tty.keys("What I say\r").wait_for_text("is answered");
        assert_eq!(
            play.client().run(play.repo.path()).questions,
            u32::try_from(questions.len()).expect("there are few")
        );
        let text = play.repo.show("HEAD", ".runner/state/questions.md");
        assert!(text.contains("What I say") && text.contains(question), "{text}");
    }
    let mut tty = watch(&play, SMALL, &[]);
    tty.wait_for_text("to continue: runnerctl resume");
    tty.keys("a").wait_for_text("no question is open");
}

#[test]
fn what_waits_for_a_review_is_rejected_and_approved_with_keys() {
    let play =
        RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 6").section("[review]\nby = \"human\""));
    play.script().step(1, "echo 1 > result.txt; answer done 'The result is written.'");
    play.script().step(2, "gate second; echo 2 > result.txt; answer done 'Now with a test.'");
    play.script().step(3, "gate third; answer retry 'Not yet.'");
    let [second, third] = ["second", "third"].map(|name| play.script().gate(name));
    play.start_run();
    let mut tty = watch(&play, SMALL, &[]);
    tty.wait_for_text("y approves, x rejects");
    tty.keys("x").wait_for_text("Why it is rejected");
    tty.keys("No test\r");
    second.wait_reached();
    assert!(play.script().prompt(2).contains("No test"));
    tty.wait_for_absence("y approves, x rejects");
    second.open();
    tty.wait_for_text("y approves, x rejects");
    tty.keys("y").wait_for_text("Approve task b of iteration 3 of run play?");
    tty.keys("y");
    third.wait_reached();
    tty.wait_for_text("2/4 tasks");
    // The events report it before the state of the run is read again.
    tty.wait_for_text("running: root/c");
    assert!(play.repo.node("b").passes);
    tty.keys("y").wait_for_text("nothing in this run awaits your review");
}

#[test]
fn the_guard_on_the_base_is_seen_with_what_it_prints() {
    let play = RunPlay::new();
    let text = play.repo.read(".runner/state/config.toml").replace("baseline = false", "baseline = true");
    play.repo.write(".runner/state/config.toml", &text).commit("With a baseline");
    let gate = play.script().gate("guard");
    play.script().guard_step(1, "echo 'compiling the base'; gate guard; exit 0");
    play.script().step(1, "answer retry 'Not yet.'");
    play.start_run();
    gate.wait_reached();
    for size in SIZES {
        let mut tty = watch(&play, size, &[]);
        tty.wait_for_text("● the guard on the base, before the first iteration");
        tty.wait_for_text("compiling the base");
        let screen = tty.wait_for_text("Guard on the base");
        assert!(!screen.contains("0001"), "there is no iteration yet:\n{screen}");
    }
    let mut follower = Tty::start(&play.home.ctl_command(&play.repo, &["log", "--baseline", "-f"]), SMALL);
    follower.wait_for_text("compiling the base");
    gate.open();
    assert_eq!(follower.wait_exit(), 0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let log = play.home.ctl_in(&play.repo, &["log", "--baseline"]);
    assert_eq!(log.exits(0).stdout, "compiling the base\n");
}
