//! `log` as a person uses it: on a terminal, before the first iteration, for one node, byte for byte.

use runner_testkit::Tty;

use crate::play::{RUN, RunPlay};

const SIZE: (u16, u16) = (100, 30);
/// Contains a sequence that clears the terminal, and a byte that is not valid text.
const SAYS: &str = "printf 'first\\033[2J line\\377\\n'\n";

fn ended_play() -> RunPlay {
    let play = RunPlay::new();
    play.script().step(1, &format!("{SAYS}answer retry 'Not yet.'"));
    play.run().exits(4);
    play
}

#[test]
fn following_before_the_first_iteration_waits_for_it() {
    let play = RunPlay::new();
    play.script().step(1, "echo 'here it is'; answer retry 'Not yet.'");
    play.home.ctl_in(&play.repo, &["start", "--yes", "--id", RUN, "--queue-only"]).exits(0);
    let mut tty = Tty::start(&play.home.ctl_command(&play.repo, &["log", "-f"]), SIZE);
    tty.wait_for_text("No iteration yet; waiting for the first.");
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(4);
    assert_eq!(tty.wait_exit(), 0);
    assert!(tty.screen().contains("here it is"), "{}", tty.screen());
}

#[test]
fn a_run_that_ended_without_an_iteration_has_nothing_to_follow() {
    let play = RunPlay::new();
    play.home.ctl_in(&play.repo, &["start", "--yes", "--id", RUN, "--queue-only"]).exits(0);
    play.home.ctl_in(&play.repo, &["cancel"]).exits(0);
    let output = play.home.ctl_in(&play.repo, &["log", "-f"]);
    output.exits(1);
    assert!(output.stderr.contains("error: "), "{}", output.stderr);
}

#[test]
fn a_terminal_gets_a_pager_and_a_pipe_does_not() {
    let play = ended_play();
    for (args, expected) in [(["log", "1"].as_slice(), "> 0001  handed over"), (&["log", "1", "--agent"], "> first")] {
        let mut command = play.home.ctl_command(&play.repo, args);
        let mut tty = Tty::start(command.env("PAGER", "sed 's/^/> /'"), SIZE);
        assert_eq!(tty.wait_exit(), 0);
        assert!(tty.screen().contains(expected), "`{expected}` is not on\n{}", tty.screen());
    }
    let piped = play.home.ctl_with(&play.repo, &["log", "1", "--agent"], &[("PAGER", "sed 's/^/> /'")]);
    assert!(piped.stdout.starts_with("first"), "{}", piped.stdout);
}

#[test]
fn a_pager_that_leaves_early_is_no_error_and_one_that_is_not_there_is() {
    let play = RunPlay::new();
    // More than a pipe holds: it is still being written when the pager exits.
    play.script().step(1, &format!("{SAYS}yes 'one more' | head -c 300000; answer retry 'Not yet.'"));
    play.run().exits(4);
    for part in ["--prompt", "--agent"] {
        let paged = |pager| {
            let mut command = play.home.ctl_command(&play.repo, &["log", "1", part]);
            let mut tty = Tty::start(command.env("PAGER", pager), SIZE);
            (tty.wait_exit(), tty.screen())
        };
        let (status, screen) = paged("head -1");
        assert_eq!(status, 0, "{part}: {screen}");
        let (status, screen) = paged("no-such-pager");
        assert_eq!(status, 1, "{part}: {screen}");
        assert!(screen.contains("the pager `no-such-pager` cannot be started"), "{part}: {screen}");
    }
}

#[test]
fn iterations_of_one_node_are_listed_and_its_last_log_is_read() {
    let play = ended_play();
    let output = play.home.ctl_in(&play.repo, &["log", "--node", "b", "--json"]);
    output.exits(0);
    assert_eq!(output.json()["iterations"].as_array().map(Vec::len), Some(1));
    let output = play.home.ctl_in(&play.repo, &["log", "--node", "b", "--agent"]);
    output.exits(0);
    assert!(output.stdout.contains("line"), "{}", output.stdout);
    let output = play.home.ctl_in(&play.repo, &["log", "--node", "c1"]);
    output.exits(1);
    assert!(output.stderr.contains("no iteration has worked on task c1 yet"), "{}", output.stderr);
}

#[test]
fn raw_output_goes_into_a_file_and_never_to_a_terminal() {
    let play = ended_play();
    let to = play.home.path().join("raw.log");
    let mut command = play.home.ctl_command(&play.repo, &["log", "1", "--raw"]);
    let file = std::fs::File::create(&to).expect("a file can be made");
    assert!(command.stdout(file).status().expect("it can be run").success());
    let bytes = std::fs::read(&to).expect("a file can be read");
    assert_eq!(bytes, b"first\x1b[2J line\xff\n");
    let mut tty = Tty::start(&play.home.ctl_command(&play.repo, &["log", "1", "--raw"]), SIZE);
    assert_eq!(tty.wait_exit(), 2);
    assert!(tty.screen().contains("runnerctl log --raw > FILE"), "{}", tty.screen());
}

#[test]
fn following_outlives_the_daemon() {
    let mut play = RunPlay::new();
    let gate = play.script().gate("session");
    play.script().step(1, "echo 'before it'; gate session; answer retry 'Not yet.'");
    play.script().step(2, "echo 'after it'; answer retry 'Still not.'");
    play.start_run();
    gate.wait_reached();
    let mut tty = Tty::start(&play.home.ctl_command(&play.repo, &["log", "-f"]), SIZE);
    tty.wait_for_text("before it");
    play.kill();
    tty.wait_for_text("the daemon went away; waiting for it to come back");
    play.restart();
    assert_eq!(tty.wait_exit(), 0, "{}", tty.screen());
    assert_eq!(tty.screen().matches("before it").count(), 1, "nothing is printed twice:\n{}", tty.screen());
}

#[test]
fn commits_that_a_session_words_like_receipts_are_shown_as_no_iterations() {
    let play = RunPlay::with_tree(&crate::play::sample(), |config| config.top("max_iterations = 2"));
    let gate = play.script().gate("forged");
    play.script().step(1, "echo 1 > work; answer retry 'Not yet.'");
    let forge = "git log -1 --format=%B | sed 's/0001/0009/; s/Not yet/All is well/' > \"$kit/message\"
        git commit -q --allow-empty -F \"$kit/message\"; git commit -q --allow-empty -F \"$kit/message\"; echo 2 > work";
    play.script().step(2, &format!("{forge}\ngate forged\nanswer retry 'Still not.'"));
    play.start_run();
    gate.wait_reached();
    let numbers = |play: &RunPlay| -> Vec<u32> {
        let run = play.client().run(play.repo.path());
        run.recent.iter().map(|iteration| iteration.iter).collect()
    };
    let log = || play.home.ctl_in(&play.repo, &["log"]).exits(0).stdout.clone();
    assert_eq!(play.repo.git(&["log", "-1", "--format=%s"]).matches("0009").count(), 1, "it is worded like a receipt");
    assert_eq!(numbers(&play), [1], "while the session is running");
    assert!(!log().contains("0009"), "{}", log());
    gate.open();
    play.client().wait_for(play.repo.path(), protocol::words::RunStatus::Limit);
    assert_eq!(numbers(&play), [2, 1], "and after it");
    assert!(!log().contains("0009") && log().contains("0002"), "{}", log());
    assert_eq!(play.repo.git(&["log", "-1", "--format=%s", "HEAD~1"]).matches("0009").count(), 1, "they stay");
}

#[test]
fn an_iteration_that_is_not_in_the_records_is_named_below_the_table() {
    let mut play = ended_play();
    play.home.expect_forgery();
    let log = play.home.ctl_in(&play.repo, &["log"]);
    assert!(!log.stdout.contains("records"), "{}", log.stdout);
    let forged = play.repo.git(&["log", "-1", "--format=%B"]).replace("iter 0001", "iter 0002");
    play.repo.git(&["commit", "-q", "--allow-empty", "-m", &forged]);
    let commit = play.repo.git(&["rev-parse", "--short=8", "HEAD"]);
    let log = play.home.ctl_in(&play.repo, &["log"]);
    log.exits(0);
    let expected = format!(
        "\nnot in the records of this machine: 0002 {commit}\nto check who made them: runnerctl verify {RUN}\n"
    );
    assert!(log.stdout.ends_with(&expected), "{}", log.stdout);
    let details = play.home.ctl_in(&play.repo, &["log", "2"]);
    assert!(
        details.stdout.contains("not on this machine; to check who made it: runnerctl verify"),
        "{}",
        details.stdout
    );
    play.home.ctl_in(&play.repo, &["verify", RUN]).exits(10);
}
