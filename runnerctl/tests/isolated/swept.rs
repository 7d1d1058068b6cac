//! What `gc` removes of isolated runs, and what it keeps and lists.

use runner_testkit::Home;

use crate::kit::{WRITES, reserved_refs, run, start, workspace};

#[test]
fn a_workspace_whose_run_is_over_goes_and_its_branch_and_records_stay() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always(WRITES);
    let _daemon = home.daemon();
    run(&home, &repo, "tidy").exits(0);
    let place = workspace(&home, &repo, "tidy");
    start(&home, &repo, "tidy-up", &["--queue-only"]);
    let refused = home.ctl_in(&repo, &["repos", "--remove", "."]);
    refused.exits(6);
    let tip = repo.git(&["rev-parse", "runner/tidy"]);
    let would = home.ctl_in(&repo, &["gc", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(would["workspaces"][0]["kept"], serde_json::Value::Null);
    assert!(place.exists());
    home.ctl_in(&repo, &["gc"]).exits(0);
    assert!(!place.exists());
    assert_eq!(repo.git(&["rev-parse", "runner/tidy"]), tip);
    assert_eq!(reserved_refs(&repo), "refs/runner/reserved/tidy-up");
    let log = home.ctl_in(&repo, &["log", "1", "--run", "tidy", "--json"]).exits(0).json();
    let record = log["record"].as_str().expect("a record");
    assert!(std::path::Path::new(record).is_dir(), "{record}");
    home.ctl_in(&repo, &["cancel"]).exits(0);
    home.ctl_in(&repo, &["gc"]).exits(0);
    assert_eq!(home.ctl_in(&repo, &["status", "--json"]).exits(0).json()["isolated"], serde_json::Value::Null);
    let ended = home.ctl_in(&repo, &["queue", "--ended"]).exits(0).stdout.clone();
    assert!(ended.contains("tidy     completed") && ended.contains("tidy-up  cancelled"), "{ended}");
    let status = home.ctl_in(&repo, &["status", "tidy", "--json"]).exits(0).json();
    assert_eq!(status["run"]["summary"]["path"], repo.path().display().to_string());
    let landed = home.ctl_in(&repo, &["land", "tidy", "--yes"]).exits(0).stdout.clone();
    assert!(landed.contains("run tidy: landed"), "{landed}");
    home.ctl_in(&repo, &["repos", "--remove", "."]).exits(0);
}

#[test]
fn a_workspace_with_files_of_its_own_is_kept_and_they_are_named() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.write(".gitignore", "*.db\n").commit("Ignore");
    repo.script().always("echo x > results.db; echo work > work.txt; answer done 'Done.'");
    let _daemon = home.daemon();
    run(&home, &repo, "tidy").exits(0);
    let place = workspace(&home, &repo, "tidy");
    let stdout = home.ctl_in(&repo, &["gc"]).exits(6).stdout.clone();
    assert!(stdout.contains("results.db") && stdout.contains("runnerctl gc --force"), "{stdout}");
    assert!(place.join("results.db").exists());
    let status = home.ctl_in(&repo, &["status", "--all"]).exits(0).stdout.clone();
    assert!(status.contains("workspaces:") && !status.contains("runnerctl gc"), "{status}");
    home.ctl_in(&repo, &["gc", "--force", "--dry-run"]).exits(0);
    assert!(place.join("results.db").exists());
    home.ctl_in(&repo, &["gc", "--force"]).exits(0);
    assert!(!place.exists());
}

#[test]
fn a_workspace_with_submodules_goes_unless_they_hold_something_of_their_own() {
    let home = Home::new();
    let module = home.repo("module");
    module.write("inner.txt", "one\n").commit("One");
    let repo = home.scripted_repo("plain");
    let url = module.path().display().to_string();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
    repo.git(&["commit", "-qm", "Module"]);
    let _daemon = home.daemon();
    let sessions = [
        ("plain", WRITES, None),
        (
            "commits",
            "git -C sub commit -q --allow-empty -m Two; answer done 'Done.'",
            Some("the submodule sub in it has commits"),
        ),
        ("writes", "echo x > sub/own.txt; echo work > work.txt; answer done 'Done.'", Some("sub/own.txt")),
    ];
    for (id, deed, kept) in sessions {
        repo.script().always(deed);
        run(&home, &repo, id).exits(0);
        let place = workspace(&home, &repo, id);
        let answer = home.ctl_in(&repo, &["gc"]);
        assert_eq!(place.exists(), kept.is_some(), "{}", answer.stdout);
        assert!(answer.stdout.contains(kept.unwrap_or_default()), "{}", answer.stdout);
    }
}

#[test]
fn folders_of_the_setup_the_guard_and_a_cache_do_not_keep_a_workspace() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.write(".gitignore", "build/\ndist/\ntarget/\nown/\n").commit("Ignore");
    let setup = "[workspace]\nsetup = [\"sh\", \"-c\", \"mkdir -p build/deep && echo x > build/deep/made.txt\"]";
    let guard = ["sh", "-c", "mkdir -p dist && echo x > dist/out"];
    repo.commit_config(&repo.config().guard_command(&guard).section(setup));
    let tag = "printf 'Signature: 8a477f597d28d172789f06886806bc55' > target/CACHEDIR.TAG";
    let work =
        "echo x > build/more.txt; mkdir target own; echo x > target/out; echo x > own/kept.txt; echo work > work.txt";
    repo.script().always(&format!("{work}; {tag}; answer done 'Done.'"));
    let _daemon = home.daemon();
    run(&home, &repo, "tidy").exits(0);
    let place = workspace(&home, &repo, "tidy");
    for path in ["build/more.txt", "dist/out", "target/out"] {
        assert!(place.join(path).exists(), "{path}");
    }
    let stdout = home.ctl_in(&repo, &["gc"]).exits(6).stdout.clone();
    assert!(stdout.contains("no commit has: own/\n"), "{stdout}");
    std::fs::remove_dir_all(place.join("own")).expect("it can be removed");
    home.ctl_in(&repo, &["gc"]).exits(0);
    assert!(!place.exists());
}

#[test]
fn a_workspace_that_was_never_made_ready_is_not_kept_for_what_was_copied() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.write(".gitignore", ".env\nhalf/\n").commit("Ignore");
    let setup = "[workspace]\ncopy = [\".env\"]\nsetup = [\"sh\", \"-c\", \"mkdir half && echo x > half/x; exit 3\"]";
    repo.commit_config(&repo.config().section(setup));
    repo.write(".env", "KEY=1\n");
    let _daemon = home.daemon();
    let output = run(&home, &repo, "tidy");
    assert_ne!(output.code, 0, "{}", output.stderr);
    let place = workspace(&home, &repo, "tidy");
    assert!(place.join(".env").exists() && place.join("half/x").exists());
    assert_eq!(repo.script().session_count(), 0);
    home.ctl_in(&repo, &["gc"]).exits(0);
    assert!(!place.exists());
}
