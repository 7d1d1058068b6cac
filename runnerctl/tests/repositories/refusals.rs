//! Requests that are refused before anything changes, with a reason that names the place, and the next command.

use std::fs::{self, File};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use protocol::words::RunStatus;
use runner_testkit::Home;

use crate::place::RepoPlace;

const START: [&str; 4] = ["start", "--yes", "-m", "Do it."];

/// Asserts that a command is refused with this exit code and kind, with this text in its message and with a hint.
#[track_caller]
fn assert_refused(place: &RepoPlace, args: &[&str], (code, kind, part): (i32, &str, &str)) {
    let error = place.ctl(&[args, &["--json"]].concat()).assert_exits(code).error();
    assert_eq!(error["kind"], kind, "{error}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains(part)), "`{part}` is not in {error}");
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "no hint: {error}");
}

#[test]
fn a_folder_without_repository_and_a_bare_one_are_refused() {
    let home = Home::new();
    let _daemon = home.daemon();
    let plain = RepoPlace::folder(&home, b"plain");
    let bare = RepoPlace::folder(&home, b"bare.git");
    bare.git(&["init", "-q", "--bare"]);
    for place in [&plain, &bare] {
        for command in [&["init"][..], &START, &["validate"], &["tree"]] {
            assert_refused(place, command, (1, "not_a_repository", "no usable git working tree"));
        }
    }
}

#[test]
fn a_repository_without_commit_is_refused_and_init_in_it_is_not() {
    let home = Home::new();
    let _daemon = home.daemon();
    let place = RepoPlace::folder(&home, b"unborn");
    place.git(&["init", "-q", "-b", "main"]);
    assert_refused(&place, &START, (6, "wrong_state", "no commit yet"));
    place.ctl(&["init"]).assert_exits(0);
}

#[test]
fn a_git_that_is_too_old_is_refused_with_both_versions() {
    let home = Home::new();
    let _daemon = home.daemon();
    let place = RepoPlace::of_repo(&home, &home.scripted_repo("one"));
    home.fake_git_version("2.31.8");
    for start in [&START[..], &["start", "--yes", "--isolated", "-m", "Do it."]] {
        assert_refused(
            &place,
            start,
            (6, "missing_command", "git 2.31.8 cannot be kept from what a session has configured"),
        );
        assert_refused(&place, start, (6, "missing_command", "install git 2.32 or later"));
    }
}

#[test]
fn a_branch_that_leaves_no_room_for_that_of_a_run_is_refused_and_renamed_by_what_is_said() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always("touch work.txt; answer done 'Done.'");
    let _daemon = home.daemon();
    let place = RepoPlace::of_repo(&home, &repo);
    let start = ["start", "--wait", "--yes", "--id", "demo", "-m", "Do it."];
    for (existing, is_packed) in [("runner", true), ("runner", false), ("runner/demo/x", true)] {
        repo.git(&["branch", existing]);
        if is_packed {
            repo.git(&["pack-refs", "--all"]);
        }
        let before = repo.git(&["for-each-ref"]);
        let message = format!("the branch `{existing}` is in the way of `runner/demo`");
        assert_refused(&place, &start, (6, "wrong_state", &message));
        assert_refused(&place, &[&start[..], &["--isolated"]].concat(), (6, "wrong_state", &message));
        assert_eq!((repo.git(&["for-each-ref"]), place.branch()), (before, "main".to_owned()));
        let hint = place.ctl(&[&start[..], &["--json"]].concat()).error()["hint"].to_string();
        let command = hint.trim_matches('"').strip_prefix("rename it: ").expect("a command");
        assert!(place.command("sh").args(["-c", command]).status().expect("sh runs").success(), "{command}");
    }
    place.ctl(&start).assert_exits(0);
    assert_eq!(place.branch(), "runner/demo");
    place.assert_sound();
    repo.git(&["branch", "runner/there/x"]);
    assert_refused(
        &place,
        &["fork", "--from", "demo/1", "--id", "there", "--yes"],
        (6, "wrong_state", "the branch `runner/there/x` is in the way of `runner/there`"),
    );
    // No run has this id.
    repo.git(&["branch", "-D", "runner/there/x"]);
}

#[test]
fn a_goal_that_nobody_has_written_is_refused_before_anything_is_begun() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("one");
    repo.git(&["rm", "-q", ".runner/GOAL.md"]);
    repo.git(&["commit", "-q", "-m", "Take the goal away"]);
    let place = RepoPlace::of_repo(&home, &repo);
    let start = ["start", "--yes"];
    assert_refused(&place, &start, (2, "invalid_request", "no goal is written in .runner/GOAL.md"));
    place.ctl(&["init"]).assert_exits(0);
    assert_refused(&place, &start, (2, "invalid_request", "no goal is written in .runner/GOAL.md"));
    place.write(".runner/GOAL.md", b"---\nid: mine\n---\n\n# Goal\n\n");
    place.ctl(&["start", "--yes", "--queue-only"]).assert_exits(0);
    assert_refused(&place, &["start", "--yes", "-m", " \n"], (2, "invalid_request", "the goal is empty"));
    assert_eq!(place.git(&["branch", "--format=%(refname:short)"]).trim(), "main");
}

#[test]
fn a_goal_of_another_base_that_nobody_has_written_holds_the_run() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("one");
    let place = RepoPlace::of_repo(&home, &repo);
    repo.git(&["rm", "-q", ".runner/GOAL.md"]);
    repo.git(&["commit", "-q", "-m", "Take the goal away"]);
    repo.git(&["branch", "bare"]);
    repo.write(".runner/GOAL.md", "# Do it\n").commit("Set a goal");
    place.ctl(&["start", "--yes", "--wait", "--base", "bare"]).assert_exits(6);
    let reason = home.client().run(repo.path()).summary.reason.expect("it says why it is held");
    assert!(reason.message.contains("no goal is written"), "{reason:?}");
    repo.script().always("echo it > it.txt; answer done 'It is done.'");
    place.write(".runner/GOAL.md", b"# Do it\n");
    place.ctl(&["resume"]).assert_exits(0);
    home.client().wait_until(repo.path(), |run| run.summary.state == RunStatus::Completed);
}

#[test]
fn a_dirty_tree_is_refused_with_its_first_ten_paths() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    for number in 10..25 {
        repo.write(&format!("new-{number}"), "x\n");
    }
    repo.write("README.md", "Changed.\n");
    let place = RepoPlace::of_repo(&home, &repo);
    let error = place.ctl(&[&START[..], &["--json"]].concat()).assert_exits(6).error();
    let message = error["message"].as_str().expect("a message");
    assert_eq!(message.lines().count(), 12, "{message}");
    assert!(
        message.contains("16 paths") && message.contains("README.md") && message.ends_with("and 6 more"),
        "{message}"
    );
    assert_eq!(place.branch(), "main");
}

#[test]
fn a_merge_under_way_is_refused() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.git(&["checkout", "-q", "-b", "other"]);
    repo.write("other.txt", "x\n").commit("Other");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("main.txt", "x\n").commit("Main");
    repo.git(&["merge", "-q", "--no-ff", "--no-commit", "other"]);
    assert_refused(&RepoPlace::of_repo(&home, &repo), &START, (6, "dirty_tree", "merge"));
}

#[test]
fn a_pipe_that_git_would_wait_for_is_named() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    let place = RepoPlace::of_repo(&home, &repo);
    let rules = repo.path().join(".gitignore");
    mkfifo(&rules, Mode::S_IRWXU).expect("a pipe can be made");
    assert_refused(&place, &START, (6, "dirty_tree", ".gitignore is a pipe"));
    fs::remove_file(&rules).expect("the pipe is as it was");
    place.ctl(&[&START[..], &["--queue-only"]].concat()).assert_exits(0);
    mkfifo(&rules, Mode::S_IRWXU).expect("a pipe can be made");
    assert_refused(&place, &["resume"], (6, "dirty_tree", ".gitignore is a pipe"));
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_gits_keeps_no_command_waiting() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.script().always("echo x > work; answer done 'Done.'");
    home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(0);
    let place = RepoPlace::of_repo(&home, &repo);
    let own = home.path().join(".gitconfig");
    fs::create_dir_all(home.path().join("config/git")).expect("a folder can be made");
    let files = [".gitattributes", ".gitignore", ".mailmap", ".git/config", ".git/info/attributes"]
        .map(|file| repo.path().join(file));
    let users = [own.clone(), home.path().join("config/git/attributes")];
    let commands = [&["land", "x", "--yes"][..], &["deliver", "x", "--dry-run"]];
    for (file, command) in files.into_iter().chain(users).zip(commands.into_iter().cycle()) {
        let before = fs::read(&file).ok();
        if before.is_some() {
            fs::remove_file(&file).expect("it can be removed");
        }
        mkfifo(&file, Mode::S_IRWXU).expect("a pipe can be made");
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        for args in [&START[..], command] {
            assert_refused(&place, args, (6, "dirty_tree", &format!("{name} is a pipe")));
        }
        place.ctl(&["status"]).assert_exits(0);
        fs::remove_file(&file).expect("the pipe is there");
        if let Some(before) = before {
            fs::write(&file, before).expect("it can be written");
        }
    }
    place.ctl(&["land", "x", "--yes"]).assert_exits(0);
}

#[test]
fn a_file_of_gits_that_is_too_large_is_named_and_not_read() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.script().always("echo x > work; answer done 'Done.'");
    home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(0);
    let place = RepoPlace::of_repo(&home, &repo);
    for name in ["HEAD", "packed-refs"] {
        let file = repo.path().join(".git").join(name);
        let kept = repo.path().join("kept");
        let is_there = file.exists();
        if is_there {
            fs::copy(&file, &kept).expect("it can be copied");
        }
        // A length that a sparse file can have on any disk.
        File::create(&file).and_then(|file| file.set_len(3 << 30)).expect("it can have this length");
        for args in [&START[..], &["verify"], &["land", "x", "--yes"]] {
            assert_refused(&place, args, (6, "dirty_tree", &format!("{name} is too large to be read")));
        }
        fs::remove_file(&file).expect("it is there");
        if is_there {
            fs::rename(&kept, &file).expect("it was copied");
        }
    }
}

#[test]
fn a_pipe_that_a_person_names_is_refused() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    let pipe = home.path().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe can be made");
    let pipe = pipe.display().to_string();
    let commands = [
        &["start", "--goal", &pipe][..],
        &["edit", "--file", &pipe],
        &["verify", "--signers", &pipe],
        &["verify", "--tip-log", &pipe],
    ];
    for args in commands {
        let told = home.ctl_in(&repo, args);
        assert!(told.exits(1).stderr.contains("it is a pipe"), "{args:?}: {}", told.stderr);
    }
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.repo("plain");
    repo.commit_config(&repo.config().guard_command(&["no-such-guard"]));
    assert_refused(&RepoPlace::of_repo(&home, &repo), &START, (6, "missing_command", "no-such-guard"));
}

#[test]
fn a_wrong_key_is_refused_with_its_place_and_the_nearest_one() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.repo("plain");
    repo.commit_config(&repo.config().top("max_iteratons = 3"));
    assert_refused(&RepoPlace::of_repo(&home, &repo), &START, (1, "invalid_file", "max_iterations"));
}

#[test]
fn the_programs_that_are_checked_are_those_of_the_base_that_is_named() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.git(&["switch", "-q", "-c", "other"]);
    repo.commit_config(&repo.config().guard_command(&["nosuch-program"]));
    repo.git(&["switch", "-q", "main"]);
    let place = RepoPlace::of_repo(&home, &repo);
    let refused = (6, "missing_command", "nosuch-program");
    assert_refused(&place, &[&START[..], &["--base", "other"]].concat(), refused);
}

#[test]
fn ids_revisions_and_branches_that_cannot_be_are_refused() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.repo("plain");
    repo.commit_config(&repo.config().section("[git]\nprotected_branches = [\"main\", \"runner/kept\"]"));
    let place = RepoPlace::of_repo(&home, &repo);
    for id in ["a..b", "x.lock", "-x", "a/b", "end."] {
        let id = format!("--id={id}");
        assert_refused(&place, &[&START[..], &[id.as_str()]].concat(), (2, "invalid_request", "id"));
    }
    assert_refused(&place, &[&START[..], &["--base", "nowhere"]].concat(), (1, "not_found", "nowhere"));
    assert_refused(&place, &[&START[..], &["--id", "kept"]].concat(), (2, "invalid_request", "protected"));
    assert_eq!(place.ctl(&["repos", "--json"]).assert_exits(0).json()["repos"], serde_json::json!([]));
}

/// Starts a run, makes its identity invalid, and returns why it is held.
fn hold_reason_after(break_it: impl Fn(&RepoPlace)) -> String {
    hold_reason_in(&Home::new(), break_it)
}

fn hold_reason_in(home: &Home, break_it: impl Fn(&RepoPlace)) -> String {
    let daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.script().step(1, "decompose 'Two parts.' One Two");
    let place = RepoPlace::of_repo(home, &repo);
    place.ctl(&["start", "-m", "Do it.", "--id", "mine", "--queue-only"]).assert_exits(0);
    place.ctl(&["step"]).assert_exits(0);
    break_it(&place);
    let before = repo.script().session_count();
    place.ctl(&["resume"]);
    let view = home.client().wait_for(repo.path(), RunStatus::Held);
    assert_eq!(repo.script().session_count(), before, "no session begins");
    drop(daemon);
    let reason = view.summary.reason.expect("a reason");
    assert!(reason.command.is_some(), "{reason:?}");
    reason.message
}

#[test]
fn another_id_in_the_goal_holds_the_run() {
    let message = hold_reason_after(|place| {
        place.write(".runner/GOAL.md", b"---\nid: other\n---\n# Do it\n");
        place.commit();
    });
    assert!(message.contains("GOAL.md") && message.contains("other"), "{message}");
}

#[test]
fn another_id_in_the_run_state_holds_the_run() {
    let mut home = Home::new();
    home.expect_forgery();
    let message = hold_reason_in(&home, |place| {
        let path = ".runner/state/run_state.json";
        let text = std::fs::read_to_string(place.path.join(path)).expect("reads");
        place.write(path, text.replace("\"run_id\": \"mine\"", "\"run_id\": \"other\"").as_bytes());
        place.commit();
    });
    assert!(message.contains("run_state.json") && message.contains("other"), "{message}");
}

#[test]
fn a_start_whose_branch_is_another_runs_is_refused() {
    let mut home = Home::new();
    home.expect_forgery();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    let place = RepoPlace::of_repo(&home, &repo);
    home.run(&repo, &["-m", "Do it.", "--id", "mine"]);
    repo.git(&["branch", "runner/stolen"]);
    assert_refused(&place, &["start", "--yes", "--id", "stolen"], (6, "identity_mismatch", "mine"));
}

/// Asserts that `validate` finds what `start` refuses, under the name of its check.
#[track_caller]
fn assert_invalid(place: &RepoPlace, check: &str, part: &str) {
    let reply = place.ctl(&["validate", "--json"]).assert_exits(1).json();
    let checks = reply["checks"].as_array().expect("a list").iter().filter(|check| check["ok"] == false);
    let checks: Vec<_> =
        checks.map(|check| (check["name"].as_str().unwrap_or_default(), check["faults"].to_string())).collect();
    assert!(matches!(&checks[..], [(name, detail)] if *name == check && detail.contains(part)), "{checks:?}");
    let error = place.ctl(&[&START[..], &["--json"]].concat()).error();
    assert!(error["message"].as_str().is_some_and(|message| message.contains(part)), "`{part}` is not in {error}");
}

#[test]
fn what_a_start_refuses_of_the_work_tree_is_found_by_validate() {
    let home = Home::new();
    home.limit_containment("walk");
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    let place = RepoPlace::of_repo(&home, &repo);
    place.ctl(&["init"]).assert_exits(0);
    place.ctl(&["validate"]).assert_exits(0);
    let config = repo.read(".runner/state/config.toml");
    let with = |line: &str| {
        let (top, rest) = config.split_at(config.find("\n[").expect("a section") + 1);
        repo.write(".runner/state/config.toml", &format!("{top}{line}\n{rest}"));
    };
    with("max_cost_usd = 5.0");
    assert_invalid(&place, "config", "max_cost_usd");
    with("[containment]\nrequire = \"pidns\"");
    assert_invalid(&place, "config", "containment.require");
    repo.write(".runner/state/config.toml", &config.replace("kind = \"command\"", "kind = \"gemini\""));
    assert_invalid(&place, "programs", "cannot find the program `gemini`");
    repo.write(".runner/state/config.toml", &config);
    repo.write(".runner/prompts/worker.md", "# Work\n\nOn {{nodes}}.\n");
    assert_invalid(&place, "prompts", ".runner/prompts/worker.md: line 3: there is no `{{nodes}}`");
    repo.write(".runner/prompts/worker.md", "# Work\n\nOn {{node}}.\n");
    place.ctl(&["validate"]).assert_exits(0);
    repo.write(".runner/prompts/workers.md", "# Work\n");
    let reply = place.ctl(&["validate"]).assert_exits(1).facts();
    assert!(reply.contains("workers.md: no role is called that"), "{reply}");
}
