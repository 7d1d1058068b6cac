//! `doctor` on the current machine: with and without a daemon, inside and outside a repository.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use runner_testkit::{Home, ProgramOutput, Repo};
use serde_json::Value;

/// Returns the check with this name.
#[track_caller]
fn find_check<'a>(report: &'a Value, group: &str, name: &str) -> &'a Value {
    let checks = report[group].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

#[track_caller]
fn assert_level(report: &Value, group: &str, name: &str, level: &str) {
    assert_eq!(find_check(report, group, name)["level"], level, "{report:#}");
}

fn run_doctor(home: &Home, repo: &Repo) -> ProgramOutput {
    home.ctl_in(repo, &["doctor", "--json"])
}

/// The files of a home, except those that a daemon writes while it runs.
fn list_files(home: &Home) -> Vec<String> {
    let mut find = Command::new("find");
    find.arg(home.path()).args(["-path", "*/logs", "-prune", "-o", "-printf", "%p %s %T@\n"]);
    let output = find.output().expect("find can be started");
    let mut files: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn without_a_daemon_the_machine_is_checked_and_nothing_is_changed() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let before = list_files(&home);
    let output = run_doctor(&home, &repo);
    let report = output.exits(0).json();
    assert_eq!((report["schema"].as_str(), &report["ok"]), (Some("runner/doctor.v1"), &Value::Bool(true)));
    assert_level(&report, "machine", "git", "ok");
    assert_level(&report, "machine", "daemon", "warn");
    assert_eq!(find_check(&report, "machine", "daemon")["fix"], "runnerctl status");
    assert_level(&report, "repository", "repository", "skipped");
    assert!(!home.socket().exists(), "a daemon was started");
    assert_eq!(list_files(&home), before);
}

#[test]
fn a_repository_that_is_ready_has_nothing_to_do() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["init"]).exits(0);
    let report = run_doctor(&home, &repo).exits(0).json();
    for name in ["repository", "engine", "git state", "config", "guard", "agent", "files"] {
        assert_level(&report, "repository", name, "ok");
    }
    let outside = home.ctl(&["doctor", "--json"]).exits(0).json();
    assert_level(&outside, "repository", "repository", "skipped");
    home.ctl(&["doctor", "/nonexistent"]).exits(1);
}

#[test]
fn what_would_keep_a_run_from_going_well_is_named_with_its_fix() {
    let home = Home::new();
    let repo = home.repo("one");
    home.install("just", "#!/bin/sh\necho 'error: Justfile does not contain recipe `ci`' >&2\nexit 1\n");
    home.install("codex", "#!/bin/sh\necho codex-cli 0.1.0\n");
    fs::create_dir(home.path().join(".codex")).expect("a folder can be made");
    fs::write(home.path().join(".codex/auth.json"), "{}").expect("a file can be written");
    repo.write(".git/index.lock", "");
    let _daemon = home.daemon();
    let report = run_doctor(&home, &repo).exits(1).json();
    assert_level(&report, "repository", "guard", "fail");
    assert_level(&report, "repository", "git state", "warn");
    assert_level(&report, "repository", "agent", "fail");
    fs::remove_file(repo.path().join(".git/index.lock")).expect("the lock can be removed");
    let agent = find_check(&report, "repository", "agent");
    assert!(agent["found"].as_str().is_some_and(|found| found.contains("0.1.0 is older")), "{agent}");
    assert!(agent["fix"].as_str().is_some_and(|fix| fix.starts_with("npm install")), "{agent}");
    repo.write(".runner/state/config.toml", "[guard]\ncomand = [\"make\"]\n");
    let report = run_doctor(&home, &repo).exits(1).json();
    let config = find_check(&report, "repository", "config");
    assert!(
        config["found"]
            .as_str()
            .is_some_and(|found| found.contains(":2:1:") && found.contains("did you mean `command`")),
        "{config}"
    );
}

#[test]
fn no_value_of_a_setting_or_a_variable_is_told() {
    let home = Home::new().export("CODEX_API_KEY", "dummy-secret");
    let repo = home.repo("one");
    repo.write(".runner/state/config.toml", "[executor]\nmodel = \"dummy-secret\"\n");
    let _daemon = home.daemon();
    for args in [&["doctor"][..], &["doctor", "--json"]] {
        let output = home.ctl_in(&repo, args);
        assert!(output.stdout.contains("executor.model"), "{}", output.stdout);
        assert!(!format!("{}{}", output.stdout, output.stderr).contains("dummy-secret"), "{}", output.stdout);
    }
}

#[test]
fn a_program_that_does_not_end_is_named_and_the_rest_is_told() {
    let home = Home::new();
    let repo = home.repo("one");
    home.install("just", "#!/bin/sh\nexec sleep 60\n");
    let _daemon = home.daemon();
    let report = run_doctor(&home, &repo).exits(1).json();
    let guard = find_check(&report, "repository", "guard");
    assert!(guard["found"].as_str().is_some_and(|found| found.contains("did not end within 5 s")), "{guard}");
    assert_level(&report, "machine", "git", "ok");
}

#[test]
fn programs_of_a_configuration_that_nobody_confirmed_are_not_started() {
    let home = Home::new();
    let origin = home.repo("origin");
    origin.write("just", "#!/bin/sh\ntouch started\n");
    let program = fs::Permissions::from_mode(0o755);
    fs::set_permissions(origin.path().join("just"), program).expect("it can be made a program");
    origin.write(".runner/state/config.toml", "[guard]\ncommand = [\"./just\", \"ci\"]\n");
    origin.commit("Bring a just");
    let clone = home.path().join("repos/clone");
    origin.git(&["clone", "-q", &origin.path().display().to_string(), &clone.display().to_string()]);
    let _daemon = home.daemon();
    let report = home.ctl(&["doctor", &clone.display().to_string(), "--json"]).json();
    assert_level(&report, "repository", "config", "warn");
    assert_level(&report, "repository", "agents", "skipped");
    assert_level(&report, "repository", "guard", "ok");
    assert!(!clone.join("started").exists(), "a program of a clone was started");
}
