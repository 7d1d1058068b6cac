//! A run that is delivered: the branch at a bare remote, a stand-in for the forge's pull request, and feedback for a
//! session.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use protocol::tree::{TREE_VERSION, TaskTree};
use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::{Home, Repo};

use crate::scene::{LandingScene, leaf, write_step};

const GH: &str = r#"#!/bin/sh
for word; do case $word in --body-file=*) cp "${word#--body-file=}" "$HOME/body" ;; esac; done
case "$1 $2" in
"pr list") cat "$HOME/list" ;;
"pr view") cat "$HOME/view" ;;
"pr create") echo https://github.com/o/r/pull/5 ;;
"api "*) echo '[]' ;;
esac
"#;

fn write_program(home: &Home, name: &str, text: &str) {
    let path = home.path().join("bin").join(name);
    fs::write(&path, text).expect("a program can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

/// Gives a repository a remote at a forge, which is a bare repository in its home.
fn publish(home: &Home, repo: &Repo) {
    let bare = home.path().join("remote.git").display().to_string();
    repo.git(&["clone", "-q", "--bare", ".", &bare]);
    repo.git(&["remote", "add", "origin", "git@github.com:o/r.git"]);
    let ssh = home.path().join("bin/ssh").display().to_string();
    repo.git(&["config", "core.sshCommand", &ssh]);
    write_program(home, "ssh", &format!("#!/bin/sh\nfor last; do :; done\nexec ${{last%% *}} {bare}\n"));
    write_program(home, "gh", GH);
    fs::write(home.path().join("list"), "[]").expect("an answer can be written");
    say(home, &["This loses the last line."]);
}

/// Makes these the comments of the pull request.
fn say(home: &Home, comments: &[&str]) {
    let comment = |(id, body)| {
        format!(r#"{{"id": "{id}", "author": {{"login": "alice"}}, "authorAssociation": "OWNER", "body": "{body}"}}"#)
    };
    let comments: Vec<String> = (1..).zip(comments).map(comment).collect();
    let view = format!(r#"{{"comments": [{}], "reviews": [], "statusCheckRollup": null}}"#, comments.join(", "));
    fs::write(home.path().join("view"), view).expect("an answer can be written");
}

/// Opens the pull request.
fn open_request(home: &Home) {
    let open = r#"[{"number": 5, "url": "https://github.com/o/r/pull/5", "state": "OPEN", "isDraft": true, "title": "T", "body": "", "isCrossRepository": false}]"#;
    fs::write(home.path().join("list"), open).expect("an answer can be written");
}

fn remote_tip(home: &Home, repo: &Repo) -> String {
    let bare = home.path().join("remote.git").display().to_string();
    repo.git(&["--git-dir", &bare, "for-each-ref", "--format=%(refname:short) %(objectname)"])
}

#[test]
fn a_run_is_pushed_as_a_branch_of_its_leaves_and_described_from_its_receipts() {
    let scene = LandingScene::new(&["x", "y"]);
    let home = &scene.home;
    let repo = &scene.repo;
    publish(home, repo);
    let main = repo.head();
    scene
        .run("a", &["echo half > x; answer retry 'Half of it.'", &write_step("x", "whole"), &write_step("y", "other")]);
    let stdout = home.ctl_in(repo, &["deliver", "a", "--yes"]).exits(0).stdout.clone();
    assert!(stdout.contains("run a is deliver/a at origin for main"), "{stdout}");
    assert!(stdout.contains("opened pull request: https://github.com/o/r/pull/5"), "{stdout}");
    assert!(stdout.contains("note: this working tree went from runner/a to main\n"), "{stdout}");
    assert_eq!(repo.git(&["branch", "--show-current"]), "main", "the branch of a delivery is not for the work tree");
    let tip = repo.git(&["rev-parse", "deliver/a"]);
    assert_eq!(remote_tip(home, repo), format!("deliver/a {tip}\nmain {main}"));
    assert_eq!(repo.git(&["log", "--reverse", "--format=%s", "main..deliver/a"]), "Title of x\nTitle of y");
    let body = fs::read_to_string(home.path().join("body")).expect("a description was sent");
    for line in [
        "2 of 2 tasks are done",
        "- [x] **Title of x** (session 2, after 1 earlier try)",
        "> Wrote y.",
        "**Proven from the commits alone:** 3 sessions",
        "2 tasks passed",
        "runnerctl verify --landed deliver/a",
    ] {
        assert!(body.contains(line), "{line}\n{body}");
    }
    let stdout = home.ctl_in(repo, &["deliver", "a", "--yes"]).exits(0).stdout.clone();
    assert!(stdout.contains("nothing new to push"), "{stdout}");
    let shown = home.ctl_in(repo, &["deliver", "a", "--dry-run"]).exits(0).stdout.clone();
    assert!(shown.contains(body.trim_end()), "{shown}");
    home.ctl_in(repo, &["verify", "--landed", "deliver/a"]).exits(0);
    repo.assert_sound();
}

#[test]
fn what_a_reviewer_says_is_read_by_the_next_session_and_told_once() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_iterations = 2"));
    let children = vec![leaf("x", 1, Vec::new()), leaf("y", 2, Vec::new())];
    repo.commit_tree(&TaskTree { version: TREE_VERSION, root: leaf("root", 0, children) });
    publish(&home, &repo);
    let _daemon = home.daemon();
    repo.script().step(1, &write_step("x", "whole")).step(2, "answer retry 'Not yet.'");
    home.run(&repo, &["--id", "a"]).exits(4);
    home.ctl_in(&repo, &["deliver", "a", "--yes"]).exits(0);
    let body = fs::read_to_string(home.path().join("body")).expect("a description was sent");
    assert!(body.contains("**The run is not complete.**") && body.contains("(not done, 1 session)"), "{body}");
    open_request(&home);
    let stdout = home.ctl_in(&repo, &["deliver", "a", "--feedback"]).exits(0).stdout.clone();
    assert!(stdout.contains("1 new piece of feedback"), "{stdout}");
    let notes = repo.show("runner/a", ".runner/state/notes.md");
    assert!(notes.contains("Comment of alice (owner)") && notes.contains("This loses the last line."), "{notes}");
    let stdout = home.ctl_in(&repo, &["deliver", "a", "--feedback"]).exits(0).stdout.clone();
    assert!(
        stdout.contains("nothing new") && stdout.contains("1 piece of feedback already known to the run"),
        "{stdout}"
    );
    repo.script().step(3, &write_step("y", "other"));
    home.ctl_in(&repo, &["resume", "--more", "1", "--wait"]).exits(0);
    assert!(repo.read_record(3, "prompt.md").contains("This loses the last line."));
    repo.assert_sound();
}

#[test]
fn a_run_that_has_landed_here_is_not_pushed() {
    let scene = LandingScene::new(&["x"]);
    let home = &scene.home;
    let repo = &scene.repo;
    publish(home, repo);
    let main = repo.head();
    scene.run("a", &[&write_step("x", "whole")]);
    home.ctl_in(repo, &["land", "a", "--yes"]).exits(0);
    for args in
        [&["deliver", "a", "--yes"][..], &["deliver", "a", "--yes", "--base", "main"], &["deliver", "a", "--dry-run"]]
    {
        let stdout = home.ctl_in(repo, args).exits(0).stdout.clone();
        assert_eq!(
            stdout,
            "run a has landed on main here; nothing was pushed\nto publish main: git push origin main\n"
        );
    }
    assert_eq!(remote_tip(home, repo), format!("main {main}"));
    assert_eq!(repo.git(&["branch", "--list", "deliver/*"]), "");
}

#[test]
fn a_command_that_the_user_sets_after_the_run_needs_no_confirmation() {
    let scene = LandingScene::new(&["x"]);
    let home = &scene.home;
    let repo = &scene.repo;
    publish(home, repo);
    scene.run("a", &[&write_step("x", "whole")]);
    write_program(home, "offer", "#!/bin/sh\nexit 0\n");
    home.ctl_in(repo, &["config", "set", "deliver.command", "offer"]).exits(0);
    let stdout = home.ctl_in(repo, &["deliver", "a", "--dry-run"]).exits(0).stdout.clone();
    assert!(stdout.contains("would be deliver/a"), "{stdout}");
    let stdout = home.ctl_in(repo, &["deliver", "a"]).exits(0).stdout.clone();
    assert!(stdout.contains("run a is deliver/a at origin for main"), "{stdout}");
}

#[test]
fn an_isolated_run_at_work_keeps_nobody_from_delivering_and_one_in_place_does() {
    let scene = LandingScene::new(&["x"]);
    let home = &scene.home;
    let repo = &scene.repo;
    publish(home, repo);
    scene.run("a", &[&write_step("x", "whole")]);
    let gate = repo.script().gate("work");
    repo.script().always("gate work; echo more > more; answer done 'More.'");
    scene.on_main();
    home.ctl_in(repo, &["start", "--yes", "--isolated", "--id", "beside", "-m", "Do more."]).exits(0);
    gate.wait_reached();
    home.ctl_in(repo, &["deliver", "a", "--yes"]).exits(0);
    gate.open();
    home.ctl_in(repo, &["start", "--yes", "--in-place", "--id", "here", "-m", "Do more."]).exits(0);
    gate.wait_reached();
    let stderr = home.ctl_in(repo, &["deliver", "a", "--yes"]).exits(6).stderr.clone();
    assert!(stderr.contains("run here is at work in this repository"), "{stderr}");
    gate.open();
    home.client().wait_for(repo.path(), RunStatus::Completed);
    home.ctl_in(repo, &["deliver", "a", "--yes"]).exits(0);
}

#[test]
fn feedback_on_a_completed_run_begins_one_that_has_its_work_and_lands_on_the_same_branch() {
    let scene = LandingScene::new(&["x"]);
    let home = &scene.home;
    let repo = &scene.repo;
    publish(home, repo);
    scene.run("a", &[&write_step("x", "whole")]).on_main();
    home.ctl_in(repo, &["deliver", "a", "--yes"]).exits(0);
    open_request(home);
    let stderr = home.ctl_in(repo, &["deliver", "a", "--feedback"]).exits(6).stderr.clone();
    assert!(stderr.contains("hint: runnerctl deliver a --feedback --start"), "{stderr}");
    let comments = ["First words.", "Second words.", "Third words."];
    for (session, round) in (2..).zip(1..=comments.len()) {
        say(home, &comments[..round]);
        let step = format!("test -e x && test $(ls said-* 2>/dev/null | wc -l) -eq {}", round - 1);
        repo.script().step(session, &format!("{step} && {}", write_step(&format!("said-{round}"), "heard")));
        let stdout = home.ctl_in(repo, &["deliver", "a", "--feedback", "--start", "--yes"]).exits(0).stdout.clone();
        let run = stdout.split(' ').nth(1).expect("the run is named").to_owned();
        let is_over = |view: &RunView| view.summary.id == run && view.summary.state == RunStatus::Completed;
        home.client().wait_until(repo.path(), is_over);
        for (place, comment) in comments.iter().enumerate() {
            assert_eq!(
                repo.script().prompt(session).contains(comment),
                place + 1 == round,
                "{comment} in round {round}"
            );
        }
        scene.on_main();
        let stdout = home.ctl_in(repo, &["land", &run, "--yes"]).exits(0).stdout.clone();
        assert!(stdout.contains("deliver/a"), "{stdout}");
        home.ctl_in(repo, &["deliver", "a", "--yes"]).exits(0);
        let tip = repo.git(&["rev-parse", "deliver/a"]);
        assert!(remote_tip(home, repo).contains(&format!("deliver/a {tip}\n")), "{}", remote_tip(home, repo));
    }
    assert_eq!(repo.git(&["ls-tree", "--name-only", "deliver/a", "said-1", "said-2", "said-3"]).lines().count(), 3);
    assert_eq!(repo.git(&["ls-tree", "--name-only", "main", "x"]), "");
}
