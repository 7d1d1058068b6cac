//! An isolated run alongside the work of the person who started it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::Home;

use crate::kit::{WRITES, reserved_refs, run, snapshot_files, start, workspace};

#[test]
fn the_hint_of_a_run_cancelled_before_it_began_starts_it() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always(WRITES);
    let _daemon = home.daemon();
    for (id, options) in [("apart", &["--isolated"][..]), ("here", &[])] {
        let goal = format!("Do it.\n{}", "A long text. ".repeat(20));
        let queued = ["start", "--queue-only", "--yes", "-m", &goal, "--id", id];
        home.ctl_in(&repo, &[&queued[..], options].concat()).exits(0);
        let cancelled = home.ctl_in(&repo, &["cancel", id, "--json"]).exits(0).json();
        let reason = &cancelled["run"]["reason"];
        assert_eq!(reason["message"], "cancelled by the user before it began");
        assert_eq!(reason["command"], format!("runnerctl start --id {id}"));
        home.ctl_in(&repo, &["start", "--id", id, "--wait"]).exits(0);
        assert!(repo.git(&["show", &format!("runner/{id}:.runner/GOAL.md")]).contains("A long text."));
    }
}

#[test]
fn a_run_lands_in_its_source_and_not_in_its_workspace() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always(WRITES);
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--isolated", "--yes", "-m", "Do it.", "--id", "apart", "--wait"]).exits(0);
    let place = workspace(&home, &repo, "apart");
    let refused = home.ctl(&["-C", &place.display().to_string(), "land", "apart", "--onto", "main", "--yes"]);
    refused.exits(6);
    let hint = format!("runnerctl -C {} land apart", repo.path().display());
    assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
    home.ctl_in(&repo, &["land", "apart", "--yes"]).exits(0);
    home.ctl_in(&repo, &["gc"]).exits(0);
    assert!(!place.exists());
}

#[test]
fn a_dirty_checkout_stays_as_it_is_byte_for_byte_and_the_run_is_published() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always(WRITES);
    let _daemon = home.daemon();
    repo.write("README.md", "Changed.\n").write("new.txt", "new\n");
    repo.git(&["add", "new.txt"]);
    let before = snapshot_files(repo.path());
    let output = run(&home, &repo, "tidy");
    output.exits(0);
    assert!(output.stderr.contains("the run does not see: README.md, new.txt"), "{}", output.stderr);
    assert_eq!(snapshot_files(repo.path()), before);
    assert_eq!(repo.git(&["show", "runner/tidy:work.txt"]), "work");
    assert_eq!(repo.git(&["show", "runner/tidy:README.md"]), "A project.");
    assert_eq!(repo.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
    home.ctl_in(&repo, &["verify", "--run", "tidy"]).exits(0);
}

#[test]
fn configuration_and_goal_come_along_uncommitted() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always(WRITES);
    let _daemon = home.daemon();
    repo.write(".runner/GOAL.md", "# Another goal\n\nSay so.\n");
    let config = repo.read(".runner/state/config.toml");
    repo.write(".runner/state/config.toml", &format!("stall_after = 7\n{config}"));
    let output = home.ctl_in(&repo, &["start", "--worktree", "--wait", "--yes", "--id", "new"]);
    output.exits(0);
    assert!(!output.stderr.contains("does not see"), "{}", output.stderr);
    assert!(repo.script().prompt(1).contains("Say so."));
    assert!(repo.git(&["show", "runner/new:.runner/state/config.toml"]).starts_with("stall_after = 7"));
}

#[test]
fn a_branch_that_is_set_back_or_deleted_after_the_run_is_told_so_when_somebody_asks() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always(WRITES);
    let _daemon = home.daemon();
    run(&home, &repo, "tidy").exits(0);
    let published = |words: &[&str]| {
        let status = home.ctl_in(&repo, &[&["status", "--json"], words].concat()).exits(0).json();
        let of_list = status["isolated"][0]["published"].clone();
        if of_list.is_null() { status["run"]["summary"]["published"].clone() } else { of_list }
    };
    assert_eq!(published(&[])["behind"], 0);
    repo.git(&["branch", "--force", "runner/tidy", "runner/tidy~1"]);
    for words in [&[][..], &["--run", "tidy"]] {
        assert_eq!(published(words)["behind"], 1, "{words:?}");
    }
    repo.git(&["branch", "-D", "runner/tidy"]);
    let gone = published(&[]);
    assert!(gone["tip"].is_null() && gone["behind"] != 0 && gone["why"]["message"].is_string(), "{gone}");
    let away = repo.path().with_extension("away");
    let place = workspace(&home, &repo, "tidy");
    fs::rename(repo.path(), &away).expect("it can be moved");
    let unknown =
        home.ctl(&["status", "--json", &place.display().to_string()]).exits(0).json()["run"]["summary"]["published"]
            .clone();
    fs::rename(&away, repo.path()).expect("it can be moved back");
    assert!(unknown["behind"].is_null() && unknown["why"]["message"].is_string(), "{unknown}");
}

#[test]
fn a_run_that_ends_while_its_source_is_away_is_published_once_somebody_asks_and_that_is_back() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    let gate = repo.script().gate("session");
    repo.script().always(&format!("gate session; {WRITES}"));
    let _daemon = home.daemon();
    start(&home, &repo, "tidy", &[]);
    gate.wait_reached();
    let away = repo.path().with_extension("away");
    let place = workspace(&home, &repo, "tidy");
    fs::rename(repo.path(), &away).expect("it can be moved");
    gate.open();
    let client = home.client();
    let behind = |run: &RunView| run.summary.published.as_ref().map(|seen| seen.behind);
    let run = client.wait_for(&place, RunStatus::Completed);
    assert_ne!(behind(&run), Some(Some(0)));
    fs::rename(&away, repo.path()).expect("it can be moved back");
    home.ctl_in(&repo, &["status"]).exits(0);
    client.wait_until(&place, |run| behind(run) == Some(Some(0)));
    assert_eq!(repo.git(&["show", "runner/tidy:work.txt"]), "work");
}

#[test]
fn objects_that_lie_about_in_the_source_are_packed_unless_a_person_has_said_otherwise() {
    for is_packed in [true, false] {
        let home = Home::new();
        let repo = home.scripted_repo("plain");
        for number in 0..2000 {
            repo.write(&format!("many/{number}"), &number.to_string());
        }
        repo.commit("Many files");
        if !is_packed {
            repo.git(&["config", "gc.auto", "0"]);
        }
        repo.script().always(WRITES);
        let _daemon = home.daemon();
        run(&home, &repo, "tidy").exits(0);
        let count_loose = || -> u32 {
            let loose = repo.git(&["count-objects"]);
            loose.split(' ').next().and_then(|count| count.parse().ok()).expect("a number")
        };
        // The end of a run is reported before its objects are packed.
        let deadline = Instant::now() + Duration::from_mins(1);
        while is_packed && count_loose() >= 100 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(count_loose() < 100, is_packed, "{}", count_loose());
        repo.assert_sound();
    }
}

#[test]
fn a_branch_that_grows_is_no_base_and_one_in_the_way_is_told() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    let gate = repo.script().gate("work");
    repo.script().always("gate work; echo work > work.txt; answer done 'Done.'");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", "here", "-m", "Do it."]).exits(0);
    gate.wait_reached();
    let refused = home.ctl_in(&repo, &["start", "--isolated", "-m", "Do it."]);
    refused.exits(6);
    assert!(refused.stderr.contains("HEAD is on runner/here, whose run is not over"), "{}", refused.stderr);
    home.ctl_in(&repo, &["start", "--isolated", "--yes", "-m", "Do it.", "--base", "main", "--id", "there"]).exits(0);
    gate.wait_reached();
    gate.open();
    gate.open();
    let client = home.client();
    client.wait_for(repo.path(), RunStatus::Completed);
    client.wait_for(&workspace(&home, &repo, "there"), RunStatus::Completed);
    let other = home.scripted_repo("other");
    other.git(&["branch", "runner"]);
    let refused = home.ctl_in(&other, &["start", "--isolated", "--yes", "-m", "Do it."]);
    refused.exits(6);
    assert!(refused.stderr.contains("branch -m runner runner-old"), "{}", refused.stderr);
    assert_eq!(reserved_refs(&other), "");
}

#[test]
fn isolated_is_the_default_where_the_configuration_says_so() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always(WRITES);
    let config = repo.read(".runner/state/config.toml");
    repo.write(".runner/state/config.toml", &format!("{config}\n[workspace]\nkind = \"isolated\"\n")).commit("Isolate");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--wait", "--yes", "--id", "one", "-m", "Do it."]).exits(0);
    assert!(!repo.path().join("work.txt").exists());
    home.ctl_in(&repo, &["start", "--in-place", "--wait", "--yes", "--id", "two", "-m", "Do it."]).exits(0);
    assert!(repo.path().join("work.txt").exists());
}

#[test]
fn a_missing_workspace_is_created_again_from_the_published_branch() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().step(1, "decompose 'Two parts.' One Two");
    repo.script().always("echo x >> work.txt; answer done 'Done.'");
    let _daemon = home.daemon();
    let args = ["start", "--isolated", "--yes", "-m", "Do it.", "--id", "gone", "--queue-only"];
    home.ctl_in(&repo, &args).exits(0);
    home.ctl_in(&repo, &["step"]).exits(0);
    let place = workspace(&home, &repo, "gone");
    let published = repo.git(&["rev-parse", "runner/gone"]);
    fs::remove_dir_all(&place).expect("a workspace can be removed");
    home.ctl_in(&repo, &["resume", "--run", "gone"]).exits(0);
    home.client().wait_for(&place, RunStatus::Completed);
    assert!(place.join("work.txt").exists());
    let log = repo.git(&["rev-list", "--first-parent", "runner/gone"]);
    assert!(log.contains(&published), "it continues from the published commit");
}

#[test]
fn row_112_a_workspace_that_is_missing_before_the_first_commit_is_created_again_from_the_base() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always(WRITES);
    let _daemon = home.daemon();
    start(&home, &repo, "tidy", &["--queue-only"]);
    let place = workspace(&home, &repo, "tidy");
    fs::remove_dir_all(&place).expect("a workspace can be removed");
    let base = repo.head();
    repo.write("later.txt", "later\n").commit("Go on");
    home.ctl_in(&repo, &["resume", "--run", "tidy"]).exits(0);
    home.client().wait_for(&place, RunStatus::Completed);
    assert_eq!(repo.git(&["merge-base", "runner/tidy", "main"]), base);
    assert!(repo.script().prompt(1).contains("Do it."), "the goal that it was begun with");
    assert_eq!(repo.git(&["show", "runner/tidy:work.txt"]), "work");
}

#[test]
fn a_workspace_that_is_gone_with_what_was_published_says_what_brings_it_back() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().step(1, "decompose 'Two parts.' One Two");
    repo.script().always("echo x >> work.txt; answer done 'Done.'");
    let _daemon = home.daemon();
    start(&home, &repo, "gone", &["--queue-only"]);
    home.ctl_in(&repo, &["step"]).exits(0);
    let place = workspace(&home, &repo, "gone");
    let tip = repo.git(&["rev-parse", "runner/gone"]);
    fs::remove_dir_all(&place).expect("a workspace can be removed");
    repo.git(&["branch", "-D", "runner/gone"]);
    repo.git(&["update-ref", "-d", "refs/runner/at/gone"]);
    let refused = home.ctl_in(&repo, &["resume", "--run", "gone"]);
    assert_ne!(refused.code, 0);
    let back = format!("branch runner/gone {tip} && runnerctl resume");
    assert!(refused.stderr.contains(&back) && refused.stderr.contains("; or: runnerctl cancel"), "{}", refused.stderr);
    assert!(!place.exists(), "nothing is begun again where there was more");
    repo.git(&["branch", "runner/gone", &tip]);
    home.ctl_in(&repo, &["resume", "--run", "gone"]).exits(0);
    home.client().wait_for(&place, RunStatus::Completed);
}
