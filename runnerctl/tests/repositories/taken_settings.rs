//! Settings of a second goal: what a person has set for the first run is not lost when its base has no configuration.

use std::path::PathBuf;

use runner_testkit::{Home, Repo};

const CONFIG: &str = ".runner/state/config.toml";

/// A home, and a repository whose configuration is not committed, on which one run has ended; HEAD is on main again.
fn after_one_run(lines: &str) -> (Home, Repo) {
    let home = Home::new();
    let repo = home.repo("plain");
    repo.script().always("echo work >> work.txt; answer done 'Wrote work.txt.'");
    repo.write(CONFIG, &repo.config().top(lines).text());
    (home, repo)
}

fn run_first(home: &Home, repo: &Repo) {
    home.ctl_in(repo, &["start", "--wait", "--id", "first", "-m", "First."]).exits(0);
    repo.git(&["switch", "-q", "main"]);
    assert!(!repo.path().join(CONFIG).exists());
}

#[test]
fn a_second_goal_takes_the_settings_of_the_first_run() {
    let (home, repo) = after_one_run("max_iterations = 7");
    let _daemon = home.daemon();
    run_first(&home, &repo);
    let shown = home.ctl_in(&repo, &["config", "show", "--origin"]);
    assert!(shown.exits(0).stdout.contains("max_iterations = 7  # run first"), "{}", shown.stdout);
    let landed = home.ctl_in(&repo, &["land", "first", "--yes"]);
    assert!(landed.exits(0).stderr.contains("git checkout runner/first -- .runner/state/config.toml"), "{landed:?}");
    // Its commands are confirmed, so that nothing is asked; it begins in place.
    let started = home.ctl_in(&repo, &["start", "--wait", "--id", "second", "-m", "Second."]);
    assert!(started.exits(0).stderr.contains("its settings are those of run first"), "{started:?}");
    assert!(started.stderr.contains("\n  max_iterations = 7\n"), "{started:?}");
    assert!(repo.show("runner/second", CONFIG).contains("max_iterations = 7"));
    home.ctl_in(&repo, &["verify", "second"]).exits(0);
    repo.git(&["switch", "-q", "main"]);
    let isolated = home.ctl_in(&repo, &["start", "--wait", "--isolated", "--id", "third", "-m", "Third."]);
    assert!(isolated.exits(0).stderr.contains("its settings are those of run second"), "{isolated:?}");
    assert!(repo.show("runner/third", CONFIG).contains("max_iterations = 7"));
    let last = home.ctl_in(&repo, &["start", "--json", "--queue-only", "--id", "last", "-m", "Last."]);
    assert_eq!(last.exits(0).json()["settings"]["run"], "third", "an isolated run counts where it was started");
}

#[test]
fn the_files_of_the_guard_are_those_of_the_settings_that_a_run_takes() {
    let home = Home::new();
    let repo = home.repo("plain");
    repo.script().always("echo work >> work.txt; answer done 'Wrote work.txt.'");
    repo.write("check.sh", "exit 0\n").commit("Add a check");
    repo.write(CONFIG, &repo.config().text());
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["config", "set", "guard.command", "sh", "check.sh"]).exits(0);
    run_first(&home, &repo);
    let queued = home.ctl_in(&repo, &["start", "--queue-only", "--id", "second", "-m", "Second."]);
    assert!(queued.exits(0).stderr.contains("guard: watching check.sh for changes\n"), "{queued:?}");
    home.ctl_in(&repo, &["cancel", "second"]).exits(0);
}

#[test]
fn a_later_change_by_a_person_is_taken_and_default_config_takes_nothing() {
    let (home, repo) = after_one_run("max_iterations = 7");
    let _daemon = home.daemon();
    run_first(&home, &repo);
    home.ctl_in(&repo, &["start", "--queue-only", "--id", "second", "-m", "Second."]).exits(0);
    home.ctl_in(&repo, &["cancel", "second"]).exits(0);
    home.ctl_in(&repo, &["config", "set", "--run", "first", "max_iterations", "9"]).exits(0);
    let shown = home.ctl_in(&repo, &["config", "get", "max_iterations"]);
    assert_eq!(shown.exits(0).stdout, "9\n", "a run that never began has no settings");
    // What the file of the work tree is then made from.
    home.ctl_in(&repo, &["config", "set", "stall_after", "4"]).exits(0);
    assert!(repo.read(CONFIG).contains("max_iterations = 9") && repo.read(CONFIG).contains("stall_after = 4"));
    std::fs::remove_file(repo.path().join(CONFIG)).expect("removes");
    let refused = home.ctl_in(&repo, &["start", "--default-config", "-m", "Third."]);
    assert!(refused.exits(6).stderr.contains("codex"), "the default agent is not installed: {refused:?}");
}

#[test]
fn what_is_set_on_the_branch_of_a_run_that_has_ended_is_committed_there_and_taken() {
    let (home, repo) = after_one_run("max_iterations = 7");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--wait", "--id", "first", "-m", "First."]).exits(0);
    home.ctl_in(&repo, &["config", "set", "max_iterations", "9"]).exits(0);
    assert_eq!(repo.git(&["status", "--short"]), "");
    home.ctl_in(&repo, &["land", "first", "--yes"]).exits(0);
    assert_eq!(repo.git(&["branch", "--show-current"]), "main");
    let started = home.ctl_in(&repo, &["start", "--wait", "--id", "second", "-m", "Second."]);
    assert!(started.exits(0).stderr.contains("\n  max_iterations = 9\n"), "{started:?}");
}

#[test]
fn settings_that_are_not_committed_are_those_of_every_run_that_is_queued_with_them() {
    let (home, repo) = after_one_run("max_iterations = 7");
    let _daemon = home.daemon();
    for id in ["first", "second"] {
        home.ctl_in(&repo, &["start", "--queue-only", "--id", id, "-m", "Do it."]).exits(0);
    }
    home.ctl_in(&repo, &["resume", "first", "--wait"]).exits(0);
    home.ctl_in(&repo, &["resume", "second", "--wait"]).exits(0);
    assert!(repo.show("runner/second", CONFIG).contains("max_iterations = 7"));
}

#[test]
fn land_names_settings_that_the_target_has_not() {
    let (home, repo) = after_one_run("max_iterations = 7");
    repo.git(&["add", CONFIG]);
    repo.git(&["commit", "-q", "-m", "Add settings"]);
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["config", "set", "max_iterations", "9"]).exits(0);
    home.ctl_in(&repo, &["start", "--wait", "--id", "first", "-m", "First."]).exits(0);
    let landed = home.ctl_in(&repo, &["land", "first", "--yes"]);
    let hint = "\n  git checkout runner/first -- .runner/state/config.toml && git commit -m Settings\n";
    assert!(landed.exits(0).stderr.contains(hint), "{landed:?}");
    repo.git(&["checkout", "-q", "runner/first", "--", CONFIG]);
    repo.git(&["commit", "-q", "-m", "Settings"]);
    home.ctl_in(&repo, &["start", "--wait", "--id", "second", "-m", "Second."]).exits(0);
    let landed = home.ctl_in(&repo, &["land", "second", "--yes"]);
    assert!(!landed.exits(0).stderr.contains("are not on main"), "{landed:?}");
}

#[test]
fn neither_a_branch_nor_a_file_of_a_session_becomes_a_setting() {
    let (mut home, repo) = after_one_run("max_iterations = 7");
    home.expect_forgery();
    let _daemon = home.daemon();
    run_first(&home, &repo);
    // The branch of a run that this daemon has not begun, and another commit on that of the one that it has.
    let forged = repo.config().top("max_iterations = 999").text();
    for branch in ["runner/zz-newest", "runner/first"] {
        repo.git(&["switch", "-q", "-C", branch]);
        repo.write(CONFIG, &forged).commit("Change settings");
        repo.git(&["switch", "-q", "main"]);
    }
    let started = home.ctl_in(&repo, &["start", "--wait", "--id", "second", "-m", "Second."]);
    assert!(started.exits(0).stderr.contains("\n  max_iterations = 7\n"), "{started:?}");
    assert!(repo.show("runner/second", CONFIG).contains("max_iterations = 7"));
}

#[test]
fn a_persons_own_defaults_are_those_of_a_new_repository() {
    let home = Home::new();
    let repo = home.repo("plain");
    let _daemon = home.daemon();
    repo.script().always("echo work ${#DEMO_TOKEN} >> work.txt; answer done 'Wrote work.txt.'");
    let folder = home.env().iter().find(|(name, _)| name == "XDG_CONFIG_HOME").expect("it is set").1.clone();
    let file = PathBuf::from(folder).join("runnerctl/config.toml");
    std::fs::create_dir_all(file.parent().expect("it is in a folder")).expect("creates");
    let own = repo.config().top("max_iterations = 7").text().replace("[executor]", "[defaults.executor]");
    let own = own.replace("[guard]", "[defaults.guard]").replace("max_iterations", "[defaults]\nmax_iterations");
    let own = own + "\n[defaults.env]\nagent = [\"DEMO_TOKEN\"]\n";
    std::fs::write(&file, &own).expect("writes");
    let client = |args: &[&str]| home.ctl_in(&repo, args);
    let line = own.lines().position(|line| line.starts_with("max_iterations")).expect("it is there") + 1;
    let shown = client(&["config", "show", "--origin"]);
    let place = format!("max_iterations = 7  # {}:{line}\n", file.display());
    assert!(shown.exits(0).stdout.contains(&place), "{place}{}", shown.stdout);
    assert_eq!(client(&["config", "get", "max_iterations"]).exits(0).stdout, "7\n");
    let doctor = client(&["doctor", "--json"]).exits(0).json();
    let config = doctor["repository"].as_array().and_then(|all| all.iter().find(|check| check["name"] == "config"));
    assert!(config.is_some_and(|check| check.to_string().contains(&file.display().to_string())), "{doctor:#}");
    let fresh = home.repo("fresh");
    home.ctl_in(&fresh, &["config", "set", "max_attempts_default", "9"]).exits(0);
    let text = fresh.read(CONFIG);
    assert!(text.contains("\nmax_iterations = 7\n") && text.contains("\nmax_attempts_default = 9\n"), "{text}");
    let mut start = home.ctl_command(&repo, &["start", "--wait", "--id", "first", "-m", "First goal."]);
    let started = start.env("DEMO_TOKEN", "abc").output().expect("it can be started");
    let said = String::from_utf8_lossy(&started.stderr);
    assert!(started.status.success() && said.contains("its settings are your own defaults:"), "{said}");
    assert_eq!(repo.show("runner/first", "work.txt").trim(), "work 3", "the variables of the new settings are sent");
    assert!(repo.show("runner/first", CONFIG).contains("\nmax_iterations = 7\n"));
    std::fs::write(&file, "[defaults]\nmax_iteration = 7\n").expect("writes");
    repo.git(&["switch", "-q", "main"]);
    let other = home.repo("other");
    let refused = home.ctl_in(&other, &["init"]);
    let message =
        format!("{}:2:1: unknown key `max_iteration` at the top level; did you mean `max_iterations`?", file.display());
    assert!(refused.exits(1).stderr.contains(&message), "{message}: {refused:?}");
    assert!(home.ctl_in(&other, &["doctor", "--json"]).exits(1).stdout.contains("unknown key `max_iteration`"));
}
