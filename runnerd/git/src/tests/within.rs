//! Commits limited to given paths: only these are checked again.

use super::fixture::{ENGINES, Fixture, request};
use crate::repository::engine::GitEngine;
use crate::{CommitOutcome, CommitRequest, HoldBackRule, Repository};

/// Size in bytes of a file that is held back.
const LARGE: usize = 101;

/// What is changed, and how.
type EditKind = (&'static str, fn(&Fixture));

fn hold_back_rule() -> HoldBackRule {
    HoldBackRule { max_file_bytes: 100, ..HoldBackRule::nested_only() }
}

fn list_changes(repository: &Repository) -> Vec<Vec<u8>> {
    repository.list_changes().unwrap().into_iter().map(|change| change.path).collect()
}

fn commit_paths_only(fixture: &Fixture, engine: GitEngine, paths: &[Vec<u8>]) -> CommitOutcome {
    let rule = hold_back_rule();
    let request = CommitRequest { paths: Some(paths), ..request(fixture, &rule) };
    fixture.with_engine(engine).commit_all(&request).unwrap()
}

#[test]
fn every_kind_of_change_that_was_seen_is_committed() {
    let kinds: [EditKind; 12] = [
        ("a changed file", |fixture| fixture.write("a.txt", "changed")),
        ("one that is gone", |fixture| fixture.remove("dir/c.txt")),
        ("a new one", |fixture| fixture.write("dir/sub/new", "new")),
        ("one that can be executed", |fixture| fixture.chmod("a.txt", 0o755)),
        ("a file that became a link", |fixture| {
            fixture.remove("a.txt");
            fixture.link("b.txt", "a.txt");
        }),
        ("a file that became a folder", |fixture| {
            fixture.remove("a.txt");
            fixture.write("a.txt/inside", "x");
        }),
        ("a folder that became a file", |fixture| {
            fixture.remove("dir");
            fixture.write("dir", "x");
        }),
        ("a folder that became a link to one with a file of the same name", |fixture| {
            fixture.remove("dir");
            fixture.write("other/c.txt", "another");
            fixture.link("other", "dir");
        }),
        ("a file that is staged", |fixture| {
            fixture.write("new", "x");
            fixture.git(&["add", "new"]);
        }),
        ("a file that was staged and is gone", |fixture| {
            fixture.write("new", "x");
            fixture.git(&["add", "new"]);
            fixture.remove("new");
            fixture.write("b.txt", "changed");
        }),
        ("a file that git forgot", |fixture| drop(fixture.git(&["rm", "--quiet", "--cached", "a.txt", "b.txt"]))),
        ("a file that became a repository", |fixture| {
            fixture.remove("a.txt");
            fixture.nested("a.txt");
        }),
    ];
    for engine in ENGINES {
        for (what, change) in kinds {
            let some = Fixture::new();
            let all = Fixture::new();
            change(&some);
            change(&all);
            let rule = hold_back_rule();
            let paths = list_changes(&some.with_engine(engine));
            let request = CommitRequest { allow_empty: true, ..request(&all, &rule) };
            let whole = all.with_engine(engine).commit_all(&request).unwrap();
            let request = CommitRequest { parent: Some(some.head()), paths: Some(&paths), ..request };
            let within = some.with_engine(engine).commit_all(&request).unwrap();
            let names = |fixture: &Fixture| fixture.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]);
            assert_eq!((names(&some), some.status()), (names(&all), all.status()), "{what}");
            assert_eq!(within.held_back, whole.held_back, "{what}");
        }
    }
}

#[test]
fn later_writes_are_left_for_the_next_look() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "seen");
    let repository = fixture.repository();
    let rule = hold_back_rule();
    let paths = list_changes(&repository);
    fixture.write("b.txt", "not seen");
    fixture.write("new", "not seen");
    repository.commit_all(&CommitRequest { paths: Some(&paths), ..request(&fixture, &rule) }).unwrap();
    assert_eq!(fixture.status(), " M b.txt\n?? new");
    assert_eq!(fixture.git(&["show", "HEAD:a.txt"]), "seen");
}

#[test]
fn path_that_is_as_it_was_is_no_change() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "changed");
    let paths = [b"a.txt".to_vec(), b"b.txt".to_vec(), b"nothing".to_vec()];
    commit_paths_only(&fixture, GitEngine::Gix, &paths);
    assert_eq!(fixture.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "a.txt");
    fixture.assert_sound();
}

#[test]
fn file_that_is_held_back_no_longer_is_committed_unseen() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("a.txt", "changed");
        fixture.write("large", "x".repeat(LARGE));
        assert_eq!(
            commit_paths_only(&fixture, engine, &list_changes(&fixture.with_engine(engine))).held_back,
            ["large"]
        );
        fixture.write("large", "small by now");
        assert_eq!(list_changes(&fixture.with_engine(engine)), Vec::<Vec<u8>>::new());
        commit_paths_only(&fixture, engine, &[]);
        assert_eq!(fixture.git(&["show", "HEAD:large"]), "small by now");
        fixture.assert_sound();
    }
}
