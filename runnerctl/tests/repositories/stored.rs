//! Files that git cannot store, or stores differently from the work tree: no content is lost silently, and no attempt
//! is charged.

use std::fs;

use protocol::words::RunStatus;
use runner_testkit::invariants::list_verdicts;
use runner_testkit::{Home, ReceiptCommit, Repo};

/// A required filter, whose program works only once a file with this name exists.
fn with_filter(home: &Home) -> Repo {
    let repo = home.scripted_repo("filtered");
    repo.write(".gitattributes", "*.f filter=gone\n").write("old.f", "old\n").write("b.txt", "b\n");
    repo.commit("Base");
    let program = home.path().join("clean");
    repo.git(&["config", "filter.gone.clean", &format!("'{}'", program.display())]);
    repo.git(&["config", "filter.gone.required", "true"]);
    repo
}

/// Makes the filter work from now on.
fn repair(home: &Home) {
    use std::os::unix::fs::PermissionsExt as _;
    let program = home.path().join("clean");
    fs::write(&program, "#!/bin/sh\nexec cat\n").expect("the folder is there");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it was written");
}

#[test]
fn a_new_file_that_a_filter_refuses_stays_out_and_is_named_everywhere() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = with_filter(&home);
    repo.script().step(1, "echo x > new.f; echo y > fine; answer retry 'Half.'");
    repo.script().step(2, "echo z > fine; answer done 'All.'");
    home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(0);
    assert_eq!(repo.git(&["ls-files", "new.f", "fine"]), "fine");
    assert_eq!(repo.read("new.f"), "x\n");
    for iter in [1, 2] {
        assert_eq!(repo.meta(iter).held_back, ["new.f"]);
        let receipt = repo.git(&["log", "-1", "--format=%B", &format!("HEAD~{}", 2 - iter)]);
        assert!(receipt.contains("Runner-Held-Back: new.f\n"), "{receipt}");
        let output = home.ctl_in(&repo, &["log", &iter.to_string()]);
        assert!(output.exits(0).stdout.contains("held back  new.f"), "{}", output.stdout);
    }
    assert_eq!(repo.run_state("HEAD").held_back, ["new.f"]);
    assert!(repo.script().prompt(2).contains("new.f"), "the next session reads about it");
    let status = home.ctl_in(&repo, &["status"]);
    assert!(status.stdout.contains("new.f"), "{}", status.stdout);
    repair(&home);
    repo.assert_sound();
}

#[test]
fn a_tracked_file_that_a_filter_refuses_is_waited_for_and_goes_in_once_the_filter_works() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = with_filter(&home);
    // The filter stops working during the session.
    repair(&home);
    let program = home.path().join("clean").display().to_string();
    repo.script().step(1, &format!("rm '{program}'; echo changed > old.f; answer done 'Changed it.'"));
    let client = home.client();
    home.ctl_in(&repo, &["start", "--id", "x", "-m", "Do it."]).exits(0);
    let waiting =
        client.wait_until(repo.path(), |run| run.phase.as_ref().is_some_and(|phase| phase.obstacle.is_some()));
    assert_eq!(waiting.summary.state, RunStatus::Waiting);
    let reason = waiting.summary.reason.expect("it says why");
    assert!(reason.message.starts_with("the change of old.f cannot be stored: "), "{}", reason.message);
    assert!(reason.message.contains("clean filter 'gone' failed"), "{}", reason.message);
    let command = reason.command.expect("it says what helps");
    assert!(command.starts_with("make the filter gone of git's configuration work"), "{command}");
    assert!(repo.receipts().is_empty(), "no attempt is charged");
    repair(&home);
    client.wait_for(repo.path(), RunStatus::Completed);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_eq!(repo.show("HEAD", "old.f"), "changed");
    assert_eq!(repo.script().session_count(), 1, "the run continues with the existing work");
    repo.assert_sound();
}

#[test]
fn a_run_that_waits_for_a_filter_can_be_cancelled() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = with_filter(&home);
    repair(&home);
    let program = home.path().join("clean").display().to_string();
    repo.script()
        .step(1, &format!("rm '{program}'; echo changed > old.f; echo new > b.txt; answer done 'Changed it.'"));
    let client = home.client();
    home.ctl_in(&repo, &["start", "--id", "x", "-m", "Do it."]).exits(0);
    client.wait_until(repo.path(), |run| run.phase.as_ref().is_some_and(|phase| phase.obstacle.is_some()));
    home.ctl_in(&repo, &["cancel"]).exits(0);
    client.wait_for(repo.path(), RunStatus::Cancelled);
    assert_eq!((repo.read("old.f"), repo.show("HEAD", "old.f")), ("changed\n".to_owned(), "old".to_owned()));
    assert_eq!(repo.show("HEAD", "b.txt"), "new");
    assert_eq!(repo.run_state("HEAD").held_back, ["old.f"], "what stayed behind is named");
}

#[test]
fn work_inside_a_submodule_that_is_not_committed_there_is_told_and_is_no_idle_session() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("around");
    let module = home.repo("module");
    module.write("inner.txt", "inner\n");
    module.commit("Inner");
    let url = module.path().display().to_string();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "parts/module"]);
    repo.commit("With a module");
    repo.script().step(1, "echo work > parts/module/work.txt; answer done 'Worked inside.'");
    repo.script().step(
        2,
        "git -C parts/module add -A; git -C parts/module -c user.name=A -c user.email=a@x commit -qm Work; \
         answer done 'Committed.'",
    );
    home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(0);
    assert_eq!(list_verdicts(&repo), ["Broken", "Accepted"]);
    let first = repo.git(&["log", "-1", "--skip=1", "--format=%B"]);
    assert!(first.contains("Runner-Dirty-Submodules: parts/module\n"), "{first}");
    assert!(first.contains("lies uncommitted inside of a submodule: commit it there"), "{first}");
    let prompt = repo.script().prompt(2);
    assert!(prompt.contains("Inside of these submodules work is not committed"), "{prompt}");
    assert_eq!(repo.meta(1).dirty_submodules, ["parts/module"]);
    assert_eq!(repo.meta(2).dirty_submodules, Vec::<String>::new());
    let inside = repo.git(&["-C", "parts/module", "rev-parse", "HEAD"]);
    assert!(repo.git(&["ls-tree", "HEAD", "parts/module"]).contains(&inside), "the new commit is recorded");
    home.ctl_in(&repo, &["verify", "--strict"]).exits(0);
    repo.assert_sound();
}

#[test]
fn a_submodules_own_configuration_runs_nothing() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("around");
    let module = home.repo("module");
    module.write("inner.txt", "inner\n");
    module.commit("Inner");
    let url = module.path().display().to_string();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
    repo.commit("With a module");
    let trace = home.path().join("ran");
    repo.script().step(
        1,
        &format!(
            "git -C sub config filter.x.clean 'touch {0}; cat'; git -C sub config core.fsmonitor 'touch {0}'; \
             echo '* filter=x' > sub/.gitattributes; touch sub/inner.txt; rm -f '{0}'; echo y > y; answer done 'Set.'",
            trace.display()
        ),
    );
    home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(0);
    assert_eq!(repo.run_state("HEAD").dirty_submodules, ["sub"]);
    assert!(!trace.exists(), "nothing of the submodule's was run");
}

#[test]
fn what_a_session_untracks_and_ignores_is_tracked_no_longer() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("built");
    repo.write("build/out.o", "out\n").write("src.c", "src\n");
    repo.commit("Built");
    repo.script().step(
        1,
        "git rm -rq --cached build src.c .runner/state/config.toml; \
         printf 'build/\\nconfig.toml\\n' > .gitignore; answer retry 'Untracked.'",
    );
    repo.script().step(2, "echo more >> src.c; answer done 'Done.'");
    home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(0);
    assert_eq!(repo.git(&["ls-files", "build", "src.c"]), "src.c");
    assert_eq!(repo.read("build/out.o"), "out\n");
    assert_eq!(repo.git(&["ls-files", ".runner/state/config.toml"]), ".runner/state/config.toml");
    let first = repo.git(&["log", "-1", "--skip=1", "--format=%B"]);
    assert!(first.contains("Runner-Reverted: .runner/state/config.toml\n"), "{first}");
    home.ctl_in(&repo, &["verify", "--strict"]).exits(0);
    repo.assert_sound();
}

#[test]
fn removed_attributes_leave_nothing_behind_that_holds_the_run() {
    let home = Home::new();
    let daemon = home.daemon();
    let repo = home.scripted_repo("attributes");
    repo.write(".gitattributes", "*.txt text eol=crlf\n").write("a.txt", "one\r\ntwo\r\n");
    repo.commit("Base");
    repo.script().step(1, "rm .gitattributes; echo x > n; answer retry 'Removed.'");
    repo.script().step(2, "echo y > n; answer done 'Done.'");
    home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(0);
    assert_eq!(repo.git(&["cat-file", "-s", "HEAD:a.txt"]), "10", "it is stored as it is");
    drop(daemon);
    let _another = home.daemon();
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    home.ctl_in(&repo, &["verify", "--strict"]).exits(0);
    repo.assert_sound();
}

/// What was judged is what is committed: an unknown encoding would leave it out.
#[test]
fn attributes_of_a_session_or_a_guard_keep_nothing_out() {
    let rule = "echo '* working-tree-encoding=BOGUS' > src/.gitattributes";
    for (by_session, by_guard) in
        [(rule, "true"), (&*format!("{rule}; git add -A; git commit -qm Mine"), "true"), ("true", rule)]
    {
        let home = Home::new();
        let repo = home.scripted_repo("bogus");
        repo.write("src/old", "old\n").commit("Base");
        repo.script().guard_always(&format!("grep -q new src/new || exit 1; {by_guard}"));
        repo.script()
            .step(1, &format!("echo new > src/new; echo changed > src/old; {by_session}; answer done 'Done.'"));
        let _daemon = home.daemon();
        home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(0);
        assert_eq!(repo.git(&["show", "HEAD:src/new", "HEAD:src/old"]), "new\nchanged", "{by_session}, {by_guard}");
        assert!(repo.git(&["ls-files", "src/.gitattributes"]).is_empty(), "{by_session}, {by_guard}");
        let receipt = ReceiptCommit::read(&repo, "HEAD");
        assert_eq!(receipt.trailer("Runner-Reverted"), Some("src/.gitattributes"), "{by_session}, {by_guard}");
        assert_eq!(repo.meta(1).held_back, [""; 0], "{by_session}, {by_guard}");
        repo.assert_sound();
    }
}
