//! Undoing an interrupted advance: what it has written is removed, what someone put in its place stays.

use std::fs;

use super::fixture::{Fixture, author};
use crate::{AdvanceError, BranchAdvance, GitError, Id};

/// Returns a commit and a successor that adds files and changes one. The work tree has the files of the second while
/// HEAD is at the first, as an interrupted advance leaves it.
fn interrupted_advance() -> (Fixture, Id, Id) {
    let fixture = Fixture::new();
    let old = fixture.head();
    fixture.write("new/added.txt", "added\n");
    fixture.write("new/other.txt", "other\n");
    fixture.write("last.txt", "a line that is long enough\n");
    fixture.write("a.txt", "changed\n");
    fixture.link("a.txt", "linked");
    let new = fixture.commit_by_git("new");
    fixture.git(&["update-ref", "refs/heads/main", &old.to_string()]);
    (fixture, old, new)
}

#[test]
fn branch_that_an_advance_would_make_is_refused_where_another_leaves_no_room() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "deliver"]);
    fixture.git(&["pack-refs", "--all"]);
    let by = author();
    let advance = BranchAdvance { branch: "deliver/x", old: None, new: fixture.head(), message: "land", identity: &by };
    let error = fixture.repository().advance_branch(&advance, None).unwrap_err();
    assert!(matches!(error, AdvanceError::Git(GitError::RefConflict { .. })), "{error}");
}

#[test]
fn what_an_advance_has_written_is_put_back() {
    let (fixture, old, new) = interrupted_advance();
    fixture.repository().undo_advance(&old, &new).unwrap();
    assert_eq!(fixture.status(), "");
    assert!(!fixture.path("new").exists() && !fixture.has("last.txt"));
    assert_eq!(fixture.read("a.txt"), "content of a.txt\n");
    assert!(fs::symlink_metadata(fixture.path("linked")).is_err());
}

#[test]
fn a_link_in_the_place_of_a_folder_or_of_a_file_is_not_followed_and_stays() {
    let (fixture, old, new) = interrupted_advance();
    let theirs = fixture.folder().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("added.txt"), "added\n").unwrap();
    fs::write(theirs.join("other.txt"), "other\n").unwrap();
    fs::remove_dir_all(fixture.path("new")).unwrap();
    fixture.link(theirs.to_str().unwrap(), "new");
    fixture.remove("last.txt");
    fixture.link(theirs.join("added.txt").to_str().unwrap(), "last.txt");
    fixture.repository().undo_advance(&old, &new).unwrap();
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 2, "nothing behind the link is touched");
    assert_eq!(fs::read_to_string(theirs.join("added.txt")).unwrap(), "added\n");
    assert_eq!(fs::read_link(fixture.path("new")).unwrap(), theirs);
    assert_eq!(fs::read_link(fixture.path("last.txt")).unwrap(), theirs.join("added.txt"));
    assert_eq!(fixture.read("a.txt"), "content of a.txt\n");
}

#[test]
fn what_is_not_as_it_was_written_stays_and_what_was_begun_goes() {
    let (fixture, old, new) = interrupted_advance();
    fixture.write("new/added.txt", "somebody's\n");
    fixture.write("new/other.txt", "");
    fixture.write("last.txt", "a line that");
    fixture.remove("linked");
    fixture.write("linked", "a file\n");
    fixture.repository().undo_advance(&old, &new).unwrap();
    assert_eq!(fixture.read("new/added.txt"), "somebody's\n");
    assert_eq!(fixture.read("linked"), "a file\n");
    assert!(!fixture.has("new/other.txt") && !fixture.has("last.txt"), "the beginning of what was written is its own");
    assert_eq!(fixture.status(), "?? linked\n?? new/added.txt");
}

#[test]
fn a_file_that_is_written_otherwise_than_it_is_stored_is_known_as_its_own() {
    let (fixture, _, _) = interrupted_advance();
    fixture.git(&["reset", "--quiet", "--hard"]);
    fixture.git(&["clean", "--quiet", "-d", "--force"]);
    fixture.write(".gitattributes", "*.crlf text eol=crlf\n");
    let old = fixture.commit_by_git("attributes");
    fixture.write("lines.crlf", "one\r\ntwo\r\n");
    let new = fixture.commit_by_git("lines");
    fixture.git(&["update-ref", "refs/heads/main", &old.to_string()]);
    fixture.repository().undo_advance(&old, &new).unwrap();
    assert_eq!((fixture.status(), fixture.has("lines.crlf")), (String::new(), false));
}
