//! Mistakes on the command line: the message says what is wrong and where, the exit code gives the kind, and the hint
//! says what to type.

use std::fs;
use std::path::Path;

use jsonrpsee::core::ClientError;
use jsonrpsee::core::client::ClientT as _;
use jsonrpsee::rpc_params;
use protocol::client::CallError;
use protocol::error::ErrorKind;
use runner_testkit::Home;
use serde_json::{Value, json};

#[test]
fn client_of_a_development_build_is_told_to_be_updated() {
    let home = Home::new();
    let _daemon = home.daemon();
    let client = home.client();
    let hello = json!({"client": "runnerctl", "version": "0.1.0", "api_major": 1, "api_minor": 0});
    let reply: Result<Value, ClientError> = client.wait(client.rpc().request("daemon.hello", rpc_params![hello]));
    let CallError::Refused(refusal) = reply.expect_err("it is refused").into() else { panic!("it is not a refusal") };
    assert_eq!(refusal.kind, ErrorKind::ProtocolMismatch);
    assert!(refusal.message.contains("this client is of a development build"), "{refusal}");
    assert!(refusal.hint.is_some_and(|hint| hint.contains("update runnerctl")));
}

#[test]
fn a_folder_that_is_not_there_is_refused_by_every_command() {
    let home = Home::new();
    let repo = home.repo("one");
    let _daemon = home.daemon();
    for (folder, cause) in [("/nonexistent", "No such file"), ("README.md", "not a directory")] {
        repo.write("README.md", "A file.");
        for command in ["status", "repos", "queue", "init"] {
            let output = home.ctl_in(&repo, &["-C", folder, command]);
            output.exits(2);
            assert!(output.stderr.starts_with(&format!("error: cannot work in {folder}\n")), "{}", output.stderr);
            assert!(output.stderr.contains(cause) && output.stderr.contains("hint: "), "{}", output.stderr);
        }
    }
}

/// The response to a mistake: exit code, beginning of the error, and hint.
struct ExpectedError<'a> {
    args: &'a [&'a str],
    code: i32,
    error: &'a str,
    hint: &'a str,
}

#[track_caller]
fn assert_errors(home: &Home, folder: &Path, answers: &[ExpectedError<'_>]) {
    for ExpectedError { args, code, error, hint } in answers {
        let mut all = vec!["-C", folder.to_str().expect("a path"), "--json"];
        all.extend(*args);
        let output = home.ctl(&all);
        output.exits(*code);
        let reply: Value = serde_json::from_str(&output.stderr).expect("an error is one object");
        let text = |key: &str| reply["error"][key].as_str().unwrap_or_default().to_owned();
        assert!(text("message").starts_with(error), "{args:?}: {reply:#}");
        assert!(text("hint").contains(hint), "{args:?}: {reply:#}");
    }
}

fn expected_error<'a>(args: &'a [&'a str], code: i32, error: &'a str, hint: &'a str) -> ExpectedError<'a> {
    ExpectedError { args, code, error, hint }
}

#[test]
fn outside_of_a_work_tree_every_command_names_the_place_and_what_to_do() {
    let home = Home::new();
    let folder = home.path().join("repos/empty");
    fs::create_dir(&folder).expect("a folder can be made");
    let bare = home.path().join("repos/bare.git");
    home.scripted_repo("one").git(&["init", "-q", "--bare", &bare.display().to_string()]);
    let _daemon = home.daemon();
    let none = format!("no usable git working tree at {}", folder.display());
    let is_bare = format!("no usable git working tree at {}", bare.display());
    let commands =
        [&["select"][..], &["start", "-m", "x"], &["init"], &["log"], &["config", "get"], &["explain"], &["gc"]];
    assert_errors(&home, &folder, &commands.map(|args| expected_error(args, 1, &none, "git init")));
    assert_errors(&home, &bare, &commands.map(|args| expected_error(args, 1, &is_bare, "git worktree add")));
    assert_errors(
        &home,
        &folder,
        &[expected_error(
            &["select", "/nonexistent"],
            1,
            "no usable git working tree at /nonexistent",
            "name an existing path",
        )],
    );
}

#[test]
fn what_is_not_known_is_named_with_the_command_that_lists_it() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--queue-only", "--id", "a"]).exits(0);
    home.ctl_in(&repo, &["step"]).exits(0);
    assert_errors(
        &home,
        repo.path(),
        &[
            expected_error(&["log", "7"], 1, "run a has no iteration 0007", "runnerctl log"),
            expected_error(&["log", "1.w3"], 1, "iteration 0001 of run a has no wait 3", "runnerctl log"),
            expected_error(&["log", "1", "--run", "b"], 1, "there is no run b in ", "runnerctl queue --ended"),
            expected_error(&["tree", "--run", "b"], 1, "there is no branch runner/b in ", "runnerctl queue --ended"),
            expected_error(&["retry", "zz"], 1, "there is no task zz in the task tree", "runnerctl tree"),
            expected_error(
                &["add", "zz", "--title", "a", "--goal", "b"],
                1,
                "there is no task zz in the task tree",
                "runnerctl tree",
            ),
            expected_error(&["answer", "ab", "x"], 1, "there is no question ab", "runnerctl questions"),
            expected_error(
                &["fork", "--from", "9"],
                1,
                "no commit of branch runner/a is that of iteration 0009",
                "runnerctl log",
            ),
            expected_error(
                &["guard", "accept", "nosuch"],
                1,
                "nosuch is no committed file of the guard",
                "guard.definition",
            ),
            expected_error(&["start", "--base", "nosuch", "-m", "x"], 1, "`nosuch` names no commit", "git log"),
            expected_error(
                &["edit", "--file", "/nonexistent"],
                1,
                "reading the task tree /nonexistent",
                "runnerctl edit",
            ),
            expected_error(&["log", "abc"], 2, "`abc` is neither a run of this repository nor a path", "--run: a"),
            expected_error(&["help", "nosuch"], 2, "no command or topic `nosuch`", "runnerctl help"),
        ],
    );
}

#[test]
fn a_broken_configuration_is_named_by_line_and_can_be_found_and_mended() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    let file = repo.path().join(".runner/state/config.toml").display().to_string();
    repo.write(".runner/state/config.toml", "[guard]\ncomand = [\"make\"]\n");
    let misspelt = format!("{file}:2:1: unknown key `comand` in [guard]; did you mean `command`?");
    assert_errors(
        &home,
        repo.path(),
        &[
            expected_error(&["config", "get"], 1, &misspelt, "runnerctl validate"),
            expected_error(&["config", "show"], 1, &misspelt, "runnerctl validate"),
            expected_error(&["start", "-m", "x"], 1, &misspelt, "correct .runner/state/config.toml"),
            expected_error(
                &["config", "set", "stall_after", "9"],
                1,
                ".runner/state/config.toml:",
                "runnerctl validate",
            ),
        ],
    );
    assert_eq!(home.ctl_in(&repo, &["config", "path"]).exits(0).stdout, format!("{file}\n"));
    repo.write(".runner/state/config.toml", "# mine\nmax_iterations = -1 # too few\n");
    home.ctl_in(&repo, &["config", "set", "max_iterations", "5"]).exits(0);
    assert_eq!(repo.read(".runner/state/config.toml"), "# mine\nmax_iterations = 5 # too few\n");
}

#[test]
fn what_is_installed_is_listed_and_nothing_is_removed() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("one");
    let output = home.ctl_in(&repo, &["uninstall", "--dry-run", "--json"]);
    let parts = output.json()["parts"].as_array().expect("a list").clone();
    let whats: Vec<_> = parts.iter().filter_map(|part| part["what"].as_str()).collect();
    for what in ["socket", "state and logs", "program"] {
        assert!(whats.contains(&what), "{what}: {whats:?}");
    }
    assert!(parts.iter().all(|part| part["remove"].as_str().is_some_and(|command| !command.is_empty())));
    home.ctl_in(&repo, &["daemon", "status"]).exits(0);
    assert!(home.ctl_in(&repo, &["uninstall"]).exits(0).stdout.contains("runnerctl daemon stop"));
}

#[test]
fn program_of_a_package_is_removed_with_the_package() {
    let home = Home::new();
    home.install("rpm", "#!/bin/sh\n[ \"$*\" = \"-qf --queryformat %{NAME} $4\" ] && printf runnerd\n");
    let parts = home.ctl(&["uninstall", "--json"]).exits(0).json()["parts"].as_array().expect("a list").clone();
    let programs: Vec<_> = parts.iter().filter(|part| part["what"] == "program").collect();
    assert!(!programs.is_empty() && programs.iter().all(|part| part["remove"] == "sudo rpm -e runnerd"), "{parts:?}");
    home.install("rpm", "#!/bin/sh\necho 'file x is not owned by any package'\nexit 1\n");
    assert!(home.ctl(&["uninstall"]).exits(0).stdout.contains("rm -r -- "));
}

#[test]
fn the_versions_of_client_and_daemon_are_told_and_what_was_built_is_not_replaced() {
    let home = Home::new();
    let version = env!("CARGO_PKG_VERSION");
    let reply = home.ctl(&["version", "--json"]).exits(0).json();
    assert_eq!(
        (&reply["client"], &reply["daemon"], &reply["available"]),
        (&version.into(), &Value::Null, &Value::Null)
    );
    let _daemon = home.daemon();
    let output = home.ctl(&["version"]);
    assert_eq!(output.exits(0).stdout, format!("runnerctl  {version}\nrunnerd    {version}\n"));
    for command in [&["version", "--check"][..], &["self-update"], &["self-update", "--to", "0.0.1", "--from", "/tmp"]]
    {
        let refused = home.ctl(command);
        assert!(refused.exits(6).stderr.contains("was not installed by install.sh"), "{}", refused.stderr);
    }
    home.ctl(&["self-update", "--to", "new"]).exits(2);
    home.ctl(&["version", "--from", "/tmp"]).exits(2);
}
