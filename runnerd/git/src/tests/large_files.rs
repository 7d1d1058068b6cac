//! Files of git's folder that a session has made too large to be read: they are found without being read, and restored
//! without loss.

use std::fs::{self, File};
use std::path::PathBuf;

use super::fixture::{Fixture, commit};
use crate::{GitDirSnapshot, Repository};

/// A length that a sparse file can have on any disk.
const HUGE: u64 = 3 << 30;

fn take_snapshot(fixture: &Fixture) -> GitDirSnapshot {
    fixture.repository().snapshot_git_dir(&fixture.path("nothing")).unwrap()
}

fn lengthen(fixture: &Fixture, name: &str) {
    let file = File::options().write(true).create(true).truncate(false).open(fixture.path(name)).unwrap();
    file.set_len(HUGE).unwrap();
}

/// Does what a run does after a process.
fn move_away(fixture: &Fixture, repository: &Repository, before: &GitDirSnapshot) -> Vec<String> {
    let large: Vec<PathBuf> = repository.find_large_git_files(before);
    for (number, file) in large.iter().enumerate() {
        fs::rename(file, fixture.folder().join(format!("large-{number}"))).unwrap();
        repository.restore_large_git_file(before, file).unwrap();
    }
    large.iter().map(|file| repository.display_git_path(file)).collect()
}

#[test]
fn the_index_gets_the_files_of_head_again() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let before = take_snapshot(&fixture);
    fixture.write("new.txt", "new\n");
    lengthen(&fixture, ".git/index");
    fixture.repository().list_changes().unwrap();
    assert_eq!(move_away(&fixture, &repository, &before), [".git/index"]);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "?? new.txt");
    commit(&fixture.repository()).unwrap();
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(fixture.git(&["show", "HEAD:new.txt"]), "new");
}

#[test]
fn in_a_sparse_checkout_the_files_outside_stay_committed() {
    for options in [&["--cone"][..], &["--sparse-index"]] {
        let fixture = Fixture::new();
        fixture.git(&[&["sparse-checkout", "set"], options, &["other"]].concat());
        let outside = fixture.git(&["ls-files", "--sparse", "-t"]);
        assert!(outside.contains("\nS "), "{outside}");
        let repository = fixture.repository();
        let before = take_snapshot(&fixture);
        lengthen(&fixture, ".git/index");
        assert_eq!(move_away(&fixture, &repository, &before), [".git/index"]);
        assert_eq!(fixture.git(&["status", "--porcelain"]), "");
        fs::remove_file(fixture.path(".git/index")).unwrap();
        fixture.repository().restore_missing_index().unwrap();
        assert_eq!(fixture.git(&["status", "--porcelain"]), "");
        fixture.write("other/new.txt", "new\n");
        commit(&fixture.repository()).unwrap();
        assert_eq!(fixture.git(&["show", "--format=", "--name-only", "HEAD"]), "other/new.txt");
    }
}

#[test]
fn references_get_their_earlier_value() {
    let fixture = Fixture::new();
    fixture.git(&["tag", "packed"]);
    fixture.git(&["pack-refs", "--all"]);
    fixture.git(&["branch", "other"]);
    let repository = fixture.repository();
    let before = take_snapshot(&fixture);
    let head = fixture.head();
    let large = [".git/ORIG_HEAD", ".git/packed-refs", ".git/refs/heads/new/ref", ".git/refs/heads/other"];
    fs::create_dir(fixture.path(".git/refs/heads/new")).unwrap();
    for name in &large {
        lengthen(&fixture, name);
    }
    assert_eq!(move_away(&fixture, &repository, &before), large);
    for name in ["packed", "other", "main"] {
        assert_eq!(fixture.git(&["rev-parse", name]), head.to_string());
    }
    assert!(!fixture.has(".git/refs/heads/new/ref") && !fixture.has(".git/ORIG_HEAD"));
    assert!(fixture.repository().find_moved_refs(&before).unwrap().is_empty());
}

#[test]
fn the_branch_of_head_is_repaired_from_the_reflogs() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let before = take_snapshot(&fixture);
    let from = fixture.head();
    fixture.write("new.txt", "new\n");
    fixture.commit_by_git("of the session");
    let tip = fixture.head();
    lengthen(&fixture, ".git/refs/heads/main");
    assert_eq!(move_away(&fixture, &repository, &before), [".git/refs/heads/main"]);
    assert!(repository.find_unreadable_ref("main").unwrap().is_some());
    repository.repair_refs("main", &from, Some(&before)).unwrap();
    assert_eq!(repository.head().unwrap().commit(), Some(tip));
}

#[test]
fn files_that_others_read_in_pieces_may_have_any_length() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let before = take_snapshot(&fixture);
    for name in [".git/logs/HEAD", ".git/FETCH_HEAD", ".git/tool.db"] {
        lengthen(&fixture, name);
    }
    assert_eq!(move_away(&fixture, &repository, &before), Vec::<String>::new());
}

#[test]
fn one_that_was_there_before_is_not_the_sessions() {
    let fixture = Fixture::new();
    lengthen(&fixture, ".git/index");
    let repository = fixture.repository();
    let before = repository.snapshot_git_dir(&fixture.clock_after(&[".git/index"])).unwrap();
    assert_eq!(move_away(&fixture, &repository, &before), Vec::<String>::new());
    assert!(fixture.repository().list_changes().unwrap().is_empty());
}
