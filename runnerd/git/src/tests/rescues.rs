//! Snapshots lose nothing and disturb nothing; restoring brings back exactly a commit and removes nothing unseen.

use std::fs;

use runner_testkit::run_unprivileged;

use super::fixture::{ENGINES, Fixture, author, commit_with};
use crate::repository::engine::GitEngine;
use crate::{GitError, Head, HoldBackRule, Id, RescueSnapshot, RestoreOptions, RestoreOutcome, SnapshotRequest};

const RESCUE: &str = "refs/runner/rescue/x/0001";

fn hold_back_rule() -> HoldBackRule {
    HoldBackRule { names: vec![".env".to_owned()], max_file_bytes: 1000, ..HoldBackRule::nested_only() }
}

fn snapshot(fixture: &Fixture, engine: GitEngine, restoring: Option<Id>) -> RescueSnapshot {
    let hold_back = hold_back_rule();
    let request = SnapshotRequest {
        name: RESCUE,
        message: "rescue",
        author: author(),
        hold_back: &hold_back,
        restore_target: restoring,
    };
    fixture.with_engine(engine).create_snapshot(&request).unwrap()
}

fn restore(fixture: &Fixture, engine: GitEngine, to: Id, rescue: Id) -> Result<RestoreOutcome, GitError> {
    let hold_back = hold_back_rule();
    fixture.with_engine(engine).restore(&RestoreOptions {
        branch: "runner/x",
        target: to,
        tip: to,
        rescue,
        hold_back: &hold_back,
    })
}

/// A repository on `runner/x`, and the commit at which a session starts.
fn session_fixture() -> (Fixture, Id) {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "*.log\n");
    fixture.write("kept.log", "ignored\n");
    fixture.commit_by_git("rules");
    fixture.git(&["checkout", "--quiet", "-b", "runner/x"]);
    fixture.write("a.txt", "begun\n");
    let from = fixture.commit_by_git("from");
    (fixture, from)
}

/// Restores after `mess`, and checks that work tree, index and branch are as before and that nothing is lost.
fn assert_restored(mess: impl Fn(&Fixture)) {
    for engine in ENGINES {
        let (fixture, from) = session_fixture();
        mess(&fixture);
        let others = other_refs(&fixture);
        let rescue = snapshot(&fixture, engine, Some(from)).commit;
        let restored = restore(&fixture, engine, from, rescue).unwrap();
        assert_eq!(restored.remaining, Vec::<String>::new(), "{engine:?}");
        let head = Head::Branch { name: "runner/x".to_owned(), commit: Some(from) };
        assert_eq!(fixture.repository().head().unwrap(), head);
        assert_eq!(fixture.repository().operation(), None);
        fixture.assert_sound();
        assert_eq!(fixture.read("kept.log"), "ignored\n");
        assert_eq!(other_refs(&fixture), others);
        let again = restore(&fixture, engine, from, rescue).unwrap();
        assert_eq!(again.removed, Vec::<String>::new(), "doing it again changes nothing");
    }
}

fn other_refs(fixture: &Fixture) -> Vec<String> {
    let refs = fixture.repository().list_refs().unwrap().into_iter();
    refs.filter(|(name, _)| !["HEAD", "refs/heads/runner/x", RESCUE].contains(&name.as_str()))
        .map(|(name, target)| format!("{name} {target}"))
        .collect()
}

#[test]
fn comes_back_after_changes_of_every_kind() {
    assert_restored(|f| {
        f.write("a.txt", "changed\n");
        f.remove("b.txt");
        f.remove("dir");
        f.write("dir", "now a file\n");
        f.remove("other/f.txt");
        f.link("../a.txt", "other/f.txt");
        f.write("new/deep/file", "untracked\n");
        f.write("staged", "staged\n");
        f.git(&["add", "staged"]);
    });
}

#[test]
fn comes_back_after_a_reset() {
    assert_restored(|f| {
        f.git(&["reset", "--quiet", "--hard", "main"]);
        f.write("c", "x");
    });
}

#[test]
fn ignored_files_stay_even_if_the_session_removed_the_rule() {
    assert_restored(|f| {
        f.git(&["reset", "--quiet", "--hard", "main~1"]);
        assert!(!f.has(".gitignore"));
    });
}

#[test]
fn comes_back_after_an_amended_commit() {
    assert_restored(|f| {
        f.write("a.txt", "amended\n");
        f.git(&["commit", "--quiet", "--amend", "-a", "-m", "amended"]);
        f.write("untracked", "x");
    });
}

#[test]
fn comes_back_from_another_branch_and_from_none() {
    assert_restored(|f| {
        f.git(&["checkout", "--quiet", "-b", "elsewhere"]);
        f.write("a.txt", "elsewhere\n");
        f.commit_by_git("elsewhere");
    });
    assert_restored(|f| {
        f.git(&["checkout", "--quiet", "--detach", "main"]);
        f.write("untracked", "x");
    });
}

#[test]
fn comes_back_when_the_branch_is_gone() {
    assert_restored(|f| {
        f.git(&["checkout", "--quiet", "main"]);
        f.git(&["branch", "--quiet", "-D", "runner/x"]);
    });
}

#[test]
fn comes_back_from_a_merge_under_way() {
    assert_restored(|f| {
        f.git(&["checkout", "--quiet", "-b", "side", "main"]);
        f.write("a.txt", "side\n");
        f.write("from-side", "x");
        f.commit_by_git("side");
        f.git(&["checkout", "--quiet", "runner/x"]);
        f.write("a.txt", "ours\n");
        f.commit_by_git("ours");
        f.try_git(&f.path(""), &["merge", "side"]);
        assert!(f.has(".git/MERGE_HEAD"));
        f.write("untracked", "x");
    });
}

#[test]
fn comes_back_from_a_rebase_under_way() {
    assert_restored(|f| {
        f.write("a.txt", "ours\n");
        f.commit_by_git("ours");
        f.git(&["checkout", "--quiet", "-b", "side", "main"]);
        f.write("a.txt", "side\n");
        f.commit_by_git("side");
        f.git(&["checkout", "--quiet", "runner/x"]);
        f.try_git(&f.path(""), &["rebase", "side"]);
        assert!(f.has(".git/rebase-merge"));
    });
}

#[test]
fn comes_back_to_a_file_that_was_untracked_and_ignored() {
    assert_restored(|f| {
        f.git(&["rm", "--quiet", "--cached", "a.txt"]);
        f.write(".git/info/exclude", "a.txt\n");
        f.write("a.txt", "hidden work\n");
    });
}

#[test]
fn comes_back_through_an_ignored_folder_in_the_place_of_a_file() {
    assert_restored(|f| {
        f.git(&["rm", "--quiet", "--cached", "a.txt"]);
        f.remove("a.txt");
        f.write("a.txt/deep/x.log", "ignored, and in the way\n");
    });
}

#[test]
fn comes_back_though_folders_of_the_work_tree_were_closed() {
    run_unprivileged(|| {
        for engine in ENGINES {
            let (fixture, from) = session_fixture();
            fixture.write("made/committed", "x");
            fixture.commit_by_git("made");
            fixture.write("dir/sub/d.txt", "changed\n");
            fixture.remove("dir/sub/e.txt");
            fixture.write("dir/new", "x");
            fixture.write("made/new", "x");
            for (folder, mode) in [("dir/sub", 0o000), ("dir", 0o555), ("made", 0o555)] {
                fixture.chmod(folder, mode);
            }
            let rescue = snapshot(&fixture, engine, Some(from)).commit;
            let restored = restore(&fixture, engine, from, rescue).unwrap();
            assert_eq!(restored.remaining, Vec::<String>::new(), "{engine:?}");
            assert_eq!(restored.removed, ["dir/new", "made/committed", "made/new"], "{engine:?}");
            assert_eq!(fixture.read("dir/sub/d.txt"), "content of dir/sub/d.txt\n", "it is given back to be read");
            assert_eq!(fixture.git(&["show", &format!("{rescue}:dir/sub/d.txt")]), "changed", "and was kept before");
            assert_eq!(fixture.status(), "");
            assert!(fs::write(fixture.path("dir/other"), "").is_err(), "its mode is what it was");
            for folder in ["dir", "dir/sub"] {
                fixture.chmod(folder, 0o755);
            }
        }
    });
}

#[test]
fn changes_that_git_was_told_not_to_look_for_are_kept() {
    let (fixture, from) = session_fixture();
    fixture.git(&["update-index", "--assume-unchanged", "a.txt"]);
    fixture.write("a.txt", "hidden work\n");
    let rescue = snapshot(&fixture, GitEngine::Gix, Some(from)).commit;
    assert_eq!(fixture.git(&["show", &format!("{rescue}:a.txt")]), "hidden work");
}

#[test]
fn snapshot_has_everything_and_disturbs_nothing() {
    for engine in ENGINES {
        let (fixture, from) = session_fixture();
        fixture.write("a.txt", "changed\n");
        fixture.write("staged", "staged\n");
        fixture.git(&["add", "staged"]);
        fixture.write("untracked/file", "x\n");
        fixture.write(".env", "secret");
        fixture.write("large", "x".repeat(2000));
        fixture.fifo("pipe");
        fixture.remove("b.txt");
        let state = |f: &Fixture| (f.status(), f.git(&["ls-files", "-s", "--debug"]), f.head());
        let before = state(&fixture);
        let exclude = fixture.read(".git/info/exclude");

        let kept = snapshot(&fixture, engine, None);
        assert_eq!(kept.held_back, [".env", "large"]);
        assert_eq!(kept.unstorable, ["pipe"]);
        assert_eq!(state(&fixture), before, "{engine:?}");
        assert_eq!(fixture.read(".git/info/exclude"), exclude);
        assert_eq!(fixture.git(&["rev-parse", RESCUE]), kept.commit.to_string());
        assert_eq!(fixture.git(&["rev-parse", &format!("{RESCUE}^")]), from.to_string());
        let files = fixture.git(&["diff", "--name-status", "--no-renames", "HEAD", RESCUE]);
        assert_eq!(files, "M\ta.txt\nD\tb.txt\nA\tstaged\nA\tuntracked/file");
    }
}

#[test]
fn snapshot_before_the_first_commit_has_no_parent() {
    for engine in ENGINES {
        let fixture = Fixture::unborn();
        fixture.write("a", "x");
        let kept = snapshot(&fixture, engine, None);
        let commit = fixture.repository().first_parents(&kept.commit, 2).unwrap().remove(0);
        assert_eq!(commit.parents, vec![]);
        assert_eq!(fixture.git(&["show", &format!("{RESCUE}:a")]), "x");
    }
}

#[test]
fn untracked_files_go_only_if_the_rescue_has_their_bytes() {
    for engine in ENGINES {
        let (fixture, from) = session_fixture();
        fixture.write("known", "x");
        fixture.write("changed-since", "x");
        fixture.write(".env", "secret");
        let rescue = snapshot(&fixture, engine, Some(from)).commit;
        fixture.write("changed-since", "y");
        fixture.write("new-since", "z");
        let restored = restore(&fixture, engine, from, rescue).unwrap();
        assert_eq!(restored.removed, ["known"]);
        assert_eq!(restored.remaining, [".env", "changed-since", "new-since"]);
        assert!(!fixture.has("known"));
        assert_eq!(fixture.read("changed-since"), "y");
    }
}

#[test]
fn nothing_changes_if_work_would_be_lost() {
    for engine in ENGINES {
        let (fixture, from) = session_fixture();
        fixture.write("a.txt", "seen\n");
        fixture.git(&["checkout", "--quiet", "-b", "elsewhere"]);
        let rescue = snapshot(&fixture, engine, Some(from)).commit;
        fixture.write("a.txt", "not seen\n");
        let error = restore(&fixture, engine, from, rescue).unwrap_err();
        assert!(matches!(&error, GitError::NotRescued { file, .. } if file == "a.txt"), "{error}");
        assert_eq!(fixture.read("a.txt"), "not seen\n");
        assert_eq!(fixture.git(&["branch", "--show-current"]), "elsewhere");
    }
}

#[test]
fn autostash_of_an_abandoned_rebase_is_kept() {
    let (fixture, from) = session_fixture();
    fixture.write("a.txt", "ours\n");
    fixture.commit_by_git("ours");
    fixture.git(&["checkout", "--quiet", "-b", "side", "main"]);
    fixture.write("a.txt", "side\n");
    fixture.commit_by_git("side");
    fixture.git(&["checkout", "--quiet", "runner/x"]);
    fixture.write("b.txt", "put aside\n");
    fixture.try_git(&fixture.path(""), &["rebase", "--autostash", "side"]);
    let stash = fixture.read(".git/rebase-merge/autostash").trim().to_owned();
    let rescue = snapshot(&fixture, GitEngine::Gix, Some(from)).commit;
    restore(&fixture, GitEngine::Gix, from, rescue).unwrap();
    let kept = format!("refs/runner/autostash/{stash}");
    assert_eq!(fixture.git(&["show", &format!("{kept}:b.txt")]), "put aside");
}

#[test]
fn work_continues_after_a_restoration() {
    for engine in ENGINES {
        let (fixture, from) = session_fixture();
        fixture.git(&["reset", "--quiet", "--hard", "main"]);
        let rescue = snapshot(&fixture, engine, Some(from)).commit;
        restore(&fixture, engine, from, rescue).unwrap();
        fixture.write("a.txt", "next\n");
        let committed = commit_with(&fixture.with_engine(engine), &hold_back_rule()).unwrap();
        assert_eq!(fixture.git(&["rev-parse", "HEAD^"]), from.to_string());
        assert_eq!(fixture.head(), committed.commit);
        fixture.assert_sound();
    }
}

#[test]
fn references_that_cannot_be_listed_before_a_session_are_not_taken_for_none() {
    let f = Fixture::new();
    let repository = f.repository();
    repository.snapshot_git_dir(repository.git_dir()).unwrap();
    f.write(".git/packed-refs", "garbage\n");
    repository.snapshot_git_dir(repository.git_dir()).unwrap_err();
}

#[test]
fn packed_references_are_made_again_however_many_there_are() {
    const TAGS: usize = 80_000;
    let f = Fixture::new();
    f.git(&["tag", "--annotate", "-m", "A tag", "named"]);
    f.git(&["branch", "other"]);
    let head = f.head();
    let tags: Vec<String> = (0..TAGS).map(|number| format!("{head} refs/tags/t{number:05}\n")).collect();
    f.write(".git/packed-refs", format!("# pack-refs with: peeled fully-peeled sorted \n{}", tags.concat()));
    assert!(fs::metadata(f.path(".git/packed-refs")).unwrap().len() > 4 * 1024 * 1024);
    let repository = f.repository();
    let before = repository.snapshot_git_dir(repository.git_dir()).unwrap();
    f.git(&["pack-refs", "--all"]);
    f.write(".git/packed-refs", "garbage\n");
    repository.repair_refs("main", &head, Some(&before)).unwrap();
    assert_eq!(repository.find_moved_refs(&before).unwrap(), []);
    assert_eq!(f.git(&["tag", "--list"]).lines().count(), TAGS + 1);
    assert_eq!(f.git(&["rev-parse", "named^{commit}"]).trim(), head.to_string());
    f.assert_sound();
}
