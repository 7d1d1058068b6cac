//! The target branch, and the work tree in which it is checked out: nothing in it is overwritten.

use runner_testkit::Home;

use crate::scene::{LandingScene, change_step, write_step};

fn run_of(file: &str) -> LandingScene {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&write_step(file, "landed")]).on_main();
    scene
}

/// Asserts that a landing and its preview are refused with these words before a guard runs, and change nothing.
fn assert_refused(scene: &LandingScene, words: &str) {
    let guards = scene.repo.script().folder().join("guarded");
    let look = || {
        let guards = std::fs::read_to_string(&guards).expect("guards are counted");
        (scene.git(&["rev-parse", "main"]), scene.git(&["status", "--porcelain", "--ignored"]), guards)
    };
    let before = look();
    for options in [&["a", "--onto", "main"][..], &["a", "--onto", "main", "--preview"]] {
        let stderr = scene.land(options).exits(6).stderr.clone();
        assert!(stderr.contains(words), "{options:?}: {stderr}");
    }
    assert_eq!(look(), before);
}

#[test]
fn nothing_untracked_or_ignored_is_overwritten() {
    for (file, standing, words) in [
        ("made", "made", "made is in the way (untracked)"),
        ("made.log", "made.log", "made.log is in the way (ignored)"),
        ("folder/made", "folder", "folder is in the way (untracked)"),
        ("made", "made/inside.log", "made/inside.log is in the way (ignored)"),
    ] {
        let scene = LandingScene::new(&["x"]);
        scene.run("a", &[&format!("mkdir -p $(dirname {file}); echo landed > {file}; git add -f {file}; git commit -q -m x; answer done 'Done.'")]);
        scene.on_main();
        scene.repo.write(standing, "mine");
        assert_refused(&scene, words);
        assert_eq!(scene.repo.read(standing), "mine");
        std::fs::remove_file(scene.repo.path().join(standing)).expect("it can be removed");
        let _ = std::fs::remove_dir(scene.repo.path().join("made"));
        scene.land(&["a"]).exits(0);
        assert_eq!(scene.repo.read(file).trim(), "landed");
    }
}

#[test]
fn a_changed_file_that_the_result_changes_refuses_the_landing_and_another_one_stays() {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&change_step("one", "eins")]).on_main();
    scene.repo.write("beside", "1\n").write("staged", "1\n").commit("Two more files");
    scene.repo.write("shared", "mine\n");
    assert_refused(&scene, "has changes that are not committed: shared");
    scene.git(&["checkout", "-q", "--", "shared"]);
    for file in ["beside", "staged", "untracked"] {
        scene.repo.write(file, "mine\n");
    }
    scene.git(&["add", "staged"]);
    scene.land(&["a"]).exits(0);
    assert!(scene.repo.read("shared").starts_with("eins\n"));
    for file in ["beside", "staged", "untracked"] {
        assert_eq!(scene.repo.read(file), "mine\n", "a file that blocks nothing stays");
    }
    assert_eq!(scene.git(&["status", "--porcelain"]), " M beside\nM  staged\n?? untracked");
}

#[test]
fn a_branch_that_is_being_rebased_or_bisected_is_left_alone() {
    let scene = run_of("made");
    scene.git(&["branch", "older", "main~1"]);
    scene.repo.write("other", "1").commit("To be rebased");
    scene.git(&["-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-q", "-i", "HEAD~1"]);
    assert_refused(&scene, "a rebase of main is in progress");
    scene.git(&["rebase", "--abort"]);
    scene.git(&["bisect", "start"]);
    assert_refused(&scene, "a bisect of main is in progress");
    scene.git(&["bisect", "reset"]);
    scene.land(&["a", "--onto", "main"]).exits(0);
}

#[test]
fn a_linked_work_tree_that_has_the_branch_is_brought_along() {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&change_step("one", "eins")]);
    let linked = scene.home.path().join("repos/linked");
    let linked = linked.to_str().expect("a path of text").to_owned();
    scene.git(&["worktree", "add", "-q", &linked, "main"]);
    std::fs::write(format!("{linked}/shared"), "mine\n").expect("a file can be written");
    assert_refused(&scene, "has changes that are not committed: shared");
    scene.git(&["-C", &linked, "checkout", "-q", "--", "shared"]);
    let stdout = scene.land(&["a"]).exits(0).stdout.clone();
    assert!(stdout.contains(&format!("working tree updated: {linked}")), "{stdout}");
    assert_eq!(scene.git(&["-C", &linked, "status", "--porcelain"]), "");
    assert!(std::fs::read_to_string(format!("{linked}/shared")).expect("it is there").starts_with("eins\n"));
    assert_eq!(scene.git(&["status", "--porcelain"]), "", "the run's own working tree is as it was");
}

#[test]
fn a_repository_with_ids_of_another_length_is_landed_in_too() {
    assert_lands_in("--object-format=sha256");
}

#[test]
fn a_repository_with_a_reftable_is_landed_in_too() {
    assert_lands_in("--ref-format=reftable");
}

#[track_caller]
fn assert_lands_in(format: &str) {
    let scene = LandingScene::in_format(&["x"], &[format]);
    scene.run("a", &[&change_step("one", "eins")]).on_main();
    scene.repo.write("beside", "1").commit("Move on");
    scene.land(&["a"]).exits(0);
    assert!(scene.repo.read("shared").starts_with("eins\n"));
    scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(0);
    scene.repo.assert_sound();
}

#[test]
fn a_filter_that_fails_puts_everything_back() {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &["echo 1 > a.txt; echo 2 > b.filtered; echo 3 > shared; answer done 'Done.'"]).on_main();
    scene.repo.write(".gitattributes", "*.filtered filter=broken\n").commit("Filter");
    scene.git(&["config", "filter.broken.smudge", "false"]);
    scene.git(&["config", "filter.broken.clean", "cat"]);
    scene.git(&["config", "filter.broken.required", "true"]);
    let before = (scene.git(&["rev-parse", "main"]), scene.repo.read("shared"));
    scene.repo.script().guard_always("exit 0");
    let output = scene.land(&["a"]);
    assert_ne!(output.code, 0, "{}", output.stdout);
    assert_eq!((scene.git(&["rev-parse", "main"]), scene.repo.read("shared")), before);
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
    assert!(!scene.repo.path().join("a.txt").exists(), "what was added is gone again");
}

#[test]
fn a_branch_that_is_not_known_has_to_be_named() {
    let scene = run_of("made");
    let stderr = scene.land(&["a", "--onto", "nowhere"]).exits(1).stderr.clone();
    assert!(stderr.contains("there is no branch nowhere"), "{stderr}");
    scene.git(&["branch", "next", "main"]);
    scene.land(&["a", "--onto", "next"]).exits(0);
    assert_eq!(scene.git(&["show", "next:made"]), "landed");
    let stderr = scene.land(&["a", "--onto", "runner/a"]).exits(2).stderr.clone();
    assert!(stderr.contains("runner/a is the branch of a run"), "{stderr}");
}

#[test]
fn a_changed_file_that_git_is_told_to_overlook_stays_as_it_is() {
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let scene = LandingScene::new(&["x"]);
        scene.run("a", &[&change_step("one", "eins")]).on_main();
        scene.git(&["update-index", flag, "shared"]);
        scene.repo.write("shared", "mine\n");
        let look = || (scene.git(&["rev-parse", "main"]), scene.git(&["ls-files", "-v", "shared"]));
        let before = look();
        scene.land(&["a"]).exits(1);
        assert_eq!((scene.repo.read("shared").as_str(), look()), ("mine\n", before), "{flag}");
    }
}

#[test]
fn a_branch_that_is_checked_out_while_the_guard_runs_does_not_move() {
    let scene = run_of("made");
    scene.git(&["checkout", "-q", "--detach"]);
    scene.repo.script().guard_step(2, &format!("git -C '{}' checkout -q main", scene.repo.path().display()));
    let before = scene.git(&["rev-parse", "main"]);
    let stderr = scene.land(&["a", "--onto", "main"]).exits(6).stderr.clone();
    assert!(stderr.contains("main is in use in"), "{stderr}");
    assert_eq!(scene.git(&["rev-parse", "main"]), before);
    assert_eq!(scene.git(&["status", "--porcelain", "--untracked-files=no"]), "");
    scene.land(&["a", "--onto", "main"]).exits(0);
}

#[test]
fn a_merge_that_would_take_commits_from_before_the_run_for_merged_is_refused() {
    let scene = LandingScene::new(&["x"]);
    scene.git(&["branch", "release"]);
    scene.repo.write("later", "1").commit("A person's, which release has not");
    scene.run("a", &[&write_step("made", "landed")]).on_main();
    let stderr = scene.land(&["a", "--onto", "release", "--as", "merge"]).exits(6).stderr.clone();
    assert!(stderr.contains("which release has not: a merge would take it for merged without its changes"), "{stderr}");
    assert!(stderr.contains("runnerctl land a --as squash --onto release"), "{stderr}");
    scene.land(&["a", "--onto", "release", "--as", "squash"]).exits(0);
    scene.land(&["a", "--onto", "main", "--as", "merge"]).exits(0);
}

#[test]
fn the_work_tree_goes_from_the_runs_branch_to_the_one_that_it_landed_on() {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&write_step("made", "landed")]);
    let branch = || scene.git(&["branch", "--show-current"]);
    let status = scene.home.ctl_in(&scene.repo, &["status"]);
    assert!(status.exits(0).stdout.contains("this working tree is on runner/a; back: git switch main"), "{status:?}");
    scene.land(&["a", "--preview"]).exits(0);
    assert_eq!(branch(), "runner/a", "a preview changes nothing");
    // A change of a person's is not carried along.
    scene.repo.write("made", "mine");
    let landed = scene.land(&["a", "--onto", "main"]);
    assert!(landed.exits(0).stderr.contains("this working tree is on runner/a; back: git switch main"), "{landed:?}");
    assert_eq!((branch(), scene.repo.read("made")), ("runner/a".to_owned(), "mine".to_owned()));
    scene.git(&["checkout", "-q", "--", "made"]);
    let again = scene.land(&["a", "--onto", "main"]);
    assert!(again.exits(0).stderr.contains("this working tree went from runner/a to main"), "{again:?}");
    assert_eq!((branch(), scene.repo.read("made")), ("main".to_owned(), "landed".to_owned()));
    assert!(!scene.home.ctl_in(&scene.repo, &["status"]).exits(0).stdout.contains("this working tree"));
}

#[test]
fn settings_that_are_not_committed_are_in_the_command_that_leads_back() {
    let home = Home::new();
    let repo = home.repo("plain");
    repo.script().always("echo work > work.txt; answer done 'Wrote it.'");
    repo.write(".runner/state/config.toml", &repo.config().text());
    let _daemon = home.daemon();
    home.run(&repo, &["--id", "a", "-m", "Do it."]).exits(0);
    repo.write(".runner/state/config.toml", &repo.config().top("max_iterations = 8").text());
    let back = "git commit -m Settings -- .runner/state/config.toml && git switch main";
    let line = format!("this working tree is on runner/a; back: {back}\n");
    let status = home.ctl_in(&repo, &["status"]);
    assert!(status.exits(0).stdout.contains(&line), "{}", status.stdout);
    let landed = home.ctl_in(&repo, &["land", "a", "--yes"]);
    assert!(landed.exits(0).stderr.contains(&line), "{}", landed.stderr);
    for command in back.split(" && ") {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        repo.git(&words);
    }
    assert_eq!(repo.git(&["branch", "--show-current"]), "main");
}

#[test]
fn the_work_tree_stays_on_the_branch_of_a_run_that_goes_on() {
    let scene = LandingScene::new(&["x", "y"]);
    scene.repo.script().step(1, &write_step("made", "landed"));
    scene.git(&["checkout", "-q", "main"]);
    scene.home.ctl_in(&scene.repo, &["start", "--yes", "--queue-only", "--id", "a"]).exits(0);
    scene.home.ctl_in(&scene.repo, &["step", "a"]).exits(0);
    scene.land(&["a", "--onto", "main", "--as", "squash"]);
    assert_eq!(scene.git(&["branch", "--show-current"]), "runner/a");
}

#[test]
fn a_partial_clone_is_told_what_fetches_the_files_that_are_missing() {
    let scene = LandingScene::new(&["a"]);
    scene.run("a", &[&change_step("one", "1")]).on_main();
    scene.repo.write("shared", "one\ntwo\nthree\nfour\n5\n").commit("Meanwhile");
    scene.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", scene.repo.path().display());
    let clone = scene.home.path().join("partial").display().to_string();
    scene.git(&["clone", "-q", "--no-local", "--filter=blob:none", &url, &clone]);
    scene.git(&["-C", &clone, "fetch", "-q", "origin", "runner/a:runner/a"]);
    let land = || scene.home.ctl(&["-C", &clone, "land", "a", "--onto", "main", "--unproven", "--yes"]);
    let refused = land().exits(1).stderr.clone();
    assert!(refused.contains(&format!("git -C {clone} fetch --refetch --no-filter")), "{refused}");
    scene.git(&["-C", &clone, "fetch", "-q", "--refetch", "--no-filter"]);
    land().exits(0);
}

#[test]
fn without_a_name_the_one_run_lands_that_has_something_to_land() {
    let scene = LandingScene::new(&["x"]);
    let nothing = "no run here has anything left to land";
    scene.run("landed", &[&write_step("a", "1")]).on_main();
    scene.land(&["landed"]).exits(0);
    let queue = |id: &str| {
        let args = ["start", "--yes", "--queue-only", "--id", id, "-m", id, "--base", "main"];
        scene.home.ctl_in(&scene.repo, &args).exits(0);
    };
    queue("dropped");
    scene.home.ctl_in(&scene.repo, &["cancel", "dropped"]).exits(0);
    let refused = scene.land(&[]).exits(2).stderr.clone();
    assert!(refused.contains(nothing) && refused.contains("runnerctl queue --ended"), "{refused}");
    scene.run("new", &[&write_step("b", "2")]).on_main();
    queue("queued");
    let preview = scene.land(&["--preview"]).exits(0).stdout.clone();
    assert!(preview.contains("run new: would land"), "{preview}");
    let other = scene.git(&["rev-list", "--max-parents=0", "main"]);
    scene.git(&["branch", "other", &other]);
    let refused = scene.land(&["--onto", "other"]).exits(2).stderr.clone();
    assert!(refused.contains("land --onto other --run new; or: "), "{refused}");
    assert!(refused.contains("--run landed") && !refused.contains("queued"), "{refused}");
    let refused = scene.land(&[".", "--onto", "other"]).exits(2).stderr.clone();
    assert!(refused.contains("several runs here can land"), "{refused}");
    scene.land(&["."]).exits(0);
    assert_eq!(scene.git(&["show", "main:b"]), "2");
    let refused = scene.land(&["--yes"]).exits(2).stderr.clone();
    assert!(refused.contains(nothing), "{refused}");
}

#[test]
fn the_log_of_a_run_that_has_landed_and_whose_branch_is_gone_says_where() {
    for by_hand in [false, true] {
        let scene = LandingScene::new(&["x"]);
        scene.run("a", &[&write_step("file", "1")]).on_main();
        if by_hand {
            scene.git(&["merge", "-q", "--ff-only", "runner/a"]);
        } else {
            scene.land(&["a"]).exits(0);
        }
        scene.git(&["branch", "-q", "-D", "runner/a"]);
        let refused = scene.home.ctl_in(&scene.repo, &["log", "--run", "a", "--json"]).exits(1).stderr.clone();
        let error =
            serde_json::from_str::<serde_json::Value>(&refused).expect("an error is one object")["error"].clone();
        assert_eq!(error["message"], "run a has landed on main, and its branch runner/a is gone");
        let hint = error["hint"].as_str().expect("there is a hint");
        let words: Vec<&str> = hint.strip_prefix("git ").expect("it is of git").split(' ').collect();
        assert!(scene.git(&words).contains("+1"), "{hint}");
    }
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&write_step("file", "1")]).on_main();
    let tip = scene.git(&["rev-parse", "runner/a"]);
    scene.git(&["branch", "-q", "-D", "runner/a"]);
    let refused = scene.home.ctl_in(&scene.repo, &["log", "--run", "a"]).exits(1).stderr.clone();
    assert!(refused.contains("run a has ended, and its branch runner/a is gone"), "{refused}");
    scene.home.ctl_in(&scene.repo, &["log", "a/1"]).exits(0);
    scene.git(&["branch", "runner/a", &tip]);
}
