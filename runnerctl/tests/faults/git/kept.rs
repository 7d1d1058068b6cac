//! What is kept although a session removes it: the commit at which it began, untracked files, files without
//! permissions. Rows 76 and 95 to 97.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::invariants::{list_verdicts, print_figure};
use runner_testkit::{PATIENCE, Repo, run_unprivileged};

use super::{prepare, reverted_paths, run_one, start_working};
use crate::checks::{assert_explains, assert_survived};

const PRUNE: &str = "git reflog expire --expire=now --all; git gc -q --prune=now";

#[test]
fn row_76_commit_at_which_a_session_began_outlives_what_prunes_it() {
    for deed in [
        "git commit -q --amend --no-edit",
        "git commit -q --amend -m Mine",
        "git reset -q --soft main; git commit -qm Mine",
    ] {
        let (home, repo) = prepare();
        let _daemon = home.daemon();
        run_one(&home, &repo, &format!("git add -A; {deed}; {PRUNE}"));
        assert_eq!(list_verdicts(&repo), ["Broken"], "{deed}");
        assert_survived(&home, &repo, &["mine\n"]);
    }
}

#[test]
fn row_76_commit_whose_reference_is_removed_and_pruned_is_named_and_nothing_is_settled() {
    let (mut home, repo) = prepare();
    // The session's commit replaces the start commit.
    home.expect_forgery();
    let _daemon = home.daemon();
    let deed = format!("git add -A; git commit -q --amend --no-edit; git update-ref -d refs/runner/from/x; {PRUNE}");
    repo.script().step(1, &format!("echo mine > mine.txt\n{deed}\nanswer done 'Done.'"));
    home.ctl_in(&repo, &["start", "--yes", "--id", "x", "-m", "Do it"]).exits(0);
    home.client().wait_until(repo.path(), |run| {
        let obstacle = run.phase.as_ref().and_then(|phase| phase.obstacle.clone());
        obstacle.is_some_and(|obstacle| obstacle.contains("its objects were removed"))
    });
    let output = home.ctl_in(&repo, &["status"]);
    assert!(output.stdout.contains("fetch CLONE"), "{}", output.stdout);
    assert_eq!(list_verdicts(&repo), Vec::<String>::new());
    assert_explains(&home.ctl_in(&repo, &["verify", "--run", "x"]), &["nothing proven"]);
    home.ctl_in(&repo, &["cancel"]).exits(0);
}

#[test]
fn row_95_records_that_a_session_tracks_are_taken_out_again_and_named() {
    let deeds =
        ["git add -A -f", "git add -A -f; git commit -qm Mine", "git add -f .runner/iterations; git commit -qm Mine"];
    for deed in deeds {
        let (home, repo) = prepare();
        repo.commit_config(&repo.config().top("max_iterations = 2"));
        repo.script().step(2, "echo more > more.txt; answer done 'Done.'");
        let _daemon = home.daemon();
        repo.script().step(1, &format!("echo mine > mine.txt\n{deed}\nanswer retry 'Tracked.'"));
        home.run(&repo, &["--id", "x", "-m", "Do it"]).exits(0);
        assert_eq!(list_verdicts(&repo), ["Retry", "Accepted"], "{deed}");
        let named = repo.receipts()[0].trailer("Runner-Reverted").unwrap_or_default().to_owned();
        assert!(named.contains(".git/index: .runner/iterations/"), "{deed}: {named}");
        assert_untracked(&repo);
        assert_survived(&home, &repo, &["mine\n", "more\n"]);
    }
}

#[test]
fn row_95_records_that_a_person_tracks_hold_nothing() {
    let (home, repo) = prepare();
    repo.commit_config(&repo.config().top("max_iterations = 2"));
    repo.script().step(1, "echo mine > mine.txt; answer retry 'Not yet.'").step(2, "answer done 'Done.'");
    let _daemon = home.daemon();
    let gate = start_working(&home, &repo);
    repo.git(&["add", "-f", ".runner/iterations"]);
    repo.git(&["commit", "-q", "-m", "Track the records"]);
    gate.open();
    home.run(&repo, &["--id", "x"]);
    assert_untracked(&repo);
    assert_survived(&home, &repo, &["mine\n"]);
}

fn assert_untracked(repo: &Repo) {
    for folder in [".runner/iterations", ".runner/context"] {
        assert_eq!(repo.git(&["ls-tree", "-r", "HEAD", folder]), "", "{folder}");
        assert_eq!(repo.git(&["ls-files", folder]), "", "{folder}");
    }
    assert!(repo.path().join(".runner/iterations/x/0001/meta.json").is_file(), "the record itself stays");
}

#[test]
fn row_96_modes_that_a_session_takes_away_are_given_back_and_named() {
    let deeds = [
        ("chmod 000 .runner", ".runner"),
        ("chmod 000 .runner/state/run_state.json .runner/state", ".runner/state"),
        ("chmod 000 .git/refs .git/HEAD", ".git/refs"),
        ("chmod -R a-rwx .git", ".git"),
        ("chmod 500 .git/objects .git/logs", ".git/objects"),
    ];
    for (deed, name) in deeds {
        let (home, repo) = prepare();
        let _daemon = home.daemon();
        let step = format!("echo mine > mine.txt\nanswer done 'Done.'\n{deed}");
        repo.script().step(1, &step);
        home.run(&repo, &["--id", "x", "-m", "Do it"]).exits(0);
        assert_eq!(list_verdicts(&repo), ["Accepted"], "{deed}");
        assert!(reverted_paths(&repo).iter().any(|reverted| reverted == name), "{deed}: {:?}", reverted_paths(&repo));
        let mode = fs::symlink_metadata(repo.path().join(name)).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o700, 0o700, "{deed}");
        assert_survived(&home, &repo, &["mine\n"]);
    }
}

#[test]
fn row_96_work_tree_is_put_back_though_a_session_has_closed_folders_of_it() {
    run_unprivileged(|| {
        for mode in ["555", "000"] {
            let (home, repo) = prepare();
            repo.write("kept/file.txt", "old\n").commit("A folder");
            let _daemon = home.daemon();
            let deed = "mkdir made; echo made > made/made.txt; echo changed > kept/file.txt";
            run_one(
                &home,
                &repo,
                &format!("{deed}; git add -A; git commit -q --amend -m Mine; chmod {mode} kept made"),
            );
            assert_eq!(list_verdicts(&repo), ["Broken"], "{mode}");
            fs::set_permissions(repo.path().join("kept"), Permissions::from_mode(0o755)).expect("it is there");
            assert_eq!(repo.read("kept/file.txt"), "old\n", "{mode}");
            assert_eq!(repo.git(&["status", "--porcelain"]), "", "{mode}");
            assert_eq!(repo.git(&["ls-tree", "-r", "HEAD", "made"]), "", "{mode}: nothing of it is committed");
            assert_survived(&home, &repo, &["mine\n", "made\n", "changed\n"]);
            let made = repo.path().join("made");
            if made.exists() {
                fs::set_permissions(made, Permissions::from_mode(0o755)).expect("it is ours");
            }
        }
    });
}

#[test]
fn row_96_what_cannot_be_put_back_is_waited_for_and_nothing_of_it_is_committed() {
    let (home, repo) = prepare();
    repo.write("probe/file", "");
    if !change_attributes(&repo, "+i", "probe") {
        return print_figure("folders cannot be made immutable here");
    }
    assert!(change_attributes(&repo, "-i", "probe"));
    fs::remove_dir_all(repo.path().join("probe")).expect("it can be removed");
    let _daemon = home.daemon();
    let deed = "mkdir made; echo made > made/made.txt; git add -A; git commit -q --amend -m Mine; chattr +i made";
    repo.script().step(1, &format!("echo mine > mine.txt\n{deed}\nanswer done 'Done.'"));
    home.ctl_in(&repo, &["start", "--yes", "--id", "x", "-m", "Do it"]).exits(0);
    let tries = |run: &RunView| run.phase.as_ref().and_then(|phase| phase.obstacle.clone());
    home.client().wait_until(repo.path(), |run| tries(run).is_some_and(|why| why.contains("made/made.txt")));
    // The next attempts fail like the first, although the branch is in its place by then.
    assert_eq!(list_verdicts(&repo), Vec::<String>::new());
    assert!(change_attributes(&repo, "-i", "made"));
    home.client().wait_until(repo.path(), |run| run.summary.state.is_terminal());
    assert_eq!(list_verdicts(&repo), ["Broken"]);
    assert!(!repo.path().join("made").exists());
    assert_survived(&home, &repo, &["mine\n", "made\n"]);
}

fn change_attributes(repo: &Repo, how: &str, folder: &str) -> bool {
    let changed = Command::new("chattr").args([how, folder]).current_dir(repo.path()).output();
    changed.is_ok_and(|output| output.status.success())
}

#[test]
fn row_96_folder_that_was_closed_is_opened_by_the_next_daemon() {
    let (home, repo) = prepare();
    let daemon = home.daemon();
    let gate = start_working(&home, &repo);
    daemon.kill();
    home.wait_all_gone(PATIENCE);
    drop(gate);
    fs::set_permissions(repo.path().join(".git"), Permissions::from_mode(0o000)).expect("a mode can be set");
    let _daemon = home.daemon();
    home.client().wait_until(repo.path(), |run| run.summary.state.is_terminal());
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_97_references_that_a_person_packs_meanwhile_are_nobodys_deed() {
    let (home, repo) = prepare();
    let head = repo.head();
    // Enough files for a listing to take a moment.
    for number in 0..300 {
        repo.write(&format!(".git/refs/tags/t{number}"), &format!("{head}\n"));
    }
    let _daemon = home.daemon();
    let gate = start_working(&home, &repo);
    repo.git(&["pack-refs", "--all"]);
    gate.open();
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_eq!(repo.refs("refs/runner/moved"), Vec::<String>::new());
    assert_eq!(repo.meta(1).moved_refs, Vec::<String>::new());
    assert_survived(&home, &repo, &["mine\n"]);
}
