//! An object that was replaced by another: every reader reports it by name. Nothing mistakes it for a valid or missing
//! object, or for the result of a crash.

use std::fs;

use runner_os::retryable::Retryable as _;

use super::fixture::{ENGINES, Fixture, commit};
use crate::{GitError, Id, Repository};

/// Puts the loose object of one revision in the place of another's, and returns the id of the latter.
fn swap_object(fixture: &Fixture, instead_of: &str, other: &str) -> Id {
    let file = |revision: &str| {
        let id = fixture.git(&["rev-parse", revision]);
        (fixture.path(format!(".git/objects/{}/{}", &id[..2], &id[2..])), id)
    };
    let ((place, id), (source, _)) = (file(instead_of), file(other));
    fs::remove_file(&place).unwrap();
    fs::copy(source, &place).unwrap();
    id.parse().unwrap()
}

/// Reads something of a commit, or of it and its parent.
type ReadAction = fn(&Repository, [&Id; 2]) -> Result<(), GitError>;

/// Every operation that reads committed data.
const READS: [(&str, ReadAction); 12] = [
    ("read", |repository, [_, head]| repository.read_file(head, "dir/c.txt").map(drop)),
    ("entry", |repository, [_, head]| repository.find_entry(head, "dir/c.txt").map(drop)),
    ("entries", |repository, [_, head]| repository.list_entries(head, "dir").map(drop)),
    ("all entries", |repository, [_, head]| repository.list_entries(head, "").map(drop)),
    ("blob", |repository, [_, head]| {
        let Some(entry) = repository.find_entry(head, "dir/c.txt")? else { return Ok(()) };
        repository.read_blob(&entry.id).map(drop)
    }),
    ("first parents", |repository, [_, head]| repository.first_parents(head, 10).map(drop)),
    ("ancestor", |repository, [parent, head]| repository.is_ancestor(parent, head).map(drop)),
    ("first ancestor", |repository, [parent, head]| repository.is_first_parent_ancestor(parent, head).map(drop)),
    ("changed paths", |repository, [parent, head]| repository.changed_paths(parent, head).map(drop)),
    ("patch", |repository, [parent, head]| repository.diff(parent, head, 1 << 20).map(drop)),
    ("changes", |repository, _| repository.list_changes().map(drop)),
    ("copy", |repository, [_, head]| {
        repository.create_commit_copy(head, tempfile::tempdir().unwrap().path()).map(drop)
    }),
];

/// What is swapped with what, and which readers have to notice.
const SWAPS: [(&str, &str, &[&str]); 4] = [
    ("HEAD:dir/c.txt", "HEAD:a.txt", &["read", "blob", "patch", "copy"]),
    (
        "HEAD:dir",
        "HEAD^:dir",
        &["read", "entry", "entries", "all entries", "changed paths", "patch", "changes", "copy"],
    ),
    ("HEAD^{tree}", "HEAD^^{tree}", &["read", "entry", "entries", "changed paths", "patch", "changes", "copy"]),
    (
        "HEAD",
        "HEAD^",
        &[
            "read",
            "entry",
            "entries",
            "first parents",
            "ancestor",
            "first ancestor",
            "changed paths",
            "changes",
            "copy",
        ],
    ),
];

#[test]
fn an_object_in_the_place_of_another_is_seen_by_all_who_read_it() {
    for (instead_of, other, seen_by) in SWAPS {
        for engine in ENGINES {
            let fixture = Fixture::new();
            fixture.write("dir/c.txt", "changed");
            fixture.commit_by_git("one more");
            let head = fixture.head();
            let repository = fixture.with_engine(engine);
            let parent = fixture.git(&["rev-parse", "HEAD^"]).parse().unwrap();
            let id = swap_object(&fixture, instead_of, other);
            for (what, read) in READS.iter().filter(|(what, _)| seen_by.contains(what)) {
                let seen = read(&repository, [&parent, &head]);
                let is_seen = matches!(&seen, Err(GitError::HashMismatch { id: named, .. }) if *named == id);
                assert!(is_seen, "{instead_of}, {what}, {engine:?}: {seen:?}");
            }
        }
    }
}

#[test]
fn a_commit_in_the_place_of_another_is_not_taken_for_missing() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "changed");
    fixture.commit_by_git("one more");
    let from = fixture.head();
    let branch = fixture.git(&["symbolic-ref", "--short", "HEAD"]);
    let id = swap_object(&fixture, "HEAD", "HEAD^");
    let repository = fixture.repository();
    for seen in [repository.find_unreadable_ref(&branch).map(drop), repository.repair_refs(&branch, &from, None)] {
        assert!(matches!(&seen, Err(GitError::HashMismatch { id: named, .. }) if *named == id), "{seen:?}");
    }
    assert_eq!(fixture.git(&["symbolic-ref", "--short", "HEAD"]), branch);
}

#[test]
fn an_object_that_was_put_in_the_way_of_new_content_is_replaced() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let files: Vec<String> = (0..20).map(|number| format!("new/{number}")).collect();
        for file in &files {
            fixture.write(file, file);
        }
        fixture.git(&["hash-object", "-w", "new/7"]);
        let id = fixture.git(&["hash-object", "new/7"]);
        let other = fixture.git(&["rev-parse", "HEAD:a.txt"]);
        let place = |id: &str| fixture.path(format!(".git/objects/{}/{}", &id[..2], &id[2..]));
        fs::remove_file(place(&id)).unwrap();
        fs::copy(place(&other), place(&id)).unwrap();
        let error = commit(&fixture.with_engine(engine)).unwrap_err();
        assert!(error.is_transient(), "{engine:?}: {error}");
        commit(&fixture.with_engine(engine)).unwrap();
        fixture.assert_sound();
        assert_eq!(fixture.git(&["show", "HEAD:new/7"]), "new/7", "{engine:?}");
    }
}
