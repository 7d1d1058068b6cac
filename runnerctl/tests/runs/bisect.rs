//! `bisect` as a person uses it: it does not repeat what receipts record, and its tries leave nothing behind.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runner_testkit::{PATIENCE, ProgramOutput};
use serde_json::{Value, json};

use crate::play::{RunPlay, sample};

/// A branch of three iterations: the second writes the file `broken`, and the guard is red in the third.
fn play_three() -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 3"));
    play.script().always("echo $n > \"file$n\"; test $n != 2 || echo > broken\nanswer done 'Done.'");
    play.script().guard_step(3, "exit 3");
    play.run().exits(4);
    play
}

fn bisect(play: &RunPlay, command: &[&str]) -> ProgramOutput {
    play.home.ctl_in(&play.repo, &[&["bisect", "--json", "--"], command].concat())
}

/// Returns the iterations that may have broken it, and the number of tries.
fn parse_found(output: &ProgramOutput) -> (Vec<u64>, usize) {
    let answer = output.json();
    let broken_by = answer["broken_by"].as_array().expect("states");
    let iterations = broken_by.iter().filter_map(|point| point["iter"].as_u64()).collect();
    (iterations, answer["tried"].as_array().expect("tries").len())
}

#[test]
fn the_leaf_is_found_whose_commit_broke_a_command() {
    let play = play_three();
    let before = (play.repo.git(&["status", "--porcelain"]), play.repo.git(&["for-each-ref"]));
    let log = play.script().folder().join("tried");
    let command = format!("pwd >> '{}'; test ! -e broken", log.display());
    let output = bisect(&play, &["sh", "-c", &format!("{command} || {{ echo it is broken; false; }}")]);
    assert_eq!(parse_found(output.exits(0)), (vec![2], 4), "{}", output.stdout);
    assert_eq!(output.json()["output"], json!("it is broken\n"));
    let tried = fs::read_to_string(&log).expect("it has run");
    assert!(!tried.contains(&play.repo.path().display().to_string()), "{tried}");
    assert_eq!(output.json()["broken_by"][0]["node"], json!("c1"));
    // One undecidable commit leaves two candidates.
    let skips = "test ! -e file2 -o -e file3 || exit 125; test ! -e broken";
    assert_eq!(parse_found(&bisect(&play, &["sh", "-c", skips])).0, [2, 3]);
    let tells =
        "test ! -e broken || { printf '%s\\n' one two three four five six seven eight nine ten eleven; exit 1; }";
    let output = play.home.ctl_in(&play.repo, &["bisect", "--", "sh", "-c", tells]);
    let text = &output.exits(0).stdout;
    assert!(text.contains("iteration 0002, task c1") && text.contains("\n    git diff "), "{text}");
    assert!(text.contains("\n\n  | two\n") && text.contains("  | eleven\n\n"), "the last ten lines: {text}");
    // Every receipt records the result of the guard's own command.
    let guard = play.home.ctl_in(&play.repo, &["config", "get", "guard.command", "--json"]).json();
    let words: Vec<&str> = guard["value"].as_array().expect("a command").iter().filter_map(Value::as_str).collect();
    play.script().guard_always("exit 9");
    assert_eq!(parse_found(&bisect(&play, &words)), (vec![3], 0));
    for (command, message) in
        [("true", "nothing is broken"), ("false", "did not work before the run"), ("kill -9 $$", "signal=9")]
    {
        assert!(bisect(&play, &["sh", "-c", command]).exits(1).stderr.contains(message), "{command}");
    }
    let missing = bisect(&play, &["no-such-program"]);
    assert!(missing.exits(1).stderr.contains("the command cannot be started"), "{}", missing.stderr);
    assert_eq!(before, (play.repo.git(&["status", "--porcelain"]), play.repo.git(&["for-each-ref"])));
    assert_eq!(fs::read_dir(play.home.state().join("tmp")).expect("the daemon made it").count(), 0);
    play.repo.assert_sound();
}

#[test]
fn a_try_ends_with_who_waits_for_it() {
    let play = play_three();
    let started = play.script().folder().join("started");
    let command = format!("echo > '{}'; sleep 1000 & wait", started.display());
    let mut client = play.home.ctl_command(&play.repo, &["bisect", "--", "sh", "-c", &command]);
    let mut client = client.spawn().expect("the client can be started");
    let waits = |is_over: &dyn Fn() -> bool| {
        let deadline = Instant::now() + PATIENCE;
        while !is_over() {
            assert!(Instant::now() < deadline, "it is still running");
            thread::sleep(Duration::from_millis(5));
        }
    };
    waits(&|| started.exists());
    kill(Pid::from_raw(client.id().cast_signed()), Signal::SIGINT).expect("the client is there");
    assert!(!client.wait().expect("it ends").success());
    let folder = play.home.state().join("tmp");
    waits(&|| fs::read_dir(&folder).expect("the daemon made it").next().is_none());
    play.home.assert_no_survivors();
    assert_eq!(play.repo.git(&["status", "--porcelain"]), "");
}
