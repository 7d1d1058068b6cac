//! Where a run starts: every kind of work tree that a person may be in.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::{Home, Repo};

use crate::place::RepoPlace;

const WRITES: &str = "echo work > work.txt; answer done 'Wrote work.txt.'";

/// A home with a repository whose agent writes a file, and the arguments that start it.
fn home() -> (Home, Repo) {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always(WRITES);
    (home, repo)
}

#[test]
fn a_path_with_spaces_and_bytes_that_are_not_utf8_is_worked_on() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let place = RepoPlace::repository(&home, b"sp ace \xff\xfe 'q' \"d\"", &repo.config());
    place.ctl(&["start", "--wait", "-m", "Do it."]).assert_exits(0);
    place.assert_sound();
    assert!(place.path.join("work.txt").is_file());
    let status = place.ctl(&["status", "--json"]).assert_exits(0).json();
    assert_eq!(status["run"]["summary"]["state"], "completed");
    let repos = place.ctl(&["repos"]).assert_exits(0).facts();
    assert!(repos.contains("sp ace"), "{repos}");
}

#[test]
fn a_sub_directory_stands_for_its_repository() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    repo.write("deep/er/file", "x\n").commit("Go deeper");
    let below = RepoPlace::of_repo(&home, &repo).at("deep/er");
    below.ctl(&["start", "--wait", "-m", "Do it."]).assert_exits(0);
    assert!(repo.path().join("work.txt").is_file());
    assert_eq!(below.ctl(&["status", "--json"]).assert_exits(0).json()["repo"]["queue"], serde_json::json!([]));
    below.ctl(&["validate"]).assert_exits(0);
    below.ctl(&["select"]).assert_exits(7);
}

#[test]
fn a_linked_work_tree_is_worked_on_and_the_main_one_is_left_alone() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let main = RepoPlace::of_repo(&home, &repo);
    main.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let linked =
        RepoPlace { path: PathBuf::from(repo.path()).with_file_name("linked"), ..RepoPlace::of_repo(&home, &repo) };
    linked.ctl(&["start", "--wait", "--id", "side", "-m", "Do it."]).assert_exits(0);
    assert_eq!(linked.branch(), "runner/side");
    assert_eq!(main.branch(), "main");
    assert!(!main.path.join("work.txt").exists() && linked.path.join("work.txt").is_file());
    linked.assert_sound();
    main.assert_sound();
}

#[test]
fn a_run_whose_work_tree_was_moved_continues_where_it_is_now() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let main = RepoPlace::of_repo(&home, &repo);
    main.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let at = |name: &str| RepoPlace { path: repo.path().with_file_name(name), ..RepoPlace::of_repo(&home, &repo) };
    let linked = at("linked");
    linked.ctl(&["start", "--queue-only", "--id", "side", "-m", "Do it."]).assert_exits(0);
    main.git(&["worktree", "move", "../linked", "../moved"]);
    let moved = at("moved");
    let status = moved.ctl(&["status", "--json"]).assert_exits(0).json();
    assert_eq!(status["run"]["summary"]["path"], moved.path.display().to_string(), "{status}");
    moved.ctl(&["resume", "--wait"]).assert_exits(0);
    assert!(moved.path.join("work.txt").is_file() && !linked.path.exists());
    let listed = main.ctl(&["queue", "--ended", "--json"]).assert_exits(0).json();
    assert_eq!(listed["runs"][0]["path"], moved.path.display().to_string(), "{listed}");
    moved.assert_sound();
}

#[test]
fn an_unknown_id_does_not_begin_the_goal_of_another_run() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let place = RepoPlace::of_repo(&home, &repo);
    place.ctl(&["start", "--queue-only", "--id", "wash", "-m", "Wash the car."]).assert_exits(0);
    place.ctl(&["cancel", "wash"]).assert_exits(0);
    place.ctl(&["start", "--wait", "--id", "clean", "-m", "Clean the floor."]).assert_exits(0);
    let error = place.ctl(&["start", "--id", "cleaning", "--json"]).error();
    let message = "no run has the id cleaning, and the goal in .runner/GOAL.md is that of run clean";
    assert_eq!(error["message"].as_str(), Some(message), "{error}");
    place.ctl(&["start", "--wait", "--id", "wash", "--base", "main"]).assert_exits(0);
    assert!(repo.show("runner/wash", ".runner/GOAL.md").contains("Wash the car."));
    place.ctl(&["start", "--wait", "--id", "again", "--base", "main", "--goal", ".runner/GOAL.md"]).assert_exits(0);
    assert!(repo.show("runner/again", ".runner/GOAL.md").contains("Wash the car."));
}

#[test]
fn a_detached_head_is_a_base() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let place = RepoPlace::of_repo(&home, &repo);
    let base = place.git(&["rev-parse", "HEAD"]);
    place.git(&["checkout", "-q", "--detach"]);
    let started = place.ctl(&["start", "--wait", "-m", "Do it."]).assert_exits(0);
    let commit = &base[..12];
    started
        .assert_contains(&format!("it begins from commit {commit}, where HEAD is"))
        .assert_contains(&format!("this working tree is on runner/do-it; back: git switch --detach {commit}\n"));
    assert_eq!(place.branch(), "runner/do-it");
    assert_eq!(repo.run_state("HEAD").base.as_deref(), Some(base.as_str()));
}

#[test]
fn the_branch_that_was_checked_out_is_left_where_it_was() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let before = repo.git(&["rev-parse", "main"]);
    home.run(&repo, &["-m", "Do it."]).exits(0);
    assert_eq!(repo.git(&["rev-parse", "main"]), before);
    repo.assert_sound();
}

#[test]
fn a_base_may_be_named_and_an_id_chosen() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let base = repo.head();
    repo.write("later.txt", "x\n").commit("Later");
    home.run(&repo, &["-m", "Do it.", "--id", "chosen", "--base", &base]).exits(0);
    assert_eq!(repo.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "runner/chosen");
    assert!(!repo.path().join("later.txt").exists());
    assert_eq!(repo.run_state("HEAD").run_id.as_deref(), Some("chosen"));
}

#[test]
fn an_id_in_the_front_matter_of_a_goal_names_the_run() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let goal = home.path().join("goal.md");
    std::fs::write(&goal, "---\nid: tidy-up\nowner: ada\n---\n# Tidy up\n\nMake it so.\n").expect("writes");
    home.run(&repo, &["--goal", goal.to_str().expect("UTF-8")]).exits(0);
    assert_eq!(repo.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "runner/tidy-up");
    assert!(repo.show("HEAD", ".runner/GOAL.md").contains("owner: ada"), "other keys are kept");
    assert!(repo.script().prompt(1).contains("Make it so."));
}

#[test]
fn a_goal_in_the_repository_is_enough_and_the_next_id_is_the_next_free_one() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    repo.write(".runner/GOAL.md", "# From the file\n\nDo as it says.\n").commit("Set a goal");
    let base = repo.head();
    home.run(&repo, &[]).exits(0);
    assert_eq!(repo.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "runner/from-the-file");
    assert!(repo.script().prompt(1).contains("Do as it says."));
    repo.git(&["checkout", "-q", "main"]);
    home.run(&repo, &["-m", "Another."]).exits(0);
    assert_eq!(repo.git(&["rev-parse", "--abbrev-ref", "HEAD"]), format!("runner/run-{}", &base[..8]));
    repo.git(&["checkout", "-q", "main"]);
    // What another remote has, or is kept of a run, is taken too, whatever the case of its letters.
    repo.git(&["update-ref", "refs/remotes/fork/runner/From-The-File-2", "HEAD"]);
    repo.git(&["update-ref", "refs/runner/rescue/from-the-file-3/0001", "HEAD"]);
    repo.git(&["branch", "runner/from-the-file-4/x"]);
    let started = home.ctl_in(&repo, &["start", "--json", "-m", "From the file: again"]);
    assert_eq!(started.exits(0).json()["run"]["id"], "from-the-file-again");
    let isolated =
        home.ctl_in(&repo, &["start", "--isolated", "--base", "main", "--queue-only", "--json", "-m", "From the file"]);
    assert_eq!(isolated.exits(0).json()["run"]["id"], "from-the-file-5");
    repo.git(&["branch", "-q", "-D", "runner/from-the-file-4/x"]);
}

#[test]
fn a_made_id_gets_the_next_suffix_if_a_branch_of_that_name_appears_while_the_run_waits() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    repo.script()
        .always("echo $n >> work.txt; answer done 'More.'")
        .step(1, "gate first; echo x > x; answer done 'Done.'");
    let gate = repo.script().gate("first");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| home.run(&repo, &["-m", "First thing."]));
        gate.wait_reached();
        home.ctl_in(&repo, &["start", "--yes", "-m", "Port the storage"]).exits(0);
        let waiting = scope.spawn(|| home.ctl_in(&repo, &["start", "--wait", "--yes", "-m", "Port the storage"]));
        let queue = || home.ctl_in(&repo, &["queue"]).stdout;
        while !queue().contains("port-the-storage-2") {}
        for id in ["port-the-storage", "port-the-storage-2"] {
            repo.git(&["branch", &format!("runner/{id}"), "main"]);
        }
        gate.open();
        first.join().expect("the first run ends").exits(0);
        let waited = waiting.join().expect("the last run ends");
        assert!(waited.exits(0).stdout.contains("run port-the-storage-4 completed"), "{}", waited.stdout);
        assert!(waited.stderr.contains("this working tree is on runner/port-the-storage-4"), "{}", waited.stderr);
    });
    for id in ["port-the-storage", "port-the-storage-2"] {
        assert_eq!(repo.git(&["rev-parse", &format!("runner/{id}")]), repo.git(&["rev-parse", "main"]), "{id}");
        repo.git(&["branch", "-q", "-D", &format!("runner/{id}")]);
    }
    let status = home.ctl_in(&repo, &["status", "--run", "port-the-storage", "--json"]).exits(0).json();
    assert_eq!(status["run"]["summary"]["id"], "port-the-storage-3", "it is found by the id that was told");
    assert_eq!(repo.run_state("runner/port-the-storage-3").run_id.as_deref(), Some("port-the-storage-3"));
}

#[test]
fn a_new_id_gets_a_fresh_root_unless_the_tree_is_kept() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    repo.script().step(1, "decompose 'Two parts.' One Two");
    home.run(&repo, &["-m", "First.", "--id", "first"]).exits(0);
    assert_eq!(repo.tree("HEAD").root.children.len(), 2);
    repo.script().always("echo more >> work.txt; answer done 'More.'");
    home.run(&repo, &["-m", "Second.", "--id", "second", "--base", "runner/first"]).exits(0);
    assert_eq!(repo.tree("HEAD").root.children.len(), 0);
    home.run(&repo, &["-m", "Third.", "--id", "third", "--base", "runner/first", "--keep-tree"]).exits(0);
    assert_eq!(repo.tree("HEAD").root.children.len(), 2);
}

#[test]
fn init_is_safe_to_repeat_and_overwrites_only_when_forced() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.repo("plain");
    let place = RepoPlace::of_repo(&home, &repo);
    let first = place.ctl(&["init", "--json"]).assert_exits(0).json();
    assert_eq!(first["kept"], serde_json::json!([]));
    repo.write(".runner/state/guardrails.md", "# Mine\n");
    let second = place.ctl(&["init", "--json"]).assert_exits(0).json();
    assert_eq!((&second["created"], &second["overwritten"]), (&serde_json::json!([]), &serde_json::json!([])));
    assert_eq!(repo.read(".runner/state/guardrails.md"), "# Mine\n");
    let forced = place.ctl(&["init", "--force", "--json"]).assert_exits(0).json();
    assert!(forced["overwritten"].as_array().is_some_and(|paths| !paths.is_empty()), "{forced}");
    assert_ne!(repo.read(".runner/state/guardrails.md"), "# Mine\n");
    let checked = place.ctl(&["validate"]).facts();
    assert!(checked.contains("layout     ok\n") && checked.contains("config     ok\n"), "{checked}");
}

#[test]
fn a_run_continues_on_the_branch_of_a_fresh_clone() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    repo.script().step(1, "decompose 'Two parts.' One Two");
    let place = RepoPlace::of_repo(&home, &repo);
    place.ctl(&["start", "-m", "Do it.", "--id", "moved", "--queue-only"]).assert_exits(0);
    place.ctl(&["step"]).assert_exits(0);
    let clone = RepoPlace::folder(&home, b"clone");
    let from = repo.path().as_os_str().as_bytes();
    clone.git(&["clone", "-q", "-b", "runner/moved", std::str::from_utf8(from).expect("UTF-8"), "."]);
    clone.git(&["checkout", "-q", "--detach"]);
    clone.git(&["branch", "-q", "-D", "runner/moved"]);
    clone.ctl(&["start", "--id", "moved"]).assert_exits(6).assert_contains("--yes");
    clone.ctl(&["start", "--id", "moved", "--wait", "--yes"]).assert_exits(0);
    assert_eq!(clone.branch(), "runner/moved");
    clone.assert_sound();
    let log = clone.git(&["log", "--reverse", "--format=%s", "origin/runner/moved.."]);
    let iterations: Vec<&str> = log.lines().filter(|subject| subject.contains(" iter ")).collect();
    assert_eq!(
        iterations,
        [
            "chore(loop): run moved iter 0002 node root.1 status=done guard=pass",
            "chore(loop): run moved iter 0003 node root.2 status=done guard=pass",
        ],
        "{log}"
    );
}

#[test]
fn another_goal_after_a_completed_run_begins_a_new_one_and_the_same_goal_does_not() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    repo.script().always("echo more >> work.txt; answer done 'More.'");
    repo.write(".runner/GOAL.md", "# First\n\nDo as it says.\n").commit("Set a goal");
    let branch = || repo.git(&["rev-parse", "--abbrev-ref", "HEAD"]);
    let write = |text: &str| {
        let id = branch().strip_prefix("runner/").map(|id| format!("---\nid: {id}\n---\n")).unwrap_or_default();
        repo.write(".runner/GOAL.md", &format!("{id}{text}"));
    };
    home.run(&repo, &[]).exits(0);
    let first = branch();
    let same = home.ctl_in(&repo, &["start", "--yes"]);
    assert!(same.exits(6).stderr.contains("is completed\n\nhint: runnerctl start -m"), "{}", same.stderr);
    write("# Second\n\nDo the next thing.\n");
    home.run(&repo, &[]).exits(0);
    let second = branch();
    assert_ne!(first, second);
    assert!(repo.script().prompt(2).contains("Do the next thing."));
    assert_eq!(repo.run_state("HEAD").run_id.as_deref(), second.strip_prefix("runner/"));
    // Merged, its branch deleted, and the next goal committed: the result is read from the merged commits.
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--no-ff", "-m", "Merge it", &second]);
    repo.git(&["branch", "-q", "-D", &second]);
    assert!(home.ctl_in(&repo, &["start", "--yes"]).exits(6).stderr.contains("is completed"));
    let merged = repo.read(".runner/GOAL.md");
    repo.write(".runner/GOAL.md", &merged.replace("the next thing", "a third thing")).commit("Set the next goal");
    home.run(&repo, &[]).exits(0);
    assert!(repo.script().prompt(3).contains("Do a third thing."));
    repo.assert_sound();
}

/// A bare repository as `git clone` creates it, with a linked work tree on another branch than its HEAD.
fn worktree_of_bare<'a>(home: &'a Home, repo: &Repo) -> RepoPlace<'a> {
    let place = RepoPlace::of_repo(home, repo);
    place.git(&["branch", "next"]);
    place.git(&["clone", "-q", "--bare", ".", "../x/.bare"]);
    let bare = RepoPlace { path: repo.path().with_file_name("x").join(".bare"), ..RepoPlace::of_repo(home, repo) };
    bare.git(&["worktree", "add", "-q", "../next", "next"]);
    RepoPlace { path: repo.path().with_file_name("x").join("next"), ..RepoPlace::of_repo(home, repo) }
}

#[test]
fn a_branch_that_a_bare_repository_names_is_landed_on_and_checked_out() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let place = worktree_of_bare(&home, &repo);
    place.ctl(&["start", "--wait", "--yes", "--id", "x", "-m", "Do it."]).assert_exits(0);
    place.ctl(&["land", "x", "--onto", "main"]).assert_exits(0);
    assert_eq!(place.git(&["ls-tree", "--name-only", "main", "work.txt"]), "work.txt");
    place
        .ctl(&["start", "--wait", "--yes", "--isolated", "--base", "next", "--id", "y", "-m", "Do it."])
        .assert_exits(0);
    place.git(&["rev-parse", "runner/y"]);
    place.assert_sound();
}

#[test]
fn a_work_tree_whose_folder_was_removed_keeps_no_branch_from_a_run() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let main = RepoPlace::of_repo(&home, &repo);
    main.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let linked = RepoPlace { path: repo.path().with_file_name("linked"), ..RepoPlace::of_repo(&home, &repo) };
    linked.ctl(&["start", "--wait", "--yes", "--id", "x", "-m", "Do it."]).assert_exits(0);
    std::fs::remove_dir_all(&linked.path).expect("it can be removed");
    main.ctl(&["start", "--wait", "--yes", "--id", "y", "-m", "Do it."]).assert_exits(0);
    main.git(&["worktree", "add", "-q", "../onto", "main"]);
    std::fs::remove_dir_all(repo.path().with_file_name("onto")).expect("it can be removed");
    main.ctl(&["land", "x", "--onto", "main"]).assert_exits(0);
    assert_eq!(main.git(&["ls-tree", "--name-only", "main", "work.txt"]), "work.txt");
    main.assert_sound();
}

#[test]
fn a_work_tree_that_is_moved_under_a_run_is_moved_back_by_what_is_said() {
    let (home, repo) = home();
    let gate = repo.script().gate("work");
    // Its answer does not arrive.
    repo.script().step(1, &format!("gate work; {WRITES}")).step(2, WRITES);
    let _daemon = home.daemon();
    let main = RepoPlace::of_repo(&home, &repo);
    main.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    let linked = RepoPlace { path: repo.path().with_file_name("linked"), ..RepoPlace::of_repo(&home, &repo) };
    linked.ctl(&["start", "--yes", "--id", "x", "-m", "Do it."]).assert_exits(0);
    gate.wait_reached();
    main.git(&["worktree", "move", "../linked", "../moved"]);
    gate.open();
    home.client().wait_until(repo.path(), |run| run.summary.state == RunStatus::Held);
    let moved = RepoPlace { path: repo.path().with_file_name("moved"), ..RepoPlace::of_repo(&home, &repo) };
    let output = moved.ctl(&["status"]);
    let reply = output.facts();
    let command = reply.lines().find_map(|line| line.split_once("move it back: ")).expect("a command").1;
    let command = command.split_once(", then: runnerctl resume").expect("the next one").0;
    assert!(main.command("sh").args(["-c", command]).status().expect("sh runs").success(), "{command}");
    linked.ctl(&["resume", "--wait"]).assert_exits(0);
    assert_eq!(linked.branch(), "runner/x");
    assert!(linked.path.join("work.txt").is_file());
    linked.assert_sound();
}

#[test]
fn what_sessions_read_and_wrote_is_not_added_on_another_branch() {
    let home = Home::new();
    let repo = home.repo("plain");
    repo.script().always(WRITES);
    repo.write(".runner/state/config.toml", &repo.config().text());
    repo.write(".git/info/exclude", "*.mine");
    let _daemon = home.daemon();
    home.run(&repo, &["-m", "Do it."]).exits(0);
    repo.git(&["switch", "-q", "main"]);
    assert!(repo.path().join(".runner/iterations").is_dir() && !repo.path().join(".runner/.gitignore").exists());
    repo.git(&["add", "-A"]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let excluded = "/.runner/context\n/.runner/iterations\n";
    assert!(repo.read(".git/info/exclude").starts_with("*.mine\n# begin: held back by runnerd"));
    assert_eq!(repo.read(".git/info/exclude").matches(excluded).count(), 1);
    home.run(&repo, &["-m", "Do more."]).exits(0);
    assert_eq!(repo.read(".git/info/exclude").matches(excluded).count(), 1);
}

#[test]
fn the_file_of_a_goal_is_not_in_the_way_and_not_committed() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    repo.write("goal.md", "# Tidy the shelf\n");
    repo.write("mine.txt", "x\n");
    let refused = home.ctl_in(&repo, &["start", "--yes", "--goal", "goal.md"]);
    assert!(refused.exits(6).stderr.contains("mine.txt") && !refused.stderr.contains("  goal.md"), "{refused:?}");
    std::fs::remove_file(repo.path().join("mine.txt")).expect("removes");
    home.run(&repo, &["--id", "shelf", "--goal", "goal.md"]).exits(0);
    assert_eq!(repo.git(&["branch", "--show-current"]), "runner/shelf");
    assert_eq!(repo.git(&["ls-files", "goal.md", "work.txt"]), "work.txt");
    assert_eq!(repo.read("goal.md"), "# Tidy the shelf\n");
    // The worker answers once it has nothing else to do.
    home.client().list(repo.path()).expect("the daemon answers");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? goal.md");
    assert!(!repo.read(".git/info/exclude").contains("goal.md"));
    repo.git(&["switch", "-q", "main"]);
    home.run(&repo, &["-m", "Do more."]).exits(0);
    assert_eq!(repo.git(&["ls-files", "goal.md"]), "", "it is in the way of no later run either");
}

#[test]
fn the_file_of_a_queued_goal_is_committed_by_no_run_before_it() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let gate = repo.script().gate("first");
    repo.script().step(1, "gate first; echo first > first.txt; answer done 'First.'");
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do the first", "--id", "first"]).exits(0);
    gate.wait_reached();
    repo.write("goals/second.md", "# Do the second\n");
    home.ctl_in(&repo, &["start", "--yes", "--goal", "goals/second.md", "--id", "second"]).exits(0);
    gate.open();
    let is_over = |run: &RunView| run.summary.id == "second" && run.summary.state == RunStatus::Completed;
    home.client().wait_until(repo.path(), is_over);
    home.client().list(repo.path()).expect("the daemon answers");
    assert_eq!(repo.git(&["log", "--all", "--format=%s", "--", "goals"]), "");
    assert_eq!(repo.git(&["ls-files", "first.txt", "work.txt"]), "first.txt\nwork.txt");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? goals/");
    home.ctl_in(&repo, &["land", "first", "second", "--onto", "main", "--yes"]).exits(0);
    assert_eq!(repo.git(&["branch", "--show-current"]), "main", "a new file does not keep the work tree there");
    assert_eq!(repo.read("goals/second.md"), "# Do the second\n");
}

#[test]
fn what_a_start_names_for_nothing_is_refused() {
    let (home, repo) = home();
    let _daemon = home.daemon();
    let typo = home.ctl_in(&repo, &["start", "--yes", "-m", "Do it.", "--onto", "mainly"]);
    assert!(typo.exits(2).stderr.contains("--onto: there is no branch mainly"), "{}", typo.stderr);
    let queued = home.ctl_in(&repo, &["start", "--yes", "-m", "Wash the car", "--queue-only"]);
    queued.exits(0);
    home.ctl_in(&repo, &["land", "--run", "", "--yes"]).exits(2);
    let nobody = home.ctl_in(&repo, &["cancel", "--run", ""]);
    assert!(nobody.exits(2).stderr.contains("'--run <ID>'"), "{}", nobody.stderr);
    home.ctl_in(&repo, &["cancel"]).exits(0);
    let status = home.ctl_in(&repo, &["status", "wash-the-car"]);
    assert!(status.stdout.contains("runnerctl start --id wash-the-car"), "{}", status.stdout);
    repo.script().always("answer retry 'Not yet.'");
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it.", "--id", "begun", "--wait"]).exits(3);
    let late = home.ctl_in(&repo, &["start", "--yes", "--id", "begun", "--base", "main"]);
    assert!(late.exits(2).stderr.contains("run begun has begun and continues on its own branch"), "{}", late.stderr);
}
