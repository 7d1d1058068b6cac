//! A person's changes to a run: committed before the next session, exactly once, whatever happens in between.

use protocol::words::RunStatus;
use runner_testkit::{Home, ProgramOutput, ReceiptCommit, Repo, Tty};
use serde_json::Value;

use crate::play::{LEAVE, RUN, RunPlay, leaf, node, sample};

const NOTES: &str = ".runner/state/notes.md";

/// Returns the messages of the commits made by a person's command, oldest first.
fn person_receipts(repo: &Repo) -> Vec<ReceiptCommit> {
    let receipts =
        ReceiptCommit::read_all(repo, &["--reverse", "--first-parent", &format!("runner/{RUN}")]).into_iter();
    receipts.filter(|receipt| receipt.trailer("Runner-Human").is_some()).collect()
}

/// Asserts that a command was refused, and why.
#[track_caller]
fn assert_refused(output: &ProgramOutput, code: i32, why: &str) {
    output.exits(code);
    assert!(output.stderr.contains(why), "`{}` does not say `{why}`", output.stderr);
}

/// Returns the output of a command.
fn ctl_json(home: &Home, repo: &Repo, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let output = home.ctl_in(repo, &args);
    output.exits(0);
    output.json()
}

#[test]
fn a_note_is_read_until_one_session_has_answered_to_it() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 3"));
    let gate = play.script().gate("session");
    play.script().step(1, "gate session; answer retry 'Not yet.'");
    play.script().step(2, "exit 3").step(3, "answer retry 'Still not.'");
    play.start_run();
    gate.wait_reached();
    let reply = ctl_json(&play.home, &play.repo, &["note", "Use sqlx,\nnot diesel"]);
    assert_eq!((&reply["id"], &reply["pending"], &reply["commit"]), (&"n1".into(), &true.into(), &Value::Null));
    assert_eq!(reply["waits_for"], "a session is running");
    assert!(person_receipts(&play.repo).is_empty(), "nothing is committed under a session");
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let shown: Vec<bool> = (1..=3).map(|n| play.script().prompt(n).contains("not diesel")).collect();
    assert_eq!(shown, [false, true, true], "a session that crashed has answered to nothing");
    assert_eq!(play.iteration_at(2).receipt.trailer("Runner-Notes"), None);
    assert_eq!(play.iteration_at(3).receipt.trailer("Runner-Notes"), Some("n1"));
    assert_eq!(play.repo.run_state("HEAD").notes_used, ["n1"]);
    let [human] = &person_receipts(&play.repo)[..] else { panic!("one commit of a person's") };
    assert_eq!(human.trailer("Runner-Human"), Some("note"));
    assert_eq!(play.repo.git(&["diff", "--name-only", &format!("{0}~1", human.commit), &human.commit]), NOTES);
}

#[test]
fn a_note_is_committed_at_once_where_no_session_runs_and_takes_nothing_along() {
    let play = RunPlay::new();
    play.script().step(1, "answer retry 'Not yet.'");
    play.run().exits(4);
    play.repo.write("draft.txt", "not committed\n");
    let reply = ctl_json(&play.home, &play.repo, &["note", "-m", "First"]);
    assert_eq!(reply["commit"], play.repo.head());
    let reply = ctl_json(&play.home, &play.repo, &["note", "Second"]);
    assert_eq!((&reply["id"], &reply["pending"]), (&"n2".into(), &false.into()));
    assert_eq!(play.repo.git(&["status", "--porcelain"]), "?? draft.txt");
    assert!(play.repo.read(NOTES).contains("- [n1] First\n\n- [n2] Second\n"));
    play.repo.git(&["clean", "-fq"]);
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    assert_eq!(play.iteration_at(2).receipt.trailer("Runner-Notes"), Some("n1, n2"));
}

#[test]
fn a_note_that_was_acknowledged_survives_kill_and_is_committed_once() {
    let home = Home::new();
    home.limit_containment("walk");
    let repo = home.repo("one");
    repo.write(".runner/GOAL.md", "# Reach the goal\n");
    repo.commit_config(&repo.config().top("max_iterations = 2"));
    repo.commit_tree(&sample());
    let gate = repo.script().gate("session");
    repo.script().step(1, "gate session; answer retry 'Not yet.'").step(2, "answer retry 'Not yet.'");
    repo.script().step(3, "answer retry 'Not yet.'");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", RUN]).exits(0);
    gate.wait_reached();
    let reply = ctl_json(&home, &repo, &["note", "Mind the gap"]);
    assert_eq!(reply["pending"], true);
    daemon.kill();
    let _next = home.daemon();
    home.client().wait_for(repo.path(), RunStatus::Limit);
    assert_eq!(person_receipts(&repo).len(), 1);
    assert!(repo.script().prompt(2).contains("Mind the gap"));
    assert_eq!(repo.run_state("HEAD").notes_used, ["n1"]);
}

#[test]
fn a_note_needs_a_run_that_reads_it() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.script().step(1, "echo done > done.txt; answer done 'It is done.'");
    let _daemon = home.daemon();
    assert_refused(&home.ctl_in(&repo, &["note", "Anybody there?"]), 1, "no run here yet");
    home.run(&repo, &["--id", RUN, "-m", "Do it"]).exits(0);
    assert_refused(&home.ctl_in(&repo, &["note", "Too late"]), 6, "the run is completed");
}

#[test]
fn a_note_to_a_run_that_waits_in_the_queue_is_in_its_first_prompt() {
    let play = RunPlay::new();
    play.script().step(1, "answer retry 'Not yet.'");
    play.home.ctl_in(&play.repo, &["start", "--yes", "--id", RUN, "--queue-only"]).exits(0);
    let reply = ctl_json(&play.home, &play.repo, &["note", "From the start"]);
    assert_eq!(reply["waits_for"], "the run has not begun");
    play.home.ctl_in(&play.repo, &["resume", "--yes", "--wait"]).exits(4);
    assert!(play.script().prompt(1).contains("From the start"));
    assert_eq!(play.iteration_at(1).receipt.trailer("Runner-Notes"), Some("n1"));
}

#[test]
fn what_somebody_has_changed_by_hand_is_not_written_over() {
    let play = RunPlay::new();
    play.script().step(1, "answer retry 'Not yet.'");
    play.run().exits(4);
    play.repo.write(NOTES, "# Notes\n\nBy hand.\n");
    let output = play.home.ctl_in(&play.repo, &["note", "By command"]);
    assert_refused(&output, 6, "notes.md has changes that are not committed");
    assert_eq!(play.repo.read(NOTES), "# Notes\n\nBy hand.\n");
    play.repo.commit("By hand");
    play.home.ctl_in(&play.repo, &["note", "By command"]).exits(0);
    assert!(play.repo.read(NOTES).starts_with("# Notes\n\nBy hand.\n\n- [n1] By command\n"));
}

/// A run that is stuck at `b`, which has no attempts left.
fn stuck_play() -> RunPlay {
    let mut tree = sample();
    node(&mut tree, "b").max_attempts = 1;
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 5"));
    play.script().step(1, "echo '- Which database?' >> .runner/state/questions.md; answer retry 'Too hard.'");
    play.script().always("echo $n > \"$n.txt\"; answer done 'It is done.'");
    play.run().exits(3);
    play
}

#[test]
fn a_question_is_listed_over_all_repositories_and_its_answer_is_committed_under_it() {
    let play = stuck_play();
    let list = |args: &[&str]| ctl_json(&play.home, &play.repo, args)["questions"].as_array().expect("a list").clone();
    let questions = list(&["questions"]);
    assert_eq!((questions.len(), &questions[0]["text"]), (1, &"Which database?".into()));
    assert_eq!(play.client().run(play.repo.path()).questions, 1);
    let id = questions[0]["id"].as_str().expect("an id");
    let reply = ctl_json(&play.home, &play.repo, &["answer", &id[..4], "Postgres"]);
    assert_eq!((&reply["id"], &reply["commit"]), (&id.into(), &play.repo.head().into()));
    let text = play.repo.show("HEAD", ".runner/state/questions.md");
    assert_eq!(text, "# Questions\n- Which database?\n  Answer: Postgres");
    assert_eq!(list(&["questions"]).len(), 0);
    assert_eq!(list(&["questions", "--all"])[0]["answer"], "Postgres");
    assert_eq!(play.client().run(play.repo.path()).questions, 0);
    assert_refused(&play.home.ctl_in(&play.repo, &["answer", id, "MySQL"]), 6, "is already answered");
    assert_refused(&play.home.ctl_in(&play.repo, &["answer", "zz", "MySQL"]), 1, "there is no question zz");
    play.home.ctl_in(&play.repo, &["retry", "b"]).exits(0);
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(0);
    assert!(play.script().prompt(2).contains("Answer: Postgres"));
}

#[test]
fn a_stuck_run_names_three_ways_on_and_a_retry_is_one() {
    let play = stuck_play();
    let reason = play.client().run(play.repo.path()).summary.reason.expect("it says why");
    let command = reason.command.expect("a command");
    for way in ["runnerctl retry b", "runnerctl edit", "runnerctl add b --title", "runnerctl resume"] {
        assert!(command.contains(way), "{command}");
    }
    assert_refused(&play.home.ctl_in(&play.repo, &["resume"]), 6, "still stuck");
    play.home.ctl_in(&play.repo, &["retry", "b"]).exits(0);
    assert_eq!(play.repo.node("b").max_attempts, 4);
    let human = person_receipts(&play.repo).pop().expect("a commit");
    assert_eq!(
        (human.trailer("Runner-Human"), human.body.as_str()),
        (Some("retry"), "node b may now be tried 4 times, 3 more than before")
    );
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(0);
    assert_refused(&play.home.ctl_in(&play.repo, &["retry", "b"]), 6, "passed tasks stay");
}

#[test]
fn a_stuck_leaf_is_decomposed_by_hand() {
    let play = stuck_play();
    let add = ["add", "b", "--title", "Half", "--goal", "Half of it", "--acceptance", "It is there"];
    let reply = ctl_json(&play.home, &play.repo, &add);
    assert_eq!(reply["id"], "b.1");
    let node = play.repo.node("b.1");
    assert_eq!((node.goal.as_str(), node.acceptance), ("Half of it", vec!["It is there".to_owned()]));
    assert_refused(&play.home.ctl_in(&play.repo, &["add", "a", "--title", "T", "--goal", "G"]), 6, "task a has passed");
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(0);
    assert_eq!(play.iteration_at(2).meta.node, "b.1");
}

#[test]
fn a_node_that_is_added_under_a_session_is_there_for_the_next_one() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    let gate = play.script().gate("session");
    play.script().step(1, "gate session; answer retry 'Not yet.'").step(2, "answer retry 'Not yet.'");
    play.start_run();
    gate.wait_reached();
    let add = ["add", "root", "--title", "First", "--goal", "It comes first", "--order", "0"];
    let reply = ctl_json(&play.home, &play.repo, &add);
    assert_eq!((&reply["pending"], &reply["id"]), (&true.into(), &Value::Null));
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    assert_eq!(play.iteration_at(2).meta.node, "root.1");
}

/// Writes an editor that runs a script on the file, and returns the variable that names it.
fn write_editor(play: &RunPlay, script: &str) -> String {
    let path = play.home.path().join("editor.sh");
    std::fs::write(&path, script).expect("an editor can be written");
    format!("sh {}", path.display())
}

#[test]
fn an_edit_is_checked_and_committed_as_a_persons_change() {
    let play = stuck_play();
    let visual =
        write_editor(&play, "sed -i 's/Goal of b/A smaller goal/; s/\"max_attempts\": 1/\"max_attempts\": 2/' \"$1\"");
    play.home.ctl_with(&play.repo, &["edit"], &[("VISUAL", &visual)]).exits(0);
    assert_eq!((play.repo.node("b").goal.as_str(), play.repo.node("b").max_attempts), ("A smaller goal", 2));
    let human = person_receipts(&play.repo).pop().expect("a commit");
    assert_eq!((human.trailer("Runner-Human"), human.body.as_str()), (Some("edit"), "changed b"));
    play.home.ctl_in(&play.repo, &["resume", "--wait"]).exits(0);
}

#[test]
fn an_edit_that_is_not_allowed_is_refused_and_its_text_is_kept() {
    let play = stuck_play();
    let head = play.repo.head();
    let visual = write_editor(&play, "sed -i 's/Title of a/Rewritten/' \"$1\"");
    let output = play.home.ctl_with(&play.repo, &["edit"], &[("VISUAL", &visual)]);
    assert_refused(&output, 6, "passed task a was changed");
    let kept = output.stderr.split("runnerctl edit --file ").nth(1).expect("it says where").trim().to_owned();
    assert!(std::fs::read_to_string(&kept).expect("it is there").contains("Rewritten"));
    std::fs::write(&kept, "{").expect("it can be written");
    assert_refused(&play.home.ctl_in(&play.repo, &["edit", "--file", &kept]), 2, "it is not JSON");
    let unchanged = play.home.ctl_with(&play.repo, &["edit"], &[("EDITOR", "true")]);
    unchanged.exits(0);
    assert_refused(&play.home.ctl_with(&play.repo, &["edit"], &[("EDITOR", "false")]), 1, "ended with");
    assert_eq!(play.repo.head(), head);
}

#[test]
fn an_edit_that_is_refused_on_a_terminal_is_mended_in_the_editor_or_kept() {
    let play = stuck_play();
    let wrong = "sed -i 's/Title of a/Rewritten/' \"$1\"";
    let right = "sed -i 's/Rewritten/Title of a/; s/Goal of b/A smaller goal/' \"$1\"";
    for (keys, exit, goal) in [("n\r", 6, "Goal of b"), ("\r", 0, "A smaller goal")] {
        let script = format!("if [ -e \"$0.seen\" ]; then {right}; else : > \"$0.seen\"; {wrong}; fi");
        let visual = write_editor(&play, &script);
        let mut command = play.home.ctl_command(&play.repo, &["edit"]);
        let mut tty = Tty::start(command.env("VISUAL", &visual), (120, 30));
        let screen = tty.wait_for_text("Edit it again? [Y/n]");
        assert!(screen.contains("passed task a was changed"), "{screen}");
        tty.keys(keys);
        tty.wait_for_text(if exit == 0 { "edit: changed b" } else { "your edit is kept; to try again:" });
        assert_eq!((tty.wait_exit(), play.repo.node("b").goal.as_str()), (exit, goal));
        std::fs::remove_file(play.home.path().join("editor.sh.seen")).expect("the editor was used");
    }
    assert_eq!(play.repo.node("a").title, "Title of a");
}

#[test]
fn an_edit_of_a_tree_that_has_changed_since_is_refused() {
    let play = stuck_play();
    let ctl = runner_testkit::binary("runnerctl");
    let script = format!("{} retry b && sed -i 's/Goal of b/Mine/' \"$1\"", ctl.display());
    let visual = write_editor(&play, &script);
    let output = play.home.ctl_with(&play.repo, &["edit"], &[("VISUAL", &visual)]);
    assert_refused(&output, 6, "the task tree has changed since it was opened");
    assert_eq!(play.repo.node("b").goal, "Goal of b");
}

#[test]
fn an_edit_under_a_session_is_done_to_what_the_session_leaves() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    let gate = play.script().gate("session");
    play.script_tree_change(|left| left.root.children.push(leaf("mine", 9)));
    play.script().step(1, &format!("gate session; {LEAVE}answer retry 'Not yet.'"));
    play.script().step(2, "answer retry 'Not yet.'");
    play.start_run();
    gate.wait_reached();
    let visual = write_editor(&play, "sed -i 's/Goal of b/A smaller goal/' \"$1\"");
    play.home.ctl_with(&play.repo, &["edit"], &[("VISUAL", &visual)]).exits(0);
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    assert_eq!((play.repo.node("b").goal.as_str(), play.repo.node("b").attempts), ("A smaller goal", 2));
    assert_eq!(play.repo.node("mine").order, 9);
    assert!(play.script().prompt(2).contains("A smaller goal"));
}

#[test]
fn an_edit_that_contradicts_the_session_is_given_up_and_its_text_is_kept() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    let gate = play.script().gate("session");
    play.script_tree_change(|left| node(left, "c1").goal = "The session's".to_owned());
    play.script().step(1, &format!("gate session; {LEAVE}answer retry 'Not yet.'"));
    play.start_run();
    gate.wait_reached();
    let visual = write_editor(&play, "sed -i 's/Goal of c1/The person'\"'\"'s/' \"$1\"");
    play.home.ctl_with(&play.repo, &["edit"], &[("VISUAL", &visual)]).exits(0);
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    // Replied to after the consequences of the iteration.
    play.client().list(play.repo.path()).expect("the runs");
    let events = play.repo.read(&format!(".runner/iterations/{RUN}/events.jsonl"));
    assert!(events.contains("goal of task c1 was also changed by someone else"), "{events}");
    assert_eq!(play.repo.node("c1").goal, "The session's");
    let refused = play.home.private().join("repos");
    let folder = std::fs::read_dir(refused).expect("a folder").flatten().next().expect("a repository").path();
    assert!(std::fs::read_to_string(folder.join("refused/1-edit.json")).expect("is kept").contains("The person's"));
}
