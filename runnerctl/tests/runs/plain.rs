//! Output for limited terminals and readers: the C locale, a screen reader, a dumb terminal.

use runner_testkit::Tty;

use crate::play::{RunPlay, sample};

/// The commands that use colour.
const PAINTING: [&[&str]; 16] = [
    &["status"],
    &["status", "--all"],
    &["tree", "--all"],
    &["tree", "--open", "--depth", "1"],
    &["select"],
    &["explain"],
    &["validate"],
    &["verify"],
    &["log"],
    &["log", "1"],
    &["log", "1", "--agent"],
    &["log", "1", "--prompt"],
    &["queue", "--ended"],
    &["repos"],
    &["config", "show"],
    &["daemon", "status"],
];

/// A run whose agent printed terminal sequences; it ended after one iteration.
fn ended_play() -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.script().step(1, "printf 'first\\033[2J line\\n'; answer retry 'Not yet: \u{1b}[2J'");
    play.run().exits(4);
    play
}

#[test]
fn the_c_locale_gets_ascii_alone() {
    let play = ended_play();
    for args in PAINTING {
        for (name, value) in [("LANG", "C"), ("LC_ALL", "C")] {
            let output = play.home.ctl_with(&play.repo, args, &[(name, value)]);
            assert!(output.code != 2 && !output.stdout.is_empty(), "{args:?}: {output:?}");
            assert!(output.stdout.is_ascii() && output.stderr.is_ascii(), "{args:?}:\n{}", output.stdout);
        }
    }
    let mut command = play.home.ctl_command(&play.repo, &["tree", "--all"]);
    let mut tty = Tty::start(command.env("LANG", "C").env("PAGER", "cat"), (80, 24));
    assert_eq!(tty.wait_exit(), 0);
    assert!(tty.bytes().is_ascii() && tty.screen().contains("|- [x] a"), "{}", tty.screen());
}

#[test]
fn a_plain_reading_has_neither_colours_nor_symbols_nor_a_moving_cursor() {
    let play = ended_play();
    let ways: [(&[&str], (&str, &str)); 3] =
        [(&["--plain"], ("TERM", "xterm")), (&[], ("RUNNER_PLAIN", "1")), (&[], ("TERM", "dumb"))];
    for (option, (name, value)) in ways {
        for args in PAINTING {
            let mut command = play.home.ctl_command(&play.repo, &[args, option].concat());
            let mut tty = Tty::start(command.env("PAGER", "false").env(name, value), (80, 24));
            assert!(matches!(tty.wait_exit(), 0 | 1), "{args:?} {}", tty.screen());
            let bytes = String::from_utf8_lossy(tty.bytes()).into_owned();
            assert!(bytes.is_ascii() && !bytes.contains('\u{1b}'), "{args:?} {name}: {bytes:?}");
            let is_data = args.contains(&"--prompt");
            assert!(is_data || !bytes.contains("|-") && !bytes.contains("[x]"), "{args:?}: {bytes}");
        }
    }
    let tree = play.home.ctl_in(&play.repo, &["tree", "--all", "--plain"]);
    assert!(tree.stdout.contains("\nlevel 1: b, Title of b, current,"), "{}", tree.stdout);
    let status = play.home.ctl_in(&play.repo, &["status", "--all", "--plain"]);
    assert!(status.stdout.contains("\nstate: limit\ntasks: 1/4\n"), "{}", status.stdout);
}

#[test]
fn a_plain_view_of_the_activity_prints_one_line_after_the_other() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.script().step(1, "answer retry 'Not yet.'");
    let mut command = play.home.ctl_command(&play.repo, &["start", "--yes", "--id", "play", "--wait", "--plain"]);
    let mut tty = Tty::start(command.env("TERM", "xterm"), (80, 24));
    assert_eq!(tty.wait_exit(), 4);
    let bytes = String::from_utf8_lossy(tty.bytes()).into_owned();
    assert!(!bytes.contains('\u{1b}') && bytes.contains("0001 handed over  b"), "{bytes:?}");
    let mut command = play.home.ctl_command(&play.repo, &["watch", "--plain"]);
    let mut tty = Tty::start(command.env("TERM", "xterm"), (80, 24));
    assert_eq!(tty.wait_exit(), 2);
    assert!(tty.screen().contains("runnerctl status --watch"), "{}", tty.screen());
}
