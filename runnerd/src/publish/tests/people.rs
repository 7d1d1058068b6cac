//! What a person does to the branch in the source during a run, and that the suggested command then lets it continue.

use runner_git::Repository;

use super::super::{find_preserved_tip, inspect_published};
use super::fixture::{PublishFixture, git};

#[test]
fn row_100_a_commit_of_a_persons_on_the_branch_holds_the_run_and_is_kept() {
    let pair = PublishFixture::new();
    pair.commit("one");
    pair.publish();
    pair.source_git("switch --quiet runner/x");
    pair.source_git("commit --quiet --allow-empty -m mine");
    let mine = pair.branch();
    pair.commit("two");
    let why = pair.hold_reason();
    assert_eq!(why.message, format!("runner/x has {}, which the run did not make", &mine[..12]));
    assert_eq!(pair.branch(), mine, "nothing was written over");
    pair.follow(&why);
    pair.publish();
    pair.assert_sound();
    assert_eq!(pair.source_git("rev-parse x-by-hand"), mine);
    assert_eq!(pair.source_git("symbolic-ref --short HEAD"), "x-by-hand", "the person continues on the same branch");
}

#[test]
fn a_branch_that_was_rebased_holds_the_run_and_is_kept() {
    let pair = PublishFixture::new();
    pair.commit("one");
    pair.publish();
    let other = pair.source_git("commit-tree -m other HEAD^{tree}");
    pair.source_git(&format!("branch --quiet --force runner/x {other}"));
    pair.commit("two");
    pair.follow(&pair.hold_reason());
    pair.publish();
    pair.assert_sound();
    assert_eq!(pair.source_git("rev-parse x-by-hand"), other);
}

#[test]
fn a_branch_that_was_set_back_is_moved_on_again() {
    let pair = PublishFixture::new();
    let first = pair.commit("one");
    pair.publish();
    pair.commit("two");
    pair.publish();
    pair.source_git(&format!("branch --quiet --force runner/x {first}"));
    pair.publish();
    pair.assert_sound();
}

#[test]
fn what_has_become_of_a_branch_is_seen_by_a_look_that_changes_nothing() {
    let pair = PublishFixture::new();
    let first = pair.commit("one");
    pair.publish();
    let second = pair.commit("two");
    pair.publish();
    let look =
        || inspect_published(&pair.store, &pair.workspace, &pair.origin).map(|view| view.expect("the run has commits"));
    assert_eq!((look().unwrap().behind, look().unwrap().tip), (Some(0), Some(second)));
    pair.source_git(&format!("branch --quiet --force runner/x {first}"));
    assert_eq!((look().unwrap().behind, pair.branch()), (Some(1), first));
    pair.source_git("branch --quiet -D runner/x");
    let gone = look().unwrap();
    assert!(gone.tip.is_none() && gone.why.is_some(), "{gone:?}");
    std::fs::rename(pair.source(), pair.place("elsewhere")).unwrap();
    assert!(look().is_err(), "an unreadable branch does not count as unchanged");
}

#[test]
fn row_104_a_branch_that_was_deleted_holds_the_run_and_comes_back_with_all_that_it_had() {
    for keeper_too in [false, true] {
        let pair = PublishFixture::new();
        pair.commit("one");
        pair.publish();
        pair.source_git("branch --quiet -D runner/x");
        if keeper_too {
            pair.source_git("update-ref -d refs/runner/at/x");
            pair.source_git("gc --quiet --prune=now");
        }
        for _ in 0..2 {
            let why = pair.hold_reason();
            assert_eq!(why.message, format!("runner/x is gone from {}", pair.source().display()));
        }
        pair.commit("two");
        pair.follow(&pair.hold_reason());
        pair.publish();
        pair.assert_sound();
    }
}

#[test]
fn row_101_a_branch_that_is_checked_out_is_left_and_caught_up_with() {
    let pair = PublishFixture::new();
    let first = pair.commit("one");
    pair.publish();
    pair.source_git("switch --quiet runner/x");
    pair.commit("two");
    let tip = pair.commit("three");
    let published = pair.publish();
    assert_eq!((published.tip.as_deref(), published.behind), (Some(first.as_str()), Some(2)));
    let why = published.why.unwrap();
    assert_eq!(why.message, format!("runner/x is in use in {}", pair.source().display()));
    assert_eq!(pair.source_git("status --porcelain"), "");
    let source = Repository::discover(pair.source()).unwrap();
    let kept = find_preserved_tip(&source, "x").unwrap().unwrap();
    assert_eq!(kept.to_string(), tip, "the new commit is in the source nevertheless");
    assert_eq!(why.command.as_deref(), Some(format!("git -C {} switch --detach", pair.source().display()).as_str()));
    pair.source_git("switch --quiet --detach");
    pair.publish();
    pair.assert_sound();
}

#[test]
fn a_branch_is_in_use_wherever_a_work_tree_comes_back_to_it() {
    let pair = PublishFixture::new();
    let first = pair.commit("one");
    pair.publish();
    pair.commit("two");
    let linked = pair.place("linked");
    pair.source_git(&format!("worktree add --quiet {} runner/x", linked.display()));
    let is_left = |how: &str| {
        assert_eq!((pair.publish().behind, pair.branch()), (Some(1), first.clone()), "{how}");
    };
    is_left("checked out in a linked working tree");
    let steps = ["-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "--quiet", "-i", "HEAD~1"];
    assert!(git(&linked, &steps).status.success());
    is_left("rebased");
    assert!(git(&linked, &["rebase", "--abort"]).status.success());
    assert!(git(&linked, &["bisect", "start", "HEAD", "HEAD~1"]).status.success());
    assert!(git(&linked, &["checkout", "--quiet", "--detach", "HEAD~1"]).status.success());
    is_left("bisected");
    assert!(git(&linked, &["bisect", "reset", "HEAD"]).status.success());
    let lock = pair.source().join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    is_left("git is at work");
    std::fs::remove_file(lock).unwrap();
    pair.publish();
    pair.assert_sound();
}

#[test]
fn a_branch_that_is_checked_out_at_the_moment_of_its_move_goes_back() {
    for is_death in [false, true] {
        let pair = PublishFixture::new();
        let first = pair.commit("one");
        pair.publish();
        pair.commit("two");
        let mut publisher = pair.publisher();
        publisher.send_objects(&publisher.read_snapshot().unwrap().unwrap(), false).unwrap();
        publisher.update_keep_refs(&publisher.read_snapshot().unwrap().unwrap()).unwrap();
        publisher.check_complete(&publisher.read_snapshot().unwrap().unwrap()).unwrap();
        let look = publisher.read_snapshot().unwrap().unwrap();
        // Read as unused, but checked out before it is moved.
        pair.source_git("switch --quiet runner/x");
        if is_death {
            let from = first.parse().ok();
            publisher.record_file.write(&super::super::PublishedMove { from, to: look.tip, is_done: false }).unwrap();
            publisher.set_branch(from, look.tip).unwrap();
            assert_ne!(pair.source_git("status --porcelain"), "", "a commit of the run's looks taken back");
            assert_eq!(pair.publish().behind, Some(1));
        } else {
            publisher.move_branch(&look).unwrap();
        }
        assert_eq!(pair.branch(), first);
        assert_eq!(pair.source_git("status --porcelain"), "");
        pair.source_git("switch --quiet main");
        pair.publish();
        pair.assert_sound();
    }
}

#[test]
fn a_branch_that_is_checked_out_after_its_move_stays() {
    let pair = PublishFixture::new();
    pair.commit("one");
    pair.publish();
    let second = pair.commit("two");
    pair.publish();
    pair.source_git("switch --quiet runner/x");
    assert_eq!(pair.publish().why, None);
    assert_eq!((pair.branch(), pair.source_git("status --porcelain")), (second.clone(), String::new()));
    pair.commit("three");
    assert_eq!(pair.publish().behind, Some(1));
    assert_eq!((pair.branch(), pair.source_git("status --porcelain")), (second, String::new()));
}

#[test]
fn a_branch_named_runner_holds_the_run() {
    let pair = PublishFixture::new();
    pair.source_git("branch runner");
    pair.commit("one");
    let why = pair.hold_reason();
    assert!(why.message.starts_with("branch runner of "), "{}", why.message);
    pair.follow(&why);
    pair.publish();
    pair.assert_sound();
}

#[test]
fn a_branch_below_the_runs_name_holds_the_run() {
    let pair = PublishFixture::new();
    pair.source_git("branch runner/x/y");
    pair.commit("one");
    let why = pair.hold_reason();
    assert!(why.message.starts_with("branch runner/x/y of "), "{}", why.message);
    pair.follow(&why);
    pair.publish();
    pair.assert_sound();
}
