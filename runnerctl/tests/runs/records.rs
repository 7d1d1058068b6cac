//! Records for people: exported for others, and removed when no longer needed.

use std::fs;

use crate::play::{RUN, RunPlay, sample};

/// A finished run of two iterations, and its client.
fn play_run() -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.script().step(1, "echo 'look at me'\nanswer retry 'Not yet.'").step(2, "answer retry 'Nor now.'");
    play.run().exits(4);
    play
}

#[test]
fn nobody_else_reads_a_record() {
    use std::os::unix::fs::PermissionsExt as _;
    let play = play_run();
    let mode = |path: &str| {
        let path = play.repo.path().join(".runner/iterations").join(path);
        fs::metadata(&path).expect("it is there").permissions().mode() & 0o777
    };
    for folder in ["", RUN, &format!("{RUN}/0001")] {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
    for file in ["executor.log", "prompt.md", "meta.json", "events.jsonl", "diff.patch", "tree.after.json"] {
        assert_eq!(mode(&format!("{RUN}/0001/{file}")), 0o600, "{file}");
    }
    assert_eq!(mode(&format!("{RUN}/events.jsonl")), 0o600);
}

#[test]
fn attributes_of_a_session_hide_nothing_from_a_patch() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    play.script().step(1, "echo '* -diff' > .gitattributes; echo 'look at me' > seen.txt; answer retry 'Not yet.'");
    play.run().exits(4);
    let patch = play.record(1, "diff.patch");
    assert!(patch.contains("+look at me"), "{patch}");
}

#[test]
fn a_record_and_a_whole_run_are_copied_as_they_are() {
    let play = play_run();
    let to = |name: &str| play.home.path().join(name).display().to_string();
    let export = |what: &str, to: &str| play.home.ctl_in(&play.repo, &["export", what, to, "--json"]);
    let one = export("1", &to("one")).exits(0).json();
    assert_eq!((&one["run"], &one["records"]), (&RUN.into(), &1.into()));
    for file in ["executor.log", "prompt.md", "meta.json"] {
        let copy = fs::read_to_string(play.home.path().join("one").join(file)).expect("the copy is there");
        assert_eq!(copy.trim_end(), play.record(1, file).trim_end(), "{file}");
    }
    let all = export(RUN, &to("all")).exits(0).json();
    assert_eq!(all["records"], 2);
    for file in ["events.jsonl", "0001/meta.json", "0002/diff.patch"] {
        assert!(play.home.path().join("all").join(file).is_file(), "{file} was not copied");
    }
    let again = export("2", &to("all"));
    again.exits(2);
    assert!(again.stderr.contains("nothing is overwritten"), "{}", again.stderr);
    assert!(!play.home.path().join("all/meta.json").exists());
    export("7", &to("none")).exits(1);
    export("nobody", &to("none")).exits(2);
    assert!(!play.home.path().join("none").exists(), "what is refused leaves nothing");
}

#[test]
fn only_records_of_runs_that_are_over_are_removed() {
    let play = play_run();
    let gc = |args: &[&str]| play.home.ctl_in(&play.repo, &[&["gc", "--json"], args].concat()).exits(0).json();
    let gate = play.script().gate("session");
    play.script().step(3, "gate session; answer retry 'Not yet.'");
    play.home.ctl_in(&play.repo, &["start", "--id", "next", "-m", "More of it", "--yes"]).exits(0);
    gate.wait_reached();
    let kept = gc(&["--keep", "1"]);
    assert_eq!((&kept["removed"], &kept["freed_bytes"]), (&serde_json::json!([]), &0.into()));
    let preview = gc(&["--keep", "0", "--dry-run"]);
    assert_eq!((&preview["removed"][0]["run"], &preview["kept"][0]["run"]), (&RUN.into(), &"next".into()));
    assert!(play.has_record("0002"), "a dry run removes nothing");
    let freed = gc(&["--keep", "0"]);
    assert_eq!((&freed["freed_bytes"], &freed["removed"][0]["records"]), (&preview["freed_bytes"], &2.into()));
    assert!(freed["freed_bytes"].as_u64() > Some(0));
    assert!(!play.has_record(""), "the records of the run that is over are gone");
    assert!(play.repo.path().join(".runner/iterations/next/0001/prompt.md").exists(), "a live run keeps its own");
    for stream in ["--agent", "--guard", "--prompt"] {
        let output = play.home.ctl_in(&play.repo, &["log", &format!("{RUN}/1"), stream]);
        let message = format!("the record of iteration 0001 of run {RUN} was removed; its commit is there");
        assert!(output.exits(1).stderr.contains(&message), "{}", output.stderr);
    }
    let unknown = play.home.ctl_in(&play.repo, &["log", &format!("{RUN}/7"), "--agent"]);
    assert!(unknown.exits(1).stderr.contains("has no iteration 0007"), "{}", unknown.stderr);
    gate.open();
    play.client().wait_for(play.repo.path(), protocol::words::RunStatus::Limit);
    assert_eq!(play.repo.refs("refs/heads/runner/").len(), 2, "branches stay");
}
