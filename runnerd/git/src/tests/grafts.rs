//! `commit_paths` and `check_out_paths`: a commit of a few files that leaves everything else in the work tree as it is.

use super::fixture::{ENGINES, Fixture};
use crate::{GitError, Id, Identity, PathsCommit};

const FILES: &[(&str, &[u8])] = &[("dir/sub/d.txt", b"other\n"), ("new/deep.txt", b"new\n")];

fn paths_commit(branch: &str, parent: Id) -> PathsCommit<'_> {
    PathsCommit { branch, parent, files: FILES, message: "subject\n\nbody\n", author: Identity::runner(), sign: false }
}

#[test]
fn files_get_into_the_branch_that_is_checked_out_and_nothing_else_does() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("a.txt", "not committed\n");
        fixture.write("untracked.txt", "not committed\n");
        fixture.write("b.txt", "staged\n");
        fixture.git(&["add", "b.txt"]);
        let repository = fixture.with_engine(engine);
        let parent = fixture.head();
        let commit = repository.commit_paths(&paths_commit("main", parent)).unwrap();
        repository.check_out_paths(&["dir/sub/d.txt", "new/deep.txt"]).unwrap();
        assert_eq!(fixture.head(), commit);
        assert_eq!(
            fixture.git(&["diff", "--name-status", "HEAD~1", "HEAD"]),
            "M\tdir/sub/d.txt\nA\tnew/deep.txt",
            "{engine:?}"
        );
        assert_eq!(fixture.read("new/deep.txt"), "new\n");
        assert_eq!(
            fixture.git(&["status", "--porcelain"]),
            " M a.txt
M  b.txt
?? untracked.txt"
        );
    }
}

#[test]
fn a_branch_that_is_not_checked_out_moves_alone() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "other"]);
    let head = fixture.head();
    let commit = fixture.repository().commit_paths(&paths_commit("other", head)).unwrap();
    assert_eq!((fixture.head(), fixture.repository().find_branch_tip("other").unwrap()), (head, Some(commit)));
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(fixture.git(&["show", "other:new/deep.txt"]), "new");
    assert_eq!(fixture.git(&["log", "-1", "--format=%s", "other", "--"]), "subject");
}

#[test]
fn a_branch_that_has_moved_is_left_alone() {
    let fixture = Fixture::new();
    let parent = fixture.head();
    fixture.write("a.txt", "moved\n");
    fixture.commit_by_git("moved");
    let head = fixture.head();
    let error = fixture.repository().commit_paths(&paths_commit("main", parent)).unwrap_err();
    assert!(matches!(error, GitError::RefMoved { .. }), "{error}");
    assert_eq!(fixture.head(), head);
}

#[test]
fn a_file_takes_the_place_of_a_folder_of_its_name() {
    let fixture = Fixture::new();
    let parent = fixture.head();
    let files: &[(&str, &[u8])] = &[("dir", b"a file\n"), ("a.txt/below", b"in a folder\n")];
    fixture.repository().commit_paths(&PathsCommit { files, ..paths_commit("main", parent) }).unwrap();
    let names = fixture.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert_eq!(names, "a.txt/below\nb.txt\ndir\nother/f.txt");
}
