//! A person's changes to the configuration: committed to the branch of an active run, otherwise written to the work
//! tree.

use protocol::words::RunStatus;
use runner_testkit::{Home, ReceiptCommit};

use crate::play::{RUN, RunPlay, sample};

const CONFIG: &str = ".runner/state/config.toml";

#[test]
fn a_key_that_is_set_under_a_session_holds_from_the_next_one_on() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 5  # enough"));
    let gate = play.script().gate("session");
    play.script().step(1, "gate session; answer retry 'Not yet.'").always("answer retry \"Still not: $n.\"");
    play.start_run();
    gate.wait_reached();
    let set = |args: &[&str]| {
        let output = play.home.ctl_in(&play.repo, &[&["config", "set"][..], args, &["--json"]].concat());
        output.exits(0);
        output.json()
    };
    let first = set(&["max_iterations", "2"]);
    assert_eq!((&first["value"], &first["change"]["pending"]), (&"2".into(), &true.into()));
    set(&["roles.mode", "strict"]);
    let shown = play.client().run(play.repo.path());
    let shown: Vec<_> = shown.changes.iter().map(|change| (change.id.as_deref(), change.text.as_str())).collect();
    assert_eq!(shown, [(Some("max_iterations"), "2"), (Some("roles.mode"), "\"strict\"")]);
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    assert!(play.client().run(play.repo.path()).changes.is_empty());
    assert!(play.repo.show("HEAD", CONFIG).contains("max_iterations = 2  # enough\n"), "comments stay");
    assert!(play.script().prompt(2).contains("Planning and working are apart"));
    let humans =
        ReceiptCommit::read_all(&play.repo, &["--reverse", "--first-parent", &format!("runner/{RUN}")]).into_iter();
    let humans: Vec<_> = humans.filter(|receipt| receipt.trailer("Runner-Human") == Some("config set")).collect();
    assert_eq!(humans.len(), 2);
    assert_eq!(humans[0].body, "max_iterations is 2");
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(3);
}

#[test]
fn a_key_that_does_not_exist_or_fit_is_refused_with_what_was_meant() {
    let play = RunPlay::new();
    play.script().step(1, "answer retry 'Not yet.'");
    play.run().exits(4);
    let head = play.repo.head();
    for (args, message) in [
        (["guard.comand", "[]"], "did you mean `command`"),
        (["max_iterations", "none"], "must be a whole number from 1 to"),
        (["max_cost_usd", "5"], "max_cost_usd"),
        (
            ["executor.command", "--default"],
            "hint: set executor.command first, such as: runnerctl config set executor.command sh agent.sh",
        ),
    ] {
        let output = play.home.ctl_in(&play.repo, &[&["config", "set"][..], &args].concat());
        assert!(output.exits(2).stderr.contains(message), "{}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{}", output.stderr);
    }
    assert_eq!(play.repo.head(), head);
}

#[test]
fn words_after_the_key_are_the_command_with_its_options() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("one");
    let set = |words: &[&str]| home.ctl_in(&repo, &[&["config", "set", "guard.command"], words].concat());
    let get = || home.ctl_in(&repo, &["config", "get", "guard.command"]).exits(0).stdout.trim().to_owned();
    for (words, command) in [
        (&["pytest", "-q"][..], r#"["pytest","-q"]"#),
        (&["make", "--json", "--run"], r#"["make","--json","--run"]"#),
        (&["sh", "-c", "exit 0"], r#"["sh","-c","exit 0"]"#),
    ] {
        set(words).exits(0);
        assert_eq!(get(), command);
    }
    home.ctl_in(&repo, &["config", "set", "max_iterations", "5", "--run"]).exits(2);
    home.ctl_in(&repo, &["config", "set", "--run", "none", "max_iterations", "5"]).exits(1);
}

#[test]
fn a_guard_that_a_person_has_set_needs_no_second_confirmation() {
    let play = RunPlay::new();
    play.script().step(1, "answer retry 'Not yet.'").step(2, "echo x > x.txt; answer done 'It is done.'");
    play.run().exits(4);
    play.home.ctl_in(&play.repo, &["config", "set", "guard.command", "[\"sh\", \"-c\", \"exit 7\"]"]).exits(0);
    assert_eq!(play.repo.git(&["status", "--porcelain"]), "");
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    assert!(play.iteration_at(2).receipt.trailer("Runner-Guard").unwrap_or_default().starts_with("exit=7"));
    play.home.ctl_in(&play.repo, &["config", "set", "guard.baseline", "--default"]).exits(0);
}

#[test]
fn a_run_that_has_ended_and_whose_branch_was_left_keeps_its_settings() {
    let play = RunPlay::new();
    play.script().step(1, "answer retry 'Not yet.'");
    play.run().exits(4);
    let tip = play.repo.head();
    play.repo.git(&["switch", "-q", "main"]);
    let set = |args: &[&str]| play.home.ctl_in(&play.repo, &[&["config", "set"][..], args].concat());
    let output = set(&["max_iterations", "7"]);
    assert!(output.exits(0).stdout.contains("it becomes part of the next run's branch"), "{}", output.stdout);
    assert!(play.repo.read(CONFIG).contains("max_iterations = 7"));
    assert_eq!(play.repo.git(&["rev-parse", &format!("runner/{RUN}")]), tip);
    set(&["max_iterations", "8", "--run", RUN]).exits(0);
    assert!(play.repo.show(&format!("runner/{RUN}"), CONFIG).contains("max_iterations = 8"));
}

#[test]
fn without_a_run_the_file_in_the_work_tree_is_written_and_shown_with_its_lines() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("one");
    repo.write(CONFIG, &repo.read(CONFIG).replace("[guard]\n", "[guard]\n# what must hold\n"));
    let output = home.ctl_in(&repo, &["config", "set", "guard.baseline", "false"]);
    assert!(output.exits(0).stdout.contains("it becomes part of the next run's branch"), "{}", output.stdout);
    let text = repo.read(CONFIG);
    assert!(text.contains("# what must hold\n") && text.contains("baseline = false\n"), "{text}");
    let line = text.lines().position(|line| line == "baseline = false").expect("a line") + 1;
    let shown = home.ctl_in(&repo, &["config", "show", "--origin"]).stdout;
    let file = home.ctl_in(&repo, &["config", "path"]).stdout.trim().to_owned();
    assert!(shown.contains(&format!("guard.baseline = false  # {file}:{line}\n")), "{shown}");
    assert!(shown.contains("stall_after = 5  # default\n"), "{shown}");
    let daemon = home.ctl_in(&repo, &["config", "show", "--origin", "--daemon"]).stdout;
    assert!(daemon.contains("max_repositories = 4  # default\n"), "{daemon}");
    repo.script().step(1, "echo x > x.txt; answer done 'It is done.'");
    home.run(&repo, &["--id", RUN, "-m", "Do it"]).exits(0);
    assert!(repo.show("HEAD", CONFIG).contains("baseline = false"));
}

#[test]
fn an_edit_is_checked_before_anything_is_changed_and_a_rejected_one_is_kept() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("one");
    let before = repo.read(CONFIG);
    let edit = |script: &str| home.ctl_with(&repo, &["config", "edit"], &[("VISUAL", script)]);
    assert!(edit("true").exits(0).stderr.contains("Nothing was changed"));
    let refused = edit("echo 'max_iterations = 0' >");
    assert!(refused.exits(2).stderr.contains("must be a whole number from 1 to"), "{}", refused.stderr);
    assert_eq!(repo.read(CONFIG), before);
    let (_, kept) = refused.stderr.split_once("your edit is kept in ").expect("it says where");
    assert_eq!(std::fs::read_to_string(kept.trim()).expect("it is there"), "max_iterations = 0\n");
    std::fs::remove_dir_all(std::path::Path::new(kept.trim()).parent().expect("a folder")).expect("it can be removed");
    let taken = edit("sed -i -e '1i max_iterations = 7'");
    assert!(taken.exits(0).stdout.contains("config edit: changed max_iterations in "), "{}", taken.stdout);
    assert!(repo.read(CONFIG).starts_with("max_iterations = 7\n"), "{}", repo.read(CONFIG));
}

#[test]
fn an_edit_during_a_run_is_one_commit_of_its_branch() {
    let play = RunPlay::new();
    play.script().step(1, "answer retry 'Not yet.'");
    play.run().exits(4);
    let visual = [("VISUAL", "sed -i -e '1i stall_after = 9'")];
    play.home.ctl_with(&play.repo, &["config", "edit"], &visual).exits(0);
    let receipt = ReceiptCommit::read(&play.repo, "HEAD");
    assert_eq!((receipt.trailer("Runner-Human"), receipt.body.as_str()), (Some("config edit"), "stall_after"));
    assert!(play.repo.show("HEAD", CONFIG).starts_with("stall_after = 9\n"));
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
}
