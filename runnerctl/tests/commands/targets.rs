//! Which run a command is about: one grammar for all commands, and no command acts on any run but the one named.

use runner_testkit::{Home, Repo};
use serde_json::Value;

/// Commands about a run, each without its `[RUN|PATH]`.
const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["pause"],
    &["resume"],
    &["step"],
    &["cancel"],
    &["approve"],
    &["reject", "no"],
    &["retry", "root"],
    &["note", "a word"],
    &["answer", "ab", "yes"],
    &["add", "root", "--title", "a", "--goal", "b"],
    &["edit"],
    &["tree"],
    &["select"],
    &["explain"],
    &["log"],
    &["path"],
    &["verify"],
    &["land"],
    &["deliver", "--dry-run"],
    &["fork", "--from", "1"],
    &["export", "otlp", "http://127.0.0.1:1"],
];

/// Commands that change the run that they are about.
const STEERING: &[&[&str]] = &[&["pause"], &["resume"], &["step"], &["cancel"], &["approve"], &["note", "a word"]];

/// Returns the id and state of each run.
fn list_states(home: &Home, repo: &Repo) -> Vec<(String, String)> {
    let Some(runs) = home.client().list(repo.path()) else { return Vec::new() };
    runs.into_iter().map(|run| (run.id, run.state.as_str().to_owned())).collect()
}

fn queue(home: &Home, repo: &Repo, id: &str) {
    home.ctl_in(repo, &["start", "--yes", "--queue-only", "--id", id, "-m", id]).exits(0);
}

#[track_caller]
fn assert_refused(home: &Home, repo: &Repo, (command, word): (&[&str], &str), (code, message): (i32, &str)) {
    let args = [&["--json"][..], command, &[word]].concat();
    let output = home.ctl_in(repo, &args);
    output.exits(code);
    let reply: Value = serde_json::from_str(&output.stderr).expect("an error is one object");
    let text = &reply["error"]["message"];
    let hint = &reply["error"]["hint"];
    assert!(text.as_str().is_some_and(|text| text.contains(message)), "{args:?}: {reply:#}");
    assert!(hint.as_str().is_some_and(|hint| !hint.is_empty()), "{args:?}: {reply:#}");
}

#[test]
fn no_command_takes_a_word_that_names_nothing_for_the_repository() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    for ids in [&[][..], &["one"], &["two", "three"]] {
        for id in ids {
            queue(&home, &repo, id);
        }
        let before = (list_states(&home, &repo), repo.head());
        for command in COMMANDS {
            let neither = (2, "`mistake` is neither a run of this repository nor a path");
            assert_refused(&home, &repo, (command, "mistake"), neither);
            assert_refused(&home, &repo, (command, "./mistake"), (1, "no usable git working tree at "));
        }
        assert_eq!((list_states(&home, &repo), repo.head()), before);
    }
}

#[test]
fn a_word_that_is_a_path_and_a_run_is_refused_and_both_can_be_said() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.write("port/a.txt", "a");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "A folder"]);
    let _daemon = home.daemon();
    queue(&home, &repo, "port-1");
    for command in COMMANDS {
        assert_refused(&home, &repo, (command, "port"), (2, "`port` is a path, and run port-1 has that name too"));
    }
    for target in [&["./port"][..], &["--run", "port"], &["port-1"]] {
        let args = [&["path", "--json"][..], target].concat();
        assert_eq!(home.ctl_in(&repo, &args).exits(0).json()["run"], "port-1", "{target:?}");
    }
}

#[test]
fn the_id_of_a_run_is_not_taken_for_the_text_of_a_command() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    queue(&home, &repo, "port-1");
    for command in [&["note"][..], &["reject", "--iter", "1"], &["answer", "1a"]] {
        assert_refused(&home, &repo, (command, "port-1"), (2, "`port-1` is a run, and no text is given"));
    }
    home.ctl_in(&repo, &["note", "port"]).exits(0);
}

#[test]
fn the_branch_of_a_run_names_it_unless_a_path_has_that_name() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    queue(&home, &repo, "one");
    queue(&home, &repo, "port-1");
    for target in [&["runner/port-1"][..], &["runner/port"], &["--run", "runner/port-1"]] {
        let args = [&["path", "--json"][..], target].concat();
        assert_eq!(home.ctl_in(&repo, &args).exits(0).json()["run"], "port-1", "{target:?}");
    }
    for command in COMMANDS {
        let neither = (2, "`mistake` is neither a run of this repository nor a path");
        assert_refused(&home, &repo, (command, "runner/mistake"), neither);
    }
    repo.write("runner/port-1/a.txt", "a").commit("Add a folder");
    for command in COMMANDS {
        let both = (2, "`runner/port-1` is a path, and run port-1 has that name too");
        assert_refused(&home, &repo, (command, "runner/port-1"), both);
    }
}

#[test]
fn of_several_runs_that_have_not_ended_none_is_meant_and_any_can_be_named() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    for id in ["first", "second", "third"] {
        queue(&home, &repo, id);
    }
    let before = list_states(&home, &repo);
    for command in STEERING {
        let output = home.ctl_in(&repo, command);
        output.exits(2);
        let expected = ["3 runs of ", "first", "second", "third", "--run second"];
        assert!(expected.iter().all(|part| output.stderr.contains(part)), "{command:?}: {}", output.stderr);
    }
    let again: &[(&[&str], &str)] = &[
        (&["pause", "--now"], "pause --now --run first; or: "),
        (&["note", "two words"], "note 'two words' --run first; or: "),
        (&["resume", "--more", "5"], "resume --more 5 --run first; or: "),
        (&["reject", "bad", "--iter", "1"], "reject bad --iter 1 --run first; or: "),
        (&["log", "--agent"], "log --agent --run first; or: "),
        (&["fork", "--from", "1"], "fork --from 1 --run first; or: "),
        (&["export", ".", "/tmp/never"], "export . /tmp/never --run first; or: "),
        (&["export", "html", ".", "/tmp/never"], "export html . /tmp/never --run first; or: "),
    ];
    for (command, hint) in again {
        let output = home.ctl_in(&repo, command);
        output.exits(2);
        let unwrapped = output.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains(hint), "{command:?}: {}", output.stderr);
    }
    assert_eq!(list_states(&home, &repo), before);
    home.ctl_in(&repo, &["cancel", "sec"]).exits(0);
    let state = |id: &str| list_states(&home, &repo).into_iter().find(|(run, _)| run == id).expect("it is there").1;
    assert_eq!(
        (state("first"), state("second"), state("third")),
        ("paused".into(), "cancelled".into(), "paused".into())
    );
}

#[test]
fn a_goal_without_its_option_starts_nothing() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    queue(&home, &repo, "one");
    let before = list_states(&home, &repo);
    let mistakes: &[(&[&str], &str)] = &[
        (&["Add tests"], "runnerctl start -m 'Add tests'"),
        (&["one"], "runnerctl start --id one"),
        (&["Add", "tests", "now"], "runnerctl start -m 'Add tests now'"),
        (&["-m", "Add", "tests", "now"], "runnerctl start -m 'Add tests now'"),
        (&[".", "Add", "tests"], "runnerctl start . -m 'Add tests'"),
    ];
    for (words, hint) in mistakes {
        let output = home.ctl_in(&repo, &[&["start"], *words].concat());
        output.exits(2);
        assert!(output.stderr.contains(hint), "{words:?}: {}", output.stderr);
    }
    assert_eq!(list_states(&home, &repo), before);
}

#[test]
fn a_run_behind_a_paused_one_says_so_wherever_it_is_shown() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    queue(&home, &repo, "first");
    home.ctl_in(&repo, &["start", "--yes", "--id", "next", "-m", "next"]).exits(0);
    let shown = |args: &[&str]| home.ctl_in(&repo, args).exits(0).stdout.clone();
    let why = "run first is before it, and is paused";
    let status = shown(&["status", "next"]);
    assert!(status.contains(&format!("  {why}\n  to continue: runnerctl resume --run first\n")), "{status}");
    let queue = shown(&["queue"]);
    assert!(queue.contains(why), "{queue}");
    let json = home.ctl_in(&repo, &["status", "next", "--json"]).exits(0).json();
    assert_eq!(json["run"]["summary"]["reason"]["message"], why);
    home.ctl_in(&repo, &["cancel", "next"]).exits(0);
}

#[test]
fn a_second_cancel_ends_no_other_run() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    queue(&home, &repo, "one");
    home.ctl_in(&repo, &["cancel"]).exits(0);
    let again = home.ctl_in(&repo, &["cancel"]);
    assert_eq!(again.exits(0).stdout, "run one is already cancelled\n");
    queue(&home, &repo, "two");
    home.ctl_in(&repo, &["cancel", "one"]).exits(0);
    assert!(list_states(&home, &repo).contains(&("two".to_owned(), "paused".to_owned())));
}

#[test]
fn a_command_about_a_repository_does_not_take_a_run_for_a_path() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    queue(&home, &repo, "one");
    for command in [&["queue"][..], &["validate"], &["gc"], &["questions"], &["init"]] {
        for word in ["one", "mistake"] {
            let args = [&["--json"][..], command, &[word]].concat();
            let output = home.ctl_in(&repo, &args);
            let error =
                &serde_json::from_str::<Value>(&output.exits(2).stderr).expect("an error is one object")["error"];
            assert_eq!(error["message"], format!("`{word}` is not a path"), "{args:?}");
            let hint = format!("name a path in the repository; for a run: runnerctl status {word}");
            assert_eq!(error["hint"], hint, "{args:?}");
        }
        assert_refused(&home, &repo, (command, "./mistake"), (1, "no usable git working tree at "));
    }
}

#[test]
fn a_run_that_only_has_a_branch_is_not_mistaken_for_one_whose_id_begins_so() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    queue(&home, &repo, "tidy-2");
    repo.git(&["branch", "runner/tidy"]);
    let before = list_states(&home, &repo);
    for command in STEERING.iter().chain([&["status"][..], &["path"]].iter()) {
        let args = [command, &["--run", "tidy"][..]].concat();
        let output = home.ctl_in(&repo, &args);
        output.exits(1);
        assert!(output.stderr.contains("no run tidy in this repository"), "{args:?}: {}", output.stderr);
    }
    assert_eq!(list_states(&home, &repo), before);
    repo.git(&["branch", "-q", "-D", "runner/tidy"]);
}

#[test]
fn a_record_with_nothing_in_it_says_so() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    repo.script().step(1, "echo done > done.txt; answer done 'It is done.'");
    home.run(&repo, &["--id", "one", "-m", "One"]).exits(0);
    for args in [&["log", "1", "--agent"][..], &["log", "1", "--follow"]] {
        let output = home.ctl_in(&repo, args);
        assert_eq!(output.exits(0).stdout, "");
        assert_eq!(output.stderr, "executor.log is empty: nothing was recorded\n");
    }
}

#[test]
fn without_a_name_the_tree_of_the_one_run_is_read_wherever_head_is() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    repo.script().step(1, "echo done > done.txt; answer done 'It is done.'");
    home.run(&repo, &["--id", "one", "-m", "One"]).exits(0);
    repo.git(&["checkout", "-q", "main"]);
    let title = |args: &[&str]| {
        let reply = home.ctl_in(&repo, &[&["tree", "--json"], args].concat()).exits(0).json();
        reply["tree"]["root"]["title"].as_str().expect("a tree has a title").to_owned()
    };
    assert_eq!(title(&[]), title(&["one"]), "the last run is meant where none is left");
    home.ctl_in(&repo, &["select"]).exits(7);
    home.ctl_in(&repo, &["explain"]).exits(0);
    queue(&home, &repo, "two");
    for command in [&["tree"][..], &["select"], &["explain"]] {
        let output = home.ctl_in(&repo, command);
        output.exits(1);
        assert!(output.stderr.contains("run two has not made its first commit yet"), "{command:?}: {}", output.stderr);
    }
}
